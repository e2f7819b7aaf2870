"""Every layout of `specs/` written out in NumPy by hand, from the papers' equations and without the package.

Attention goes head by head and row by row, so that it shares no idea with the code under test. `LAYOUTS` maps the
name of a spec to a function of its input and its parameters by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = Any
Params = Mapping[str, Array]
HEADS, GROUPS, LAYERS = 4, 2, 6


def under(params: Params, part: str) -> dict[str, Array]:
    """The parameters of one part, by their names inside it."""
    return {name[len(part) + 1 :]: array for name, array in params.items() if name.startswith(part + ".")}


def layer_norm(x: Array, p: Params, eps: float = 1e-5) -> Array:
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).sum(axis=-1, keepdims=True) / x.shape[-1]
    return (x - mean) / np.sqrt(variance + eps) * p["gamma"] + p["beta"]


def rms_norm(x: Array, p: Params, eps: float = 1e-6) -> Array:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * p["gamma"]


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def softmax(row: Array) -> Array:
    weights = np.exp(row - row.max())
    return weights / weights.sum()


def attend(query: Array, key: Array, value: Array, *, visible: Array | None = None, bias: Array | None = None) -> Array:
    """One head: query (T, D), key (S, D), value (S, E); `visible` and `bias` are (T, S)."""
    result = np.zeros((len(query), value.shape[-1]))
    for i, q in enumerate(query):
        scores = key @ q / math.sqrt(len(q))
        if bias is not None:
            scores = scores + bias[i]
        seen = np.arange(len(key)) if visible is None else np.flatnonzero(visible[i])
        if len(seen):
            result[i] = softmax(scores[seen]) @ value[seen]
    return result


def attention(
    x: Array,
    p: Params,
    heads: int = HEADS,
    groups: int | None = None,
    *,
    causal: bool = False,
    keep: Array | None = None,
    score_bias: Array | None = None,
) -> Array:
    """Query head h reads key and value head h // (heads / groups); `keep` (B, T), `score_bias` (1, H, T, T)."""
    groups = groups or heads
    batch, length, _ = x.shape
    query, key, value = x @ p["Wq"], x @ p["Wk"], x @ p["Wv"]
    width = query.shape[-1] // heads
    mixed = np.zeros_like(query)
    for b in range(batch):
        visible = np.tril(np.ones((length, length), bool)) if causal else np.ones((length, length), bool)
        if keep is not None:
            visible = visible & keep[b]
        for h in range(heads):
            g = h // (heads // groups)
            mine, shared = slice(h * width, (h + 1) * width), slice(g * width, (g + 1) * width)
            q, k, v = query[b, :, mine], key[b, :, shared], value[b, :, shared]
            bias = None if score_bias is None else score_bias[0, h]
            mixed[b, :, mine] = attend(q, k, v, visible=visible, bias=bias)
    return mixed @ p["Wo"]


def feed_forward(x: Array, p: Params, activation: Callable[[Array], Array] = gelu_tanh) -> Array:
    return activation(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"]


def gated(x: Array, p: Params) -> Array:
    return (silu(x @ p["Wg"]) * (x @ p["Wu"])) @ p["Wd"]


def pre_norm(x: Array, p: Params) -> Array:
    x = x + attention(layer_norm(x, under(p, "norm1")), under(p, "attention"))
    return x + feed_forward(layer_norm(x, under(p, "norm2")), under(p, "feed_forward"))


def post_norm(x: Array, p: Params) -> Array:
    x = layer_norm(x + attention(x, under(p, "attention")), under(p, "norm1"))
    return layer_norm(x + feed_forward(x, under(p, "feed_forward")), under(p, "norm2"))


def pre_norm_stack(x: Array, p: Params, layers: int = LAYERS) -> Array:
    for layer in range(layers):
        x = pre_norm(x, under(p, f"layers.{layer}"))
    return x


def mini_gpt_stack(x: Array, p: Params) -> Array:
    return layer_norm(pre_norm_stack(x, p, 2), under(p, "final_norm"))


def sandwich(x: Array, p: Params) -> Array:
    branch = attention(layer_norm(x, under(p, "input_norm1")), under(p, "attention"))
    x = x + layer_norm(branch, under(p, "output_norm1"))
    branch = feed_forward(layer_norm(x, under(p, "input_norm2")), under(p, "feed_forward"))
    return x + layer_norm(branch, under(p, "output_norm2"))


def output_norm(x: Array, p: Params) -> Array:
    x = x + layer_norm(attention(x, under(p, "attention")), under(p, "norm1"))
    return x + layer_norm(feed_forward(x, under(p, "feed_forward")), under(p, "norm2"))


def parallel(x: Array, p: Params) -> Array:
    h = layer_norm(x, under(p, "norm1"))
    return x + attention(h, under(p, "attention")) + feed_forward(h, under(p, "feed_forward"))


def parallel_two_norms(x: Array, p: Params) -> Array:
    left = attention(layer_norm(x, under(p, "norm1")), under(p, "attention"))
    return x + left + feed_forward(layer_norm(x, under(p, "norm2")), under(p, "feed_forward"))


def deepnorm(x: Array, p: Params) -> Array:
    a = (2 * LAYERS) ** (1 / 4)
    for layer in range(LAYERS):
        own = under(p, f"layers.{layer}")
        x = layer_norm(a * x + attention(x, under(own, "attention")), under(own, "norm1"))
        x = layer_norm(a * x + feed_forward(x, under(own, "feed_forward")), under(own, "norm2"))
    return x


def rezero(x: Array, p: Params) -> Array:
    x = x + p["a1"] * attention(x, under(p, "attention"))
    return x + p["a2"] * feed_forward(x, under(p, "feed_forward"))


def layerscale(x: Array, p: Params) -> Array:
    x = x + p["g1"] * attention(layer_norm(x, under(p, "norm1")), under(p, "attention"))
    return x + p["g2"] * feed_forward(layer_norm(x, under(p, "norm2")), under(p, "feed_forward"))


def gqa_swiglu(x: Array, p: Params) -> Array:
    h = rms_norm(x, under(p, "norm1"))
    x = x + attention(h, under(p, "attention"), groups=GROUPS, causal=True)
    return x + gated(rms_norm(x, under(p, "norm2")), under(p, "gated_feed_forward"))


def mixer(x: Array, p: Params) -> Array:
    """y_t = sum over heads h and positions s <= t of weight_hts * (x_s . W_h) O_h"""
    batch, length, _ = x.shape
    y = np.zeros_like(x)
    for b in range(batch):
        for h in range(p["decay"].shape[0]):
            u, w = x[b] @ p["U"][:, h], x[b] @ p["W"][:, h]
            for t in range(length):
                weights = softmax(u[t] @ w[: t + 1].T * p["decay"][h])
                y[b, t] += weights @ w[: t + 1] @ p["O"][h]
    return y


def custom_mixer(x: Array, p: Params) -> Array:
    x = x + mixer(rms_norm(x, under(p, "norm1")), under(p, "mixer"))
    return x + gated(rms_norm(x, under(p, "norm2")), under(p, "gated_feed_forward"))


LAYOUTS: dict[str, Callable[[Array, Params], Array]] = {
    one.__name__: one
    for one in (
        pre_norm, post_norm, pre_norm_stack, mini_gpt_stack, sandwich, output_norm, parallel, parallel_two_norms,
        deepnorm, rezero, layerscale, gqa_swiglu, custom_mixer,
    )
}  # fmt: skip
