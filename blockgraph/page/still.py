"""What of a page is there without its script, and in print: headings, the findings, a table of the parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from blockgraph.errors import Finding
from blockgraph.page.document import escaped
from blockgraph.page.facts import Fact
from blockgraph.page.pictures import Picture

COLUMNS: Final = ("Part", "Name", "Computes", "Result", "Parameters", "FLOPs in matrix products", "Line")


def heading(text: str) -> str:
    """Text of a spec, whichever way it is read."""
    return f"<bdi>{escaped(text)}</bdi>" if text else ""


def findings_list(findings: Sequence[Finding]) -> str:
    """The findings, each with its place and its remedy."""
    items = "".join(f"<li>{_finding(one)}</li>\n" for one in findings)
    return f'<section id="found">\n<h2>Findings</h2>\n<ul>\n{items}</ul>\n</section>' if items else ""


def _finding(one: Finding) -> str:
    place = f"line {one.place.start.line}: " if one.place.path else ""
    help = f"<br>help: {heading(one.help)}" if one.help else ""
    label = f" ({heading(one.label)})" if one.label else ""
    return f"<strong>{one.code}</strong> {one.severity}, {place}{heading(one.message)}{label}{help}"


def parts_table(picture: Picture, level: dict[str, Any], facts: Sequence[Fact]) -> str:
    """A row per box, under a row for each plate."""
    head = "".join(f'<th scope="col">{column}</th>' for column in COLUMNS)
    body = "".join(_rows(picture, level, facts))
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


def _rows(picture: Picture, level: dict[str, Any], facts: Sequence[Fact]) -> Iterator[str]:
    plate: str | None = None
    for name, box in picture.boxes.items():
        number, inside = level["boxes"][name]
        if inside is not None and inside != plate:
            fact = facts[level["plates"][inside][0]]
            words = " · ".join([str(fact["title"]), *map(str, fact.get("details", ()))])
            yield f'<tr class="group"><th colspan="{len(COLUMNS)}" scope="rowgroup">{heading(words)}</th></tr>\n'
        plate = inside
        if box.look != "output":
            yield _row(name, facts[number])


def _row(name: str, fact: Fact) -> str:
    flops = [cost[1] for cost in fact.get("costs", ()) if cost[0] == "FLOPs in matrix products"]
    cells = (
        " · ".join([fact["title"], *fact.get("details", ())]),
        fact.get("name", ""),
        "; ".join(fact.get("equations", ())) or fact.get("formula", ""),
        ", ".join(one[1] for one in fact.get("results", ())),
        ", ".join(f"{one[0]} {one[1]}" for one in fact.get("parameters", ())),
        *(flops or [""]),
        ", ".join(str(line) for line, _ in fact.get("places", ())),
    )
    return f'<tr data-box="{name}">{"".join(f"<td>{heading(cell)}</td>" for cell in cells)}</tr>\n'
