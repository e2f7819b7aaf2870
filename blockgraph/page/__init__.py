"""Specs in, one self-contained HTML page out: pictures to zoom and fold, and what is known of every box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Unpack, get_args

from blockgraph.cost.parameters import count_parameters, number_of_parameters
from blockgraph.drawing import Level, Told, faults
from blockgraph.errors import Finding
from blockgraph.facts import prove, told
from blockgraph.page.document import document, escaped
from blockgraph.page.facts import Fact, Facts
from blockgraph.page.pages import pieces
from blockgraph.page.pictures import Picture, picture
from blockgraph.page.steps import Measured, as_data, located, measured, sizes
from blockgraph.page.still import findings_list, heading, parts_table
from blockgraph.page.subject import Subject

__all__ = ["Measured", "Subject", "measured", "page"]

ENDS: Final = ("input", "output", "port")
LEVELS: Final = get_args(Level)


def page(subjects: Sequence[Subject], trace: Sequence[Measured] = (), **shown: Unpack[Told]) -> str:
    """The page of specs side by side; `trace` are steps of a run of the first.

    Raises EnvironmentFailure (no Graphviz program), InputError (BG304, the trace is of another spec).
    """
    graphs = [graph for one in subjects for graph in one.graphs]
    found = [finding for one in subjects for finding in one.findings]
    expand = shown.get("expand", False)
    steps = located(graphs[0], trace, expand=expand) if trace and graphs else []
    shown = {**shown, "marks": faults(graphs, found), "captions": [one.source for one in subjects for _ in one.graphs]}
    facts = Facts(graphs, found, _lines(subjects), sizes(graphs[0], steps) if steps else {})
    title = ", ".join(one.name for one in subjects)
    first = shown.get("level", "sublayer")
    pictures = [picture(graphs, title, {**shown, "level": level}, hidden=level != first) for level in LEVELS if graphs]
    listed = _Listed()
    levels = [_level(one, facts, listed) for one in pictures]
    still = LEVELS.index(first)
    data = {
        "about": [_about(one, named=len(subjects) > 1) for one in subjects],
        "facts": listed.facts,
        "levels": levels,
        "first": first,
        "runs": shown.get("rankdir", "BT"),
        "findings": [_finding(one, facts) for one in found],
        "codes": {code: pieces(code) for code in sorted({one.code for one in found})},
        "trace": as_data(steps, {one.level: one.boxes for one in pictures}) if steps else None,
    }
    slots = {
        "title": escaped(title),
        "names": heading(title),
        "sources": heading(", ".join(filter(None, (one.source for one in subjects)))),
        "pictures": "\n".join(one.svg for one in pictures),
        "findings": findings_list(found),
        "parts": parts_table(pictures[still], levels[still], listed.facts) if pictures else "",
    }
    return document(slots, data)


class _Listed:
    """Facts by number, each kept once."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self._numbers: dict[str, int] = {}

    def number(self, fact: Fact) -> int:
        """The number of a fact."""
        key = repr(fact)
        if key not in self._numbers:
            self._numbers[key] = len(self.facts)
            self.facts.append(fact)
        return self._numbers[key]


def _level(one: Picture, facts: Facts, listed: _Listed) -> dict[str, Any]:
    """A level for the page's script: the fact and the plate of each box and plate."""
    uses = Counter((one.inside.get(name), box.key) for name, box in one.boxes.items() if box.look not in ENDS)
    boxes, plates = {}, {}
    for name, box in one.boxes.items():
        plate = one.inside.get(name)
        boxes[name] = [listed.number(facts.of_box(box, step=uses[plate, box.key] > 1)), plate]
    for name, frame in one.plates.items():
        plates[name] = [listed.number(facts.of_plate(frame)), one.inside.get(name)]
    return {"name": one.level, "boxes": boxes, "plates": plates}


def _lines(subjects: Sequence[Subject]) -> Any:
    def line(path: str, number: int) -> str | None:
        return next((text for one in subjects if (text := one.lines(path, number)) is not None), None)

    return line


def _finding(one: Finding, facts: Facts) -> dict[str, Any]:
    line = facts.lines(one.place.path, one.place.start.line) if one.place.path else None
    return {
        "code": one.code,
        "severity": one.severity,
        "message": one.message,
        "label": one.label,
        "help": one.help,
        "related": [each.message for each in one.related],
        "line": one.place.start.line if line is not None else None,
        "text": line,
    }


def _about(one: Subject, *, named: bool) -> list[list[str]]:
    """What the panel says while nothing is chosen: label and text."""
    rows = [["spec", one.name]] if named else []
    rows += [["source", one.source]] if one.source else []
    if not one.graphs:
        return rows
    graph = one.graphs[0]
    dims = ", ".join(f"{name} = {size}" for name, size in graph.dims.items())
    rows += [["sizes", dims]] if dims else []
    known, count = number_of_parameters(graph), count_parameters(graph)
    rows += [["parameters", str(count) if known is None else f"{known:,}"]] if count is not None else []
    rows += [["needs", condition.text] for condition in graph.conditions]
    clean = not any(finding.severity == "error" for finding in one.findings)
    return rows + ([line.split(": ", 1) for line in told(prove(graph))] if clean else [])
