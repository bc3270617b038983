"""The documentation's examples run: every `python`, `bash` and `console` block, page by page, in a folder of its own.

The Python blocks of a page share one namespace and run in order, as a reader would type them. A block that can't run
here is preceded by `<!-- skip: reason -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(
    r"(?P<skip>^ *<!-- skip:(?P<reason>[^\n]*?)-->\n\n?)?"
    r"^(?P<indent> *)```(?P<language>python|bash|console)\b[^\n]*\n(?P<code>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A code block: its language, text and first line in the page, and why it is skipped (None if it runs)."""

    language: str
    code: str
    line: int
    skip: str | None


def blocks(text: str) -> list[Block]:
    """The code blocks of a page, in order."""
    return [
        Block(
            m["language"],
            textwrap.dedent(m["code"]),
            text.count("\n", 0, m.start("code")) + 1,
            m["reason"].strip() if m["skip"] else None,
        )
        for m in BLOCK.finditer(text)
    ]


def script(block: Block) -> str:
    """The shell commands of a `bash` block, or of a `console` block's lines that start with `$` (`>` continues one)."""
    if block.language == "bash":
        return block.code
    lines = block.code.splitlines()
    return "\n".join(line[2:] for line in lines if line.startswith(("$ ", "> ")))


def run(block: Block, page: str, namespace: dict) -> None:
    """Run one block here (Python) or in a shell that stops at the first failing command.

    Raises:
        AssertionError: a shell command failed; the message holds what it printed.
    """
    if block.language == "python":
        # Blank lines put the traceback's line numbers where the page has them.
        exec(compile("\n" * (block.line - 1) + block.code, page, "exec", dont_inherit=True), namespace)
        return
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(block)],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{page}:{block.line} exited {done.returncode}\n{done.stdout}\n{done.stderr}"


def _id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if any(b.skip is None for b in blocks(p.read_text()))], ids=_id)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks(page.read_text()):
        if block.skip is None:
            run(block, _id(page), namespace)


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_examples_are_python_and_skips_have_reasons(page):
    for block in blocks(page.read_text()):
        assert block.skip != "", f"{_id(page)}:{block.line}: say why the block is skipped"
        if block.language == "python":
            compile(block.code, f"{_id(page)}:{block.line}", "exec")


def test_blocks_are_found_with_their_lines_and_reasons():
    page = textwrap.dedent(
        """\
        Text.

        ```python title="one.py"
        x = 1
        ```

        - item

            <!-- skip: needs a GPU -->
            ```console
            $ ajax train \\
            >   PPO
            a line of output
            ```
        <!-- skip: -->
        ```bash
        true
        ```
        """
    )
    first, second, third = blocks(page)
    assert first == Block("python", "x = 1\n", 4, None)
    assert (second.line, second.skip, script(second)) == (11, "needs a GPU", "ajax train \\\n  PPO")
    assert (third.language, third.skip) == ("bash", "")


def test_a_failing_example_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError):
        run(Block("python", "1 / 0", 3, None), "page.md", {})
    with pytest.raises(AssertionError, match=r"page.md:3 exited 1"):
        run(Block("bash", "false\ntrue", 3, None), "page.md", {})
