"""Attention for gradients: the forward keeps one number per query, the backward makes the weights from it again."""

from __future__ import annotations

from typing import Any, ClassVar, final

from blockgraph.adjoint.ops import Adjoint
from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Cost, Move, Type
from blockgraph.ops.attend import Attend
from blockgraph.pattern import Axes, Pattern
from blockgraph.records import dataclass

_ONE = Dim(1)


@final
@dataclass(frozen=True)
class AttendSaved(Adjoint):
    """y as `attend`, and the log of the sum of exponentials of each query's scores, sinks included

    Where a query sees nothing the log is 0. Operands are those of `op`; the log is (..., H, T, 1).
    """

    name: ClassVar[str] = "attend saved"
    signature = "*operands"
    op: Attend

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """That of `attend`, and the rows of its result."""
        pattern = self.op.pattern(types)
        return Pattern(pattern.operands, (*pattern.outputs, (*pattern.outputs[0][:-1], "1")))

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Those of `attend`."""
        return self.op.moves(types)

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The result, and one number per query."""
        (y,) = self.op.infer(*types)
        assert y.shape is not None, "a graph that is run has all its shapes"
        return y, Type((*y.shape[:-1], _ONE))

    def forward(self, *arrays: Any) -> Any:
        """Block by block."""
        q, _, v = arrays[:3]
        y, logs = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype), np.zeros((*q.shape[:-1], 1), q.dtype)
        for block in self.op.blocks(arrays):
            block.put(y, block.grouped(block.exps) @ block.v, block.sums)
            logs[..., block.rows, :] = np.log(block.sums) + block.top
        return y, logs

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """That of `attend`."""
        return self.op.cost(types, outs[:1])


@final
@dataclass(frozen=True)
class AttendBackward(Adjoint):
    """dv = w^T dy, ds = w * (dy v^T - dy . y), dq = scale * ds k, dk = scale * ds^T q, with w = exp(scores - logs)

    Operands are dy, y and the logs that `AttendSaved` kept, then those of `op`, which has neither bias nor sinks.
    """

    name: ClassVar[str] = "attend backward"
    signature = "dy, y, logs, *operands"
    op: Attend

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Batches and heads stay apart."""
        q, k, v, *more = self.op.pattern(types[3:]).operands
        y = self.op.pattern(types[3:]).outputs[0]
        return Pattern((y, y, (*y[:-1], "1"), q, k, v, *more), (_named(q, "p"), _named(k, "r"), _named(v, "r")))

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Queries meet keys: nothing may be cut along either."""
        return tuple(Move(0, letter, None, None) for letter in ("p", "r"))

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The shapes of queries, keys and values."""
        return tuple(Type(given.shape) for given in types[3:6])

    def forward(self, *arrays: Any) -> Any:
        """The op's own backward, which makes the weights again block by block."""
        dy, y, _, *operands = arrays
        return tuple(self.op.backward(dy, y, *operands)[:3])

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Five products where the forward has two."""
        once = self.op.cost(types[3:], types[1:2])
        return Cost(once.products / 2 * 5, once.elementwise * 2)


def _named(axes: Axes, letter: str) -> Axes:
    """Axes with another letter for the positions."""
    return (*axes[:-2], letter, axes[-1])
