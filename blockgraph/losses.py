"""Losses: one number made of the outputs of a run, with its gradient for each output, in closed form.

A loss is called with the outputs by name and returns its value and their cotangents. Whatever it does not read has the
cotangent zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from blockgraph.errors import Finding, InputError, Place, near
from blockgraph.lazy import UNMASK, masked, np
from blockgraph.records import dataclass

Outputs = Mapping[str, Any]
CHUNK = 1 << 18
"""Logits that are worked on at once, so that they stay in the cache."""


class Loss(Protocol):
    """From the outputs by name to a number and the gradients of it by output."""

    def __call__(self, outputs: Outputs) -> tuple[float, dict[str, Any]]:
        """The value and the cotangents. Raises InputError when the outputs do not fit."""


@dataclass(frozen=True)
class Sum:
    """loss = sum(y), over all elements of all outputs that hold numbers"""

    def __call__(self, outputs: Outputs) -> tuple[float, dict[str, Any]]:
        """The cotangents are ones."""
        floats = {name: y for name, y in outputs.items() if y.dtype.kind == "f"}
        value = sum(float(y.sum(dtype=np.float64)) for y in floats.values())
        return value, {name: np.ones_like(y) for name, y in floats.items()}


@dataclass(frozen=True)
class Cotangent:
    """loss = sum(y * dy): the cotangents `dy` are given, one array for the only output, or a mapping by name."""

    dy: Any

    def __call__(self, outputs: Outputs) -> tuple[float, dict[str, Any]]:
        """The cotangents in the outputs' own type. Raises InputError (BG302): a wrong name, shape or type."""
        found = cotangents(outputs, self.dy)
        return sum(_dot(outputs[name], dy) for name, dy in found.items()), found


def _dot(y: Any, dy: Any) -> float:
    """The sum of y * dy in float64.

    Without BLAS: `vdot` would widen both arrays whole, and its threads go on spinning where those of a plan run next.
    """
    return float(np.einsum("i,i->", y.ravel(), dy.ravel(), dtype=np.float64))


def cotangents(outputs: Outputs, dy: Any) -> dict[str, Any]:
    """Cotangents held against the outputs, in their type. Raises InputError (BG302)."""
    names = list(outputs)
    if not isinstance(dy, Mapping):
        if len(names) != 1:
            help = f"give a dict with some of {', '.join(names)}"
            raise _refused(f"there are {len(names)} outputs, and one cotangent is given", help)
        dy = {names[0]: dy}
    return {str(name): _cotangent(str(name), outputs, array) for name, array in dy.items()}


def _cotangent(name: str, outputs: Outputs, dy: Any) -> Any:
    if name not in outputs:
        found = near(name, outputs)
        help = f"did you mean `{found}`?" if found else f"the outputs are {', '.join(outputs)}"
        raise _refused(f"there is no output `{name}`", help)
    y = outputs[name]
    given = dy
    try:
        dy = np.asarray(dy)
    except ValueError:
        raise _refused(f"the cotangent of `{name}` is no array: its rows differ in length", "give numbers") from None
    if masked(given):
        raise _refused(f"the cotangent of `{name}` is a masked array", UNMASK)
    if y.dtype.kind != "f":
        raise _refused(f"the output `{name}` does not hold numbers, and so has no gradient", "leave it out")
    if dy.shape != y.shape:
        help = "a cotangent has the shape of its output, such as `np.ones_like(y)`"
        raise _refused(f"the cotangent of `{name}` has shape {dy.shape}, and the output has {y.shape}", help)
    if dy.dtype.kind not in "fiu":
        raise _refused(f"the cotangent of `{name}` is of type {dy.dtype}", "give numbers")
    return dy.astype(y.dtype, copy=False)


@dataclass(frozen=True)
class CrossEntropy:
    """loss = mean over positions of log(sum_v exp(logits_v)) - logits_target

    logits (..., V), targets (...) below V. Positions whose target is `ignore` count for nothing; if there is no other,
    the loss is 0. `output` names the logits where there are several outputs; `reduce` may be "sum".
    Source: Bridle 1990, Probabilistic interpretation of feedforward classification network outputs.
    """

    targets: Any
    ignore: int | None = None
    output: str | None = None
    reduce: Literal["mean", "sum"] = "mean"

    def __call__(self, outputs: Outputs) -> tuple[float, dict[str, Any]]:
        """dlogits = (softmax(logits) - onehot(target)) / count. Raises InputError (BG302, BG303)."""
        if self.reduce not in ("mean", "sum"):
            raise _refused(f"a cross-entropy reduces by mean or sum, not `{self.reduce}`")
        name = self._name(outputs)
        logits, targets = outputs[name], np.asarray(self.targets)
        counted = self._counted(name, logits, targets)
        places, ids = np.flatnonzero(counted), targets[counted]
        share = 1 / max(len(ids), 1) if self.reduce == "mean" else 1.0
        rows = logits.reshape(counted.size, logits.shape[-1])
        drows, losses = np.zeros(rows.shape, rows.dtype), np.empty(len(ids))
        step, whole = max(1, CHUNK // max(1, rows.shape[-1])), len(ids) == len(rows)
        for stretch in (slice(low, low + step) for low in range(0, len(ids), step)):
            some = rows[stretch] if whole else rows[places[stretch]]
            dsome = drows[stretch] if whole else some
            losses[stretch] = _descend(some, ids[stretch], share, dsome)
            if not whole:
                drows[places[stretch]] = dsome
        return float(losses.sum() * share), {name: drows.reshape(logits.shape)}

    def _name(self, outputs: Outputs) -> str:
        if self.output is None and len(outputs) == 1:
            return next(iter(outputs))
        if self.output is None or self.output not in outputs:
            unknown = f"there is no output `{self.output}`"
            message = "which output holds the logits is not said" if self.output is None else unknown
            raise _refused(message, f"give `output=` as one of {', '.join(outputs)}")
        return self.output

    def _counted(self, name: str, logits: Any, targets: Any) -> Any:
        """True for the positions that count."""
        if logits.dtype.kind != "f" or not logits.ndim:
            raise _refused(f"the output `{name}` holds no logits")
        if masked(self.targets):
            raise _refused("the targets are a masked array", "give `targets.filled(-100)`, and `ignore=-100`")
        if targets.dtype.kind not in "iu":
            raise _refused(f"targets are whole numbers, and these are of type {targets.dtype}")
        if targets.shape != logits.shape[:-1]:
            help = f"give an id for each position: shape {logits.shape[:-1]}"
            raise _refused(f"the targets have shape {targets.shape}, and the logits {logits.shape}", help)
        counted = np.ones(targets.shape, bool) if self.ignore is None else targets != self.ignore
        size = logits.shape[-1]
        wrong = np.argwhere(counted & ((targets < 0) | (targets >= size)))
        if len(wrong):
            where = [int(index) for index in wrong[0]]
            message = f"the targets hold {int(targets[tuple(where)])} at {where}, and ids run from 0 to {size - 1}"
            help = "a target that marks positions to leave out is given as `ignore=`"
            raise InputError([Finding("BG303", message, Place(""), help)])
        return counted


def _descend(logits: Any, ids: Any, share: float, out: Any) -> Any:
    """The losses of some positions; a share of their gradients is written to `out`."""
    place = (np.arange(len(ids)), ids)
    np.subtract(logits, logits.max(axis=-1, keepdims=True), out=out)
    own = out[place]
    np.exp(out, out=out)
    sums = out.sum(axis=-1, keepdims=True)
    out *= share / sums
    out[place] -= share
    return np.log(sums[:, 0].astype(np.float64)) - own


def loss_of(given: Any) -> Loss:
    """What stands for a loss: a loss, "sum", or cotangents. Raises InputError for another word."""
    if isinstance(given, str):
        if given != "sum":
            raise _refused(f"there is no loss `{given}`", 'write "sum", a cotangent, or CrossEntropy(targets)')
        return Sum()
    return given if callable(given) else Cotangent(given)


def _refused(message: str, help: str = "") -> InputError:
    return InputError([Finding("BG302", message, Place(""), help)])
