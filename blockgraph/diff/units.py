"""A graph in units: what a reader names when two models are compared. A part is one, so is an op in an equation."""

from __future__ import annotations

from functools import cached_property

from blockgraph.diff.canonical import in_order
from blockgraph.drawing.scopes import leaf_scope
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.op import Op
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """One part, op or stack. `reads` are the values it takes from other units, `key` its scope or its node's id."""

    key: str | int
    name: str
    kind: str
    family: str
    around: str
    nodes: tuple[Node, ...]
    reads: tuple[int, ...]

    @property
    def repeat(self) -> Repeat | None:
        """The stack, if it is one."""
        op = self.nodes[-1].op
        return op if isinstance(op, Repeat) else None

    @property
    def op(self) -> Op | None:
        """The op, if it is one that stands in an equation."""
        op = self.nodes[-1].op
        return op if isinstance(self.key, int) and isinstance(op, Op) else None

    @property
    def is_norm(self) -> bool:
        """Whether it normalises."""
        return self.family == "norm" or (self.op is not None and self.op.role == "norm")

    @property
    def is_sublayer(self) -> bool:
        """Whether it is a part that a block is made of, neither a norm nor an op."""
        return self.op is None and self.repeat is None and not self.is_norm


@dataclass(frozen=True)
class Units:
    """The units of one graph in canonical order."""

    graph: Graph

    @cached_property
    def all(self) -> tuple[Unit, ...]:
        """The units, each after those it reads."""
        calls: dict[str | int, list[Node]] = {}
        for node in in_order(self.graph):
            if self.bare[node.outputs[0]] or node.op.name == "input":
                continue
            leaf = leaf_scope(self.graph, node.scope)
            key = node.id if leaf is None else leaf
            calls.setdefault(key, []).append(node)
        turn = {node.id: n for n, node in enumerate(in_order(self.graph))}
        ordered = sorted(calls.items(), key=lambda item: max(turn[node.id] for node in item[1]))
        return tuple(self._unit(key, nodes) for key, nodes in ordered)

    def _unit(self, key: str | int, nodes: list[Node]) -> Unit:
        made = {value for node in nodes for value in node.outputs}
        found = [value for node in nodes for value in node.inputs if value not in made and not self.bare[value]]
        last = nodes[-1]
        if isinstance(key, str):
            scope = self.graph.scopes[key]
            reads = tuple(dict.fromkeys(found))
            path, _, use = key.rpartition(".")[2].partition("#")
            name = f"{path} (use {use})" if use else path
            return Unit(key, name, scope.kind, scope.family, self._around(key), tuple(nodes), reads)
        if isinstance(last.op, Repeat):
            return Unit(key, last.op.path, "stack", "stack", last.scope, tuple(nodes), tuple(found))
        family = "norm" if last.op.role == "norm" else "op"
        return Unit(key, last.op.name, last.op.name, family, last.scope, tuple(nodes), tuple(found))

    def _around(self, key: str) -> str:
        return key.rpartition(".")[0]

    @cached_property
    def bare(self) -> list[bool]:
        """For each value whether it is made of parameters and numbers alone."""
        found = [False] * len(self.graph.types)
        for node in self.graph.nodes:
            source = node.op.name in ("param", "constant")
            for value in node.outputs:
                found[value] = source or (bool(node.inputs) and all(found[one] for one in node.inputs))
        return found

    @cached_property
    def maker(self) -> dict[int, int]:
        """The unit that makes each value, by number."""
        return {value: n for n, unit in enumerate(self.all) for node in unit.nodes for value in node.outputs}

    @cached_property
    def users(self) -> dict[int, list[int]]:
        """The units that read each unit, by number; -1 is the end."""
        found: dict[int, list[int]] = {n: [] for n in range(len(self.all))}
        for n, unit in enumerate(self.all):
            for value in unit.reads:
                if value in self.maker:
                    found[self.maker[value]].append(n)
        for port in self.graph.outputs:
            if port.value in self.maker:
                found[self.maker[port.value]].append(-1)
        return found

    @cached_property
    def readers(self) -> dict[str, list[int]]:
        """The units that read each parameter, by its path."""
        found: dict[str, list[int]] = {}
        for n, unit in enumerate(self.all):
            for value in self.bare_operands(unit):
                op = self.graph.producers[value].op
                if isinstance(op, Param):
                    found.setdefault(op.path, []).append(n)
        return found

    def bare_operands(self, unit: Unit) -> list[int]:
        """The parameters and numbers that an op takes beside its operands, with all they are made of."""
        waiting = [value for node in unit.nodes for value in node.inputs if self.bare[value]]
        found: list[int] = []
        while waiting:
            value = waiting.pop(0)
            if value not in found:
                found.append(value)
                waiting += self.graph.producers[value].inputs
        return found
