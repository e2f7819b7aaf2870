"""How a stack is drawn: equal neighbours as one plate, a cycle as one plate with its members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from blockgraph.dims import Dim
from blockgraph.graph import Graph, Repeat
from blockgraph.records import dataclass

Segment = tuple[tuple[int, ...], Dim]
"""Bodies that take turns, and the number of layers."""
RUN = 3  # equal members of a cycle from this many on fold into one


@dataclass(frozen=True, slots=True)
class Fold:
    """A plate of a stack: its text, and its members as (body, text); a lone member needs no plate of its own."""

    title: str
    members: tuple[tuple[int, str], ...]
    details: tuple[str, ...] = ()


def folds(repeat: Repeat, dims: Mapping[str, int], *, expand: bool = False) -> list[Fold]:
    """The plates of a stack from bottom to top; with `expand` one per layer, where the number of layers is known."""
    names = body_names(repeat)
    if expand and repeat.count.symbols <= dims.keys():
        path = repeat.path or "layers"
        return [Fold(f"{path}.{i}", ((body, ""),), (names[body],)) for i, body in enumerate(repeat.layers(dict(dims)))]
    found: list[Fold] = []
    for turn, times in _turns(_merged(repeat, dims)):
        if len(turn) > 1:
            layers = [body for bodies, count in turn for body in bodies * int(count.evaluate({}))]
            found.append(_turning(repeat, layers, Dim(times), names))
            continue
        ((bodies, count),) = turn
        found += _cycle(repeat, bodies, count, names) if len(bodies) > 1 else [_run(repeat, bodies[0], count, names)]
    return found


def body_names(repeat: Repeat) -> list[str]:
    """What the bodies of a stack are called; those of one name also by what they have and another has not."""
    details = [_details(body) for body in repeat.bodies]
    found = []
    for number, body in enumerate(repeat.bodies):
        others = [details[n] for n, other in enumerate(repeat.bodies) if n != number and other.name == body.name]
        own = [detail for detail in details[number] if any(detail not in other for other in others)]
        found.append(" · ".join(filter(None, (body.name, *own[:1]))) or f"block {number}")
    return found


def _details(body: Graph) -> list[str]:
    """What the parts of a block say of themselves, piece by piece."""
    return [piece for scope in body.scopes.values() for piece in scope.detail.split(" · ") if piece]


def _merged(repeat: Repeat, dims: Mapping[str, int]) -> list[Segment]:
    """Segments with known counts as numbers and their shortest cycle, equal neighbours joined, empty ones left out."""
    found: list[Segment] = []
    for segment in repeat.segments:
        for bodies, count in _written_out(_shortest(segment.bodies), segment.count.subs(dict(dims))):
            joins = found and found[-1][0] == bodies and len(bodies) == 1
            found.append((bodies, found.pop()[1] + count if joins else count))
    return found


def _written_out(bodies: tuple[int, ...], count: Dim) -> Iterator[Segment]:
    """A cycle; one that is not gone through twice layer by layer, so that what comes again in it is found."""
    layers = count.as_int()
    if layers is None or layers >= 2 * len(bodies):
        yield bodies, count
        return
    for body in (bodies * 2)[:layers]:
        yield (body,), Dim(1)


def _shortest(bodies: tuple[int, ...]) -> tuple[int, ...]:
    """The shortest cycle that, repeated, gives this one."""
    length = len(bodies)
    parts = (bodies[:part] for part in range(1, length + 1) if length % part == 0)
    return next(part for part in parts if part * (length // len(part)) == bodies)


def _turns(segments: Sequence[Segment]) -> Iterator[tuple[Sequence[Segment], int]]:
    """Segments in turns: several that come again right after each other, as often as they do; else each by itself."""
    place = 0
    while place < len(segments):
        length, times = max(
            _repetitions(segments, place), key=lambda item: (item[0] * item[1], -item[0]), default=(1, 1)
        )
        yield segments[place : place + length], times
        place += length * times


def _repetitions(segments: Sequence[Segment], place: int) -> Iterator[tuple[int, int]]:
    """How many segments from a place on come again, and how often; their counts are known."""
    for length in range(2, (len(segments) - place) // 2 + 1):
        if segments[place] != segments[place + length]:
            continue
        turn, times = segments[place : place + length], 1
        while segments[place + length * times : place + length * (times + 1)] == turn:
            times += 1
        if times > 1 and not any(len(bodies) > 1 or count.as_int() is None for bodies, count in turn):
            yield length, times


def _run(repeat: Repeat, body: int, count: Dim, names: Sequence[str]) -> Fold:
    shared = ("one set of parameters",) if repeat.shared else ()
    if count == 1:
        return Fold(names[body], ((body, ""),))
    return Fold(f"× {count}", ((body, ""),), tuple(filter(None, (names[body], *shared))))


def _cycle(repeat: Repeat, bodies: tuple[int, ...], count: Dim, names: Sequence[str]) -> list[Fold]:
    """The whole turns as one plate, then the layers of a turn that is cut short."""
    layers = count.as_int()
    turns = count / len(bodies) if layers is None else Dim(layers // len(bodies))
    rest = bodies[: layers % len(bodies)] if layers is not None else ()
    whole = [_turning(repeat, bodies, turns, names)] if turns != 0 else []
    return whole + [_run(repeat, body, Dim(len(list(run))), names) for body, run in groupby(rest)]


def _turning(repeat: Repeat, layers: Sequence[int], turns: Dim, names: Sequence[str]) -> Fold:
    """One plate for turns through several layers: `× 8` (local, local, global)."""
    members: list[tuple[int, str]] = []
    told: list[str] = []
    for body, run in groupby(layers):
        length, name = len(list(run)), names[body]
        many = f"{name} × {length}"
        members += [(body, many)] if length >= RUN else [(body, name)] * length
        told += [many] if length >= RUN else [name] * length
    shared = ("one set of parameters",) if repeat.shared else ()
    return Fold(f"× {turns}", tuple(members), (f"({', '.join(told)})", *shared))
