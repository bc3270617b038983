"""Turns the pages' LaTeX into MathML while the site is built: formulas need no script and nothing from the network."""

from __future__ import annotations

import html as escape
import re
from typing import Any

from latex2mathml.converter import convert

# what pymdownx.arithmatex (generic) leaves in a page
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """Replace every formula of a rendered page (an event of MkDocs)."""

    def mathml(formula: re.Match) -> str:
        display = "block" if formula[1] == "div" else "inline"
        return convert(escape.unescape(formula[2]).strip(), display=display)

    return FORMULA.sub(mathml, html)
