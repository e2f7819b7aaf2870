"""The lesson's block backward by hand: forward with a cache, backward through both residual adds, both norms, the
feed-forward and attention, written from the formulas in plain NumPy. The package must give the same gradients."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg

SPECS = Path(__file__).parent.parent / "specs"
HEADS = 4
Array = Any
Params = dict[str, Array]


class NormByHand:
    """y = gamma * (x - mean) / sqrt(var + eps) + beta"""

    def __init__(self, p: Params, name: str) -> None:
        self.gamma, self.beta, self.name = p[f"{name}.gamma"], p[f"{name}.beta"], name

    def forward(self, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        self.root = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        self.normed = centred / self.root
        return self.gamma * self.normed + self.beta

    def backward(self, dy: Array, grads: Params) -> Array:
        grads[f"{self.name}.gamma"] = (dy * self.normed).sum(axis=(0, 1))
        grads[f"{self.name}.beta"] = dy.sum(axis=(0, 1))
        d = dy * self.gamma
        mean, along = d.mean(axis=-1, keepdims=True), (d * self.normed).mean(axis=-1, keepdims=True)
        return (d - mean - self.normed * along) / self.root


class AttentionByHand:
    """softmax(q k^T / sqrt(D)) v for each batch and head, then Wo"""

    def __init__(self, p: Params) -> None:
        self.p = {letter: p[f"attention.W{letter}"] for letter in "qkvo"}

    def forward(self, x: Array) -> Array:
        self.x = x
        batch, length, width = x.shape
        self.size = width // HEADS
        shape = (batch, length, HEADS, self.size)
        self.q, self.k, self.v = ((x @ self.p[letter]).reshape(shape) for letter in "qkv")
        self.weights = np.zeros((batch, HEADS, length, length))
        self.mixed = np.zeros(shape)
        for b in range(batch):
            for h in range(HEADS):
                scores = self.q[b, :, h] @ self.k[b, :, h].T / math.sqrt(self.size)
                exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
                self.weights[b, h] = exps / exps.sum(axis=-1, keepdims=True)
                self.mixed[b, :, h] = self.weights[b, h] @ self.v[b, :, h]
        return self.mixed.reshape(x.shape) @ self.p["o"]

    def backward(self, dy: Array, grads: Params) -> Array:
        rows = self.x.reshape(-1, self.x.shape[-1])
        grads["attention.Wo"] = self.mixed.reshape(rows.shape).T @ dy.reshape(rows.shape)
        dmixed = (dy @ self.p["o"].T).reshape(self.mixed.shape)
        self.d = {name: np.zeros_like(self.q) for name in ("query", "key", "value")}
        for b in range(len(dy)):
            for h in range(HEADS):
                weights, dm = self.weights[b, h], dmixed[b, :, h]
                dweights = dm @ self.v[b, :, h].T
                dscores = weights * (dweights - (dweights * weights).sum(axis=-1, keepdims=True))
                dscores /= math.sqrt(self.size)
                self.d["query"][b, :, h] = dscores @ self.k[b, :, h]
                self.d["key"][b, :, h] = dscores.T @ self.q[b, :, h]
                self.d["value"][b, :, h] = weights.T @ dm
        dx = np.zeros_like(self.x)
        for letter, name in zip("qkv", self.d, strict=True):
            flat = self.d[name].reshape(rows.shape)
            grads[f"attention.W{letter}"] = rows.T @ flat
            dx += flat.reshape(dx.shape) @ self.p[letter].T
        return dx


class FeedForwardByHand:
    """gelu(x W1 + b1) W2 + b2, with the tanh form of GELU"""

    def __init__(self, p: Params) -> None:
        self.p = {name: p[f"feed_forward.{name}"] for name in ("W1", "b1", "W2", "b2")}

    def forward(self, x: Array) -> Array:
        self.x = x
        self.h = x @ self.p["W1"] + self.p["b1"]
        self.t = np.tanh(math.sqrt(2 / math.pi) * (self.h + 0.044715 * self.h**3))
        return 0.5 * self.h * (1 + self.t) @ self.p["W2"] + self.p["b2"]

    def backward(self, dy: Array, grads: Params) -> Array:
        width, hidden = self.p["W1"].shape
        grads["feed_forward.b2"] = dy.sum(axis=(0, 1))
        grads["feed_forward.W2"] = (0.5 * self.h * (1 + self.t)).reshape(-1, hidden).T @ dy.reshape(-1, width)
        inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * self.h**2)
        slope = 0.5 * (1 + self.t) + 0.5 * self.h * (1 - self.t**2) * inner
        dh = dy @ self.p["W2"].T * slope
        grads["feed_forward.b1"] = dh.sum(axis=(0, 1))
        grads["feed_forward.W1"] = self.x.reshape(-1, width).T @ dh.reshape(-1, hidden)
        return dh @ self.p["W1"].T


class BlockByHand:
    """Pre-norm: x + f(norm(x)), twice; post-norm: norm(x + f(x)), twice."""

    def __init__(self, p: Params, *, pre: bool) -> None:
        self.pre, self.grads = pre, dict[str, Array]()
        self.norms = [NormByHand(p, "norm1"), NormByHand(p, "norm2")]
        self.branches = [AttentionByHand(p), FeedForwardByHand(p)]

    def forward(self, x: Array) -> Array:
        for norm, branch in zip(self.norms, self.branches, strict=True):
            x = x + branch.forward(norm.forward(x)) if self.pre else norm.forward(x + branch.forward(x))
        return x

    def backward(self, dy: Array) -> Array:
        for norm, branch in zip(self.norms[::-1], self.branches[::-1], strict=True):
            if self.pre:
                dy = dy + norm.backward(branch.backward(dy, self.grads), self.grads)
            else:
                dy = norm.backward(dy, self.grads)
                dy = dy + branch.backward(dy, self.grads)
        return dy


def lesson(name: str) -> tuple[bg.Program, Array, Params, Array]:
    program = bg.compile(SPECS / f"{name}.yaml")
    x, params = program.sample(42, B=2, T=6)
    rng = np.random.default_rng(1)
    params = {key: array + 0.1 * rng.standard_normal(array.shape) for key, array in params.items()}
    return program, x, params, rng.standard_normal(x.shape)


@pytest.mark.parametrize("name", ["pre_norm", "post_norm"])
def test_the_block_and_its_backward_are_those_of_the_lesson_by_hand(name: str) -> None:
    program, x, params, dy = lesson(name)
    hand = BlockByHand(params, pre=name == "pre_norm")
    block = bg.TransformerBlock(program, params)
    np.testing.assert_allclose(block(x), hand.forward(x), atol=1e-12)
    np.testing.assert_allclose(block.backward(dy), hand.backward(dy), atol=1e-11)
    assert block.grads.keys() == hand.grads.keys() == params.keys()
    for key, expected in hand.grads.items():
        np.testing.assert_allclose(block.grads[key], expected, atol=1e-11, err_msg=key)


def test_attention_tells_the_gradients_of_query_key_and_value_for_each_head() -> None:
    program, x, params, dy = lesson("pre_norm")
    hand = BlockByHand(params, pre=True)
    hand.forward(x)
    hand.backward(dy)
    _, back = program.vjp(x, params, named=True)
    values = back(dy).dvalues
    for name, expected in hand.branches[0].d.items():  # type: ignore[union-attr]
        found = values[f"attention.d{name}"]
        assert found.shape == (2, HEADS, 6, 16)
        np.testing.assert_allclose(found, expected.transpose(0, 2, 1, 3), atol=1e-11, err_msg=name)


def test_the_block_forgets_nothing_between_two_backwards() -> None:
    program, x, params, dy = lesson("pre_norm")
    block = bg.TransformerBlock(program, params)
    block(x)
    first, grads = block.backward(dy), dict(block.grads)
    again = block.backward(dy)
    assert np.array_equal(first, again)
    assert all(np.array_equal(grads[key], block.grads[key]) for key in grads)
    block(x + 1)
    assert not np.array_equal(block.backward(dy), first)
