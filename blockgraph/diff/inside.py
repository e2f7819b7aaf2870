"""What differs inside one matched unit: its facts, whose parameters it has, and else its ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blockgraph.diff.changes import Change
from blockgraph.diff.facts import Facts, facts, norm_text
from blockgraph.diff.naming import shown
from blockgraph.diff.pairing import Pairing
from blockgraph.diff.terms import LAYER, options_of, value_text
from blockgraph.diff.units import Unit, Units
from blockgraph.graph import Node, Repeat
from blockgraph.ops.leaf import Param

SHARED = "one set of parameters for all layers"


def inside(found: Pairing, i: int, j: int) -> Iterator[Change]:
    """What differs in one matched unit, wires left out."""
    ours, theirs = found.left.all[i], found.right.all[j]
    if ours.repeat is not None or theirs.repeat is not None:
        return
    if ours.is_norm and ours.kind != theirs.kind:
        yield Change("~", f"{norm_text(found.left, ours)} -> {norm_text(found.right, theirs)}", (theirs.name,))
        return
    one, other = facts(found.left, ours), facts(found.right, theirs)
    told = [*_facts(found, one, other, theirs), *_shares(found, i, j)]
    yield from told
    if not told and not _equal(found, ours, theirs):
        yield Change("~", "other operations inside", (theirs.name,))


def _facts(found: Pairing, one: Facts, other: Facts, unit: Unit) -> Iterator[Change]:
    for name in dict.fromkeys((*one, *other)):
        before, after = one.get(name), other.get(name)
        if found.naming.same(before, after):
            continue
        if name.startswith("has "):
            yield from _presence(found, name[4:], before, after, unit)
        elif name == "kind":
            names = () if unit.name.partition(" (")[0].rstrip("0123456789") == after else (unit.name,)
            yield Change("~", f"{shown(before)} -> {shown(after)}", names)
        else:
            yield Change("~", f"{name} {_shown(name, before)} -> {_shown(name, after)}", (unit.name,))


def _presence(found: Pairing, name: str, before: Any, after: Any, unit: Unit) -> Iterator[Change]:
    """What is there or not: `+ sliding window 4096`, `- bias on q, k`."""
    lone = sum(one.family == unit.family for one in found.right.all) == 1
    names = () if lone else (unit.name,)
    if name == "bias on":
        gone = [one for one in before or () if one not in (after or ())]
        new = [one for one in after or () if one not in (before or ())]
        yield from (Change("-", f"bias on {', '.join(gone)}", (unit.name,)) for _ in gone[:1])
        yield from (Change("+", f"bias on {', '.join(new)}", (unit.name,)) for _ in new[:1])
    elif name == "bias":
        yield Change("+" if after else "-", name, (unit.name,))
    elif before is None or after is None:
        value = after if before is None else before
        yield Change("+" if before is None else "-", f"{name}{_amount(value)}", names)
    else:
        one, other = _differing(before, after)
        yield Change("~", f"{name} {shown(one)} -> {shown(other)}", (unit.name,))


def _shown(name: str, value: Any) -> str:
    return "default" if name == "scale" and value is None else shown(value)


def _differing(before: Any, after: Any) -> tuple[Any, Any]:
    """Of two lists of settings the ones that differ."""
    if not (isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after)):
        return before, after
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def _amount(value: Any) -> str:
    return "" if value is True else f" ({shown(value)})" if isinstance(value, tuple) else f" {shown(value)}"


def _equal(found: Pairing, ours: Unit, theirs: Unit) -> bool:
    """Whether the ops of two units and their wires inside agree."""
    return _form(found.left, ours, found.naming.pairs) == _form(found.right, theirs, None)


def _shares(found: Pairing, i: int, j: int) -> Iterator[Change]:
    """Parameters that are frozen, kept for all layers, or those of another unit too."""
    ours, theirs = _params(found.left, i), _params(found.right, j)
    name = (found.right.all[j].name,)
    for text, one, other in (
        (SHARED, any(p.shared for p in ours), any(p.shared for p in theirs)),
        ("frozen parameters", any(p.frozen for p in ours), any(p.frozen for p in theirs)),
    ):
        if one != other:
            yield Change("+" if other else "-", text, name)
    before, after = _partners(found.left, i), _partners(found.right, j)
    tied = _output_of(found.left, before), _output_of(found.right, after)
    if len(before) + len(after) == 1 and tied != (None, None):
        found.consumed[0 if before else 1].update(before or after)
        yield Change("-" if before else "+", f"output tied to {name[0]}")
    elif {found.forth.get(one, -1) for one in before} != set(after):
        told = (_sharing(found.left, before), _sharing(found.right, after))
        yield Change("~", "parameters " + " -> ".join(told), name)


def _output_of(units: Units, partners: list[int]) -> int | None:
    """The matrix product with shared parameters that the output is made by, with no part after it."""
    for one in partners:
        op, above = units.all[one].op, one
        while op is not None and len(set(units.users[above])) == 1 and units.users[above][0] >= 0:
            above = units.users[above][0]
            op = units.all[above].op
        if op is not None and units.all[one].op is not None and units.users[above] == [-1]:
            return one if units.all[one].kind == "matmul" else None
    return None


def _sharing(units: Units, partners: list[int]) -> str:
    names = ", ".join(units.all[n].name for n in partners)
    return f"shared with {names}" if names else "of its own"


def _params(units: Units, number: int) -> list[Param]:
    nodes = (units.graph.producers[value] for value in units.bare_operands(units.all[number]))
    return [node.op for node in nodes if isinstance(node.op, Param)]


def _partners(units: Units, number: int) -> list[int]:
    """The other units that read a parameter of this one."""
    own = {op.path for op in _params(units, number)}
    return [n for path in own for n in units.readers[path] if n != number] if own else []


def _form(units: Units, unit: Unit, pairs: dict[str, str] | None) -> list[tuple[str, str, tuple[str, ...]]]:
    """The ops of a unit with what they are made from, in running order, symbols under the names of the right graph."""
    graph, names = units.graph, _Names(pairs)
    number = {value: f"in {n}" for n, value in reversed(list(enumerate(unit.reads)))}
    told = []
    for node in _with_parameters(units, unit):
        assert not isinstance(node.op, Repeat)
        types = [graph.types[value] for value in node.inputs]
        operands = [number.get(value, "elsewhere") for value in node.inputs]
        if node.op.name in ("add", "multiply"):
            operands.sort()
        told.append((node.op.name, value_text(tuple(options_of(node.op, types).items()), names), tuple(operands)))
        number |= {value: f"{len(told)}.{k}" for k, value in enumerate(node.outputs)}
    return told


def _with_parameters(units: Units, unit: Unit) -> list[Node]:
    """The nodes of a unit in the order in which they are needed, parameters before what takes them."""
    inside = {value for node in unit.nodes for value in node.outputs} | set(units.bare_operands(unit))
    found: dict[int, Node] = {}
    for end in unit.nodes[::-1]:
        waiting = [(end, False)]
        while waiting:
            node, ready = waiting.pop()
            if ready:
                found.setdefault(node.id, node)
            elif node.id not in found:
                makers = (units.graph.producers[value] for value in reversed(node.inputs) if value in inside)
                waiting += [(node, True), *((one, False) for one in makers)]
    return list(found.values())


class _Names(dict[str, str]):
    """Symbols under the names of the other graph; those without a partner are marked, `layer` stays."""

    def __init__(self, pairs: dict[str, str] | None) -> None:
        super().__init__({LAYER: LAYER, **(pairs or {})})
        self.marks = pairs is not None

    def __missing__(self, name: str) -> str:
        return f"{name}'" if self.marks else name
