"""The library of the equation language: every function and operator in an equation, against NumPy by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from tests import hand

B, T, C, H = 2, 5, 6, 2
INPUTS = {
    "x": ["B", "T", "C"],
    "z": ["B", "T", "C"],
    "keep": {"bool": ["B", "T"]},
    "tokens": {"ids": ["B", "T"], "below": "C"},
}
PARAMS = {
    "g": {"shape": ["C"], "init": "normal(1)"},
    "m": {"shape": ["C", 3], "init": "normal(1)"},
    "a": {"shape": [], "init": 0.7},
}
erf = np.vectorize(math.erf)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def rows(x: Any, function: Callable[[Any], Any]) -> Any:
    return np.apply_along_axis(function, -1, x)


def causal_softmax(scores: Any) -> Any:
    """Row i over its columns up to i + S - T; zeros elsewhere."""
    y = np.zeros_like(scores)
    length, width = scores.shape[-2:]
    for index in np.ndindex(scores.shape[:-1]):
        stop = max(index[-1] + 1 + width - length, 0)
        y[(*index, slice(0, stop))] = hand.softmax(scores[(*index, slice(0, stop))])
    return y


def cut(x: Any, heads: int = H) -> Any:
    """(B, T, C) as a list of heads, each (B, T, C / heads)."""
    width = x.shape[-1] // heads
    return [x[..., h * width : (h + 1) * width] for h in range(heads)]


def attended(q: Any, k: Any, v: Any, heads: int = H, groups: int = H, **masks: Any) -> Any:
    """merge(attend(...)) head by head; `visible` and `bias` are (T, S)."""
    found = []
    for h, query in enumerate(cut(q, heads)):
        key, value = cut(k, groups)[h // (heads // groups)], cut(v, groups)[h // (heads // groups)]
        found.append(np.stack([hand.attend(query[b], key[b], value[b], **masks) for b in range(len(q))]))
    return np.concatenate(found, axis=-1)


BAND = np.array([[0 <= i - j < 2 for j in range(T)] for i in range(T)])
PAST = np.tril(np.ones((T, T), bool))

# the expression, and what it is by hand of x, z, keep, tokens, g (C,), m (C, 3), a ()
ROWS: dict[str, Callable[..., Any]] = {
    "x + z": lambda x, z, **_: x + z,
    "x - z": lambda x, z, **_: x - z,
    "x * z": lambda x, z, **_: x * z,
    "x / z": lambda x, z, **_: x / z,
    "-x": lambda x, **_: -x,
    "+x": lambda x, **_: x,
    "x**2": lambda x, **_: x * x,
    "x**3": lambda x, **_: x * x * x,
    "abs(x)**0.5": lambda x, **_: np.sqrt(np.abs(x)),
    "abs(x)**-1": lambda x, **_: 1 / np.abs(x),
    "2**x": lambda x, **_: np.exp(x * math.log(2)),
    "abs(x)**z": lambda x, z, **_: np.exp(z * np.log(np.abs(x))),
    "x - -2": lambda x, **_: x + 2,
    "1 - x/2 * 3": lambda x, **_: 1 - ((x / 2) * 3),
    "2 - x - z": lambda x, z, **_: (2 - x) - z,
    "x * (z + 1)": lambda x, z, **_: x * z + x,
    "-x**2": lambda x, **_: -(x * x),
    "x * C": lambda x, **_: 6 * x,
    "x / sqrt(C)": lambda x, **_: x / math.sqrt(6),
    "x * max(2, H, C - 1) / min(C, 3)": lambda x, **_: x * 5 / 3,
    "x * floor(C/4) + ceil(C/4)": lambda x, **_: x + 2,
    "x * (C/H)**-0.5": lambda x, **_: x / math.sqrt(3),
    "x + g": lambda x, g, **_: x + g,
    "a*x": lambda x, a, **_: a * x,
    "x * g": lambda x, g, **_: x * g,
    "x @ m": lambda x, m, **_: np.tensordot(x, m, axes=1),
    "x @ m @ m.T": lambda x, m, **_: np.tensordot(np.tensordot(x, m, axes=1), m.T, axes=1),
    "g @ m": lambda g, m, **_: sum(g[c] * m[c] for c in range(C)),
    "x @ z.T": lambda x, z, **_: np.stack([left @ right.T for left, right in zip(x, z, strict=True)]),
    "where(x > z, x, z)": lambda x, z, **_: np.maximum(x, z),
    "where(x < 0, 0, 1)*x": lambda x, **_: np.maximum(x, 0),
    "where(x >= x, x, z)": lambda x, **_: x,
    "where(x <= z, x, z)": lambda x, z, **_: np.minimum(x, z),
    "where(keep[:, :, None], x, z)": lambda x, z, keep, **_: np.where(keep[..., None], x, z),
    "where(tokens == 3, 1, 0)[:, :, None]*x": lambda x, tokens, **_: (tokens == 3)[..., None] * x,
    "where(tokens != 3, 1, 0)[:, :, None]*x": lambda x, tokens, **_: (tokens != 3)[..., None] * x,
    "exp(x)": lambda x, **_: math.e**x,
    "log(abs(x))": lambda x, **_: np.log(np.abs(x)),
    "sqrt(abs(x))": lambda x, **_: np.abs(x) ** 0.5,
    "abs(x)": lambda x, **_: np.maximum(x, -x),
    "sigmoid(x)": lambda x, **_: sigmoid(x),
    "tanh(x)": lambda x, **_: 2 * sigmoid(2 * x) - 1,
    "erf(x)": lambda x, **_: erf(x),
    "relu(x)": lambda x, **_: np.maximum(x, 0),
    "relu_squared(x)": lambda x, **_: np.maximum(x, 0) ** 2,
    "silu(x)": lambda x, **_: x * sigmoid(x),
    "quick_gelu(x)": lambda x, **_: x * sigmoid(1.702 * x),
    "gelu_erf(x)": lambda x, **_: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_tanh(x)": lambda x, **_: hand.gelu_tanh(x),
    "softplus(x)": lambda x, **_: np.log(1 + np.exp(x)),
    "elu(x)": lambda x, **_: np.where(x > 0, x, np.exp(x) - 1),
    "softmax(x)": lambda x, **_: rows(x, hand.softmax),
    'softmax(x, mask="causal")': lambda x, **_: causal_softmax(x),
    "stop_gradient(x)*z": lambda x, z, **_: x * z,
    'sum(x, "b t c -> b t")': lambda x, **_: x[..., 0] + x[..., 1] + x[..., 2] + x[..., 3] + x[..., 4] + x[..., 5],
    'sum(x, "b t c -> c t")': lambda x, **_: (x[0] + x[1]).T,
    'sum(x, "b t c ->")': lambda x, **_: np.asarray(x.ravel().sum()),
    'x - mean(x, "b t c -> b t 1")': lambda x, **_: x - x.sum(axis=-1, keepdims=True) / C,
    'mean(x, "... c -> ...")': lambda x, **_: x.sum(axis=-1) / C,
    'max(x, "b t c -> b t 1")': lambda x, **_: np.sort(x, axis=-1)[..., -1:],
    'min(x, "b t c -> b c")': lambda x, **_: np.sort(x, axis=1)[:, 0],
    'x * mean(z, "b t c -> b 1 c")': lambda x, z, **_: x * (z.sum(axis=1, keepdims=True) / T),
    'rearrange(x, "b t c -> t b c")': lambda x, **_: np.moveaxis(x, 1, 0),
    'rearrange(x, "b t (h d) -> b h t d", h=H)': lambda x, **_: np.stack(cut(x), axis=1),
    'rearrange(x, "b t (d h) -> b t h d", h=H)': lambda x, **_: np.stack([x[..., 0::2], x[..., 1::2]], axis=2),
    'rearrange(x, "b t c -> (b t) c")': lambda x, **_: np.concatenate(list(x)),
    'rearrange(x, "b t c -> b t 1 c")': lambda x, **_: x[:, :, None],
    'rearrange(g, "c -> 1 1 c") + x': lambda x, g, **_: x + g,
    'repeat(x, "b t c -> b r t c", r=3)': lambda x, **_: np.stack([x] * 3, axis=1),
    'repeat(x, "b t c -> b (t r) c", r=H)': lambda x, **_: np.repeat(x, 2, axis=1),
    'repeat(x, "b t c -> b (r t) c", r=H)': lambda x, **_: np.concatenate([x, x], axis=1),
    "concat(x, z)": lambda x, z, **_: np.append(x, z, axis=-1),
    "concat(x, z, x)": lambda x, z, **_: np.append(np.append(x, z, axis=-1), x, axis=-1),
    'concat(x, z, axes="b [t] c")': lambda x, z, **_: np.append(x, z, axis=1),
    'einsum("b t c, b s c -> b t s", x, z)': lambda x, z, **_: np.stack([p @ q.T for p, q in zip(x, z, strict=True)]),
    'einsum("b t c, c d, d -> b t", x, m, m[0])': lambda x, m, **_: x @ m @ m[0],
    'einsum("b t c, b t c -> b t", x, z)': lambda x, z, **_: (x * z).sum(axis=-1),
    'einsum("... c, c d -> ... d", x, m)': lambda x, m, **_: x @ m,
    "x[0]": lambda x, **_: x[0],
    "x[:, -1]": lambda x, **_: x[:, 4],
    "x[..., 0:C/2]": lambda x, **_: np.stack([x[..., 0], x[..., 1], x[..., 2]], axis=-1),
    "x[:, 1:, :]": lambda x, **_: x[:, 1:5],
    "x[:, :-1]": lambda x, **_: x[:, 0:4],
    "x[:, None]*z[:, None, :, :]": lambda x, z, **_: (x * z).reshape(B, 1, T, C),
    "x[..., None]": lambda x, **_: x.reshape(B, T, C, 1),
    "lookup(m, tokens)": lambda m, tokens, **_: np.array([[m[i] for i in row] for row in tokens]),
    'cumsum(x, "b [t] c")': lambda x, **_: np.stack([x[:, : t + 1].sum(axis=1) for t in range(T)], axis=1),
    "shift(x, 1)": lambda x, **_: np.concatenate([np.zeros((B, 1, C)), x[:, :-1]], axis=1),
    "heads(x, H)": lambda x, **_: np.stack(cut(x), axis=1),
    "merge(heads(x, H))": lambda x, **_: x,
    "merge(attend(heads(x, H), heads(z, H), heads(x*z, H)))": lambda x, z, **_: attended(x, z, x * z),
    'merge(attend(heads(x, H), heads(z, H), heads(x, H), mask="causal"))': (
        lambda x, z, **_: attended(x, z, x, visible=PAST)
    ),
    'merge(attend(heads(x, H), heads(z, H), heads(x, H), mask="causal", window=2))': (
        lambda x, z, **_: attended(x, z, x, visible=BAND)
    ),
    "merge(attend(heads(x, H), heads(z[..., 0:C/H], 1), heads(x[..., C/H:], 1)))": (
        lambda x, z, **_: attended(x, z[..., :3], x[..., 3:], groups=1)
    ),
    "layer_norm(x)": lambda x, **_: hand.layer_norm(x, {"gamma": 1, "beta": 0}),
    "layer_norm(x, g, g, eps=0.1)": lambda x, g, **_: hand.layer_norm(x, {"gamma": g, "beta": g}, 0.1),
    "rms_norm(x, g)": lambda x, g, **_: hand.rms_norm(x, {"gamma": g}),
    "l2_norm(x)": lambda x, **_: x / np.sqrt((x * x).sum(axis=-1, keepdims=True)),
}


def computed(*equations: str, outputs: Any = "y") -> tuple[Any, dict[str, Any]]:
    """What the equations give, and the arrays they were given by name."""
    block = {"inputs": INPUTS, "outputs": outputs, "params": PARAMS, "equations": list(equations)}
    program = bg.compile({"dims": {"C": C, "H": H}, "block": block})
    given, params = program.sample(11, B=B, T=T)
    given["keep"] = given["x"][..., 0] > 0
    return program(given, params), {**given, **params}


@pytest.mark.parametrize("text", ROWS)
def test_an_expression_computes_what_it_says(text: str) -> None:
    y, given = computed(f"y = {text}")
    expected = np.asarray(ROWS[text](**given))
    assert (y.shape, y.dtype) == (expected.shape, np.float64)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("split(x, 3)", [slice(0, 2), slice(2, 4), slice(4, 6)]),
        ("split(x, [1, 2, C - 3])", [slice(0, 1), slice(1, 3), slice(3, 6)]),
        ("split(x, [C/3, C/3, C/3])", [slice(0, 2), slice(2, 4), slice(4, 6)]),
        ("split(x, [C - 4, 3, 1])", [slice(0, 2), slice(2, 5), slice(5, 6)]),
    ],
)
def test_split_cuts_the_last_axis_into_parts_or_sizes(text: str, pieces: list[slice]) -> None:
    y, given = computed(f"p, q, r = {text}", outputs=["p", "q", "r"])
    for name, piece in zip("pqr", pieces, strict=True):
        assert np.array_equal(y[name], given["x"][..., piece])


def test_top_k_gives_values_and_places_that_put_takes_back() -> None:
    y, given = computed("v, i = top_k(x, 2)", "w = put(v, i, C)", outputs=["v", "i", "w"])
    order = np.argsort(-given["x"], axis=-1)[..., :2]
    assert np.array_equal(y["i"], order)
    assert np.array_equal(y["v"], np.take_along_axis(given["x"], order, axis=-1))
    expected = np.zeros((B, T, C))
    for index in np.ndindex(B, T):
        for place in order[index]:
            expected[(*index, place)] = given["x"][(*index, place)]
    assert np.array_equal(y["w"], expected)


def test_attention_hides_what_keep_says_and_adds_what_score_bias_says() -> None:
    y, given = computed(
        'bias = einsum("b t c, b s c -> b t s", z, x)[0:1, None]',
        "y = merge(attend(heads(x, H), heads(z, H), heads(x, H), keep=keep, score_bias=bias))",
    )
    x, z = given["x"], given["z"]
    bias = z[0] @ x[0].T
    expected = []
    for b in range(B):
        visible = np.repeat(given["keep"][b][None], T, axis=0)
        expected.append(attended(x[b : b + 1], z[b : b + 1], x[b : b + 1], visible=visible, bias=bias))
    expected = np.concatenate(expected)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-12)


def test_a_row_that_sees_nothing_gives_zeros() -> None:
    y, _ = computed("y = merge(attend(heads(x, H), heads(z, H), heads(x, H), keep=z[:, :, 0] > 99))")
    assert np.array_equal(y, np.zeros((B, T, C)))


def test_a_cap_bends_the_scores_before_the_softmax() -> None:
    y, given = computed("y = merge(attend(x[:, None], z[:, None], x[:, None], scale=1, softcap=0.5))")
    scores = 0.5 * np.tanh(np.stack([q @ k.T for q, k in zip(given["x"], given["z"], strict=True)]) / 0.5)
    np.testing.assert_allclose(y, rows(scores, hand.softmax) @ given["x"], rtol=0, atol=1e-12)


def test_opened_attention_is_the_attention_part() -> None:
    """The same block with the part, and with its equations written out: equal bit for bit."""
    opened = {
        "params": {name: ["C", "C"] for name in ("Wq", "Wk", "Wv", "Wo")},
        "equations": [
            "q = heads(x @ Wq, H)",
            "k = heads(x @ Wk, H)",
            "v = heads(x @ Wv, H)",
            'y = merge(attend(q, k, v, mask="causal")) @ Wo',
        ],
    }
    spelled = {
        **opened,
        "equations": [
            *opened["equations"][:3],
            's = einsum("b h t d, b h s d -> b h t s", q, k) * (C/H)**-0.5',
            'y = merge(einsum("b h t s, b h s d -> b h t d", softmax(s, mask="causal"), v)) @ Wo',
        ],
    }
    part = {"parts": {"at": {"kind": "attention", "heads": "H", "mask": "causal"}}, "equations": ["y = at(x)"]}
    dims = {"C": C, "H": H}
    closed, open_, by_hand = (bg.compile({"dims": dims, "block": block}) for block in (part, opened, spelled))
    x, p = open_.sample(3)
    expected = closed(x, {f"at.{name}": array for name, array in p.items()})
    assert np.array_equal(open_(x, p), expected)
    np.testing.assert_allclose(by_hand(x, p), expected, rtol=0, atol=1e-14)


def test_equations_compute_in_float32_when_all_is_given_in_float32() -> None:
    block = {
        "params": {"a": {"shape": [], "init": 0.7}},
        "equations": ["y = a*x/sqrt(C) + 1/3", "z = y**0.5 + exp(-y)"],
    }
    program = bg.compile({"dims": {"C": C}, "block": block})
    x, p = program.sample(0, dtype="float32")
    trace = program.trace(abs(x), p)
    assert {name: trace[name].dtype for name in trace} == dict.fromkeys(trace, np.dtype("float32"))
