"""The curves of a probe as a picture. matplotlib is loaded when one is drawn, and need not be there before."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from blockgraph.errors import EnvironmentFailure, Finding, Place
from blockgraph.probe import Curve, Probe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS: Final = (
    ("stream", "RMS of the stream", False),
    ("ratio", "largest branch, over the stream", False),
    ("gradient", "norm of the gradient arriving", True),
    ("skip", "norm of what comes by the skip path alone", True),
)


def refuse_plot(path: str) -> None:
    """Raises EnvironmentFailure (BG905) when there is nothing to draw with; asked before the work starts."""
    if importlib.util.find_spec("matplotlib") is None:
        help = '`pip install "blockgraph[plot]"`, or leave out --plot: the table has the same numbers'
        raise EnvironmentFailure([Finding("BG905", f"drawing {path} needs the package matplotlib", Place(path), help)])


def plot(probes: Sequence[Probe], format: str) -> bytes:
    """Four panels over the layers: a colour for each spec, a line for each depth, shaded from lowest to highest."""
    import matplotlib
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(probe.name for probe in probes))
    with matplotlib.rc_context({"svg.hashsalt": "blockgraph", "svg.fonttype": "none"}):
        figure = Figure(figsize=(10, 7), layout="constrained")
        for axes, (key, title, logarithmic) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
            for probe in probes:
                _draw(axes, probe, _curve(probe, key), int(key == "ratio"), f"C{names.index(probe.name)}")
            axes.set_title(title)
            axes.set_xlabel("layer")
            positive = any(number > 0 for line in axes.get_lines() for number in line.get_ydata())
            if logarithmic and positive:
                axes.set_yscale("log")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        file = io.BytesIO()
        figure.savefig(file, format=format, metadata={"Date": None} if format == "svg" else None)
    return file.getvalue()


def _curve(probe: Probe, key: str) -> Curve:
    if key != "ratio":
        return probe.curves[key]
    curves = list(probe.ratios.values())
    return Curve(*(_largest([getattr(one, word) for one in curves]) for word in ("median", "low", "high")))


def _largest(rows: Sequence[list[float | None]]) -> list[float | None]:
    columns = ([number for number in column if number is not None] for column in zip(*rows, strict=True))
    return [max(column, default=None) for column in columns]


def _draw(axes: Axes, probe: Probe, curve: Curve, first: int, color: str) -> None:
    points: list[tuple[int, Any, Any, Any]] = [
        (layer, middle, low, high)
        for layer, (middle, low, high) in enumerate(zip(curve.median, curve.low, curve.high, strict=True), first)
        if middle is not None
    ]
    layers, middles, lows, highs = zip(*points, strict=True) if points else ((), (), (), ())
    label = f"{probe.name}, {probe.depth} layers".replace("$", r"\$")
    axes.plot(layers, middles, color=color, label=label, linewidth=1)
    axes.fill_between(layers, lows, highs, color=color, alpha=0.15, linewidth=0)
