"""BG202: one norm, and so one set of parameters, stands in two places without saying `share: true`."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Finding, Related
from blockgraph.graph import Graph
from blockgraph.lints.wiring import of_class, ops
from blockgraph.ops.leaf import Param

CODE = "BG202"


def lint(graph: Graph) -> Iterator[Finding]:
    """Every second call, in one module, of a norm whose parameters are not marked as shared."""
    first = {}
    params: dict[str, list[Param]] = {}
    for node, op in ops(graph, of_class(Param)):
        assert isinstance(op, Param)
        params.setdefault(node.scope, []).append(op)
    for step in graph.steps:
        scope = graph.scopes.get(step.name)
        if scope is None or scope.family != "norm" or step.place is None:
            continue
        own = params.get(scope.path, [])
        shared = not own or any(op.shared for op in own)  # without parameters, two norms would be the same
        use = (step.name.rpartition(".")[0], scope.path)  # a block that is called again uses its norms again
        if use not in first:
            first[use] = step.place
        elif not shared and not _same_input(graph, scope.path, step.value):
            help = f"declare a second norm, or write `share: true` on `{scope.path}`"
            message = f"`{scope.path}` is used twice, with one set of parameters"
            yield Finding(
                CODE,
                message,
                step.place,
                help,
                related=(Related("first used here", first[use]),),
                severity="warning",
            )


def _same_input(graph: Graph, path: str, value: int) -> bool:
    """Whether another call of the norm reads the very same value, so that it is one norm written twice."""
    own = graph.producers[value]
    return any(
        node.op.name == own.op.name and node.inputs == own.inputs and node.id < own.id
        for node in graph.nodes
        if node.scope in graph.scopes and graph.scopes[node.scope].path == path
    )
