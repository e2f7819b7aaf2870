"""The page of a finding's code as plain pieces, so that whoever shows it writes no markup."""

from __future__ import annotations

import re
from typing import Final

from blockgraph.explain.code_pages import page

PIECE: Final = re.compile(
    r"```\w*\n(?P<code>.*?)^```$|^#+ (?P<heading>[^\n]+)$|(?P<text>[^\n]+(?:\n[^\n#`]+)*)", re.M | re.S
)


def pieces(code: str) -> list[list[str]]:
    """Headings, paragraphs and code of a page in order: `["heading", "What it means"]`."""
    found = []
    for match in PIECE.finditer(page(code)):
        kind = match.lastgroup or "text"
        text = match[kind].rstrip("\n")
        found.append([kind, text if kind == "code" else " ".join(text.split())])
    return found
