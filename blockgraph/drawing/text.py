"""Text for a drawing: everything from a spec goes through here, so that no name becomes markup, a port or a link.

All labels are HTML-like, since plain DOT strings give `\\`, `{`, `|` and `:` meanings of their own. A text of any
length is kept whole, in lines of at most `WRAP` characters; what is past `LIMIT` characters is left out, and an
ellipsis with the number of missing characters says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from blockgraph.drawing import measure
from blockgraph.records import dataclass

WRAP: Final = 60
LIMIT: Final = 20_000
SMALL: Final = 9.0
INK: Final = "#333333"
INVALID: Final = frozenset({0xFFFE, 0xFFFF, *range(0xD800, 0xE000)})


def escape(text: str) -> str:
    """One line of text as HTML-label text, character for character.

    Runs of spaces are kept by no-break spaces, control characters are shown by their symbols (`␛`).
    """
    return "".join(_escaped(char) for char in text).replace("  ", " &#160;") or "&#160;"


def rows(lines: Sequence[str]) -> str:
    """Escaped lines one under the other: as a table if they are several, since line breaks stand too close."""
    if len(lines) < 2:
        return "".join(lines)
    body = "".join(f'<TR><TD ALIGN="LEFT">{line}</TD></TR>' for line in lines)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{body}</TABLE>'


def visible(char: str) -> str:
    """A character as it can be drawn: a control character as its symbol, what no file may hold as a stand-in."""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{REPLACEMENT CHARACTER}" if code in INVALID or 0x7F <= code < 0xA0 else char


def _escaped(char: str) -> str:
    char = visible(char)
    if char == "\\":
        return "&#92;&#92;"  # Graphviz reads `\\G` in a label as the name of the graph
    return f"&#{ord(char)};" if char in "&<>\"'[]" else char


def lines(text: str, width: int = WRAP) -> list[str]:
    """The text in lines: broken at its line breaks, then at spaces, and inside a word that is too long."""
    if len(text) > LIMIT:
        text = f"{text[:LIMIT]}… ({len(text) - LIMIT} characters more)"
    found: list[str] = []
    for line in text.splitlines() or [""]:
        found += _wrapped(line, width)
    return found


def _wrapped(line: str, width: int) -> Iterable[str]:
    """The line in pieces that joined give the line again."""
    while len(line) > width:
        cut = _last(line, " ", width) or max(_last(line, mark, width) for mark in "_-") or width
        yield line[:cut]
        line = line[cut:]
    yield line


def _last(line: str, mark: str, width: int) -> int:
    """Behind the last such mark in a line of this width, not too near to its start; 0 if there is none."""
    return line.rfind(mark, width // 4, width) + 1


@dataclass(frozen=True, slots=True)
class Label:
    """Lines of text: a title, and small lines under it."""

    title: tuple[str, ...]
    small: tuple[str, ...] = ()
    size: float = 12.0
    bold: bool = False
    left: bool = False

    @property
    def width(self) -> float:
        """The width of the widest line in points."""
        title = (measure.width(line, self.size, bold=self.bold) for line in self.title)
        return max([0.0, *title, *(measure.width(line, SMALL) for line in self.small)])

    @property
    def height(self) -> float:
        """The height of all lines in points."""
        return measure.height([self.size] * len(self.title) + [SMALL] * len(self.small))

    @property
    def html(self) -> str:
        """The HTML-like label of DOT, with its brackets, in the colours of a light page."""
        return self.written(INK)

    def written(self, ink: str) -> str:
        """The HTML-like label of DOT, its small lines in a colour."""
        side = ' ALIGN="LEFT"' if self.left else ""
        opening, closing = ("<B>", "</B>") if self.bold else ("", "")
        cells = [f'<FONT POINT-SIZE="{self.size:g}">{opening}{escape(line)}{closing}</FONT>' for line in self.title]
        cells += [f'<FONT POINT-SIZE="{SMALL:g}" COLOR="{ink}">{escape(line)}</FONT>' for line in self.small]
        body = "".join(f"<TR><TD{side}>{cell}</TD></TR>" for cell in cells)
        return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{body}</TABLE>>' if cells else '""'


def label(
    title: str,
    details: Iterable[str] = (),
    *,
    size: float = 12.0,
    bold: bool = False,
    left: bool = False,
    width: int = WRAP,
) -> Label:
    """A label whose title has at most `width` characters a line, and half as many again in the small lines."""
    small = tuple(line for text in details for line in lines(text, width + width // 2))
    return Label(tuple(lines(title, width)) if title else (), small, size, bold, left)
