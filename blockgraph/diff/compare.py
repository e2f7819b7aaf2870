"""Two graphs compared, unit by unit: what is added, removed and changed, and what reads what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blockgraph.diff.align import align
from blockgraph.diff.changes import Change
from blockgraph.diff.facts import facts, norm_text
from blockgraph.diff.inside import inside
from blockgraph.diff.naming import Naming, shown
from blockgraph.diff.pairing import NOWHERE, Pairing, paired_reads
from blockgraph.diff.placement import Standing, Standings, arrangement, beside, read_alike
from blockgraph.diff.structure import Outline
from blockgraph.diff.units import Unit, Units
from blockgraph.drawing.scopes import leaf_scope
from blockgraph.ops.leaf import Param


def pair(left: Outline, right: Outline, naming: Naming) -> Pairing:
    """Match the units of two graphs, and learn from them which symbol is which."""
    found = Pairing(left.units, right.units, naming)
    found.pairs = align(left.keys, right.keys)
    found.standings = read_alike(left.standings, right.standings, found.pairs)
    _pair_by_role(found)
    naming.learn(_comparable(found))
    return found


def _pair_by_role(found: Pairing) -> None:
    """The norms and sums of matched sublayers are matched by what they do there; those of others come and go along."""
    ours, theirs = found.standings
    forth, back = dict(found.pairs), {b: a for a, b in found.pairs}
    for i, before in ours.items():
        after = theirs.get(forth.get(i, -1))
        if after is not None and (before.plus or after.plus):
            common = before.norms.keys() & after.norms.keys()
            roles = [(before.norms[role], after.norms[role]) for role in sorted(common)]
            _rematch(found, before, after, [*roles, *zip(before.plus, after.plus, strict=False)])
    for side, standing, matched in ((0, ours, forth), (1, theirs, back)):
        kept = {one for n, own in standing.items() if n in matched for one in (*own.norms.values(), *own.plus)}
        for number, own in standing.items():
            if number not in matched and own.plus:
                gone = {*own.norms.values(), *own.plus} - kept
                found.consumed[side].update(gone)
                found.pairs = [one for one in found.pairs if one[side] not in gone]


def _rematch(found: Pairing, before: Standing, after: Standing, pairs: list[tuple[int, int]]) -> None:
    left, right = ({*one.norms.values(), *one.plus} for one in (before, after))
    found.consumed[0].update(left | ({before.join} if after.plus else set()))
    found.consumed[1].update(right | ({after.join} if before.plus else set()))
    settled = found.settled
    kept = [p for p in found.pairs if (p[0] not in left and p[1] not in right) or p in settled]
    taken = {a for a, _ in kept}, {b for _, b in kept}
    new = [p for p in pairs if p[0] not in taken[0] and p[1] not in taken[1]]
    settled.update(new)
    found.pairs = sorted({*kept, *new})


def _comparable(found: Pairing) -> Iterator[tuple[Any, Any]]:
    left, right = found.left.graph, found.right.graph
    for a, b in found.ports:
        yield left.types[a.value].shape, right.types[b.value].shape
        yield a.below, b.below
    for i, j in found.pairs:
        ours, theirs = found.left.all[i], found.right.all[j]
        if ours.repeat is None and theirs.repeat is None:
            before, after = facts(found.left, ours), facts(found.right, theirs)
            yield from ((before[name], after[name]) for name in before if name in after)
        for one, other in zip(ours.nodes[-1].outputs, theirs.nodes[-1].outputs, strict=False):
            yield left.types[one].shape, right.types[other].shape


def changes(found: Pairing) -> list[Change]:
    """Everything that differs in one pair of graphs; what is inside stacks is told by the caller."""
    told = [*_ports(found), *_placed(found)]
    for i, j in found.pairs:
        told += _mark(found, j, inside(found, i, j))
    told += _lost_and_found(found)
    for i, j in found.pairs:
        if j not in found.rewired:
            told += _mark(found, j, _wires(found, i, j))
    return told + list(_outputs(found))


def _mark(found: Pairing, unit: int, told: Iterator[Change]) -> list[Change]:
    listed = list(told)
    if listed:
        found.touched.setdefault(unit, []).extend(f"{c.sign} {c.text}" if c.sign != "~" else c.text for c in listed)
    return listed


def _ports(found: Pairing) -> Iterator[Change]:
    left, right = found.left.graph, found.right.graph
    for a, b in found.ports:
        before, after = left.types[a.value], right.types[b.value]
        if before.dtype != after.dtype:
            yield Change("~", f"{before.dtype} -> {after.dtype}", (f"input {b.name}",))
        if not found.naming.same(before.shape, after.shape):
            yield Change("~", f"{shown(before.shape)} -> {shown(after.shape)}", (f"input {b.name}",))
        if not found.naming.same(a.below, b.below):
            yield Change("~", f"below {shown(a.below)} -> {shown(b.below)}", (f"input {b.name}",))
    kept = {port.value for port, _ in found.ports}, {port.value for _, port in found.ports}
    yield from (Change("-", f"input {port.name}") for port in left.inputs if port.value not in kept[0])
    yield from (Change("+", f"input {port.name}") for port in right.inputs if port.value not in kept[1])


def _placed(found: Pairing) -> Iterator[Change]:
    """Placements, residuals and arrangements that changed, sublayer by sublayer."""
    ours, theirs = found.standings
    forth = found.forth
    for i, before in ours.items():
        j = forth.get(i, -1)
        after = theirs.get(j)
        if after is None or before.residual == after.residual == "none":
            continue
        told = list(_stands(ours, theirs, i, j))
        if told:
            name = (found.right.all[j].name,)
            yield from _mark(found, j, (Change("~", text, name) for text in told))
            yield from _role_norms(found, before, after, name)
            found.rewired |= {j, *after.norms.values(), *after.plus}


def _stands(ours: Standings, theirs: Standings, i: int, j: int) -> Iterator[str]:
    before, after = ours[i], theirs[j]
    if before.placement != after.placement:
        yield f"placement {before.placement} -> {after.placement}"
    if before.residual != after.residual:
        yield f"residual {before.residual} -> {after.residual}"
    one, other = arrangement(ours, i), arrangement(theirs, j)
    if one != other and "none" not in (before.residual, after.residual):
        yield f"{one} -> {other}"


def _role_norms(found: Pairing, before: Standing, after: Standing, name: tuple[str, ...]) -> Iterator[Change]:
    """The kind of the norms, where none of them has a partner to be compared with."""
    if any(found.forth.get(i) in after.norms.values() for i in before.norms.values()):
        return
    one = sorted({norm_text(found.left, found.left.all[n]) for n in before.norms.values()})
    other = sorted({norm_text(found.right, found.right.all[n]) for n in after.norms.values()})
    if one and other and one != other:
        yield Change("~", f"norm {', '.join(one)} -> {', '.join(other)}", name)


def _lost_and_found(found: Pairing) -> Iterator[Change]:
    forth, back = found.forth, found.back
    for i in range(len(found.left.all)):
        if i not in forth and i not in found.consumed[0]:
            yield Change("-", *_called(found.left, i, found.standings[0]))
    for j in range(len(found.right.all)):
        if j not in back and j not in found.consumed[1]:
            yield Change("+", *_called(found.right, j, found.standings[1]))


def _called(units: Units, number: int, standing: Standings) -> tuple[str, tuple[str, ...]]:
    """A unit that comes or goes: `final_norm (LayerNorm)`, `multiply by 0.5`, `branch scale 0.5` of a sublayer.

    A sum with what a part of parameters gives is that part, such as `positions (learned_positions)`.
    """
    unit = units.all[number]
    if unit.op is not None and not unit.is_norm:
        by = ", ".join(_by(units, unit))
        role = beside(units, standing, number) if unit.op.role == "scale" and by else None
        if role is not None:
            return f"{role[0]} {by}", role[1]
        if unit.op.name == "add" and by:
            return ", ".join(dict.fromkeys(_added(units, unit))) or f"add {by}", ()
        return f"{unit.name.replace('_', ' ')}{f' by {by}' if by else ''}", ()
    if unit.is_norm:
        return f"{unit.name.replace('_', ' ')} ({norm_text(units, unit).partition(' (')[0]})", ()
    return _part(unit.name, unit.kind), ()


def _part(name: str, kind: str) -> str:
    """A part with its kind, unless it is named after it."""
    return name if name.partition(" (")[0].rstrip("0123456789") == kind else f"{name} ({kind})"


def _added(units: Units, unit: Unit) -> Iterator[str]:
    """The parts whose parameters alone are added."""
    for value in units.bare_operands(unit):
        key = leaf_scope(units.graph, units.graph.producers[value].scope)
        if key is not None:
            yield _part(key.rpartition(".")[2], units.graph.scopes[key].kind)


def _by(units: Units, unit: Unit) -> Iterator[str]:
    """The parameters and numbers beside the operands of an op."""
    told = facts(units, unit)
    if "factor" in told:
        yield shown(told["factor"])
    for value in units.bare_operands(unit):
        op = units.graph.producers[value].op
        if isinstance(op, Param):
            yield ".".join(op.path.split(".")[-2:])


def _wires(found: Pairing, i: int, j: int) -> Iterator[Change]:
    """What a unit reads, as far as it is not explained by units that came or went in between."""
    ours, theirs = found.left.all[i], found.right.all[j]
    read = paired_reads(ours, theirs)
    before, after = [_origin(found, 0, value) for value in read[0]], [_origin(found, 1, value) for value in read[1]]
    mapped = [found.partner(one) for one in before]
    commutes = theirs.op is not None and theirs.op.name in ("add", "multiply")
    if (sorted(mapped) == sorted(after)) if commutes else (mapped == after):
        return
    one, other = (", ".join(_name(u, n) for n in ns) for u, ns in ((found.left, before), (found.right, after)))
    yield Change("~", f"reads {one} -> {other}", (theirs.name,))


def _origin(found: Pairing, side: int, value: int) -> int:
    """The matched unit that a value comes from, seen through units that have no partner; inputs are negative."""
    units, matched = ((found.left, found.forth), (found.right, found.back))[side]
    dropped = found.dropped[side]
    for _ in range(len(units.all) + 1):
        number = units.maker.get(value)
        if number is None:
            names = [port.value for port in units.graph.inputs]
            return -1 - names.index(value) if value in names else NOWHERE
        if number in matched or not units.all[number].reads:
            return number
        if number in dropped:
            value = units.all[dropped[number]].nodes[-1].outputs[0]
            continue
        value = min(units.all[number].reads, key=lambda one: units.maker.get(one, -1))
    return NOWHERE


def _name(units: Units, number: int) -> str:
    if number >= 0:
        return units.all[number].name
    ports = units.graph.inputs
    return ports[-1 - number].name if -1 - number < len(ports) else "nothing"


def _outputs(found: Pairing) -> Iterator[Change]:
    left, right = found.left.graph, found.right.graph
    yield from (Change("-", f"output {port.name}") for port in left.outputs[len(right.outputs) :])
    yield from (Change("+", f"output {port.name}") for port in right.outputs[len(left.outputs) :])
    for a, b in zip(left.outputs, right.outputs, strict=False):
        before, after = _origin(found, 0, a.value), _origin(found, 1, b.value)
        if found.partner(before) != after and not found.rewired:
            yield Change(
                "~", f"comes from {_name(found.left, before)} -> {_name(found.right, after)}", (f"output {b.name}",)
            )
