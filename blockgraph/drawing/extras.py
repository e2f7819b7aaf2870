"""What a drawing tells on request: numbers for symbols, how many parameters a part has, what stands on the highway."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Final

from blockgraph.cost.parameters import count_parameters, number
from blockgraph.dims import Dim
from blockgraph.drawing.marking import Key
from blockgraph.drawing.scopes import block_scopes, leaf_scope
from blockgraph.facts.highway import highway
from blockgraph.graph import Graph, Repeat
from blockgraph.op import volume
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass

WORDS: Final = frozenset("heads kv hidden taps causal of experts shared buckets window".split())
PRODUCT: Final = re.compile(r"(?<!\S)[A-Za-z_0-9]+(?:[*/][A-Za-z_0-9]+)*(?=,?(?:\s|$))")


@dataclass(frozen=True, slots=True)
class Extras:
    """Small lines for boxes and plates, the boxes on the highway, and the numbers to write for symbols.

    A plate is named by its scope, or by the id of its body and nothing. `own` are lines that somebody else has to say.
    """

    lines: Mapping[Key, str] = field(default_factory=dict)
    own: Mapping[Key, str] = field(default_factory=dict)
    tolls: frozenset[Key] = frozenset()
    numbers: Mapping[str, int] = field(default_factory=dict)

    def line(self, graph: Graph, key: str | int = "") -> tuple[str, ...]:
        """The line of a box or a plate, if it has one."""
        found = self.lines.get((id(graph), key))
        return (found,) if found else ()

    def said(self, key: Key) -> tuple[str, ...]:
        """What somebody else has to say of a box."""
        return (self.own[key],) if key in self.own else ()

    def written(self, text: str) -> str:
        """A detail like `hidden 4*C` with known symbols in numbers; the words of kinds stay words."""
        return PRODUCT.sub(lambda found: self._product(found[0]), text) if self.numbers else text

    def _product(self, text: str) -> str:
        first, *rest = re.split(r"([*/])", text)
        total = self._factor(first)
        for sign, factor in zip(rest[::2], rest[1::2], strict=True):
            value = self._factor(factor)
            if total is None or value is None or (sign == "/" and value == 0):
                return text
            total = total * value if sign == "*" else total / value
        return text if total is None else str(total)

    def _factor(self, text: str) -> Fraction | None:
        if text.isdecimal():
            return Fraction(int(text))
        known = self.numbers.get(text) if text not in WORDS else None
        return None if known is None else Fraction(known)


NO_EXTRAS: Final = Extras()


def extras(
    graph: Graph,
    *,
    numbers: bool = False,
    params: bool = False,
    tolls: bool = False,
    own: Mapping[Key, str] | None = None,
) -> Extras:
    """What was asked for; counts are formulas while a size has no number."""
    lines = dict(_parameters(graph)) if params else {}
    found = highway(graph) if tolls else None
    stops = found.stops if found is not None and found.exists else ()
    keys = ((id(stop.graph), leaf_scope(stop.graph, stop.node.scope) or stop.node.id) for stop in stops)
    return Extras(lines, own or {}, frozenset(keys), graph.dims if numbers else {})


def has_highway(graph: Graph) -> bool:
    """Whether there is a residual highway to draw."""
    found = highway(graph)
    return found is not None and found.exists


def total_line(graph: Graph) -> str:
    """All parameters of a graph, each shared one once."""
    count = count_parameters(graph)
    return "" if count is None else _told(count, graph.dims)


def _parameters(graph: Graph) -> Iterator[tuple[Key, str]]:
    """The lines of all parts and plates, the bodies of stacks included."""
    for body in _bodies(graph):
        sums: dict[str, Dim] = {}
        for node in body.parameters.values():
            assert isinstance(node.op, Param)
            leaf = leaf_scope(body, node.scope)
            for scope in [*block_scopes(body, node.scope), *([leaf] if leaf else [])]:
                sums[scope] = sums.get(scope, Dim(0)) + volume(node.op.dims)
        yield from (((id(body), scope), _told(size, graph.dims)) for scope, size in sums.items())
        whole = count_parameters(body) if body is not graph else None
        if whole is not None and whole != 0:
            yield (id(body), ""), f"{_told(whole, graph.dims).removesuffix(' parameters')} each"


def _bodies(graph: Graph) -> Iterable[Graph]:
    """The graph and the bodies of its stacks, however deep."""
    found = {id(graph): graph}
    waiting = [graph]
    while waiting:
        inner = [body for node in waiting.pop().nodes if isinstance(node.op, Repeat) for body in node.op.bodies]
        new = {id(body): body for body in inner if id(body) not in found}
        found |= new
        waiting += new.values()
    return found.values()


def _told(size: Dim, dims: dict[str, int]) -> str:
    known = number(size, dims)
    return f"{size if known is None else short(known)} parameters"


def short(count: int) -> str:
    """A count in three digits: `768`, `7.09 M`."""
    for power, unit in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if count >= 10**power * 0.9995:
            value = count / 10**power
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return str(count)
