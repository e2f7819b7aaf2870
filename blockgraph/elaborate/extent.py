"""How large a graph must become, told from the text alone: what uses blocks twice over grows past any patience.

Only a lower bound is counted, so that nothing is refused that could be worked out: one step for each operation on a
value, one for each call of a part, and those of a block at each of its calls. A stack has each block once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from blockgraph.errors import Place
from blockgraph.module import Module, PartDecl
from blockgraph.records import dataclass
from blockgraph.spec import Spec
from blockgraph.syntax import Binary, Call, Compare, Expr, Name, Subscript, Transpose, children, walk

STEPS = (Binary, Compare, Subscript, Transpose, Call)
MAX_COUNTED = 2**62


@dataclass(frozen=True, slots=True)
class Extent:
    """The call with which a module passes the limit of steps, and the first circle of blocks; None where is none."""

    past: Place | None
    circle: tuple[str, Place] | None


def extent(spec: Spec, limit: int) -> Extent:
    """The extent of all modules, each counted once, after the blocks that it uses."""
    sizes: dict[str, int] = {}
    circle: tuple[str, Place] | None = None
    for first, module in spec.modules.items():
        if circle is None and (like := module.original.name) in sizes:
            sizes[first] = sizes[like]
        waiting = {} if first in sizes else {first: _uses(spec, module)}
        while waiting:
            name = next(reversed(waiting))
            locate, block = next(waiting[name], (None, ""))
            if locate is None:
                sizes[name] = _size(spec.modules[name], sizes, spec, MAX_COUNTED)[0]
                del waiting[name]
            elif block in waiting:
                circle = circle or (block, locate())
            elif block not in sizes:
                waiting[block] = _uses(spec, spec.modules[block])
    large = [name for name in (spec.main, *spec.modules) if sizes.get(name, 0) > limit]
    return Extent(_size(spec.modules[large[0]], sizes, spec, limit)[1] if large else None, circle)


def _uses(spec: Spec, module: Module) -> Iterator[tuple[Callable[[], Place], str]]:
    """The blocks of the file that a module calls, each once, and where."""
    blocks = {name: _blocks(spec, part) for name, part in module.parts.items()}
    if not any(blocks.values()):
        return
    told = set[str]()
    for line in module.lines:
        for node in walk(line.equation.expr):
            for block in blocks.get(node.name, ()) if isinstance(node, Call) else ():
                if block not in told:
                    told.add(block)
                    yield partial(line.locate, node.start, node.end), block


def _blocks(spec: Spec, part: PartDecl) -> tuple[str, ...]:
    """The blocks that a part is made of, each once."""
    if part.kind in spec.modules:
        return (part.kind,)
    of = part.options.get("of") if part.kind == "stack" else None
    entries = of if isinstance(of, list) else [of]
    kinds = dict.fromkeys(_kind_of(entry) for entry in entries)
    return tuple(kind for kind in kinds if kind in spec.modules)


def _kind_of(entry: Any) -> str:
    kind = entry.get("kind") if isinstance(entry, dict) else entry
    return kind if isinstance(kind, str) else ""


def _size(module: Module, sizes: Mapping[str, int], spec: Spec, limit: int) -> tuple[int, Place | None]:
    """The least number of steps of a module, and the place where it passes the limit."""
    inside = {name: sum(sizes.get(block, 0) for block in _blocks(spec, part)) for name, part in module.parts.items()}
    values = {one.name for one in module.inputs}
    total = 0
    for line in module.lines:
        for node in _steps(line.equation.expr, values):
            total += 1 + (inside.get(node.name, 0) if isinstance(node, Call) else 0)
            if total > limit:
                return min(total, MAX_COUNTED), line.locate(node.start, node.end)
        values.update(target.name for target in line.equation.targets)
    return total, None


def _steps(expr: Expr, values: set[str]) -> Iterator[Expr]:
    """The operations with a value in them: what has none may be worked out as a number."""
    order = list(walk(expr))
    with_value = set[int]()
    for node in reversed(order):  # children come after their parents
        if node.name in values if isinstance(node, Name) else any(id(one) in with_value for one in children(node)):
            with_value.add(id(node))
    yield from (node for node in order if isinstance(node, STEPS) and id(node) in with_value)
