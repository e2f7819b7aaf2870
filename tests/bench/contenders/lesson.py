"""The lesson's pre-norm block in plain NumPy, op by op, with no float64 constants: what one writes from the equations.

As given it has `x**3` in GELU, which alone takes most of the time; the same with `x*x*x` is the fair yardstick.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.bench.cases import Arrays, Case
from tests.bench.contenders import Work


def given(case: Case, params: Arrays) -> Work:
    """As the lesson has it."""
    return Work(lambda x, dy: block(x, params, case.heads, case.causal, lambda u: u**3))


def multiplied(case: Case, params: Arrays) -> Work:
    """With `x*x*x` in place of `x**3`."""
    return Work(lambda x, dy: block(x, params, case.heads, case.causal, lambda u: u * u * u))


def layer_norm(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * gamma + beta


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(x: Any, p: Arrays, heads: int, causal: bool) -> Any:
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


def block(x: Any, p: Arrays, heads: int, causal: bool, cube: Callable[[Any], Any]) -> Any:
    x = x + attention(layer_norm(x, p["norm1.gamma"], p["norm1.beta"]), p, heads, causal)
    hidden = layer_norm(x, p["norm2.gamma"], p["norm2.beta"]) @ p["feed_forward.W1"] + p["feed_forward.b1"]
    hidden = 0.5 * hidden * (1 + np.tanh(math.sqrt(2 / math.pi) * (hidden + 0.044715 * cube(hidden))))
    return x + (hidden @ p["feed_forward.W2"] + p["feed_forward.b2"])
