"""Tables for a person to read, drawn by rich, which is loaded when the first table is drawn.

Cells are plain text from specs: they never become markup, and are made harmless before they are printed.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from blockgraph.records import dataclass
from blockgraph.report import Console, columns

if TYPE_CHECKING:
    from rich.table import Table

LINE: Final = "─"
ASCII_LINES: Final = "    \n    \n -- \n    \n    \n    \n    \n    \n"
WORD: Final = re.compile(r"\s*\S+(?: [-+](?=\s))?")
"""What stays together where a cell is broken into lines: a term and the sign behind it."""
TOKEN: Final = re.compile(r"(?:\*\*|[^\s(,+*/@-])*[\s(,+*/@-]+|(?:\*\*|[^\s(,+*/@-])+")
"""What stays together of a word that is longer than a line."""
LEAST: Final = 16
"""Characters that a column keeps when it must wrap."""
MOST: Final = 200
"""Characters of a cell: a longer one is cut."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `right` is for numbers.

    Where the screen is narrow one that may `wrap` breaks over several lines, and a `spare` one is left out at last.
    """

    title: str
    right: bool = False
    wrap: bool = False
    spare: bool = False


def table(head: Sequence[Column], rows: Sequence[Sequence[str]], console: Console, width: int = 80) -> str:
    """The rows under their titles, each line ended, no line ending in spaces.

    Every column is as wide as its widest cell; those that wrap share what is left of `width`.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[_shown(cell, console) for cell in row] for row in rows]
    head, cells, sizes, gap = _fitted(head, cells, width)
    cells = [[_broken(cell, size) for size, cell in zip(sizes, row, strict=True)] for row in cells]
    style = box.SIMPLE_HEAD if console.shown(LINE) == LINE else box.Box(ASCII_LINES, ascii=True)
    drawn = Table(box=style, show_edge=False, pad_edge=False, padding=(0, 0, 0, gap - 1))
    for one in head:
        side: Literal["left", "right"] = "right" if one.right else "left"
        drawn.add_column(Text(one.title), justify=side, no_wrap=not one.wrap, overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    return _printed(drawn, max(width, sum(sizes) + gap * (len(head) - 1)), console)


def _fitted(
    head: Sequence[Column], cells: list[list[str]], width: int
) -> tuple[Sequence[Column], list[list[str]], list[int], int]:
    """The columns that have room, their cells, how wide each is, and the gap between two."""
    full = [max(map(columns, (one.title, *(row[index] for row in cells)))) for index, one in enumerate(head)]
    if sum(full) + 2 * (len(head) - 1) <= width:
        return head, cells, full, 2
    least = [
        min(size, max(LEAST, *(_longest(row[index]) for row in cells), _longest(one.title))) if one.wrap else size
        for index, (one, size) in enumerate(zip(head, full, strict=True))
    ]
    room = width - len(head) + 1
    spare = next((index for index, one in enumerate(head) if one.spare), None)
    if sum(least) > room and spare is not None:
        kept = [row[:spare] + row[spare + 1 :] for row in cells]
        return _fitted([*head[:spare], *head[spare + 1 :]], kept, width)
    if sum(least) > room:  # at last a name is cut
        least = [min(size, LEAST) if one.wrap else size for one, size in zip(head, least, strict=True)]
    return head, cells, _shared(least, full, room), 1


def _shared(least: list[int], full: list[int], room: int) -> list[int]:
    """What each column gets of the room, from the least it needs to what its widest cell takes."""
    sizes = list(least)
    while sum(sizes) < room and sizes != full:
        narrow = min((index for index in range(len(sizes)) if sizes[index] < full[index]), key=sizes.__getitem__)
        sizes[narrow] += 1
    return sizes


def _longest(cell: str) -> int:
    """The longest stretch of a cell that is not broken."""
    return max((columns(token.rstrip()) for token in TOKEN.findall(cell)), default=0)


def real(number: float) -> str:
    """A number in a cell: four decimals; with an exponent where these would not show it."""
    plain = not math.isfinite(number) or number == 0 or 1e-3 <= abs(number) < 1e5
    return f"{number:.4f}" if plain else f"{number:.3e}"


def _printed(drawn: Table, width: int, console: Console) -> str:
    from rich.console import Console as Screen

    file = io.StringIO()
    system: Literal["standard"] | None = "standard" if console.color else None
    screen = Screen(
        file=file,
        width=width,
        color_system=system,
        force_terminal=console.color,
        no_color=not console.color,
        legacy_windows=False,
    )
    screen.print(drawn)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def _broken(cell: str, width: int) -> str:
    """A cell in lines of at most `width` columns, broken between terms; a longer term behind brackets and signs."""
    lines = [""]
    for word in WORD.findall(cell):
        whole = columns(word.strip()) <= width
        for token in [word] if whole else TOKEN.findall(word):
            if lines[-1] and columns(lines[-1]) + columns(token.rstrip()) > width:
                lines[-1] = lines[-1].rstrip()
                lines.append("")
            lines[-1] += token.lstrip() if len(lines) > 1 and not lines[-1] else token
    return "\n".join(lines)


def _shown(cell: str, console: Console) -> str:
    return console.shown(cell if len(cell) <= MOST else cell[: MOST - 1] + "…")
