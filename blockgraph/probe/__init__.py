"""How the signal behaves with depth: the stream and its branches on the way up, the gradient on the way down.

A random cotangent of norm 1 is pulled back from the outputs, so that a gradient's norm says what is left of it. Runs
with several seeds give medians and ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from blockgraph.grad import Ends, Tape
from blockgraph.graph import Graph
from blockgraph.lazy import np
from blockgraph.probe.layers import Layer, find_layers
from blockgraph.records import dataclass
from blockgraph.run import rms

__all__ = ["Curve", "Probe", "Reading", "measure", "summarise"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One run. Every list has a number per layer, None where the layer has no such thing.

    `stream` and `gradient` begin with the stream as it enters the first layer. `share` is the part of the gradient at a
    layer's entry that came along the layer's skip path, 1 if all of it did; `skip` the norm of what comes from the
    output to the layer's entry along skip paths alone.
    """

    layers: tuple[str, ...]
    stream: list[float | None]
    gradient: list[float | None]
    share: list[float | None]
    skip: list[float | None]
    branches: dict[str, list[float | None]]
    ratios: dict[str, list[float | None]]
    parameters: dict[str, float]
    norms: int | None


def measure(folded: Graph, flat: Graph, tape: Tape, seed: int) -> Reading:
    """Read one recorded run; `seed` draws the cotangent."""
    ends = Ends(flat)
    layers = find_layers(folded, flat, tape.calls)
    dys = _cotangents(ends.outputs(tape.slots), seed)
    wanted = {value for layer in layers for value in (layer.entry, layer.end) if value is not None}
    found = tape.pull_back(ends.by_value(dys), ends.wanted | wanted)
    stops = [layers[0].entry, *(layer.end for layer in layers)] if layers else []
    names = list(dict.fromkeys(branch.name for layer in layers for branch in layer.branches))
    sizes = [{branch.name: _sizes(branch.value, branch.stream, tape) for branch in one.branches} for one in layers]
    return Reading(
        tuple(layer.name for layer in layers),
        [None if stop is None else rms(tape.slots[stop]) for stop in stops],
        [None if stop is None else _norm(found[stop]) for stop in stops],
        [_share(layer, found, tape.slots) for layer in layers],
        _skipped(layers, found, tape.slots),
        {name: [one[name][0] if name in one else None for one in sizes] for name in names},
        {name: [one[name][1] if name in one else None for one in sizes] for name in names},
        {name: _norm(array) for name, array in ends.gradients(found).dparams.items()},
        _norms(layers),
    )


def _cotangents(outputs: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Standard normal, all outputs together of norm 1."""
    rng = np.random.default_rng([seed, 1])
    drawn = {name: rng.standard_normal(y.shape) for name, y in outputs.items() if y.dtype.kind == "f"}
    length = float(np.sqrt(sum(float(np.vdot(dy, dy)) for dy in drawn.values()))) or 1.0
    return {name: (dy / length).astype(outputs[name].dtype) for name, dy in drawn.items()}


def _norm(array: Any) -> float:
    x = np.asarray(array, dtype=np.float64).ravel()
    return float(np.sqrt(np.dot(x, x)))


def _sizes(value: int, stream: int, tape: Tape) -> tuple[float | None, float | None]:
    """RMS of a branch, and that over the RMS of the stream it is added to."""
    size, against = rms(tape.slots[value]), rms(tape.slots[stream])
    return size, size / against if against else None


def _share(layer: Layer, found: Mapping[int, Any], slots: Mapping[int, Any]) -> float | None:
    """<along the skip path, all> / <all, all>, so that the shares of skip path and branches sum to 1."""
    if layer.path is None or layer.entry is None:
        return None
    whole = found[layer.entry]
    total = float(np.vdot(whole, whole))
    with np.errstate(all="ignore"):
        along = layer.path.pull_back(found[layer.end], slots)
    return float(np.vdot(np.asarray(along), whole)) / total if total else None


def _skipped(layers: Sequence[Layer], found: Mapping[int, Any], slots: Mapping[int, Any]) -> list[float | None]:
    """The norm at each layer's entry of what came along skip paths alone, from the end of the last layer.

    Every stack begins anew; above a layer without a skip path nothing of the kind arrives.
    """
    left: list[float | None] = []
    along, above = None, None
    for layer in reversed(layers):
        along = found[layer.end] if above is None or above.entry != layer.end else along
        with np.errstate(all="ignore"):
            along = None if along is None or layer.path is None else layer.path.pull_back(along, slots)
        left.append(None if along is None else _norm(along))
        above = layer
    return left[::-1]


def _norms(layers: Sequence[Layer]) -> int | None:
    """The norms that stand on all the skip paths together; None if some layer has no skip path."""
    counts = [None if layer.path is None else layer.path.norms for layer in layers]
    return None if None in counts else sum(count for count in counts if count is not None)


@dataclass(frozen=True, slots=True)
class Curve:
    """Median, smallest and largest over the runs, a number per layer; None where there is nothing."""

    median: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass(frozen=True, slots=True)
class Probe:
    """All runs of one spec at one depth; the curves are those of `Reading`."""

    name: str
    depth: int
    layers: tuple[str, ...]
    curves: dict[str, Curve]
    branches: dict[str, Curve]
    ratios: dict[str, Curve]
    parameters: dict[str, tuple[float, float, float]]
    norms: int | None


def summarise(name: str, depth: int, readings: Sequence[Reading]) -> Probe:
    """Medians and ranges of runs of the same layers; `depth` is what was asked for, of each stack."""
    first = readings[0]
    curves = {
        "stream": _curve(one.stream for one in readings),
        "gradient": _curve(one.gradient for one in readings),
        "share": _curve(one.share for one in readings),
        "skip": _curve(one.skip for one in readings),
    }
    branches = {key: _curve(one.branches[key] for one in readings) for key in first.branches}
    ratios = {key: _curve(one.ratios[key] for one in readings) for key in first.ratios}
    sizes = {key: _spread([one.parameters[key] for one in readings]) for key in first.parameters}
    return Probe(name, depth, first.layers, curves, branches, ratios, sizes, first.norms)


def _curve(rows: Iterable[list[float | None]]) -> Curve:
    columns = [[number for number in column if number is not None] for column in zip(*rows, strict=True)]
    spreads = [_spread(column) if column else (None, None, None) for column in columns]
    middle, low, high = ([spread[index] for spread in spreads] for index in range(3))
    return Curve(middle, low, high)


def _spread(numbers: list[float]) -> tuple[float, float, float]:
    return median(numbers), min(numbers), max(numbers)
