"""What is to be said of a unit, in the words of the field: heads, hidden width, window, norm on q and k, biases.

A fact is read off the ops, so a part that is spelled out in equations has the same facts as the kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blockgraph.diff.terms import options_of
from blockgraph.diff.units import Unit, Units
from blockgraph.graph import Graph, Node
from blockgraph.number import Number
from blockgraph.op import Op
from blockgraph.ops.leaf import Param

Facts = dict[str, Any]
"""Facts by name, absent ones left out; `has` in front of a name marks what is there or not."""
NORMS = {"rms_norm": "RMSNorm", "layer_norm": "LayerNorm", "l2_norm": "L2 norm"}
WORDS = {"sinks": "attention sinks", "keep": "a keep mask", "score_bias": "a score bias"}
PASSED = frozenset({"rope", "multiply", "heads", "rms_norm", "layer_norm", "l2_norm", "repeat", "rearrange", "add"})


def facts(units: Units, unit: Unit) -> Facts:
    """The facts of a unit."""
    attends = [node for node in unit.nodes if node.op.name == "attend"]
    if len(attends) == 1 and unit.op is None:
        return _attention(units, unit, attends[0])
    if unit.is_norm:
        return dict(_norm(units, unit))
    found = _feed_forward(units, unit) if unit.family == "feed_forward" else _plain(units, unit)
    return {name: value for name, value in found if value is not None or unit.op is not None}


def _attention(units: Units, unit: Unit, attend: Node) -> Facts:
    graph, op = units.graph, attend.op
    assert isinstance(op, Op)
    options = options_of(op, [graph.types[value] for value in attend.inputs])
    chains = [list(_chain(units, unit, value)) for value in attend.inputs[:3]]
    query = graph.types[attend.inputs[0]].shape or ()
    counts = [next((getattr(n.op, "heads", None) for n in chain if n.op.name == "heads"), None) for chain in chains]
    counts[1] = counts[1] if counts[1] is not None else counts[2]
    found: Facts = {"kind": None if unit.kind in ("attention", "cross_attention") else unit.kind}
    found |= {"heads": counts[0], "kv_heads": counts[1], "head_dim": query[-1] if query else None}
    found |= {"mask": options["mask"], "has sliding window": options["window"], "has softcap": options["softcap"]}
    found |= {"scale": options["scale"], "has ALiBi": options["alibi"] or None}
    found |= {f"has {WORDS.get(name, name)}": True for name in options["given"]}
    found |= dict(_positions(units, chains))
    found |= dict(_head_norms(units, chains))
    found["has bias on"] = tuple(_biased(units, unit, attend, chains)) or None
    out = graph.types[unit.nodes[-1].outputs[0]].shape
    found["out"] = out[-1] if out else None
    return {name: value for name, value in found.items() if value is not None}


def _chain(units: Units, unit: Unit, value: int) -> Iterator[Node]:
    """The nodes on the way up to an operand of the attention, the nearest first, up to its projection."""
    inside = {one for node in unit.nodes for one in node.outputs}
    while value in inside:
        node = units.graph.producers[value]
        yield node
        if node.op.name not in PASSED:
            return
        value = next(one for one in node.inputs if not units.bare[one])


def _positions(units: Units, chains: list[list[Node]]) -> Iterator[tuple[str, Any]]:
    turned = {name: _rope(chain) for name, chain in zip("qk", chains, strict=False)}
    given = [name for name, rope in turned.items() if rope is not None]
    if given:
        where = "" if len(given) == 2 else f" on {given[0]} only"
        yield f"has rotary positions{where}", turned[given[0]]


def _rope(chain: list[Node]) -> tuple[Any, ...] | None:
    for node in chain:
        if node.op.name == "rope":
            options = options_of(node.op, ())  # type: ignore[arg-type]
            return tuple(value if name == "style" else (name, value) for name, value in options.items() if value)
    return None


def _head_norms(units: Units, chains: list[list[Node]]) -> Iterator[tuple[str, Any]]:
    """`per-head RMSNorm on q and k`, by the parameters and by whether it stands before or after the heads are cut."""
    found: dict[str, list[str]] = {}
    for name, chain in zip("qkv", chains, strict=False):
        names = [node.op.name for node in chain]
        for node in chain:
            if node.op.name in NORMS:
                cut = "heads" in names[names.index(node.op.name) :]
                found.setdefault(f"{_over(units.graph, node, cut)} {NORMS[node.op.name]}", []).append(name)
    for what, on in found.items():
        yield f"has {what} on {' and '.join(on)}", True


def _over(graph: Graph, node: Node, cut: bool) -> str:
    if not cut:
        return "full-width"
    shapes = [graph.types[value].shape or () for value in node.inputs[1:]]
    return "per-head (own gains)" if any(len(shape) > 1 for shape in shapes) else "per-head"


def _biased(units: Units, unit: Unit, attend: Node, chains: list[list[Node]]) -> Iterator[str]:
    for name, chain in zip("qkv", chains, strict=False):
        if any(node.op.name == "add" for node in chain):
            yield name
    after = unit.nodes[unit.nodes.index(attend) :]
    if any(node.op.name == "add" and any(units.bare[value] for value in node.inputs) for node in after):
        yield "o"


def _norm(units: Units, unit: Unit) -> Iterator[tuple[str, Any]]:
    for node in unit.nodes:
        if node.op.name in NORMS or unit.op is not None:
            options = options_of(node.op, ())  # type: ignore[arg-type]
            given = options.pop("given", ())
            yield "kind", node.op.name
            yield from options.items()
            yield "parameters", ", ".join(given) or "none"


def norm_text(units: Units, unit: Unit) -> str:
    """A norm with what is not its usual: `RMSNorm (eps 1e-06, offset 1)`."""
    told = dict(_norm(units, unit))
    kind = str(told.pop("kind", unit.kind))
    without = told.pop("parameters", "") == "none"
    more = [f"{name} {value}" for name, value in told.items() if not (name == "offset" and value == 0)]
    more += ["without parameters"] if without else []
    return NORMS.get(kind, kind) + (f" ({', '.join(more)})" if more else "")


def _feed_forward(units: Units, unit: Unit) -> Iterator[tuple[str, Any]]:
    yield "kind", unit.kind
    acts = [node for node in unit.nodes if getattr(node.op, "activation", False)]
    for node in unit.nodes:
        if node.op.name == "top_k":
            logits = units.graph.types[node.inputs[0]].shape or (None,)
            yield from (("experts", logits[-1]), ("top_k", getattr(node.op, "k", None)))
            experts = logits[-1].as_int() if logits[-1] is not None else None
            shared = len(acts) - experts if experts is not None else 0
            yield "shared experts", shared or None
    if acts:
        shape = units.graph.types[acts[0].outputs[0]].shape
        yield "activation", acts[0].op.name
        yield "hidden", shape[-1] if shape else None
    biases = [node for node in unit.nodes if node.op.name == "add" and any(units.bare[v] for v in node.inputs)]
    if biases:
        yield "has bias", True
    out = units.graph.types[unit.nodes[-1].outputs[0]].shape
    if out:
        yield "out", out[-1]


def _plain(units: Units, unit: Unit) -> Iterator[tuple[str, Any]]:
    """Of any other unit: the options of its ops and the shapes of its parameters."""
    yield "kind", unit.kind
    seen: dict[str, int] = {}
    for node in unit.nodes:
        seen[node.op.name] = seen.get(node.op.name, 0) + 1
        if isinstance(node.op, Op) and node.op.name != "add":
            turn = f" {seen[node.op.name]}" if seen[node.op.name] > 1 else ""
            for name, value in options_of(node.op, ()).items() if node.op.name != "attend" else ():
                yield (name if unit.op is not None else f"{node.op.name}{turn} {name}"), value
    for value in units.bare_operands(unit):
        op = units.graph.producers[value].op
        if isinstance(op, Param):
            yield f"shape of {op.path.rpartition('.')[2]}", op.dims
        elif op.name == "constant" and isinstance(getattr(op, "value", None), Number):
            yield "factor", op.value  # type: ignore[union-attr]
