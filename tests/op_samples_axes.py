"""Samples of the ops that move, contract, attend, look up and tell positions."""

from __future__ import annotations

from blockgraph.dims import Dim
from blockgraph.number import Number
from blockgraph.op import Type
from blockgraph.ops.attend import Attend
from blockgraph.ops.axes import Heads, Merge, Rearrange, Repeat_
from blockgraph.ops.einsum import Einsum
from blockgraph.ops.gather import Lookup, Put, TopK
from blockgraph.ops.join import Concat, Split
from blockgraph.ops.positions import Alibi, RelativeBuckets, RopeAngles, Sinusoid
from blockgraph.ops.rope import Rope
from blockgraph.ops.shift import DepthwiseConv, Shift
from blockgraph.ops.subscript import WHOLE, Index
from tests.op_samples import Sample, typed

X = typed("B T C")
T, C, D, H = Dim("T"), Dim("C"), Dim("D"), Dim("H")
IDS, SEEN = typed("B T", "int"), typed("B S", "bool")

MOVES = [
    Sample("permuted", Rearrange("b t c -> c b t"), (X,)),
    Sample("heads", Rearrange("b t (h d) -> b h t d", (("h", H),)), (typed("B T H*D"),)),
    Sample("joined, with a one", Rearrange("b h t d -> 1 (b t) 1 (d h)"), (typed("B H T D"),)),
    Sample("ones that go", Rearrange("1 c 1 -> c"), (typed("1 C =1"),)),
    Sample("dots", Rearrange("... (m two) -> two ... m", (("two", 2),)), (typed("B T 2*D"),)),
    Sample("no axes left", Rearrange("1 -> "), (typed("1"),)),
    Sample("ids", Rearrange("b t -> t b"), (IDS,)),
    Sample("a new axis", Repeat_("b t c -> b r t c", (("r", 4),)), (X,)),
    Sample("into a group", Repeat_("... c -> ... (c r)", (("r", H),)), (X,)),
    Sample("a one stretched", Repeat_("b 1 c -> b t c", (("t", T),)), (typed("B 1 C"),)),
    Sample("two new axes", Repeat_("c -> b c r", (("b", 2), ("r", 3))), (typed("C"),)),
    Sample("even", Heads(H), (typed("B T H*D"),)),
    Sample("no batch", Heads(2), (typed("T 2*D"),)),
    Sample("even", Merge(), (typed("B H T D"),)),
    Sample("last axis", Concat(), (X, typed("B T D"), X)),
    Sample("an axis in between", Concat(axes="b [t] c"), (X, typed("B S C"))),
    Sample("an axis after dots", Concat(axes="... [t] c"), (typed("S C"), typed("T C"))),
    Sample("one operand", Concat(), (X,)),
    Sample("sizes", Split((D, 3)), (Type((T, D + 3)),)),
    Sample("equal parts", Split(3), (typed("B T 3*D"),)),
    Sample("right", Shift(1), (X,)),
    Sample("left", Shift(-2), (X,)),
    Sample("by a size", Shift(Dim("S")), (X,)),
]
SLICES = [
    Sample(name, Index(items), (X,))
    for name, items in {
        "a position": (WHOLE, 0),
        "the last": (..., -1),
        "all but the last": (WHOLE, (None, -1, None)),
        "from the second on": (WHOLE, (1, None, None)),
        "shifted": (WHOLE, (T - 1, None, None)),
        "two of each row": (..., (1, 3, None)),
        "new axes": (None, ..., None),
        "all": (),
        "the last two": (..., (-2, None, None)),
    }.items()
] + [
    Sample("a half", Index((..., (None, D, None))), (typed("B 2*D"),)),
    Sample("every other", Index((..., (None, None, 2))), (typed("B 2*D"),)),
    Sample("three of a number", Index(((None, None, 2), 1)), (typed("5 C"),)),
    Sample("ids", Index((WHOLE, (None, -1, None))), (IDS,)),
]
PRODUCTS = [
    Sample("scores", Einsum("b h t d, b h s d -> b h t s"), (typed("B H T D"), typed("B H S D"))),
    Sample("a map to heads", Einsum("b t c, c h r -> b h t r"), (X, typed("C H D"))),
    Sample(
        "three operands",
        Einsum("b h t s, b h s r, h r c -> b t c"),
        (typed("B H T S"), typed("B H S D"), typed("H D C")),
    ),
    Sample("streams", Einsum("m n, b t n c -> b t m c"), (typed("H H"), typed("B T H C"))),
    Sample("a vector", Einsum("m, b t m c -> b t c"), (typed("H"), typed("B T H C"))),
    Sample("an outer product", Einsum("m, b t c -> b t m c"), (typed("H"), X)),
    Sample("one operand", Einsum("b t c -> c"), (X,)),
    Sample("a transpose", Einsum("b t c -> c t b"), (X,)),
    Sample("a letter summed alone", Einsum("b t c, t -> b c"), (typed("B T C"), typed("T"))),
    Sample("letters summed alone on both sides", Einsum("a c, b c -> c"), (typed("T C"), typed("S C"))),
    Sample("to a number", Einsum("c, c ->"), (typed("C"), typed("C"))),
    Sample("dots", Einsum("... t c, c d -> ... t d"), (typed("B H T C"), typed("C D"))),
    Sample(
        "four operands", Einsum("a b, b c, c d, d e -> a e"), (typed("B T"), typed("T C"), typed("C D"), typed("D E"))
    ),
]
ROPE = [
    Sample("half", Rope("half"), (typed("B H T 2*D"),)),
    Sample("pairs", Rope("pairs"), (typed("B H T 2*D"),)),
    Sample("half, partly", Rope("half", width=D), (typed("B H T 2*D"),)),
    Sample(
        "pairs, partly", Rope("pairs", width=2, theta=Number("theta") * 2), (typed("T 2*D"),), symbols={"theta": 50.0}
    ),
    Sample("angles", RopeAngles(width=2 * D), (X,)),
]
Q, K, V = typed("B H T D"), typed("B H S D"), typed("B H S E")
GROUPED = (typed("B 2*H T D"), K, V)
ATTEND = [
    Sample("plain", Attend(), (Q, K, V)),
    Sample("causal, more keys", Attend("causal"), (Q, K, V)),
    Sample("causal, more queries", Attend("causal"), (K, Q, typed("B H T E"))),
    Sample("causal, grouped", Attend("causal"), GROUPED),
    Sample("window", Attend("causal", window=2), (Q, Q, Q)),
    Sample("window without mask", Attend(window=Dim("D")), (Q, Q, Q)),
    Sample("scale and cap", Attend(scale=Number("s"), softcap=1.5), (Q, K, V), symbols={"s": 0.7}),
    Sample("ALiBi", Attend("causal", alibi=True), GROUPED),
    Sample("ALiBi without mask, capped", Attend(alibi=True, softcap=2), (Q, K, V)),
    Sample("keep", Attend(given=("keep",)), (*GROUPED, SEEN)),
    Sample("keep per query", Attend("causal", window=3, given=("keep",)), (Q, K, V, typed("B T S", "bool"))),
    Sample(
        "no batch",
        Attend("causal", given=("keep",)),
        (typed("H T D"), typed("H S D"), typed("H S E"), typed("S", "bool")),
    ),
    Sample("bias", Attend(given=("score_bias",)), (*GROUPED, typed("1 2*H T S"))),
    Sample("bias per key", Attend(softcap=3, given=("score_bias",)), (Q, K, V, typed("B 1 1 S"))),
    Sample("bias (H, T, 1)", Attend("causal", given=("score_bias",)), (Q, K, V, typed("H T 1"))),
    Sample("sinks", Attend("causal", given=("sinks",)), (*GROUPED, typed("2*H"))),
    Sample(
        "all at once",
        Attend("causal", window=3, scale=0.5, softcap=4, alibi=True, given=("sinks", "keep", "score_bias")),
        (*GROUPED, typed("2*H"), SEEN, typed("2*H T S")),
    ),
]
GATHER = [
    Sample("ids", Lookup(), (typed("V C"), IDS)),
    Sample("no axes", Lookup(), (typed("V C"), typed("", "int"))),
    Sample("two", TopK(2), (X,)),
    Sample("a size", TopK(D), (typed("B 2*D"),)),
    Sample("distinct or not", Put(Dim("V")), (X, typed("B T C", "int"))),
    Sample("a row", Put(4), (typed("D"), typed("D", "int"))),
]
POSITIONS = [
    Sample("pairs", Sinusoid("pairs"), (X,)),
    Sample("half", Sinusoid("half", theta=100), (typed("T 3"),)),
    Sample("scores", Alibi(), (typed("B 3*H T S"),)),
    Sample("ids", RelativeBuckets(8, 20, "both"), (IDS,)),
    Sample("values and keys", RelativeBuckets(8, 20, "past", given=("keys",)), (X, SEEN)),
    Sample("one axis", RelativeBuckets(8, 20, "past"), (typed("T"),)),
]
CONV = [
    Sample("causal", DepthwiseConv(causal=True), (X, typed("D C"))),
    Sample("centred", DepthwiseConv(given=("bias",)), (X, typed("3 C"), typed("C"))),
    Sample("longer than the sequence", DepthwiseConv(given=("bias",)), (typed("T C"), typed("8 C"), typed("C"))),
]
SAMPLES = [*MOVES, *SLICES, *PRODUCTS, *ROPE, *ATTEND, *GATHER, *POSITIONS, *CONV]
