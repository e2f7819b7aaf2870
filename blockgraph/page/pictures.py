"""The pictures of a page: one SVG per level, made fit to stand in HTML, and what its boxes and plates are.

Ids get the level in front, so that several pictures can stand in one page; an edge says which boxes it joins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree import ElementTree

from blockgraph.drawing import Box, Plate, Told, draw, written
from blockgraph.graph import Graph
from blockgraph.records import dataclass

SVG: Final = "{http://www.w3.org/2000/svg}"
EDGE: Final = re.compile(r"(n\d+)->(n\d+)")
DROPPED: Final = ("font-family", "{http://www.w3.org/XML/1998/namespace}space")


@dataclass(frozen=True, slots=True)
class Picture:
    """One level: its SVG text, and its boxes and plates by id; `inside` is the plate around each."""

    level: str
    svg: str
    boxes: Mapping[str, Box]
    plates: Mapping[str, Plate]
    inside: Mapping[str, str]


def picture(graphs: Sequence[Graph], title: str, told: Told, *, hidden: bool = False) -> Picture:
    """The picture of graphs at the level in `told`. Raises EnvironmentFailure."""
    level = told.get("level", "sublayer")
    made = written(graphs, **told)
    root = ElementTree.fromstring(draw(made.dot, "svg"))
    _tidy(root, level, title)
    root.attrib |= {"hidden": ""} if hidden else {}
    return Picture(
        level,
        ElementTree.tostring(root, encoding="unicode"),
        {f"{level}-{name}": box for name, box in made.boxes.items()},
        {f"{level}-{name}": plate for name, plate in made.plates.items()},
        {f"{level}-{name}": f"{level}-{plate}" for name, plate in made.inside.items()},
    )


def _tidy(root: ElementTree.Element, level: str, title: str) -> None:
    """Names that are unique in the page, no tooltips of the drawing program, fonts from the style sheet."""
    root.attrib |= {"class": "picture", "id": f"{level}-picture", "role": "img", "aria-label": title}
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        for name in DROPPED:
            element.attrib.pop(name, None)
        if element.get("stroke") == "transparent":
            element.set("stroke", "none")
        element.tail = (element.tail or "").strip() or None
        if element.tag != "text":
            element.text = (element.text or "").strip() or None
    for group, name in _titled(root):
        group.attrib.pop("id", None)
        joined = EDGE.fullmatch(name)
        if joined:
            group.attrib |= {"data-from": f"{level}-{joined[1]}", "data-to": f"{level}-{joined[2]}"}
        elif re.fullmatch(r"n\d+|cluster\d+", name):
            group.set("id", f"{level}-{name}")


def _titled(root: ElementTree.Element) -> Iterator[tuple[ElementTree.Element, str]]:
    """The groups with the names that their titles had."""
    for group in list(root.iter("g")):
        title = group.find("title")
        name = "" if title is None else title.text or ""
        if title is not None:
            group.remove(title)
        yield group, name
