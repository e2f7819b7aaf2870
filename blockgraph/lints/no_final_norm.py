"""BG211: the stream of a pre-norm stack goes on into a map without a final norm."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Finding
from blockgraph.facts import highway
from blockgraph.graph import Graph, Node
from blockgraph.lints.wiring import last_layer, of_role, ops, part_name, role, stacks

CODE = "BG211"
NEEDS_ALL = True  # it concludes from what is not there


def lint(graph: Graph) -> Iterator[Finding]:
    """Stacks whose stream only grows, and what reads it raw. A stack that is returned may be normalised outside."""
    for node, stack in stacks(graph):
        last = last_layer(node, stack, graph.dims).body
        if not _is_pre_norm(last):
            continue
        reader = _raw_reader(graph, node.outputs[0])
        if reader is not None and reader.place is not None:
            name = node.scope or stack.path
            message = f"`{name}` is a pre-norm stack, and `{part_name(reader)}` reads its sum without a final norm"
            help = f"normalise it once more: declare `final_norm`, and write `final_norm({name}(x))`"
            yield Finding(CODE, message, reader.place, help, severity="warning")


def _is_pre_norm(body: Graph) -> bool:
    """Whether branches read norms while nothing normalises the stream."""
    path = highway(body)
    if path is None or not path.adds or any(stop.role in ("norm", "other") for stop in path.stops):
        return False
    return any("." not in node.scope for node, _ in ops(body, of_role("norm")))


def _raw_reader(graph: Graph, value: int) -> Node | None:
    """The first map that reads a value, scaled, added to, moved or not."""
    raw = {value}
    for node, op in ops(graph):
        if node.inputs and raw & set(node.inputs):
            if role(node) in ("add", "scale", "move"):
                raw.update(node.outputs)
            elif op.factors == "all":
                return node
    return None
