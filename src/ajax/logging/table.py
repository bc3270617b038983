"""`progress.csv` as text: rows of different columns in, the same rows out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def columns(rows: Iterable[Row]) -> list[str]:
    """Return the names that occur in the rows, in order of their first occurrence."""
    return list(dict.fromkeys(name for row in rows for name in row))


def to_csv(rows: Iterable[Row], names: list[str], *, header: bool) -> str:
    """Return the rows as lines of CSV; a cell that a row lacks is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_csv(path: Path) -> list[Row]:
    """Return the rows of a CSV file: whole numbers as int, other numbers as float, empty cells left out.

    A last line without its end, as a killed process leaves it, is dropped. A file that isn't there has no rows.
    """
    if not path.is_file():
        return []
    whole, _, _ = path.read_text().rpartition("\n")
    rows = csv.DictReader(io.StringIO(whole))
    return [{name: _parsed(cell) for name, cell in row.items() if cell} for row in rows]


def _parsed(cell: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(cell)
        except ValueError:
            pass
    return cell
