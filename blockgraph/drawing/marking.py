"""Marks: what is added, removed, changed or at fault. Each has a colour, a line of its own and a sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from blockgraph.records import dataclass

Sign = Literal["+", "-", "~", "!"]
Key = tuple[int, str | int]
"""A thing in a graph: the graph's `id`, and the scope of a part or the id of a node."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign, and lines to write under the title."""

    sign: Sign
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of graphs; `wires` are texts beside the wire from a value into a node, by graph, node and value."""

    boxes: Mapping[Key, Mark]
    wires: Mapping[tuple[int, int, int], str]


NO_MARKS: Final = Marks({}, {})
SHOWN: Final[Mapping[Sign, str]] = {"+": "+", "-": "\N{MINUS SIGN}", "~": "~", "!": "!"}
CLASSES: Final[Mapping[Sign, str]] = {"+": "added", "-": "removed", "~": "changed", "!": "guilty"}
COLOURS: Final[Mapping[Sign, str]] = {"+": "#117733", "-": "#AA3377", "~": "#AA5500", "!": "#CC0000"}
LINES: Final[Mapping[Sign, tuple[str, str]]] = {
    "+": ("solid", "2.8"),
    "-": ("dashed", "1.8"),
    "~": ("solid", "2.0"),
    "!": ("dashed", "2.4"),
}


def box_style(mark: Mark | None, colours: Mapping[Sign, str] = COLOURS) -> str:
    """The attributes of a marked box."""
    if mark is None:
        return ""
    line, width = LINES[mark.sign]
    return f', style="rounded,filled,{line}", color="{colours[mark.sign]}", penwidth={width}'


def wire_style(start: Mark | None, end: Mark | None, guilty: bool, colours: Mapping[Sign, str] = COLOURS) -> str:
    """The attributes of a wire from or to something added or removed, or into something at fault."""
    signs = [mark.sign for mark in (start, end) if mark is not None and mark.sign in "+-"]
    sign: Sign | None = "!" if guilty else signs[0] if signs else None
    if sign is None:
        return ""
    line = "dashed" if sign in "-!" else "bold"
    return f', color="{colours[sign]}", style="{line}"'
