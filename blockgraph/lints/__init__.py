"""Lints: wirings that are legal but probably wrong. One file each; a lint reads a graph and yields findings.

Defining a function named `lint` in a module of this package is enough; nothing is listed by hand.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from blockgraph.errors import Finding
from blockgraph.graph import Graph, Repeat


def lint(graph: Graph) -> tuple[Finding, ...]:
    """All warnings and notes for a graph and the bodies of its stacks, each once."""
    modules = [importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)]
    found: dict[Finding, None] = {}
    for body in bodies(graph):
        for module in modules:
            found.update(dict.fromkeys(one for one in module.lint(body) if one.code not in body.waived))
    return tuple(found)


def bodies(graph: Graph) -> Iterator[Graph]:
    """The graph and the bodies of all stacks in it."""
    waiting = [graph]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(body for node in one.nodes if isinstance(node.op, Repeat) for body in node.op.bodies)
