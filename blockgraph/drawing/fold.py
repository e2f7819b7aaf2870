"""How a stack is drawn: equal neighbours as one plate, a cycle as one plate with its members."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from blockgraph.dims import Dim
from blockgraph.graph import Repeat
from blockgraph.records import dataclass

RUN = 3  # equal members of a cycle from this many on fold into one


@dataclass(frozen=True, slots=True)
class Fold:
    """A plate of a stack: its text, and its members as (body, text); a lone member needs no plate of its own."""

    title: str
    members: tuple[tuple[int, str], ...]
    details: tuple[str, ...] = ()


def folds(repeat: Repeat, dims: Mapping[str, int], *, expand: bool = False) -> list[Fold]:
    """The plates of a stack from bottom to top; with `expand` one per layer, where the number of layers is known."""
    if expand and repeat.count.symbols <= dims.keys():
        return _layers(repeat, dict(dims))
    found: list[Fold] = []
    for bodies, count in _merged(repeat, dims):
        found += _cycle(repeat, bodies, count) if len(set(bodies)) > 1 else [_run(repeat, bodies[0], count)]
    return found


def _layers(repeat: Repeat, dims: dict[str, int]) -> list[Fold]:
    path = repeat.path or "layers"
    return [
        Fold(f"{path}.{i}", ((body, ""),), (repeat.bodies[body].name,)) for i, body in enumerate(repeat.layers(dims))
    ]


def _merged(repeat: Repeat, dims: Mapping[str, int]) -> list[tuple[tuple[int, ...], Dim]]:
    """Segments with known counts as numbers, equal neighbours joined, empty ones left out."""
    found: list[tuple[tuple[int, ...], Dim]] = []
    for segment in repeat.segments:
        count = segment.count.subs(dict(dims))
        bodies = segment.bodies if len(set(segment.bodies)) > 1 else segment.bodies[:1]
        if count == 0:
            continue
        if found and found[-1][0] == bodies and len(bodies) == 1:
            count = found.pop()[1] + count
        found.append((bodies, count))
    return found


def _run(repeat: Repeat, body: int, count: Dim) -> Fold:
    name = repeat.bodies[body].name
    shared = ("one set of parameters",) if repeat.shared else ()
    if count == 1:
        return Fold(name, ((body, ""),))
    return Fold(f"× {count}", ((body, ""),), tuple(filter(None, (name, *shared))))


def _cycle(repeat: Repeat, bodies: tuple[int, ...], count: Dim) -> list[Fold]:
    """The whole turns as one plate, then the layers of a turn that is cut short."""
    layers = count.as_int()
    turns = count / len(bodies) if layers is None else Dim(layers // len(bodies))
    rest = bodies[: layers % len(bodies)] if layers is not None else ()
    names = [repeat.bodies[body].name or f"block {body}" for body in bodies]
    details = (f"({', '.join(names)})", *(("one set of parameters",) if repeat.shared else ()))
    whole = [Fold(f"× {turns}", _members(bodies, names), details)] if turns != 0 else []
    return whole + [_run(repeat, body, Dim(len(list(run)))) for body, run in groupby(rest)]


def _members(bodies: tuple[int, ...], names: list[str]) -> tuple[tuple[int, str], ...]:
    found: list[tuple[int, str]] = []
    for (body, name), run in groupby(zip(bodies, names, strict=True)):
        length = len(list(run))
        found += [(body, f"{name} × {length}")] if length >= RUN else [(body, name)] * length
    return tuple(found)
