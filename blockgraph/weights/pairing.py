"""Which tensors make which parameter, and how the one becomes the other: stacked or indexed, taken, transposed.

What is read forwards at import is read backwards at export, so both stand here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, final

from blockgraph.graph import Graph, Node
from blockgraph.lazy import np
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass
from blockgraph.weights.mapping import Rule, Section, index_pattern
from blockgraph.weights.take import Take

Shape = tuple[int, ...]
LINEAR_KINDS = frozenset(
    {"linear", "attention", "cross_attention", "feed_forward", "gated_feed_forward", "moe", "router", "experts"}
)


@final
@dataclass(frozen=True, slots=True)
class Source:
    """The tensors of one parameter.

    `stacked`: they are stacked along a new first axis; `index`: one slice of the tensor's first axis;
    `swapped`: the file stores [out, in], so the last two axes change places. A source without a rule has the
    parameter's own name.
    """

    parameter: str
    tensors: tuple[str, ...]
    pattern: str
    stacked: bool = False
    index: int | None = None
    rule: Rule | None = None
    swapped: bool = False

    @property
    def take(self) -> str | None:
        """The text of the rule's `take`."""
        return self.rule.take if self.rule else None

    def raw_shape(self, shapes: Mapping[str, Shape]) -> Shape | None:
        """The shape before `take` and layout; None where the tensors do not stack or the index is outside."""
        found = [shapes[name] for name in self.tensors]
        if self.stacked:
            return (len(found), *found[0]) if len(set(found)) == 1 else None
        if self.index is None:
            return found[0]
        return found[0][1:] if found[0] and self.index < found[0][0] else None

    def raw(self, read: Callable[[str], Any]) -> Any:
        """The array before `take` and layout."""
        if self.stacked:
            return np.stack([read(name) for name in self.tensors])
        array = read(self.tensors[0])
        return array if self.index is None else array[self.index]

    def stored(self, shape: Shape) -> Shape:
        """The shape in the file's layout of a parameter's shape, and the other way round."""
        return (*shape[:-2], shape[-1], shape[-2]) if self.swapped else shape

    def turn(self, array: Any) -> Any:
        """The array between the file's layout and [in, out]."""
        return np.swapaxes(array, -1, -2) if self.swapped else array

    def forward(self, raw: Any, take: Take | None) -> Any:
        """The parameter from the array of the file."""
        return self.turn(raw if take is None else take.run(raw))

    def backward(self, array: Any, take: Take | None, shape: Shape) -> Any:
        """The adjoint of `forward`: the share of the raw array of a shape that this parameter has."""
        array = self.turn(np.asarray(array))
        if take is None:
            return array
        return take.put_back(array, np.broadcast_to(np.zeros((), array.dtype), shape))


def sources(section: Section, graph: Graph, names: Collection[str] | None) -> dict[str, Source]:
    """The source of each parameter of a flat graph, in the order they are drawn.

    `names` are the tensors of a file. Without a file the tensors of a stack are counted by the parameter's first axis.
    """
    linear = linear_weights(graph)
    found = {}
    for name in drawn(graph):
        swapped = section.layout == "out_in" and name in linear
        rule = next((one for one in section.rules if index_pattern(one.parameter).fullmatch(name)), None)
        if rule is None:
            found[name] = Source(name, (name,), name, swapped=swapped)
        else:
            found[name] = _by_rule(rule, name, names, _first_size(graph, name), swapped)
    return found


def drawn(graph: Graph) -> dict[str, Param]:
    """The parameters of a flat graph by full name, in the order they are drawn."""
    nodes = graph.parameters
    return {name: nodes[name].op for name in graph.draws if isinstance(name, str)}  # type: ignore[misc]


def _first_size(graph: Graph, name: str) -> int:
    op = graph.parameters[name].op
    assert isinstance(op, Param)
    known = op.dims and not op.dims[0].symbols - graph.dims.keys()
    return int(op.dims[0].evaluate(graph.dims)) if known else 0


def _by_rule(rule: Rule, name: str, names: Collection[str] | None, count: int, swapped: bool) -> Source:
    matched = index_pattern(rule.parameter).fullmatch(name)
    assert matched is not None
    indices = matched.groups()
    stars = rule.tensor.count("*")
    pattern = fill(rule.tensor, indices[:stars])
    if stars > len(indices):
        found = _numbered(pattern, names) if names is not None else [fill(pattern, (str(i),)) for i in range(count)]
        return Source(name, tuple(found) or (pattern,), pattern, True, None, rule, swapped)
    index = int(indices[-1]) if stars < len(indices) else None
    return Source(name, (pattern,), pattern, False, index, rule, swapped)


def fill(pattern: str, indices: Sequence[str]) -> str:
    """A name with its first stars replaced by indices."""
    parts = pattern.split("*")
    texts = [*indices, *["*"] * (len(parts) - 1 - len(indices))]
    return parts[0] + "".join(text + part for text, part in zip(texts, parts[1:], strict=True))


def _numbered(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that fill the one star, by number, from 0 to the largest: a gap stays as a name that is missing."""
    matcher = index_pattern(pattern)
    found = [int(matched[1]) for name in names if (matched := matcher.fullmatch(name))]
    count = min(max(found, default=-1) + 1, 2 * len(found))
    return [fill(pattern, (str(index),)) for index in range(count)]


def linear_weights(graph: Graph) -> set[str]:
    """The matrices of linear maps: what stands at the right of `@` itself, and the weights W of the kinds made of them.

    A table that is looked up, and transposed for the output, is none.
    """
    names = set()
    producers = graph.producers
    for node in graph.nodes:
        if node.op.name == "matmul" and isinstance(op := producers[node.inputs[1]].op, Param):
            names.add(op.path)
        elif isinstance(node.op, Param) and kind_of(graph, node) in LINEAR_KINDS:
            if node.op.label().startswith("W"):
                names.add(node.op.path)
    return {name for name in names if len(graph.parameters[name].op.dims) > 1}  # type: ignore[union-attr]


def kind_of(graph: Graph, node: Node) -> str:
    """The kind of the part that a node belongs to; empty at the top."""
    scope = graph.scopes.get(node.scope)
    return scope.kind if scope else ""


def starred(name: str) -> str:
    """A name with its indices as stars: `layers.*.norm1.gamma`."""
    return re.sub(r"(?<![A-Za-z0-9_])[0-9]+(?![A-Za-z0-9_])", "*", name)
