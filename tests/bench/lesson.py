"""The lesson's pre-norm block in plain NumPy, op by op, with `x*x*x` in GELU and no float64 constants.

It is what anyone would write by hand from the equations, so it is what a compiled spec is held against.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Params = dict[str, Any]


def layer_norm(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * gamma + beta


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(x: Any, p: Params, heads: int, *, causal: bool) -> Any:
    batch, time, width = x.shape
    size = width // heads

    def cut(y: Any) -> Any:
        return y.reshape(batch, time, heads, size).transpose(0, 2, 1, 3)

    query, key, value = (cut(x @ p[f"attention.W{letter}"]) for letter in "qkv")
    scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(size)
    if causal:
        scores = np.where(np.tri(time, dtype=bool), scores, x.dtype.type(-np.inf))
    mixed = (softmax(scores) @ value).transpose(0, 2, 1, 3).reshape(batch, time, width)
    return mixed @ p["attention.Wo"]


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


def feed_forward(x: Any, p: Params) -> Any:
    hidden = gelu(x @ p["feed_forward.W1"] + p["feed_forward.b1"])
    return hidden @ p["feed_forward.W2"] + p["feed_forward.b2"]


def block(x: Any, p: Params, heads: int, *, causal: bool = False) -> Any:
    x = x + attention(layer_norm(x, p["norm1.gamma"], p["norm1.beta"]), p, heads, causal=causal)
    return x + feed_forward(layer_norm(x, p["norm2.gamma"], p["norm2.beta"]), p)
