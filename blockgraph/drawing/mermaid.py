"""Diagram -> Mermaid: the same boxes, plates and wires as a flowchart text, for pages that draw such texts themselves.

Ids are ours (`n0`, `plate0`); every text is quoted, and what is neither a letter nor harmless is written as a
character code, so that no name becomes markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from blockgraph.dims import Dim, show
from blockgraph.drawing.axes import Rankdir
from blockgraph.drawing.diagram import FIGURE, Box, Wire
from blockgraph.drawing.marking import CLASSES
from blockgraph.drawing.text import Label, lines, visible
from blockgraph.drawing.themes import LIGHT
from blockgraph.drawing.trail import trail
from blockgraph.drawing.wiring import Wiring

HARMLESS: Final = frozenset(" ,()")  # the others may begin a list, an emphasis or a link where labels are Markdown
OPENINGS: Final = {"circle": ("((", "))"), "pill": ("([", "])"), "input": ("[", "]"), "output": ("[", "]")}


def write_mermaid(
    wirings: Sequence[tuple[Wiring, Label]],
    shapes: str,
    values: Sequence[Mapping[str, Dim | int]],
    *,
    highways: Sequence[bool],
    rankdir: Rankdir = "BT",
) -> str:
    """The flowchart of figures side by side, each a subgraph under its title."""
    out = [f"flowchart {rankdir}"]
    ids = _Ids(rankdir)
    for (wiring, title), known, highway in zip(wirings, values, highways, strict=True):
        out += _Figure(wiring, title, shapes, known, ids).statements(trail(wiring) if highway else set())
    out += [f"  classDef {family} fill:{fill},stroke:{LIGHT.ink},color:{LIGHT.text}" for family, fill in _fills()]
    out += [f"  classDef {CLASSES[sign]} stroke:{colour},stroke-width:3px" for sign, colour in LIGHT.marks.items()]
    out.append("  classDef io fill:none,stroke:none")
    out.append(f"  classDef toll stroke:{LIGHT.highway},stroke-width:4px")
    return "\n".join([*out, ""])


def quoted(texts: Iterable[str]) -> str:
    """Lines of text as one quoted text."""
    return '"' + "<br/>".join("".join(map(_escaped, line)) or " " for line in texts) + '"'


def _escaped(char: str) -> str:
    char = visible(char)
    return char if char.isalnum() or char in HARMLESS or ord(char) > 0x7F else f"#{ord(char)};"


def _fills() -> list[tuple[str, str]]:
    return [*LIGHT.fills.items(), ("operator", LIGHT.operator)]


class _Ids:
    """Counts over all figures."""

    def __init__(self, rankdir: Rankdir) -> None:
        self.rankdir = rankdir
        self.nodes = self.plates = 0

    def plate(self) -> str:
        self.plates += 1
        return f"plate{self.plates - 1}"


class _Figure:
    """One diagram being written."""

    def __init__(self, wiring: Wiring, title: Label, shapes: str, values: Mapping[str, Dim | int], ids: _Ids) -> None:
        self.wiring, self.title, self.shapes, self.values, self.ids = wiring, title, shapes, values, ids
        self.names = {box: f"n{ids.nodes + n}" for n, box in enumerate(wiring.live)}
        ids.nodes += len(self.names)

    def statements(self, thick: set[tuple[int, int]]) -> list[str]:
        """The lines of this figure: plates with their boxes, then the wires, operand by operand."""
        out = list(self.tree())
        for index in self.wiring.live:
            rail = self.wiring.rails.get(index)
            for wire in self.wiring.boxes[index].inputs:
                bold = (wire.box, index) in thick
                arrow = "==>" if bold or (rail is not None and wire == rail.wire) else "-->"
                told = self.told(index, wire)
                text = f"|{quoted(told.splitlines())}|" if told else ""
                out.append(f"  {self.names[wire.box]} {arrow}{text} {self.names[index]}")
        return [*out, *self.classes()]

    def classes(self) -> Iterator[str]:
        """The boxes that are marked or stand on the highway."""
        for index, name in self.names.items():
            box = self.wiring.boxes[index]
            if box.mark is not None or box.toll:
                yield f"  class {name} {CLASSES[box.mark.sign] if box.mark is not None else 'toll'}"

    def tree(self) -> Iterator[str]:
        """The plates from the outermost inwards, by a stack of work instead of recursion."""
        inside = self.inside()
        work: list[tuple[int, int | str]] = [(1, FIGURE)]
        while work:
            depth, item = work.pop()
            pad = "  " * depth
            if isinstance(item, str):
                yield pad + item
                continue
            plate = self.wiring.diagram.plates[item]
            texts = [*self.title.title, *self.title.small] if item == FIGURE else [plate.text[0], *plate.text[1]]
            yield f"{pad}subgraph {self.ids.plate()}[{quoted(filter(None, texts))}]"
            yield f"{pad}  direction {self.ids.rankdir}"
            work.append((depth, "end"))
            work += [(depth + 1, child) for child in reversed(inside[item])]

    def inside(self) -> dict[int, list[int | str]]:
        """What each plate holds: statements of boxes, numbers of plates; plates without boxes are left out."""
        found: dict[int, list[int | str]] = {plate: [] for plate in range(len(self.wiring.diagram.plates))}
        seen = {FIGURE}
        for box in self.wiring.live:
            plate = self.wiring.boxes[box].plate
            for inner in self.wiring.diagram.around(plate):
                parent = self.wiring.diagram.plates[inner].parent
                if inner not in seen and parent is not None:
                    seen.add(inner)
                    found[parent].append(inner)
            found[plate].append(self.node(box))
        return found

    def node(self, index: int) -> str:
        box = self.wiring.boxes[index]
        opening, closing = OPENINGS.get(box.look, ("(", ")"))
        title, details = box.text
        text = quoted(line for part in (title, *details) for line in lines(part))
        return f"{self.names[index]}{opening}{text}{closing}:::{_css(box)}"

    def told(self, index: int, wire: Wire) -> str:
        """The shape to write on a wire: where it changes along the main path, everywhere, or nowhere."""
        if wire.note or wire.shape is None or self.shapes == "none":
            return wire.note
        main, below = self.wiring.main(index), self.wiring.main(wire.box)
        new = wire == main and (below is None or below.seen != wire.shape)
        out = self.wiring.boxes[index].look == "output"
        told = self.shapes == "all" or out or new
        return show(tuple(dim.subs(self.values) for dim in wire.shape)) if told else ""


def _css(box: Box) -> str:
    if box.look in ("input", "output"):
        return "io"
    return box.family if box.family in LIGHT.fills or box.family == "operator" else "other"
