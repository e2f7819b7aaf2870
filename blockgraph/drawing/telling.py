"""What is written beside lines: shapes and names of values where a line starts, names of operands where it ends."""

from __future__ import annotations

from collections.abc import Mapping

from blockgraph.dims import Dim, show
from blockgraph.drawing.arrange import Path, Sketch
from blockgraph.drawing.layout import enters_aside


def tells(sketch: Sketch, shapes: str, values: Mapping[str, Dim | int]) -> dict[int, str]:
    """The text beside each path that has one; `values` are the numbers to write for symbols."""
    found = ((number, _told(sketch, path, shapes, values)) for number, path in enumerate(sketch.paths))
    return {number: text for number, text in found if text}


def names(sketch: Sketch) -> dict[int, str]:
    """What operands are called where they enter: those from the side, and those whose order matters."""
    found = ((number, path) for number, path in enumerate(sketch.paths) if path.wire.name and not path.rail)
    return {number: path.wire.name for number, path in found if enters_aside(sketch, path) or _is_trunk(sketch, path)}


def _is_trunk(sketch: Sketch, path: Path) -> bool:
    box = sketch.wiring.boxes[path.end]
    return box.direct and box.trunk is not None and path.wire == sketch.wiring.main(path.end)


def _told(sketch: Sketch, path: Path, shapes: str, values: Mapping[str, Dim | int]) -> str:
    """A note; else the name of the value and its shape where that is to be told, and what a circle has no room for."""
    if path.wire.note:
        return path.wire.note
    start = sketch.wiring.boxes[path.start]
    said = start.details if start.look == "circle" and path.stem else ()
    return "\n".join(filter(None, (_value(sketch, path, shapes, values), *said)))


def _value(sketch: Sketch, path: Path, shapes: str, values: Mapping[str, Dim | int]) -> str:
    """The name of the value, and its shape where that is to be told."""
    wire, out = path.wire, sketch.wiring.boxes[path.end].look == "output"
    if wire.shape is None or shapes == "none" or (path.rail and shapes != "all"):
        return wire.called if path.stem else ""
    told = shapes == "all" or out or (path.stem and _changed(sketch, path))
    shape = show(tuple(dim.subs(values) for dim in wire.shape)) if told else ""
    return " ".join(filter(None, (wire.called if path.stem else "", shape)))


def _changed(sketch: Sketch, path: Path) -> bool:
    """Whether the shape is another than that of what the box is made from."""
    main = sketch.wiring.main(path.start)
    return main is None or main.seen != path.wire.shape
