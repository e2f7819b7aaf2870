"""What a probe has to show: by depth, by layer as bars, and layer by layer; or as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from blockgraph.probe import Curve, Probe
from blockgraph.records import dataclass
from blockgraph.report import Console
from blockgraph.tables import Column, table

BARS: Final = "▁▂▃▄▅▆▇█"
PLAIN_BARS: Final = "_.-~=+*#"
FIXED: Final = 48
"""Columns that a table of one spec needs beside its branches."""
WIDE_SPAN: Final = 30
"""From this ratio of largest to smallest on, bars are logarithmic."""
MOST_TENSORS: Final = 24
ACROSS: Final = 2
"""Specs that stand side by side at 80 columns."""
LEGEND: Final = """
norms: on the skip paths of all layers together
last stream: RMS after the last layer; first gradient: its norm at the first
skip path alone: the norm of what arrives there along skip paths only
"""
CURVES: Final = {
    "stream": "stream RMS",
    "gradient": "gradient norm",
    "share": "share by skip path",
    "skip": "skip path alone",
}
Numbers = Sequence[float | None]


@dataclass(frozen=True)
class ProbeTables:
    """All probes, several depths of each spec in a row."""

    probes: Sequence[Probe]

    @cached_property
    def deepest(self) -> list[Probe]:
        """The last depth of each spec."""
        return list({probe.name: probe for probe in self.probes}.values())

    def document(self) -> list[dict[str, Any]]:
        """Everything as plain data."""
        return [
            {
                "name": probe.name,
                "depth": probe.depth,
                "layers": list(probe.layers),
                "norms_on_skip_path": probe.norms,
                "curves": {key: _curve(curve) for key, curve in probe.curves.items()},
                "branches": {key: _curve(curve) for key, curve in probe.branches.items()},
                "ratios": {key: _curve(curve) for key, curve in probe.ratios.items()},
                "parameters": {
                    name: dict(zip(("median", "low", "high"), map(_finite, spread), strict=True))
                    for name, spread in probe.parameters.items()
                },
            }
            for probe in self.probes
        ]

    def text(self, console: Console, width: int) -> str:
        """The tables under each other."""
        parts = [self._by_depth(console, width)]
        for start in range(0, len(self.deepest), ACROSS):
            group = self.deepest[start : start + ACROSS]
            parts += [_bars(group, console, width), _by_layer(group, console, width)]
        return "\n".join(parts)

    def _by_depth(self, console: Console, width: int) -> str:
        """A row for each spec and depth: what leaves the last layer, and what arrives at the first."""
        head = [Column("spec", wrap=True), Column("depth", right=True), Column("norms", right=True)]
        head += [Column(title) for title in ("last stream", "first gradient", "skip path alone")]
        rows = []
        for probe in self.probes:
            norms = "-" if probe.norms is None else str(probe.norms)
            curves = probe.curves
            cells = [_spread(curves["stream"], -1), _spread(curves["gradient"], 0), _spread(curves["skip"], 0)]
            rows.append((probe.name, str(probe.depth), norms, *cells))
        return table(head, rows, console, width) + LEGEND


def _bars(group: Sequence[Probe], console: Console, width: int) -> str:
    """A row for each quantity: the first number, a bar for each layer, the last number."""
    rows = [(title, [probe.curves[key].median for probe in group]) for key, title in CURVES.items()]
    for title, pick in (("RMS", "branches"), ("/ stream", "ratios")):
        for name in dict.fromkeys(name for probe in group for name in getattr(probe, pick)):
            curves = [getattr(probe, pick).get(name) for probe in group]
            rows.append((f"{name} {title}", [[] if curve is None else curve.median for curve in curves]))
    tensors = dict.fromkeys(name for probe in group for name in _tensors(probe))
    rows += [(f"d {name}", [_tensors(probe).get(name, []) for probe in group]) for name in list(tensors)[:MOST_TENSORS]]
    label = max(len(title) for title, _ in rows)
    room = min(24, max(6, (width - label) // len(group) - 18))
    cells = [(title, *_line(lines, room, console)) for title, lines in rows]
    more = len(tensors) - MOST_TENSORS
    tail = f"{more} more parameters: --format json has them all\n" if more > 0 else ""
    head = [Column("first layer to last"), *(Column(f"{one.name}, {one.depth} layers") for one in group)]
    return table(head, cells, console, width) + tail


def _tensors(probe: Probe) -> dict[str, list[float | None]]:
    """The gradient norms of parameters: those of the same name in all layers as one line."""
    found: dict[str, list[float | None]] = {}
    layers = sorted(probe.layers, key=len, reverse=True)
    for name, (middle, _, _) in probe.parameters.items():
        layer = next((one for one in layers if name.startswith(f"{one}.")), None)
        found.setdefault(name if layer is None else name[len(layer) + 1 :], []).append(middle)
    return found


def _line(lines: Sequence[Numbers], room: int, console: Console) -> list[str]:
    """One cell for each spec; all cells of a row have the same scale."""
    known = [number for line in lines for number in line if number is not None and math.isfinite(number)]
    bars = BARS if _can_show(console) else PLAIN_BARS
    return [_cell(line, known, room, bars) for line in lines]


def _cell(line: Numbers, known: Sequence[float], room: int, bars: str) -> str:
    if not line or all(number is None for number in line):
        return "-"
    if len(line) == 1:
        return _short(line[0])
    count = min(room, len(line))
    picked = [line[round(index * (len(line) - 1) / (count - 1))] for index in range(count)]
    drawn = "".join(_bar(number, known, bars) for number in picked)
    return f"{_short(line[0]):>7} {drawn} {_short(line[-1])}"


def _bar(number: float | None, known: Sequence[float], bars: str) -> str:
    if number is None:
        return " "
    if not math.isfinite(number):
        return "!"
    low, high = min(known), max(known)
    if low > 0 and high > WIDE_SPAN * low:
        low, high, number = math.log(low), math.log(high), math.log(number)
    share = (number - low) / (high - low) if high > low * 1.001 + 1e-300 else 0.5
    return bars[min(len(bars) - 1, int(share * len(bars)))]


def _by_layer(group: Sequence[Probe], console: Console, width: int) -> str:
    """A row for each layer; the first is the stream that comes in."""
    return _one_by_layer(group[0], console, width) if len(group) == 1 else _some_by_layer(group, console, width)


def _some_by_layer(group: Sequence[Probe], console: Console, width: int) -> str:
    """Several specs beside each other, under letters."""
    letters = [chr(ord("A") + number) for number in range(len(group))]
    told = ", ".join(f"{letter}: {probe.name}" for letter, probe in zip(letters, group, strict=True))
    keys = ("stream", "gradient", "skip")
    head = [Column("layer", right=True), *(Column(f"{letter} {key}", right=True) for letter in letters for key in keys)]
    curves = [probe.curves[key].median for probe in group for key in keys]
    rows = []
    for number in range(max(len(probe.layers) for probe in group) + 1):
        rows.append((str(number), *(_short(_at(curve, number)) for curve in curves)))
    return f"{console.shown(told)}\n\n{table(head, rows, console, width)}"


def _one_by_layer(probe: Probe, console: Console, width: int) -> str:
    """One spec with its branches, as parts of the stream, and the range of its gradient."""
    room = max(8, (width - FIXED) // max(1, len(probe.ratios)) - 1)
    cut = console.ellipsis
    names = [name if len(name) <= room else f"{name[: room - len(cut)]}{cut}" for name in probe.ratios]
    head = [Column("layer"), Column("stream", right=True), *(Column(name, right=True) for name in names)]
    head += [Column("gradient"), Column("share", right=True), Column("skip", right=True)]
    ratios = [[None, *curve.median] for curve in probe.ratios.values()]
    curves = [probe.curves["stream"].median, *ratios]
    rows = []
    for number, name in enumerate(["in", *probe.layers]):
        gradient = _spread(probe.curves["gradient"], number)
        last = [_short(_at(probe.curves[key].median, number)) for key in ("share", "skip")]
        rows.append((name, *(_short(_at(curve, number)) for curve in curves), gradient, *last))
    return f"branches: RMS over that of the stream\n\n{table(head, rows, console, width)}"


def _at(curve: Numbers, row: int) -> float | None:
    """A curve's number in a row. What a skip path brings arrives at a layer's entry: the row before the layer's own."""
    return curve[row] if row < len(curve) else None


def _spread(curve: Curve, index: int) -> str:
    middle, low, high = ((numbers or [None])[index] for numbers in (curve.median, curve.low, curve.high))
    if middle is None:
        return "-"
    told, least, most = (_short(number, 2) for number in (middle, low, high))
    return told if least == most else f"{told} {least}..{most}"


def _short(number: float | None, digits: int = 3) -> str:
    if number is None:
        return "-"
    if number == 0 or not math.isfinite(number) or 1e-2 <= abs(number) < 1e3:
        return f"{number:.{digits}f}"
    mantissa, _, exponent = f"{number:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def _can_show(console: Console) -> bool:
    try:
        BARS.encode(console.encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _curve(curve: Curve) -> dict[str, list[float | None]]:
    return {
        "median": [_finite(number) for number in curve.median],
        "low": [_finite(number) for number in curve.low],
        "high": [_finite(number) for number in curve.high],
    }


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
