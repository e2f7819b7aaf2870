"""BG217: a note that a deep post-norm stack needs warm-up."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Finding
from blockgraph.facts import highway
from blockgraph.graph import Graph, Repeat
from blockgraph.lints.wiring import number_of, originals, stacks

CODE = "BG217"
DEEP = 12


def lint(graph: Graph) -> Iterator[Finding]:
    """Stacks with more than 12 layers in which norms stand on the stream and nothing but additions beside them."""
    for node, stack in stacks(graph):
        layers = _post_norm_layers(stack, graph)
        if layers > DEEP and node.place is not None:
            name = node.scope or stack.path
            message = f"`{name}` has {layers} post-norm layers: the gradient passes a norm per sublayer on its way back"
            help = "warm up the learning rate, or use `placement: pre`, or scale the skip path as DeepNorm does"
            yield Finding(CODE, message, node.place, help, severity="note")


def _post_norm_layers(stack: Repeat, graph: Graph) -> int:
    total = 0
    for segment in stack.segments:
        count = number_of(segment.count, graph.dims) or 0
        is_normed = {id(body): _is_post_norm(body) for body in originals(stack)}
        normed = [is_normed[id(stack.bodies[body].original)] for body in segment.bodies]
        cycles, rest = divmod(count, len(normed))
        total += cycles * sum(normed) + sum(normed[:rest])
    return total


def _is_post_norm(body: Graph) -> bool:
    path = highway(body)
    return path is not None and path.adds > 0 and {stop.role for stop in path.stops} == {"norm"}
