"""Each placement as equation text: where the norms stand, what the skip path carries, how branches join.

    x = after( skip_scale * s + sum_i branch_scale_i * output_i( f_i( input_i(s) ) ) )

`pre` sets the input norm, `post` the one after the sum, `sandwich` input and output, `output` the output only.
A placement may also be equations in `f`, written once and copied for every sublayer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from blockgraph.equation import parse_equations, parse_expression
from blockgraph.records import dataclass
from blockgraph.syntax import Attr, Binary, Call, Equation, Name, Unary, walk

NAMED: Mapping[str, frozenset[str]] = {
    "pre": frozenset({"input"}),
    "post": frozenset({"after"}),
    "sandwich": frozenset({"input", "output"}),
    "output": frozenset({"output"}),
    "none": frozenset(),
}
PLACES = ("input", "output", "after")
NORM, SUBLAYER = "norm", "f"


@dataclass(frozen=True, slots=True)
class Member:
    """A sublayer to be wired: the part's name, its number, its own norm places and what it is passed."""

    part: str
    number: int
    places: frozenset[str]
    scale: str | None = None
    passed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """Sublayers that read the same stream and are added together; most have one member."""

    members: tuple[Member, ...]
    stream: str
    after: bool = False
    shared: bool = False
    residual: str = "stream"
    skip_scale: str | None = None
    copy: str = "h"


def norm_name(place: str, member: Member, group: Group) -> str:
    """`norm2`, or `input_norm2` and so on when the sublayer has several norms."""
    own = _own_places(member, group)
    return f"norm{member.number}" if len(own) == 1 else f"{place}_norm{member.number}"


def _own_places(member: Member, group: Group) -> list[str]:
    first = member is group.members[0]
    return [
        place
        for place in PLACES
        if (place == "after" and group.after and first)
        or (place == "output" and "output" in member.places)
        or (place == "input" and "input" in member.places and (first or not group.shared))
    ]


def norms(group: Group) -> Iterator[tuple[str, str, Member]]:
    """The norms a group needs: name, place and the member whose `norm` option it is."""
    for member in group.members:
        for place in _own_places(member, group):
            yield norm_name(place, member, group), place, member


def wire(group: Group) -> str:
    """The equations of a group."""
    first = group.members[0]
    lines = []
    source, skip = group.stream, group.stream
    if group.shared or group.residual == "normed":
        lines.append(f"{group.copy} = {norm_name('input', first, group)}({group.stream})")
        source = group.copy
        skip = group.copy if group.residual == "normed" else group.stream
    terms = [] if group.residual == "none" else [_scaled(group.skip_scale, skip)]
    terms += [_branch(member, group, source) for member in group.members]
    total = " + ".join(terms)
    if group.after:
        total = f"{norm_name('after', first, group)}({total})"
    return "\n".join([*lines, f"{group.stream} = {total}"])


def _branch(member: Member, group: Group, source: str) -> str:
    if "input" in member.places and source == group.stream:
        source = f"{norm_name('input', member, group)}({source})"
    result = f"{member.part}({source}{_passed(member.passed)})"
    if "output" in member.places:
        result = f"{norm_name('output', member, group)}({result})"
    return _scaled(member.scale, result)


def _passed(passed: Mapping[str, str]) -> str:
    return "".join(f", {name}={value}" for name, value in passed.items())


def _scaled(scale: str | None, text: str) -> str:
    if scale is None:
        return text
    expr, _ = parse_expression(scale)
    bare = not isinstance(expr, Binary | Unary)
    return f"{scale}*{text}" if bare else f"({scale})*{text}"


Edit = tuple[int, int, str]


def own_wiring(text: str, part: str, passed: Mapping[str, str], renamed: Mapping[str, str]) -> tuple[str, list[Edit]]:
    """A placement's own equations for one sublayer: `f` is the part, and its names are this sublayer's copies.

    The edits (start, end, new text) lead back to the places of the text as written: see `written_at`.
    """
    edits: list[Edit] = []
    for equation in parse_equations(text).equations:
        edits += _edits(equation, part, _passed(passed), renamed)
    edits.sort()
    for start, end, new in reversed(edits):
        text = text[:start] + new + text[end:]
    return text, edits


def written_at(offset: int, edits: Sequence[Edit]) -> int:
    """Where a character of edited text stood before the edits; inside a new text, where that begins."""
    moved = 0
    for start, end, new in edits:
        at = start + moved
        if offset < at:
            break
        if offset < at + len(new):
            return start
        moved += len(new) - (end - start)
    return offset - moved


def _edits(equation: Equation, part: str, passed: str, renamed: Mapping[str, str]) -> Iterator[Edit]:
    for node in walk(equation.expr):
        if isinstance(node, Call) and node.name == SUBLAYER:
            yield node.start, node.start + len(SUBLAYER), part
            yield node.end - 1, node.end - 1, passed
        elif isinstance(node, Call) and node.name in renamed:
            yield node.start, node.start + len(node.name), renamed[node.name]
        elif isinstance(node, Name) and node.name in renamed:
            yield node.start, node.end, renamed[node.name]
        elif isinstance(node, Attr) and node.base.name in renamed:
            continue  # its base is walked as a Name


def names_used(text: str) -> frozenset[str]:
    """All names and calls in some equations, `norm` and `f` among them."""
    found: set[str] = set()
    for equation in parse_equations(text).equations:
        for node in walk(equation.expr):
            if isinstance(node, Call | Name):
                found.add(node.name)
    return frozenset(found)
