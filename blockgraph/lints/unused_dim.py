"""BG221: a dim that is declared and that nothing in the file names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from blockgraph.errors import Finding
from blockgraph.graph import Graph
from blockgraph.lints import Declared
from blockgraph.syntax import Name, walk

CODE = "BG221"
FREE_TEXT = ("name", "source")
WORD = re.compile(r"[A-Za-z_]\w*")


def lint_spec(graph: Graph, spec: Declared, others: Mapping[str, Graph]) -> Iterator[Finding]:
    """Dims whose name stands in no size, option, equation or checkpoint rule."""
    data = spec.document.data
    if not isinstance(data, dict):
        return
    used = {word for key, value in data.items() if key not in FREE_TEXT for word in _words(value)}
    axes = (axis for module in spec.modules.values() for one in module.inputs for axis in one.dims)  # also by default
    used |= {node.name for axis in axes for node in walk(axis.expr) if isinstance(node, Name)}
    for name in spec.dims:
        if name not in used:
            message = f"the dim `{name}` is never used"
            place = spec.document.key(("dims", name))
            yield Finding(CODE, message, place, "use it, or leave it out", severity="warning")


def _words(data: Any) -> Iterator[str]:
    """The words of all texts in plain data, keys not included."""
    waiting = [data]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, str):
            yield from WORD.findall(one)
