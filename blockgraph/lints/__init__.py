"""Lints: wirings that are legal but probably wrong. One file each; a lint reads a graph and yields findings.

Defining a function of one of these names in a module of this package is enough; nothing is listed by hand:
`lint(graph)` sees the main graph and the body of every stack, `lint_model(graph)` the main graph alone, and
`lint_spec(graph, spec, others)` also what the file declares, and the modules that nothing calls.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, Protocol

from blockgraph.errors import Finding
from blockgraph.graph import Graph
from blockgraph.lazy import modules_in
from blockgraph.lints.wiring import asked, stacks


class Declared(Protocol):
    """What a lint may ask of a spec."""

    @property
    def document(self) -> Any:
        """The file: its plain data, and the places in it."""

    @property
    def dims(self) -> Mapping[str, Any]:
        """The dims declared, by name."""

    @property
    def modules(self) -> Mapping[str, Any]:
        """Blocks and model by name, each with `causal` and `path`."""

    @property
    def main(self) -> str:
        """The name of the main module."""


def lint(
    graph: Graph,
    spec: Declared | None = None,
    others: Mapping[str, Graph] = MappingProxyType({}),
    all_known: bool = True,
) -> tuple[Finding, ...]:
    """All findings about a graph and the bodies of its stacks, each once; with `spec` also those about what it says.

    `others` are the modules, by name, that the graph does not call. Give no spec that has errors: what it declares may
    then only seem to be unused. Without `all_known` lints that NEEDS_ALL are not asked: what they miss may be there.
    """
    found: dict[Finding, None] = {}
    every = list(bodies(graph))
    waived = frozenset(code for body in every for code in body.waived)
    for module in _modules():
        if not all_known and getattr(module, "NEEDS_ALL", False):
            continue
        if hasattr(module, "lint"):
            found.update(_of_bodies(module, every))
        if hasattr(module, "lint_model"):
            found.update(dict.fromkeys(one for one in module.lint_model(graph) if one.code not in waived))
        if spec is not None and hasattr(module, "lint_spec"):
            found.update(dict.fromkeys(module.lint_spec(graph, spec, others)))
    return tuple(found)


def _of_bodies(module: ModuleType, every: Sequence[Graph]) -> Iterator[tuple[Finding, None]]:
    for body, found in asked(every, module.lint):
        yield from ((one, None) for one in found if one.code not in body.waived)


@cache
def _modules() -> list[ModuleType]:
    return [importlib.import_module(f"{__name__}.{one}") for one in modules_in(__name__)]


def bodies(graph: Graph) -> Iterator[Graph]:
    """The graph and the bodies of all stacks in it, with the numbers and conditions of the whole."""
    waiting, known = [graph], dict[int, Graph]()
    inside: dict[int, list[Graph]] = {}
    while waiting:
        one = waiting.pop()
        yield one
        if id(one.original) not in inside:
            inside[id(one.original)] = [body for _, stack in stacks(one.original) for body in stack.bodies]
        for body in inside[id(one.original)]:
            source = body.original
            if id(source) not in known:
                known[id(source)] = replace(source, dims=graph.dims, conditions=graph.conditions)
            same = known[id(source)]
            waiting.append(same if body.shift is None else same.elsewhere(body.name, body.shift))
