"""BG112: a block or model says that it is causal, and the graph shows how a later position gets into an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blockgraph.errors import Finding
from blockgraph.facts import causal, leak, part_of
from blockgraph.graph import Graph
from blockgraph.lints import Declared, bodies

CODE = "BG112"


def lint_spec(graph: Graph, spec: Declared, others: Mapping[str, Graph]) -> Iterator[Finding]:
    """Each module with `causal: true` wherever it stands: as the whole, as a layer, as a part, or by itself."""
    for name, module in spec.modules.items():
        if not module.causal:
            continue
        alone = [others[name]] if name in others else []
        for one in (*_graphs_of(graph, name, name == spec.main), *alone):
            if causal(one, graph.dims) != "refuted":
                continue
            found = leak(one, graph.dims)
            if found is None:
                continue
            message = f"`{name}` says it is causal, and {found}"
            help = f"`{found.culprit}` reads ahead: give it a causal mask, or leave `causal: true` out"
            yield Finding(CODE, message, spec.document.key((*module.path, "causal")), help, related=found.related)
            break


def _graphs_of(graph: Graph, name: str, is_main: bool) -> Iterator[Graph]:
    """A module as a graph, once for every way in which it is used."""
    every = list(bodies(graph))
    if is_main:
        yield graph
    yield from (body for body in every[1:] if body.name == name)
    for body in every:
        for key, scope in body.scopes.items():
            if scope.kind == name:
                yield part_of(body, key)
