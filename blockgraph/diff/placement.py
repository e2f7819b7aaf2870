"""How a sublayer stands on the residual stream: where its norms are, what is added to what, in turn or in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import Final

from blockgraph.diff.units import Unit, Units
from blockgraph.records import dataclass

NAMED: Final = {
    (): "none",
    ("input",): "pre",
    ("after",): "post",
    ("input", "output"): "sandwich",
    ("output",): "output",
}
STEPS: Final = 100  # ops on one residual path, at most
Standings = dict[int, "Standing"]
"""The standing of each sublayer, by number of its unit."""


@dataclass(slots=True)
class Standing:
    """Where one sublayer stands. `norms` and `plus` are the units that play these roles.

    `branches` are the units that give each plus its branch, the last ones before it; `join` is where the branch is
    added to what is no residual, -1 for nowhere.
    """

    norms: dict[str, int] = field(default_factory=dict)
    residual: str = "none"
    plus: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    join: int = -1
    base: int | None = None

    @property
    def placement(self) -> str:
        """The word of the short form, or the list of the places."""
        places = tuple(place for place in ("input", "output", "after") if place in self.norms)
        return NAMED.get(places, f"[{', '.join(places)}]")


def standings(units: Units) -> Standings:
    """The standing of each sublayer, by number of its unit. Value -1 is the input of the graph."""
    found = {}
    for number, unit in enumerate(units.all):
        if unit.is_sublayer and unit.reads:
            found[number] = _standing(units, number, unit)
    _settle(units, found)
    return found


def _settle(units: Units, found: Standings) -> None:
    """A norm that the skip itself has passed: the one after the sum before (post), or, first of all, a normed skip."""
    normed = [one for one in found.values() if one.residual == "normed"]
    firsts = [_source(units, one.norms["input"]) for one in normed]
    if all(first >= 0 and units.all[first].kind == "add" for first in firsts):
        for one in normed:
            one.base, one.residual = one.norms.pop("input"), "stream"
        return
    inputs = {one.norms["input"] for one in normed}
    for one in found.values():
        if one.norms.get("after") in inputs:
            del one.norms["after"]


def _standing(units: Units, number: int, unit: Unit) -> Standing:
    one = Standing()
    base = units.maker.get(unit.reads[0], -1 - unit.reads[0])
    if base >= 0 and units.all[base].is_norm:
        one.norms["input"] = base
        base = _source(units, base)
    one.base = base
    top = number
    norm = _only_user(units, top)
    if norm is not None and units.all[norm].is_norm and units.all[norm].around == unit.around:
        one.norms["output"] = top = norm
    top = _climb(units, top, one)
    after = _only_user(units, top)
    if one.plus and after is not None and units.all[after].is_norm and units.all[after].around == unit.around:
        one.norms["after"] = after
    return one


def _source(units: Units, number: int) -> int:
    """The unit that the first operand of a unit comes from; a negative number is an input."""
    reads = units.all[number].reads
    return units.maker.get(reads[0], -1 - reads[0]) if reads else -1


def _only_user(units: Units, number: int) -> int | None:
    users = set(units.users[number])
    return users.pop() if len(users) == 1 and -1 not in users else None


def _climb(units: Units, number: int, one: Standing) -> int:
    """Up from a sublayer through factors to the plus it is added at, and through those of its group."""
    top = number
    for _ in range(STEPS):
        above = _only_user(units, top)
        op = units.all[above].op if above is not None else None
        if above is None or op is None:
            return top
        if op.role == "scale" and len(units.all[above].reads) == 1 and not one.plus:
            top = above
        elif op.role == "add" and len(units.all[above].reads) == 2:
            meets = _meets(units, above, top, one)
            if not meets:
                one.join = -1 if one.plus else above
                return top
            one.residual = meets if one.residual == "none" else one.residual
            one.plus.append(above)
            one.branches.append(top)
            top = above
        else:
            return top
    return top


def _meets(units: Units, plus: int, below: int, one: Standing) -> str:
    """What the other operand of a plus is: the stream, its normalised copy, or another branch of the same group."""
    others = [units.maker.get(v, -1 - v) for v in units.all[plus].reads]
    others.remove(below)
    other = others[0]
    for _ in range(STEPS):
        if other == one.base:
            return "stream"
        if other == one.norms.get("input"):
            return "normed"
        op = units.all[other].op if other >= 0 else None
        if op is None or op.role not in ("scale", "add"):
            break
        other = _source(units, other)
    return "group" if one.plus and other >= 0 and _branch_of(units, other, one) else ""


def _branch_of(units: Units, other: int, one: Standing) -> bool:
    """Whether a value is a branch that starts where this one does."""
    for _ in range(STEPS):
        if other == one.base or other == one.norms.get("input"):
            return True
        if other < 0:
            return False
        other = _source(units, other)
        if other >= 0 and units.all[other].op is not None and units.all[other].op.role == "add" and other != one.base:  # type: ignore[union-attr]
            return False
    return False


def read_alike(ours: Standings, theirs: Standings, pairs: Iterable[tuple[int, int]]) -> tuple[Standings, Standings]:
    """The standings of two graphs, each matched sublayer read as its partner is where its graph allows both readings.

    A norm between two sublayers may be the last of the one or the first of the other, and one behind a branch that is
    added to nothing may be its output norm or the norm after the sum that is gone.
    """
    found, forth = (dict(ours), dict(theirs)), dict(pairs)
    for i, j in forth.items():
        before, after = found[0].get(i), found[1].get(j)
        if before is None or after is None:
            continue
        if any(forth.get(plus, -2) == after.join for plus in _lone(ours, before)):
            found[0][i] = _unplaced(before)
        if any(forth.get(before.join) == plus for plus in _lone(theirs, after)):
            found[1][j] = _unplaced(after)
        if before.placement == after.placement:
            continue
        for one, number, placement in ((found[1], j, before.placement), (found[0], i, after.placement)):
            reading = next((other for other in _readings(one, number) if other.placement == placement), None)
            if reading is not None:
                one[number] = reading
                break
    return found


def _lone(found: Standings, own: Standing) -> list[int]:
    """The sum of a sublayer that is added to the stream by itself, in no group."""
    group = {plus for one in found.values() if set(one.plus) & set(own.plus) for plus in one.plus}
    return list(group) if len(group) == 1 else []


def _unplaced(one: Standing) -> Standing:
    """A sublayer whose sum stays and only has another operand: that is told as what is read."""
    return replace(one, residual="none", plus=[], branches=[])


def _readings(found: Standings, number: int) -> Iterator[Standing]:
    """Other ways to read how a sublayer stands."""
    own = found[number]
    others = {norm for n, one in found.items() if n != number for norm in one.norms.values()}
    listed = [own]
    for role in [role for role, norm in own.norms.items() if norm in others]:
        if role != "input" or own.residual in ("normed", "none"):
            listed += [_without(one, role) for one in listed]
    yield from listed[1:]
    for one in listed:
        if one.residual == "none" and "output" in one.norms:
            roles = {"after" if role == "output" else role: norm for role, norm in one.norms.items()}
            yield replace(one, norms=roles)


def _without(one: Standing, role: str) -> Standing:
    """The same with a norm that is another sublayer's."""
    norms = {name: norm for name, norm in one.norms.items() if name != role}
    if role != "input":
        return replace(one, norms=norms)
    residual = "stream" if one.residual == "normed" else one.residual
    return replace(one, norms=norms, base=one.norms[role], residual=residual)


def beside(units: Units, found: Standings, number: int) -> tuple[str, tuple[str, ...]] | None:
    """What a factor on a residual path scales: the skip, or the branch of a sublayer; None for another op."""
    plus = _only_user(units, number)
    for sublayer, one in found.items():
        if plus is not None and plus in one.plus:
            name = (units.all[sublayer].name,)
            if _source(units, number) == one.base:
                return "skip scale", name
            if _comes_from(units, number, sublayer):
                return "branch scale", name
    return None


def _comes_from(units: Units, number: int, sublayer: int) -> bool:
    for _ in range(STEPS):
        if number == sublayer:
            return True
        if number < sublayer:
            return False
        number = _source(units, number)
    return False


def arrangement(found: Standings, number: int) -> str:
    """`in turn`, or `in parallel` where another sublayer is added to the same sum from the same stream."""
    own = found[number]
    beside = [one for n, one in found.items() if n != number and one.base == own.base and set(one.plus) & set(own.plus)]
    if not beside:
        return "in turn"
    norm = own.norms.get("input")
    shared = norm is not None and any(one.norms.get("input") == norm for one in beside)
    return "in parallel with one norm" if shared else "in parallel"
