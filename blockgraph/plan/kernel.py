"""How an op is computed within a plan: a kernel writes down NumPy calls that fill the output, and calls none itself.

A kernel is a function registered for a class of ops in one of the files of `kernels/`:

    @kernel(RmsNorm, over=(0,))
    def rms_norm(emit, op, out, x, *gamma):
        square = emit.room(x.shape[:-1])
        emit(np.vecdot, x, x, square)
        ...

`out` and the operands are arrays whose memory the plan has chosen: whole values or blocks of their rows. What they hold
is not known yet, so a kernel may look at shapes and strides only. `emit(function, *arguments)` notes a call; it is
made at every run, in order. `emit.room` lends memory until the kernel is done, `emit.constant` makes an array once.
An op without a kernel runs its `forward`, and the result is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import field
from typing import Any

from blockgraph.lazy import np
from blockgraph.op import Op
from blockgraph.plan.memory import Arena, aligned
from blockgraph.plan.rows import Box
from blockgraph.records import dataclass

CHUNK = 131_072
"""Elements that a chain of elementwise calls takes at once, so that they stay in the cache."""
SMALL = 1 << 14
"""Elements up to which a call costs more than its arithmetic."""
Call = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(slots=True)
class Emit:
    """Where a kernel writes its calls. `box` are the rows that it fills, `dtype` is that of all floats."""

    arena: Arena
    base: int
    dtype: Any
    constants: dict[Hashable, Any]
    box: Box = ()
    calls: list[Call] = field(default_factory=list)
    used: int = 0
    most: int = 0

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Note a call.

        Plain numbers become arrays without axes, and of small arrays axes of one element go away: NumPy's functions
        take these in half the time.
        """
        if isinstance(function, np.ufunc):
            arguments = tuple(self._number(one) if isinstance(one, int | float) else one for one in arguments)
            if arguments[-1].size <= SMALL:
                arguments = _plain(arguments) if function.signature is None else _alone(arguments)
        self.calls.append((function, arguments))

    def _number(self, value: float) -> Any:
        return self.constant(("number", value), lambda: np.asarray(value, self.dtype))

    def room(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """An array for intermediate results, not initialised, until the kernel is done."""
        kind = np.dtype(self.dtype if dtype is None else dtype)
        size = int(kind.itemsize)
        for length in shape:
            size *= length
        array = self.arena.array(self.base + self.used, shape, kind)
        self.used += aligned(size)
        self.most = max(self.most, self.used)
        return array

    def start(self, used: int, box: Box) -> None:
        """Begin a kernel on these rows: its room begins behind `used` bytes."""
        self.used, self.box = used, box
        self.most = max(self.most, used)

    def constant(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The array that `make` returned when this key was asked for first."""
        if key not in self.constants:
            self.constants[key] = make()
        return self.constants[key]

    def full(self, size: int, value: float) -> Any:
        """A constant row of one value."""
        return self.constant(("full", size, value), lambda: np.full(size, value, self.dtype))


def _plain(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arrays without the axes, counted from the right, of which all have one element or none."""
    rank = max(array.ndim for array in arrays)
    single = [axis for axis in range(1, rank + 1) if all(a.ndim < axis or a.shape[-axis] == 1 for a in arrays)]
    if not single or len(single) == rank:
        return arrays
    return tuple(array.squeeze(tuple(-axis for axis in single if axis <= array.ndim)) for array in arrays)


def _alone(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Stacks of matrices without the first axes, where all have one element."""
    while all(array.ndim > 3 and len(array) == 1 for array in arrays):
        arrays = tuple(array[0] for array in arrays)
    return arrays


Write = Callable[..., None]
"""`write(emit, op, out, *operands)`; for an op of several outputs `out` is the tuple of them."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """How to write an op's calls, and what the plan may do with it.

    `over` are operands in whose memory the output may be written. A `product` reads weights that are worth reading
    once for many rows; everything else takes few rows at a time. `placed` kernels heed `emit.box`. One that `sums` adds
    what its rows come to onto its output, the row of the thread that runs it.
    """

    write: Write
    over: tuple[int, ...] = ()
    product: bool = False
    placed: bool = False
    sums: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A part of an op that can run beside its other parts; `weight` tells how long it takes, compared to them."""

    weight: int
    write: Callable[..., None]


KERNELS: dict[type[Op], Kernel] = {}
SPREADS: dict[type[Op], Callable[..., Iterable[Task]]] = {}


def kernel(
    *ops: type[Op],
    over: tuple[int, ...] = (),
    product: bool = False,
    placed: bool = False,
    sums: bool = False,
) -> Callable[[Write], Write]:
    """Register a kernel for these classes of ops."""

    def register(write: Write) -> Write:
        KERNELS.update(dict.fromkeys(ops, Kernel(write, over, product, placed, sums)))
        return write

    return register


def spread(op: type[Op]) -> Callable[[Callable[..., Iterable[Task]]], Callable[..., Iterable[Task]]]:
    """Register `tasks(op, threads, *shapes)`: the parts of an op that shares itself out; each writes one of them."""

    def register(tasks: Callable[..., Iterable[Task]]) -> Callable[..., Iterable[Task]]:
        SPREADS[op] = tasks
        return tasks

    return register


def maximum(left: Any, right: Any, out: Any) -> None:
    """The larger of two; NumPy wants its output by name here."""
    np.maximum(left, right, out=out)


def _forward(emit: Emit, op: Op, out: Any, *operands: Any) -> None:
    emit(_copy_forward, op.forward, out, operands)


def _copy_forward(forward: Callable[..., Any], out: Any, operands: tuple[Any, ...]) -> None:
    result = forward(*operands)
    if isinstance(out, tuple):
        for one, array in zip(out, result, strict=True):
            np.copyto(one, array)
    else:
        np.copyto(out, result)


FORWARD = Kernel(_forward)


def kernel_of(op: Op) -> Kernel:
    """The kernel of an op: its own, or the call of its `forward`."""
    return KERNELS.get(type(op), FORWARD)
