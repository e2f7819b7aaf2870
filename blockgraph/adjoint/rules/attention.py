"""Attention: one number per query is kept, and the weights are made again where nothing but q, k, v has a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.adjoint.attention import AttendBackward, AttendSaved
from blockgraph.adjoint.reverse import RULES, Gradient, Reverse, rule, saving
from blockgraph.graph import Node
from blockgraph.op import Op
from blockgraph.ops.attend import Attend


def _is_plain(node: Node) -> bool:
    """Whether an attention has neither a bias nor sinks."""
    return isinstance(node.op, Attend) and not {"score_bias", "sinks"} & set(node.op.given)


@saving(Attend)
def keep_logs(g: Reverse, node: Node) -> None:
    """The result with the logs beside it."""
    if _is_plain(node):
        _, logs = g.write(AttendSaved(node.op), node.inputs, node.outputs[0])  # type: ignore[arg-type]
        g.kept[node.outputs[0]] = (logs,)
    else:
        g.copy(node)


@rule(Attend)
def attend(g: Reverse, node: Node, dys: tuple[Gradient, ...]) -> Iterator[Gradient]:
    """The gradients of queries, keys and values in one."""
    if not _is_plain(node):
        yield from RULES[Op](g, node, dys)
        return
    (dy,) = dys
    assert dy is not None
    (logs,) = g.kept[node.outputs[0]]
    yield from g.all(AttendBackward(node.op), dy, node.outputs[0], logs, *node.inputs)  # type: ignore[arg-type]
    yield from (None for _ in node.inputs[3:])
