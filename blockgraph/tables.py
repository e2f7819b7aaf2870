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
TOKEN: Final = re.compile(r"[^\s(,+*/@-]*[\s(,+*/@-]+|[^\s(,+*/@-]+")
"""What stays together where a cell is broken into lines."""
LEAST: Final = 16
"""Characters that a column keeps when it must wrap."""
MOST: Final = 200
"""Characters of a cell: a longer one is cut."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `right` is for numbers; `wrap` lets it break over several lines where the screen is narrow."""

    title: str
    right: bool = False
    wrap: bool = False


def table(head: Sequence[Column], rows: Sequence[Sequence[str]], console: Console, width: int = 80) -> str:
    """The rows under their titles, each line ended, no line ending in spaces.

    Every column is as wide as its widest cell; those that wrap share what is left of `width`.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[_shown(cell, console) for cell in row] for row in rows]
    widths = [max(map(columns, (one.title, *(row[index] for row in cells)))) for index, one in enumerate(head)]
    gap = 2 if sum(widths) + 2 * (len(head) - 1) <= width else 1
    least = sum(min(size, LEAST) if one.wrap else size for one, size in zip(head, widths, strict=True)) + gap * (
        len(head) - 1
    )
    room = (
        max(width, least)
        - gap * (len(head) - 1)
        - sum(size for one, size in zip(head, widths, strict=True) if not one.wrap)
    )
    share = max(LEAST, room // max(1, sum(one.wrap for one in head)))
    cells = [[_broken(cell, share) if one.wrap else cell for one, cell in zip(head, row, strict=True)] for row in cells]
    style = box.SIMPLE_HEAD if console.shown(LINE) == LINE else box.Box(ASCII_LINES, ascii=True)
    drawn = Table(box=style, show_edge=False, pad_edge=False, padding=(0, 0, 0, gap - 1))
    for one in head:
        side: Literal["left", "right"] = "right" if one.right else "left"
        drawn.add_column(Text(one.title), justify=side, no_wrap=not one.wrap, overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    return _printed(drawn, max(width, least), console)


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
    """A cell in lines of at most `width` columns, broken at spaces, and behind brackets, commas and signs."""
    lines = [""]
    for token in TOKEN.findall(cell):
        if lines[-1] and columns(lines[-1]) + columns(token.rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += token
    return "\n".join(lines)


def _shown(cell: str, console: Console) -> str:
    return console.shown(cell if len(cell) <= MOST else cell[: MOST - 1] + "…")
