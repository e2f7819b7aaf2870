"""Graph in, graph out: what a user spelled out in simple ops becomes the op that has a fast form.

Attention, norms, activations, softmax and linear maps written as equations are recognised by what they compute, not by
how they are named, and become the node that the built-in kind would have made. A value somebody asks for (`keep`), and
one that is read outside of what is replaced, stays what it is, and so does everything that is made from it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterator, Mapping
from functools import cache

from blockgraph.graph import Graph
from blockgraph.peephole.sketch import Rule, Sketch


def recognise(graph: Graph, numbers: Mapping[str, int] | None = None, keep: Collection[int] = ()) -> Graph:
    """The same computation with fewer nodes; `graph` has no stacks, `numbers` are those of its dims.

    Values have the same handles as before, so that names and ports stay true; values that nothing needs any more are no
    longer made. Results agree with those of `graph` up to rounding.
    """
    sketch = Sketch(graph, {**graph.dims, **(numbers or {})}, keep)
    for node in graph.nodes:
        sketch.add(node)
        while any(rule(sketch, sketch.last) for rule in rules()):
            pass
    return sketch.graph()


@cache
def rules() -> tuple[Rule, ...]:
    """The rules of every module of this folder, in the order of the modules' names."""
    return tuple(_rules())


def _rules() -> Iterator[Rule]:
    for found in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{found.name}")
        yield from getattr(module, "RULES", ())
