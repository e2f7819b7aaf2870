"""What is wrong with a picture, read from its SVG alone: overlaps, crossings, texts that leave their boxes.

`python -m tests.geometry` looks at every spec, at two levels, upwards and to the right, drawn by every Graphviz program
there is; the tests look at a sample.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import blockgraph as bg
from blockgraph.drawing import draw, measure, program, to_dot
from blockgraph.drawing.collapse import Look, collapse
from blockgraph.drawing.wiring import Wiring
from blockgraph.graph import Graph

ROOT = Path(__file__).parent.parent
SPECS = sorted(path.relative_to(ROOT / "specs").as_posix() for path in (ROOT / "specs").rglob("*.yaml"))
SVG = "{http://www.w3.org/2000/svg}"
SLACK = 0.5  # points: half of a thin line

Frame = tuple[float, float, float, float]
Spot = tuple[float, float]


@dataclass
class Text:
    """A line of text and the rectangle that its letters are in."""

    words: str
    frame: Frame


@dataclass
class Thing:
    """A node, a plate or an edge: its name, its classes, its outline, its texts."""

    name: str
    css: list[str]
    frame: Frame
    spots: list[Spot]
    texts: list[Text] = field(default_factory=list)

    @property
    def ends(self) -> list[str]:
        """The nodes at both ends of an edge."""
        return self.name.split("->")

    @property
    def stretches(self) -> list[tuple[Spot, Spot]]:
        """The straight stretches of an edge; its curves are straight, so that every third point is a corner."""
        return list(pairwise(self.spots[::3]))


class Picture:
    """An SVG of ours read back."""

    def __init__(self, svg: bytes) -> None:
        self.nodes: dict[str, Thing] = {}
        self.plates: list[Thing] = []
        self.edges: list[Thing] = []
        self.titles: list[Text] = []
        for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
            css = group.get("class", "").split()
            if css[:1] == ["node"]:
                thing = read(group, css[1:])
                self.nodes[thing.name] = thing
            elif css[:1] == ["cluster"] and "plate" in css:
                self.plates.append(read(group, css[1:]))
            elif css[:1] == ["cluster"]:
                self.titles += [text_of(part) for part in group.iter(f"{SVG}text")]
            elif css[:1] == ["edge"]:
                self.edges.append(read(group, css[1:]))


def read(group: ElementTree.Element, css: list[str]) -> Thing:
    """One group of the SVG."""
    title = group.find(f"{SVG}title")
    shapes = [part for part in group.iter() if part.tag in (f"{SVG}path", f"{SVG}polygon", f"{SVG}ellipse")]
    name = "" if title is None else (title.text or "")
    texts = [text_of(part) for part in group.iter(f"{SVG}text")]
    spots = outline(shapes[0]) if shapes else [texts[0].frame[:2], texts[0].frame[2:]]  # an input is only text
    xs, ys = [x for x, _ in spots], [y for _, y in spots]
    return Thing(name, css, (min(xs), min(ys), max(xs), max(ys)), spots, texts)


def outline(shape: ElementTree.Element) -> list[Spot]:
    """The points of a shape."""
    if shape.tag == f"{SVG}ellipse":
        x, y, rx, ry = (float(shape.get(key, "nan")) for key in ("cx", "cy", "rx", "ry"))
        return [(x - rx, y - ry), (x + rx, y + ry)]
    numbers = re.findall(r"(-?[\d.]+),(-?[\d.]+)", shape.get("d") or shape.get("points", ""))
    return [(float(x), float(y)) for x, y in numbers]


def text_of(part: ElementTree.Element) -> Text:
    """The rectangle of a line of text, by the widths of its font."""
    words, size = "".join(part.itertext()).replace("\N{NO-BREAK SPACE}", " "), float(part.get("font-size", "14"))
    wide = measure.width(words.strip(), size, bold=part.get("font-weight") == "bold")
    x, y = float(part.get("x", "nan")), float(part.get("y", "nan"))
    left = x - {"middle": wide / 2, "end": wide}.get(part.get("text-anchor", "start"), 0.0)
    return Text(words, (left, y - 0.72 * size, left + wide, y + 0.1 * size))


def apart(one: Frame, other: Frame, slack: float = SLACK) -> bool:
    """Whether two rectangles have no room in common."""
    beside = one[2] <= other[0] + slack or other[2] <= one[0] + slack
    return beside or one[3] <= other[1] + slack or other[3] <= one[1] + slack


def inside(one: Frame, other: Frame, slack: float = SLACK) -> bool:
    """Whether one rectangle is in the other."""
    left, low, right, high = other
    return left <= one[0] + slack and low <= one[1] + slack and one[2] <= right + slack and one[3] <= high + slack


def around(low: Spot, high: Spot) -> Frame:
    """The rectangle of a straight stretch."""
    return min(low[0], high[0]), min(low[1], high[1]), max(low[0], high[0]), max(low[1], high[1])


def faults(picture: Picture) -> Iterator[str]:
    """Everything that a reader would stumble over."""
    yield from overlaps(picture)
    yield from crossings(picture)
    yield from strays(picture)


def overlaps(picture: Picture) -> Iterator[str]:
    """Boxes on boxes, borders of plates through boxes and through each other."""
    boxes = [node for node in picture.nodes.values() if "tap" not in node.css]
    for one, other in combinations(boxes, 2):
        if not apart(one.frame, other.frame):
            yield f"{one.name} lies on {other.name}"
    for plate in picture.plates:
        for node in picture.nodes.values():
            if not apart(node.frame, plate.frame) and not inside(node.frame, plate.frame):
                yield f"the border of {plate.name} runs through {node.name}"
    for one, other in combinations(picture.plates, 2):
        nested = inside(one.frame, other.frame) or inside(other.frame, one.frame)
        if not apart(one.frame, other.frame) and not nested:
            yield f"{one.name} and {other.name} cross"


def crossings(picture: Picture) -> Iterator[str]:
    """Lines that are not straight, and lines through boxes that are not their ends."""
    for edge in picture.edges:
        for low, high in edge.stretches:
            if abs(low[0] - high[0]) > 0.1 and abs(low[1] - high[1]) > 0.1:
                yield f"{edge.name} runs aslant"
            for node in picture.nodes.values():
                if "tap" not in node.css and node.name not in edge.ends:
                    if not apart(around(low, high), node.frame):
                        yield f"{edge.name} runs through {node.name}"
            for plate in picture.plates:
                if not apart(around(low, high), plate.frame) and not any(
                    inside(picture.nodes[end].frame, plate.frame) for end in edge.ends
                ):
                    yield f"{edge.name} runs through {plate.name}, where it has no end"


def strays(picture: Picture) -> Iterator[str]:
    """Texts that leave their boxes, lie on boxes, on lines, on borders or on each other."""
    for thing in [*picture.nodes.values(), *picture.plates]:
        yield from (
            f"{text.words!r} leaves {thing.name}" for text in thing.texts if not inside(text.frame, thing.frame)
        )
    loose = [text for edge in picture.edges for text in edge.texts]
    written = [*loose, *(text for plate in picture.plates for text in plate.texts), *picture.titles]
    for one, other in combinations(written, 2):
        if not apart(one.frame, other.frame):
            yield f"{one.words!r} lies on {other.words!r}"
    for text in written:
        yield from (
            f"{text.words!r} lies on {node.name}"
            for node in picture.nodes.values()
            if not apart(text.frame, node.frame)
        )
        yield from (f"{edge.name} runs through {text.words!r}" for edge in picture.edges if strikes(edge, text))
    for text in loose:
        plates = [
            one.name for one in picture.plates if not apart(text.frame, one.frame) and not inside(text.frame, one.frame)
        ]
        yield from (f"the border of {plate} runs through {text.words!r}" for plate in plates)


def strikes(edge: Thing, text: Text) -> bool:
    """Whether a line runs through a text."""
    return not all(apart(around(*stretch), text.frame, -0.3) for stretch in edge.stretches)


def bends(picture: Picture, graph: Graph, level: str, rankdir: str) -> Iterator[str]:
    """Boxes of the spine that are off it, and rails of the spine that are not straight beside it."""
    wiring = Wiring(collapse(graph, Look(level)))  # type: ignore[arg-type]
    names = {box: f"n{number}" for number, box in enumerate(wiring.live)}
    across = 0 if rankdir == "BT" else 1
    drawn = [
        names[box] for box in wiring.columns[0] if wiring.boxes[box].look not in ("input", "output")
    ]  # they are text
    spine = {name: middle(picture.nodes[name])[across] for name in drawn}
    least, most = min(spine.values()), max(spine.values())
    if most - least > 0.1:
        yield f"the spine is {most - least:.2f} points wide"
    for edge in picture.edges:
        if "rail" not in edge.css or edge.ends[1] not in spine:
            continue
        nearest = min(min(spot[across] for spot in stretch) for stretch in edge.stretches)
        along = [
            s for s in edge.stretches if abs(s[0][across] - s[1][across]) < 0.1 and abs(s[0][across] - nearest) < 0.1
        ]
        if not along or nearest >= least:
            yield f"the rail {edge.name} does not run beside the spine"


def middle(thing: Thing) -> Spot:
    """The centre of a box."""
    left, low, right, high = thing.frame
    return (left + right) / 2, (low + high) / 2


def look(name: str, level: str = "sublayer", rankdir: str = "BT") -> list[str]:
    """The faults of the picture of one spec."""
    graph = bg.check(ROOT / "specs" / name).graph
    assert graph is not None
    picture = Picture(draw(to_dot([graph], level=level, rankdir=rankdir), "svg"))  # type: ignore[arg-type]
    return [*faults(picture), *bends(picture, graph, level, rankdir)]


def main() -> int:
    """Look at everything by every program; the exit code says whether all is well."""
    found = 0
    for path in filter(None, dict.fromkeys([program.find_dot(), program._pure()])):
        os.environ[program.VARIABLE] = path
        for name in SPECS:
            for level in ("block", "sublayer", "op"):
                for rankdir in ("BT", "LR"):
                    for fault in look(name, level, rankdir):
                        found += 1
                        print(f"{Path(path).name} {name} {level} {rankdir}: {fault}")
    print(f"{found} faults in the pictures of {len(SPECS)} specs")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
