"""The graphs inside a graph, each with the number of its layers: stacks are counted, never written out."""

from __future__ import annotations

from blockgraph.cost.demand import Demand, density, reach
from blockgraph.dims import Dim
from blockgraph.graph import Graph, Repeat
from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Body:
    """A graph and how often it stands in the whole: once for the main module, once a layer for a stack's body.

    `prefix` leads the names inside (`layers.*.`). `parent` and `node` are the index of the body around it and the id
    of the stack's node there, `turn` its place among the stack's bodies. `layers` is how many layers of its stack it
    is, None when the stack's bodies take turns and their number has no number. `once` means that its parameters are
    counted once whatever `layers` says, `again` that they were counted at an earlier call of the same stack,
    `inherited` that the layers around have them in common.
    `share` is the part of the positions for which the stack's outputs matter, `demands` says so for each value.
    """

    graph: Graph
    demands: dict[int, Demand]
    prefix: str = ""
    parent: int = -1
    node: int = -1
    turn: int = 0
    layers: Dim | None = Dim(1)
    once: bool = False
    again: bool = False
    inherited: bool = False
    share: Dim = Dim(1)


def bodies(graph: Graph) -> list[Body]:
    """The main module first, every other body behind the one around it."""
    found = [Body(graph, reach(graph))]
    for index, body in enumerate(found):  # grows on the way
        seen: set[str] = set()
        for node in body.graph.nodes:
            if not isinstance(node.op, Repeat):
                continue
            share = body.share * density(body.graph, body.demands, node.outputs, graph.dims)
            for turn, inner in enumerate(node.op.bodies):
                layers = layers_of(node.op, turn, graph.dims)
                if layers == 0:
                    continue
                prefix, again = f"{body.prefix}{node.op.path}.*.", body.again or node.op.path in seen
                found.append(
                    Body(
                        inner,
                        reach(inner),
                        prefix,
                        index,
                        node.id,
                        turn,
                        layers,
                        once=node.op.shared,
                        again=again,
                        inherited=node.op.inherited,
                        share=share,
                    )
                )
            seen.add(node.op.path)
    return found


def layers_of(stack: Repeat, turn: int, numbers: dict[str, int]) -> Dim | None:
    """How many layers of a stack have the body at `turn`; None when that needs a number that is not known."""
    total = Dim(0)
    for segment in stack.segments:
        places = [place for place, body in enumerate(segment.bodies) if body == turn]
        cycle = len(segment.bodies)
        if not places:
            continue
        if len(places) == cycle:
            total += segment.count
        elif segment.count.symbols <= numbers.keys():
            count = int(segment.count.evaluate(numbers))
            total += sum(max(0, (count - place + cycle - 1) // cycle) for place in places)
        else:
            return None
    return total
