"""How wide a text is in Arial: Graphviz draws where we say, so we must know what fits.

The widths are those of the font's metrics, in thousandths of its size; Liberation Sans and Arimo share them. Other
characters get a width that is rather too large.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

PER_WIDTH: Final = {
    191: "'",
    222: "ijl",
    260: "|",
    278: " !,./:;I[\\]ft",
    333: "()-`r·",
    334: "{}",
    355: '"',
    389: "*",
    469: "^",
    500: "Jckszvxy",
    556: "#$0123456789?L_abdeghnopqu",
    584: "+<=>~×−÷",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    889: "%",
    944: "W",
    1000: "…→",
    1015: "@",
}
WIDTHS: Final = {char: width for width, chars in PER_WIDTH.items() for char in chars}
BOLD: Final = 1.08
LINE: Final = 1.2


def width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of one line in points."""
    return sum(map(_width, text)) * size / 1000 * (BOLD if bold else 1)


def height(sizes: Sequence[float]) -> float:
    """The height in points of rows of text in these sizes, one under the other."""
    return sum(size * LINE + 2 for size in sizes)


@lru_cache(maxsize=4096)
def _width(char: str) -> int:
    if char in WIDTHS:
        return WIDTHS[char]
    if unicodedata.combining(char):
        return 0
    return 1400 if unicodedata.east_asian_width(char) in "WF" or ord(char) > 0xFFFF else 1000
