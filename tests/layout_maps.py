"""What the names in `layout_equations` mean: maps by hand over the parameters of a program.

`MAPS` says for each layout which map or array of the program's parameters stands behind each argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests import hand
from tests.hand import Array, Params, feed_forward, gated, layer_norm, rms_norm, silu, under

HEADS = hand.HEADS
Make = Callable[[Params], Any]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu_erf(x: Array) -> Array:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def spread(per_head: Array) -> Array:
    """A number for each head as a number for each of its four channels."""
    return np.repeat(per_head, 4)


def attend(query: Array, key: Array, value: Array, causal: bool = False, keep: Array | None = None) -> Array:
    """Every head of every batch row by itself; query (B, T, C), key and value (B, S, C), keep (B, S)."""
    mixed = np.zeros_like(query)
    width = query.shape[-1] // HEADS
    visible = np.ones((query.shape[1], key.shape[1]), bool)
    visible = np.tril(visible) if causal else visible
    for b in range(len(query)):
        seen = visible if keep is None else visible & keep[b]
        for h in range(HEADS):
            own = slice(h * width, (h + 1) * width)
            mixed[b, :, own] = hand.attend(query[b, :, own], key[b, :, own], value[b, :, own], visible=seen)
    return mixed


def attention(x: Array, p: Params, causal: bool = False) -> Array:
    b = {letter: p.get(f"b{letter}", 0) for letter in "qkvo"}
    query, key = x @ p["Wq"] + b["q"], x @ p["Wk"] + b["k"]
    if "q_norm.gamma" in p:
        query, key = rms_norm(query, under(p, "q_norm")), rms_norm(key, under(p, "k_norm"))
    return attend(query, key, x @ p["Wv"] + b["v"], causal) @ p["Wo"] + b["o"]


def causal(x: Array, p: Params) -> Array:
    return attention(x, p, causal=True)


def cross_attention(x: Array, p: Params, memory: Array, keep: Array | None = None) -> Array:
    return attend(x @ p["Wq"], memory @ p["Wk"], memory @ p["Wv"], keep=keep) @ p["Wo"]


def linear(x: Array, p: Params) -> Array:
    return x @ p["W"] + p.get("b", 0)


def with_relu(x: Array, p: Params) -> Array:
    return feed_forward(x, p, relu)


def with_silu(x: Array, p: Params) -> Array:
    return feed_forward(x, p, silu)


def squared(x: Array, p: Params) -> Array:
    return relu(x @ p["W1"]) ** 2 @ p["W2"]


def standardise(x: Array, p: Params) -> Array:
    return layer_norm(x, {"gamma": 1, "beta": 0}, eps=1e-6)


def l2_norm(x: Array, p: Params) -> Array:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def convolution(x: Array, p: Params) -> Array:
    """Both halves of `expand` multiplied, five taps along T around the own position, norm, SiLU, `project`."""
    value, gate = np.split(linear(x, under(p, "expand")), 2, axis=-1)
    h = value * sigmoid(gate)
    weight, length = p["along_time.W"], x.shape[1]
    y = np.zeros_like(h) + p["along_time.b"]
    for t in range(length):
        for tap in range(5):
            if 0 <= t + tap - 2 < length:
                y[:, t] += weight[tap] * h[:, t + tap - 2]
    return linear(silu(layer_norm(y, under(p, "norm"))), under(p, "project"))


def moe(x: Array, p: Params, *, renormalised: bool = True) -> Array:
    """Position by position: the two likeliest experts, weighted by their probabilities."""
    y = np.zeros_like(x)
    for place in np.ndindex(x.shape[:-1]):
        weights = hand.softmax(x[place] @ p["router.W"])
        chosen = np.argsort(-weights)[:2]
        total = weights[chosen].sum() if renormalised else 1
        y[place] = sum(weights[e] / total * gated(x[place], under(p, f"experts.{e}")) for e in chosen)
    return y


def moe_as_it_is(x: Array, p: Params) -> Array:
    return moe(x, p, renormalised=False)


def of(rule: Callable[..., Array], part: str) -> Make:
    """A map by hand over the parameters of one part."""
    return lambda p: lambda x, *more: rule(x, under(p, part), *more)


def arrays(*names: str) -> Make:
    """Bare parameters: one as it is, several as a tuple."""
    return lambda p: p[names[0]] if len(names) == 1 else tuple(p[name] for name in names)


def each(path: str, *makes: Make) -> Make:
    """A tuple of maps for each layer of a stack."""

    def layers(p: Params) -> list[tuple[Any, ...]]:
        count = len({name[len(path) + 1 :].partition(".")[0] for name in p if name.startswith(f"{path}.")})
        return [tuple(make(under(p, f"{path}.{i}")) for make in makes) for i in range(count)]

    return layers


def within(path: str, *makes: Make) -> Make:
    """A tuple of maps of one part that is a block."""
    return lambda p: tuple(make(under(p, path)) for make in makes)


def number(value: int) -> Make:
    """A number that stands in no parameter."""
    return lambda p: value


def norms(rule: Callable[..., Array], *names: str) -> dict[str, Make]:
    """`n1`, `n2` ... in the order of the names."""
    return {f"n{i}": of(rule, name) for i, name in enumerate(names, 1)}


CAUSAL, FULL = of(causal, "attention"), of(attention, "attention")
PLAIN, GATED = of(feed_forward, "feed_forward"), of(gated, "gated_feed_forward")
RELU = of(with_relu, "feed_forward")
L1, L2 = of(layer_norm, "norm1"), of(layer_norm, "norm2")
R1, R2 = of(rms_norm, "norm1"), of(rms_norm, "norm2")
TWO_L, TWO_R = norms(layer_norm, "norm1", "norm2"), norms(rms_norm, "norm1", "norm2")
AROUND = ("input_norm1", "output_norm1", "input_norm2", "output_norm2")
FINAL_L, FINAL_R = of(layer_norm, "final_norm"), of(rms_norm, "final_norm")
MODERN = (CAUSAL, GATED, R1, R2)
SANDWICHED = (CAUSAL, GATED, *norms(rms_norm, *AROUND).values())
DECODER = (CAUSAL, of(cross_attention, "cross_attention"), RELU, L1, L2, of(layer_norm, "norm3"))
OPENED = {name: of(linear, part) for name, part in zip("qkv", ("query", "key", "value"), strict=True)}
GRU = ("Wr", "Ur", "Wz", "Uz", "bz", "Wh", "Uh")


def opened(block: str) -> dict[str, Make]:
    """`q`, `k`, `v` and `wo` of an attention that is a block of its file."""
    parts = {"q": "query", "k": "key", "v": "value", "wo": "out"}
    return {name: of(linear, f"{block}.{part}") for name, part in parts.items()}


def inner(block: str) -> dict[str, Make]:
    """`w1` and `w2` of the feed-forward that is a block of its file."""
    return {"w1": of(linear, f"{block}.up"), "w2": of(linear, f"{block}.down")}


QKV_WO_FF = (*OPENED.values(), of(linear, "out"), of(gated, "feed_forward"), R1, R2)
HYPER = tuple(arrays(f"{name}{k}") for k in (1, 2) for name in ("read", "mix", "write"))

MAPS: Mapping[str, Mapping[str, Make]] = {
    "pre_norm": {"layers": each("layers", FULL, PLAIN, L1, L2), "final": FINAL_L},
    "post_norm": {"layers": each("layers", FULL, RELU, L1, L2)},
    "sandwich": {"layers": each("layers", FULL, PLAIN, *norms(layer_norm, *AROUND).values()), "final": FINAL_L},
    "output_norm": {"attn": CAUSAL, "ff": GATED, **TWO_R},
    "parallel_shared_norm": {"attn": CAUSAL, "ff": PLAIN, "n": L1},
    "parallel_two_norms": {"attn": CAUSAL, "ff": PLAIN, **TWO_L},
    "parallel_branch_norms": {"attn": CAUSAL, "ff": PLAIN, **norms(layer_norm, *AROUND)},
    "deepnorm": {"layers": each("layers", FULL, PLAIN, L1, L2)},
    "scaled_pre_post": {
        "layers": each(
            "layers",
            CAUSAL,
            GATED,
            *norms(rms_norm, "input_norm1", "after_norm1", "input_norm2", "after_norm2").values(),
        )
    },
    "residual": {"layers": each("layers", FULL, RELU, L1, L2), "final": FINAL_L},
    "sub_ln": {
        **opened("normed_attention"),
        **inner("normed_feed_forward"),
        **norms(layer_norm, "norm1", "normed_attention.inner_norm", "norm2", "normed_feed_forward.inner_norm"),
    },
    "normformer": {
        **opened("scaled_heads"),
        "head_scale": arrays("scaled_heads.head_scale"),
        **inner("normed_feed_forward"),
        **norms(layer_norm, "input_norm1", "output_norm1", "norm2", "normed_feed_forward.inner_norm"),
    },
    "rezero": {"attn": FULL, "ff": RELU, "a1": arrays("a1"), "a2": arrays("a2")},
    "layerscale": {"attn": FULL, "ff": PLAIN, "g1": arrays("g1"), "g2": arrays("g2"), **TWO_L},
    "layernorm_scaling": {"layers": each("layers", *MODERN), "final": FINAL_R},
    "mix_ln": {"layers": each("layers", *MODERN), "final": FINAL_R},
    "hybrid_norm": {
        **opened("normed_qkv"),
        "ff": GATED,
        **{
            f"n{letter}": of(rms_norm, f"normed_qkv.{name}_norm")
            for letter, name in zip("qkv", ("query", "key", "value"), strict=True)
        },
        "n": R2,
    },
    "residual_multiplier": {"layers": each("layers", *MODERN), "final": FINAL_R},
    "gated_residual": {
        "attn": CAUSAL,
        "ff": RELU,
        **TWO_L,
        "gate1": within("gate1", *map(arrays, GRU)),
        "gate2": within("gate2", *map(arrays, GRU)),
    },
    "ngpt": {"attn": CAUSAL, "ff": GATED, "r1": arrays("r1"), "r2": arrays("r2"), "l2": of(l2_norm, "")},
    "macaron": {
        "f1": of(with_silu, "feed_forward"),
        "attn": FULL,
        "conv": of(convolution, "convolution"),
        "f2": of(with_silu, "feed_forward2"),
        **norms(layer_norm, "norm1", "norm2", "norm3", "input_norm4", "after_norm4"),
    },
    "decoder_cross_attention": {"layers": each("layers", *DECODER), "final": FINAL_L},
    "decoder_cross_attention_post": {"layers": each("layers", *DECODER)},
    "gated_cross_attention": {
        "cross": of(cross_attention, "cross_attention"),
        "ff": of(squared, "feed_forward"),
        "g1": arrays("g1"),
        "g2": arrays("g2"),
        **TWO_L,
    },
    "mixture_of_experts": {"attn": CAUSAL, "moe": of(moe, "moe"), **TWO_R},
    "shared_experts": {
        "attn": CAUSAL,
        "moe": of(moe_as_it_is, "moe"),
        "always": of(gated, "moe.shared.0"),
        **TWO_R,
    },
    "dense_moe": {"attn": CAUSAL, "ff": GATED, "moe": of(moe, "moe"), **norms(rms_norm, "norm1", "norm2", "norm3")},
    "value_residual": {
        "first": within("first", *QKV_WO_FF),
        "later": each("later", *QKV_WO_FF, arrays("l1"), arrays("l2")),
    },
    "hyper_connections": {"layers": each("layers", *MODERN, *HYPER), "final": FINAL_R},
    "shared_layers": {
        "attn": of(attention, "layers.0.attention"),
        "ff": of(feed_forward, "layers.0.feed_forward"),
        **norms(layer_norm, "layers.0.norm1", "layers.0.norm2"),
        "times": number(4),
    },
    "looped_depth": {
        "prelude": each("prelude", *SANDWICHED),
        "adapter": of(linear, "rounds.0.adapter"),
        "core": each("rounds.0.layers", *SANDWICHED),
        "norm": of(rms_norm, "rounds.0.norm"),
        "coda": each("coda", *SANDWICHED),
        "final": FINAL_R,
        "rounds": number(4),
    },
    "adaln_zero": {
        "attn": FULL,
        "ff": PLAIN,
        "n": of(standardise, ""),
        **{f"{name}{k}": of(linear, f"{name}{k}") for k in (1, 2) for name in "sbg"},
    },
    "norm_free": {
        "attn": FULL,
        "ff": PLAIN,
        **{f"{name}{k}": arrays(f"norm{k}.{name}") for k in (1, 2) for name in "agb"},
    },
}
