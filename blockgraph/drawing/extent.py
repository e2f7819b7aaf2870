"""How many boxes a figure would have, before it is made: one that is too large is refused at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from blockgraph.drawing.levels import SILENT, Level, Reading, opens
from blockgraph.errors import DrawingError, Finding, Place
from blockgraph.graph import Graph, Repeat

LIMIT: Final = 50_000  # boxes: some 20 seconds of work and 600 MB
OPENED: Final = 10  # boxes of an op that opens: attention has some 10, a norm some 8


def refuse_too_large(graph: Graph, level: Level) -> None:
    """Raises DrawingError (BG501) where every layer by itself makes more boxes than can be drawn."""
    count = boxes(graph, level, expand=True)
    if count <= LIMIT:
        return
    folded = boxes(graph, level, expand=False)
    places = [node.place for node in graph.nodes if isinstance(node.op, Repeat) and node.place is not None]
    message = f"with every layer drawn by itself the figure has some {count:,} boxes; at most {LIMIT:,} are drawn"
    help = f"leave `expand` out: equal layers fold, into some {folded:,} boxes; or draw a shallower model with --set"
    raise DrawingError([Finding("BG501", message, places[0] if places else Place(graph.name), help)])


def boxes(graph: Graph, level: Level, *, expand: bool) -> int:
    """About how many boxes there are; with `expand` for every layer, where the number of layers is known."""
    found: dict[int, int] = {}
    for one in reversed(_outer_first(graph)):
        found[id(one)] = _own(one, level) + sum(
            times * found[id(body)] for body, times in _stacked(one, graph.dims, expand)
        )
    return found[id(graph)]


def _outer_first(graph: Graph) -> list[Graph]:
    """The graph and the bodies of its stacks, each after everything it stands in."""
    order, waiting = dict[int, Graph](), [graph]
    while waiting:
        one = waiting.pop()
        order.pop(id(one), None)
        order[id(one)] = one
        waiting += [body for node in one.nodes if isinstance(node.op, Repeat) for body in node.op.bodies]
    return list(order.values())


def _stacked(graph: Graph, dims: Mapping[str, int], expand: bool) -> list[tuple[Graph, int]]:
    """The bodies of the stacks of a graph, each with how often it is drawn."""
    found = []
    for node in graph.nodes:
        if isinstance(node.op, Repeat):
            times = _times(node.op, dims) if expand and node.op.count.symbols <= dims.keys() else Counter[int]()
            found += [(body, max(times[number], 1)) for number, body in enumerate(node.op.bodies)]
    return found


def _times(repeat: Repeat, dims: Mapping[str, int]) -> Counter[int]:
    """How many layers each body has."""
    found: Counter[int] = Counter()
    for segment in repeat.segments:
        turns, rest = divmod(int(segment.count.evaluate(dict(dims))), len(segment.bodies))
        for place, body in enumerate(segment.bodies):
            found[body] += turns + (place < rest)
    return found


def _own(graph: Graph, level: Level) -> int:
    """The boxes of a graph without those in its stacks."""
    layered = any(isinstance(node.op, Repeat) for node in graph.nodes)
    if level == "block" and not layered:
        return 1
    reading = Reading(graph, level)
    drawn = [node for node in graph.nodes if node.op.name not in SILENT and not isinstance(node.op, Repeat)]
    leaves = [reading.leaf(node.scope) for node in drawn]
    loose = [node for node, leaf in zip(drawn, leaves, strict=True) if leaf is None]
    return len({*leaves} - {None}) + sum(OPENED if level == "op" and opens(node) else 1 for node in loose)
