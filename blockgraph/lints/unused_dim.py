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
    unused = dict.fromkeys(spec.dims)
    for word in _used(data, spec):
        unused.pop(word, None)
        if not unused:
            return
    for name in unused:
        message = f"the dim `{name}` is never used"
        place = spec.document.key(("dims", name))
        yield Finding(CODE, message, place, "use it, or leave it out", severity="warning")


def _used(data: dict[str, Any], spec: Declared) -> Iterator[str]:
    yield from _words([value for key, value in data.items() if key not in FREE_TEXT])
    for module in spec.modules.values():
        for axis in (axis for one in module.inputs for axis in one.dims):  # also by default
            yield from (node.name for node in walk(axis.expr) if isinstance(node, Name))


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
