"""Samples of arithmetic, elementwise functions, activations, norms, softmax, reductions and the matrix product."""

from __future__ import annotations

from blockgraph.dims import Dim
from blockgraph.number import Number
from blockgraph.ops.activations import Elu, GeluErf, GeluTanh, QuickGelu, Relu, ReluSquared, Silu, Softplus
from blockgraph.ops.arithmetic import RELATIONS, Add, Compare, Divide, Multiply, Negate, Power, Subtract
from blockgraph.ops.elementwise import Abs, Erf, Exp, Log, Sigmoid, Sqrt, StopGradient, Tanh, Where
from blockgraph.ops.matmul import MatMul, Transpose
from blockgraph.ops.norms import L2Norm, LayerNorm, RmsNorm
from blockgraph.ops.reduce import Cumsum, Max, Mean, Min, Sum
from blockgraph.ops.softmax import Softmax
from tests.op_samples import Sample, typed

X = typed("B T C")
GAMMA = typed("C", bare=True)
AWAY = (0.3, 2.0)
"""Bounds of positive operands, away from poles."""

BINARY = [
    Sample("equal shapes", Add(), (X, X)),
    Sample("a bias", Add(), (X, GAMMA)),
    Sample("positions", Add(), (X, typed("1 T C"))),
    Sample("positions on the left", Subtract(), (typed("1 T 1"), X)),
    Sample("a gain that is subtracted", Subtract(), (X, typed("", bare=True))),
    Sample("two parameters", Subtract(), (typed("T 1", bare=True), GAMMA)),
    Sample("a stretch asked for", Add(stretch=True), (typed("=1 C"), X)),
    Sample("equal shapes", Multiply(), (X, X)),
    Sample("a gate", Multiply(), (X, typed("B 1 C"))),
    Sample("any ranks", Multiply(), (typed("H 1 1"), typed("B =1 T T"))),
    Sample("a scalar", Multiply(), (typed(""), X)),
    Sample("both stretch", Divide(), (typed("B 1 C"), typed("T 1")), ranges=(None, AWAY)),
    Sample("a scalar", Divide(), (X, typed("")), ranges=(None, AWAY)),
    Sample("both stretch", Power(), (typed("B 1 C"), typed("T 1")), ranges=(AWAY, None)),
    *(Sample(relation, Compare(relation=relation), (X, typed("1 1 C"))) for relation in RELATIONS),
    Sample("ids", Compare(relation="<"), (typed("B T", "int"), typed("B T", "int"))),
]
CURVES = [
    *(
        Sample("any number", op(), (X,))
        for op in (Negate, Exp, Abs, Erf, Sigmoid, Tanh, StopGradient, Relu, ReluSquared)
    ),
    *(Sample("any number", op(), (X,)) for op in (Silu, QuickGelu, GeluErf, GeluTanh, Softplus, Elu)),
    *(Sample("a scalar", op(), (typed(""),)) for op in (Exp, Erf, Sigmoid, Relu, Silu, GeluErf, GeluTanh, Softplus)),
    *(
        Sample("far out", op(), (X,), ranges=((-30, 30),))
        for op in (Sigmoid, Silu, QuickGelu, GeluErf, GeluTanh, Softplus)
    ),
    *(Sample("positive", op(), (X,), ranges=(AWAY,)) for op in (Log, Sqrt)),
    Sample("three shapes", Where(), (typed("B T 1", "bool"), typed("T C"), typed("B 1 C"))),
    Sample("a scalar", Where(), (typed("B T", "bool"), typed("B T"), typed(""))),
]
NORMS = [
    Sample("full", LayerNorm(given=("gamma", "beta")), (X, GAMMA, GAMMA)),
    Sample("no shift", LayerNorm(given=("gamma",)), (X, GAMMA)),
    Sample("shift only", LayerNorm(given=("beta",)), (X, typed("C"))),
    Sample("bare", LayerNorm(eps=0.25), (typed("B H T D"),)),
    Sample("one row", LayerNorm(given=("gamma", "beta")), (typed("C"), GAMMA, GAMMA)),
    Sample("gain", RmsNorm(given=("gamma",)), (X, GAMMA)),
    Sample("offset", RmsNorm(offset=1, given=("gamma",)), (X, typed("C"))),
    Sample("symbolic eps", RmsNorm(eps=1 / Number("C")), (X,)),
    Sample("one row", RmsNorm(given=("gamma",)), (typed("C"), GAMMA)),
    Sample("no eps", L2Norm(), (X,)),
    Sample("eps", L2Norm(eps=0.5), (typed("C"),)),
]
SCORES = typed("B H T S")
SOFTMAX = [
    Sample("a row", Softmax(), (typed("C"),)),
    Sample("rows", Softmax(), (SCORES,)),
    Sample("causal", Softmax(mask="causal"), (SCORES,)),
    Sample("causal, fewer keys than queries", Softmax(mask="causal"), (typed("S T"),)),
    Sample("window", Softmax(mask="causal", window=2), (SCORES,)),
    Sample("symbolic window", Softmax(mask="causal", window=Dim("F")), (typed("S S"),)),
    Sample("keep", Softmax(given=("keep",)), (SCORES, typed("B 1 1 S", "bool"))),
    Sample("keep and causal", Softmax(mask="causal", given=("keep",)), (SCORES, typed("T S", "bool"))),
]
REDUCTIONS = [
    *(Sample("an axis kept", op("b t c -> b t 1"), (X,)) for op in (Sum, Mean, Max, Min)),
    *(Sample("an axis dropped", op("b t c -> b c"), (X,)) for op in (Sum, Mean, Max, Min)),
    *(Sample("permuted", op("b t c -> c 1 b"), (X,)) for op in (Sum, Mean, Max, Min)),
    *(Sample("turned", op("b h t d -> h d b"), (typed("B H T D"),)) for op in (Sum, Mean, Max, Min)),
    *(Sample("dots", op("b ... -> ... 1"), (X,)) for op in (Sum, Mean, Max, Min)),
    *(Sample("dots dropped", op("... c -> c"), (X,)) for op in (Sum, Mean, Max)),
    *(Sample("everything", op("... ->"), (X,)) for op in (Sum, Mean, Max)),
    Sample("nothing", Sum("b t 1 -> t b"), (typed("B T 1"),)),
    Sample("in the middle", Cumsum("b [t] c"), (X,)),
    Sample("last", Cumsum("... [c]"), (X,)),
    Sample("first", Cumsum("[b] ..."), (X,)),
]
PRODUCTS = [
    Sample("a linear map", MatMul(), (X, typed("C D"))),
    Sample("two matrices", MatMul(), (typed("T C"), typed("C D"))),
    Sample("heads", MatMul(), (typed("B H T D"), typed("B H D S"))),
    Sample("leading axes stretch", MatMul(), (typed("B 1 T D"), typed("H D S"))),
    Sample("a plain 1 stretches", MatMul(), (typed("B T D"), typed("=1 D S"))),
    Sample("a row", MatMul(), (typed("C"), typed("C D"))),
    Sample("a column", MatMul(), (X, typed("C"))),
    Sample("a row times matrices", MatMul(), (typed("C"), typed("B C D"))),
    Sample("two vectors", MatMul(), (typed("C"), typed("C"))),
    Sample("a matrix times matrices", MatMul(), (typed("T C"), typed("B C D"))),
    Sample("matrices", Transpose(), (X,)),
    Sample("ids", Transpose(), (typed("B T", "int"),)),
]
SAMPLES = [*BINARY, *CURVES, *NORMS, *SOFTMAX, *REDUCTIONS, *PRODUCTS]
