"""Where the words of an equation made from a placement stand in the file: a fault is shown under what was written.

The equation itself stands nowhere; what `with` passes and the factors of its paths do.
"""

from __future__ import annotations

from collections.abc import Mapping

from blockgraph.errors import Place, SpecPath
from blockgraph.source import Document
from blockgraph.syntax import Binary, Call, Equation, walk

Span = tuple[int, int]


def origins(
    equation: Equation, document: Document, sublayers: Mapping[str, SpecPath], factors: Mapping[str, SpecPath]
) -> dict[Span, Place]:
    """The places of names, values and factors by start and end of their text in the equation.

    `sublayers` are the paths of those called in it by part, `factors` those of the options by their text.
    """
    found: dict[Span, Place] = {}
    for node in walk(equation.expr):
        if isinstance(node, Call) and node.name in sublayers:
            found |= _passed(node, document, (*sublayers[node.name], "with"))
        elif isinstance(node, Binary) and node.op == "*":
            text = equation.text[node.left.start - equation.start : node.left.end - equation.start]
            if text in factors:
                found |= _factor(node, document, factors[text])
    return found


def _passed(call: Call, document: Document, path: SpecPath) -> dict[Span, Place]:
    """`with` is a list of names or a mapping from the sublayer's names to the block's."""
    found: dict[Span, Place] = {}
    for index, named in enumerate(call.named):
        entry = (*path, index) if document.has((*path, index)) else (*path, named.name)
        found[named.start, named.end] = document.key(entry)
        found[named.value.start, named.value.end] = document.value(entry)
    return found


def _factor(product: Binary, document: Document, path: SpecPath) -> dict[Span, Place]:
    first = product.left.start
    return {
        (one.start, one.end): document.within(path, one.start - first, one.end - first) for one in walk(product.left)
    }
