"""Parts: kinds, activations and blocks, their parameters, how these are named, drawn and reached in an equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from tests import hand

DIMS = {"C": 8, "H": 2}
UNUSED_DIM = "BG221"  # of the dims that all tests declare alike


def module(*equations: str, dims: Any = DIMS, constants: Any = None, **keys: Any) -> Any:
    spec = {"dims": dims, "block": {**keys, "equations": list(equations)}}
    return bg.compile(spec if constants is None else {**spec, "constants": constants})


def test_parameters_are_drawn_own_ones_first_and_then_part_by_part_as_listed() -> None:
    """The order of the calls is another one, and does not matter."""
    program = module(
        "y = last(x) + first(x)*g",
        "z = inner(y) + w",
        params={"w": ["C"], "g": {"shape": ["C"], "init": "normal(3)"}},
        parts={
            "inner": {"kind": "feed_forward", "hidden": "2*C", "activation": "relu"},
            "first": {"kind": "linear", "bias": True},
            "last": "linear",
        },
    )
    assert list(program.parameters) == [
        *("w", "g", "inner.W1", "inner.b1", "inner.W2", "inner.b2", "first.W", "first.b", "last.W")
    ]
    rng = np.random.default_rng(4)
    expected = {
        "w": rng.standard_normal(8) * 0.02,
        "g": rng.standard_normal(8) * 3,
        "inner.W1": rng.standard_normal((8, 16)) * 0.02,
        "inner.W2": rng.standard_normal((16, 8)) * 0.02,
        "first.W": rng.standard_normal((8, 8)) * 0.02,
        "last.W": rng.standard_normal((8, 8)) * 0.02,
    }
    drawn = program.init(4)
    for name, array in expected.items():
        assert np.array_equal(drawn[name], array), name
    assert not drawn["inner.b1"].any()


def test_init_goes_on_with_a_generator_where_it_stands() -> None:
    program = module("x = x @ W", params={"W": ["C", "C"]})
    rng = np.random.default_rng(3)
    first, second = program.init(rng), program.init(rng)
    again = np.random.default_rng(3).standard_normal((2, 8, 8)) * 0.02
    assert np.array_equal(first["W"], again[0])
    assert np.array_equal(second["W"], again[1])


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("zeros", np.zeros((8, 8))),
        ("ones", np.ones((8, 8))),
        ("eye", np.eye(8)),
        (0.5, np.full((8, 8), 0.5)),
        (-2, np.full((8, 8), -2.0)),
        ("1/C", np.full((8, 8), 0.125)),
        ("sqrt(2*H)", np.full((8, 8), 2.0)),
        ("a", np.full((8, 8), 7.0)),
        ("normal(0.5)", 0.5),
        ("normal(1/C)", 0.125),
        ("normal(a)", 7.0),
        ("xavier(1)", np.sqrt(2 / 16)),
        ("xavier(0.5)", 0.5 * np.sqrt(2 / 16)),
        (None, 0.02),
    ],
)
@pytest.mark.parametrize("where", ["parameter", "part", "parameter of a part"])
def test_every_form_of_init_stands_on_a_parameter_and_on_a_part(init: Any, expected: Any, where: str) -> None:
    given = {} if init is None else {"init": init}
    if where == "parameter":
        program = module("y = x @ W", params={"W": {"shape": ["C", "C"], **given}}, constants={"a": 7})
    else:
        own = given if where == "part" or not given else {"init": {"W": init}}
        program = module("y = map(x)", parts={"map": {"kind": "linear", **own}}, constants={"a": 7})
    (drawn,) = program.init(2).values()
    wanted = (
        expected if isinstance(expected, np.ndarray) else np.random.default_rng(2).standard_normal((8, 8)) * expected
    )
    np.testing.assert_allclose(drawn, wanted, rtol=1e-15, atol=0)


def test_xavier_takes_rows_and_columns_of_a_map_that_is_not_square() -> None:
    drawn = module("y = map(x)", parts={"map": {"kind": "linear", "out": "3*C", "init": "xavier(2)"}}).init(2)["map.W"]
    wanted = np.random.default_rng(2).standard_normal((8, 24)) * 2 * np.sqrt(2 / 32)
    np.testing.assert_allclose(drawn, wanted, rtol=1e-15)


def test_uniform_stays_within_its_half_width_and_fills_it() -> None:
    drawn = module("y = x @ W", params={"W": {"shape": ["C", "100*C"], "init": "uniform(1/H)"}}).init(0)["W"]
    assert (abs(drawn).max() <= 0.5, drawn.max() > 0.49, drawn.min() < -0.49) == (True, True, True)


def test_one_init_for_a_part_holds_for_its_weights_and_leaves_its_biases_at_zero() -> None:
    part = {"kind": "feed_forward", "hidden": "C", "activation": "relu", "init": "ones"}
    drawn = module("y = ff(x)", parts={"ff": part}).init(0)
    assert [float(drawn[f"ff.{name}"].mean()) for name in ("W1", "b1", "W2", "b2")] == [1, 0, 1, 0]
    drawn = module("y = ff(x)", parts={"ff": {**part, "init": {"W2": "zeros", "b1": 3}}}).init(0)
    assert drawn["ff.W1"].std() > 0.01
    assert [float(drawn[f"ff.{name}"].mean()) for name in ("b1", "W2", "b2")] == [3, 0, 0]


def test_an_init_for_a_parameter_that_is_not_there_or_no_matrix_is_a_finding() -> None:
    def codes(part: dict[str, Any]) -> list[tuple[str, str]]:
        spec = {"dims": DIMS, "block": {"parts": {"part": part}, "equations": ["y = part(x)"]}}
        return [(one.code, one.message) for one in bg.check(spec).findings]

    assert codes({"kind": "linear", "init": {"Wo": 1}}) == [("BG020", "`linear` has no parameter `Wo`")]
    assert codes({"kind": "linear", "init": "normal"}) == [("BG022", "`normal` needs its std")]
    assert codes({"kind": "linear", "init": "kaiming"}) == [("BG022", "unknown init `kaiming`")]
    assert codes({"kind": "rms_norm", "init": {"gamma": "eye"}}) == [
        ("BG022", "`eye` is a matrix, and `gamma` has the shape (C,)")
    ]


def test_own_parameters_may_be_numbers_vectors_and_more() -> None:
    program = module(
        'y = a*x + einsum("b t c, c h d -> b t h d", x, W)[:, :, 0] * g',
        params={"a": [], "g": ["C"], "W": ["C", "H", "C"]},
    )
    x, p = program.sample(1)
    assert {name: array.shape for name, array in p.items()} == {"a": (), "g": (8,), "W": (8, 2, 8)}
    np.testing.assert_allclose(program(x, p), p["a"] * x + x @ p["W"][:, 0] * p["g"], rtol=0, atol=1e-14)


def test_a_parameter_of_a_part_is_reached_by_its_name_and_is_the_same_one() -> None:
    program = module(
        "h = map(x)", "y = h @ map.W.T + map.b[0]", parts={"map": {"kind": "linear", "out": "H", "bias": True}}
    )
    x, p = program.sample(1)
    p["map.b"] = np.array([0.5, -1.0])
    assert list(p) == ["map.W", "map.b"]
    h = x @ p["map.W"] + p["map.b"]
    np.testing.assert_allclose(program(x, p), h @ p["map.W"].T + 0.5, rtol=0, atol=1e-14)


def test_a_part_that_is_called_twice_has_one_set_of_parameters() -> None:
    program = module("y = map(map(x))", parts={"map": "linear"})
    x, p = program.sample(0)
    assert list(p) == ["map.W"]
    np.testing.assert_allclose(program(x, p), x @ p["map.W"] @ p["map.W"], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("part", "names", "expected"),
    [
        ({"kind": "linear", "out": "3*C", "bias": True}, "W b", lambda x, p: x @ p["W"] + p["b"]),
        ({"kind": "rms_norm", "eps": 0.1}, "gamma", lambda x, p: hand.rms_norm(x, p, 0.1)),
        (
            {"kind": "rms_norm", "offset": 1},
            "gamma",
            lambda x, p: hand.rms_norm(x, {"gamma": 1 + p["gamma"]}),
        ),
        ({"kind": "rms_norm", "affine": "none"}, "", lambda x, p: hand.rms_norm(x, {"gamma": 1})),
        ({"kind": "layer_norm", "eps": 0.1}, "gamma beta", lambda x, p: hand.layer_norm(x, p, 0.1)),
        ({"kind": "layer_norm", "bias": False}, "gamma", lambda x, p: hand.layer_norm(x, {**p, "beta": 0})),
        ({"kind": "layer_norm", "affine": False}, "", lambda x, p: hand.layer_norm(x, {"gamma": 1, "beta": 0})),
        (
            {"kind": "feed_forward", "hidden": "2*C", "activation": "silu", "out": "H"},
            "W1 b1 W2 b2",
            lambda x, p: hand.feed_forward(x, p, hand.silu),
        ),
        (
            {"kind": "feed_forward", "hidden": "2*C", "activation": "relu", "bias": False},
            "W1 W2",
            lambda x, p: np.maximum(x @ p["W1"], 0) @ p["W2"],
        ),
        ({"kind": "gated_feed_forward", "hidden": 5, "activation": "silu"}, "Wg Wu Wd", hand.gated),
        (
            {"kind": "gated_feed_forward", "hidden": 5, "activation": "silu", "bias": True},
            "Wg bg Wu bu Wd bd",
            lambda x, p: (hand.silu(x @ p["Wg"] + p["bg"]) * (x @ p["Wu"] + p["bu"])) @ p["Wd"] + p["bd"],
        ),
        ({"kind": "attention", "heads": "H"}, "Wq Wk Wv Wo", lambda x, p: hand.attention(x, p, 2)),
        (
            {"kind": "attention", "heads": 4, "kv_heads": "H", "mask": "causal"},
            "Wq Wk Wv Wo",
            lambda x, p: hand.attention(x, p, 4, 2, causal=True),
        ),
        ({"kind": "attention", "heads": 4, "kv_heads": 1}, "Wq Wk Wv Wo", lambda x, p: hand.attention(x, p, 4, 1)),
        (
            {"kind": "attention", "heads": "H", "head_dim": 3, "out": "2*C"},
            "Wq Wk Wv Wo",
            lambda x, p: hand.attention(x, p, 2),
        ),
        (
            {"kind": "attention", "heads": "H", "scale": "1/C"},
            "Wq Wk Wv Wo",
            lambda x, p: hand.attention(x, {**p, "Wq": p["Wq"] * 2 / 8}, 2),
        ),
        (
            {"kind": "attention", "heads": "H", "bias": ["q", "o"]},
            "Wq bq Wk Wv Wo bo",
            lambda x, p: (
                hand.attention(
                    np.concatenate([x, np.ones((2, 8, 1))], axis=-1),
                    {
                        "Wq": np.vstack([p["Wq"], p["bq"]]),
                        "Wk": np.vstack([p["Wk"], np.zeros(8)]),
                        "Wv": np.vstack([p["Wv"], np.zeros(8)]),
                        "Wo": p["Wo"],
                    },
                    2,
                )
                + p["bo"]
            ),
        ),
        ("relu", "", lambda x, p: np.maximum(x, 0)),
        ("gelu_tanh", "", lambda x, p: hand.gelu_tanh(x)),
    ],
    ids=lambda value: str(value) if isinstance(value, dict | str) else "by hand",
)
def test_a_kind_has_its_parameters_in_order_and_computes_its_formula(part: Any, names: str, expected: Any) -> None:
    program = module("y = part(x)", parts={"part": part})
    assert list(program.parameters) == [f"part.{name}" for name in names.split()]
    x, p = program.sample(3)
    p = {name: array + np.random.default_rng(0).standard_normal(array.shape) for name, array in p.items()}
    np.testing.assert_allclose(program(x, p), expected(x, hand.under(p, "part")), rtol=0, atol=1e-12)


def test_a_block_stands_as_a_part_inside_another_block_under_its_path() -> None:
    spec = {
        "dims": DIMS,
        "blocks": {
            "leaf": {"params": {"g": ["C"]}, "parts": {"map": "linear"}, "equations": ["y = g*map(x)"]},
            "twig": {"parts": {"one": "leaf", "two": "leaf"}, "equations": ["y = one(two(x))"]},
        },
        "model": {"parts": {"twig": "twig", "leaf": "leaf"}, "equations": ["y = leaf(twig(x))"]},
    }
    program = bg.compile(spec)
    assert list(program.parameters) == [
        *("twig.one.g", "twig.one.map.W", "twig.two.g", "twig.two.map.W", "leaf.g", "leaf.map.W")
    ]
    x, p = program.sample(0)
    y = x
    for path in ("twig.two", "twig.one", "leaf"):
        y = p[f"{path}.g"] * (y @ p[f"{path}.map.W"])
    np.testing.assert_allclose(program(x, p), y, rtol=1e-12, atol=1e-18)
    assert {"twig.one.map", "twig.one", "twig", "leaf.map", "leaf"} <= program.trace(x, p).keys()


def test_a_block_stands_as_an_activation_with_parameters_of_its_own() -> None:
    swish = {
        "inputs": {"x": ["B", "T", "F"]},
        "params": {"b": {"shape": ["F"], "init": "ones"}},
        "equations": ["y = x*sigmoid(b*x)"],
    }
    part = {"kind": "feed_forward", "hidden": "2*C", "activation": "swish"}
    spec = {"dims": DIMS, "blocks": {"swish": swish, "block": {"parts": {"ff": part}, "equations": ["y = ff(x)"]}}}
    program = bg.compile(spec)
    x, p = program.sample(0)
    assert list(p) == ["ff.W1", "ff.b1", "ff.W2", "ff.b2", "ff.activation.b"]
    assert p["ff.activation.b"].shape == (16,)
    np.testing.assert_allclose(program(x, p), hand.feed_forward(x, hand.under(p, "ff"), hand.silu), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("width", "shape"), [(None, (8, 16)), (3, (8, 3)), ("C/H", (8, 4))])
def test_a_use_of_a_block_rebinds_dims_for_itself_alone(width: Any, shape: tuple[int, ...]) -> None:
    part = {"kind": "feed_forward", "hidden": "F", "activation": "relu"}
    use = "half" if width is None else {"kind": "half", "set": {"F": width}}
    spec = {
        "dims": {**DIMS, "F": 16},
        "blocks": {"half": {"parts": {"ff": part}, "equations": ["y = ff(x)"]}},
        "model": {"parts": {"changed": use, "plain": "half"}, "equations": ["y = plain(changed(x))"]},
    }
    drawn = bg.compile(spec).init(0)
    assert (drawn["changed.ff.W1"].shape, drawn["plain.ff.W1"].shape) == (shape, (8, 16))


@pytest.mark.parametrize(
    ("keys", "code", "message"),
    [
        ({"parts": {"m": "linear"}, "equations": ["y = 2*x"]}, "BG204", "the part `m` is never called"),
        ({"params": {"m": ["C"]}, "equations": ["y = 2*x"]}, "BG203", "the parameter `m` is never used"),
        ({"equations": ["a = 3*x", "y = 2*x"]}, "BG203", "the value `a` is never used"),
        ({"params": {"x": ["C"]}, "equations": ["y = 2*x"]}, "BG029", "`x` is already the name of an input"),
        ({"equations": ["C = 2*x"]}, "BG029", "`C` is already the name of a dim"),
        ({"equations": ["layer = 2*x"]}, "BG013", "`layer` is reserved"),
        ({"equations": ["tensor = 2*x"]}, "BG013", "`tensor` is reserved"),
        ({"parts": {"lambda": "linear"}, "equations": ["y = 2*x"]}, "BG013", "`lambda` is reserved"),
        ({"parts": {"m": "linear"}, "equations": ["y = x + m"]}, "BG028", "`m` is a part: call it"),
        ({"parts": {"m": "linear"}, "equations": ["y = x @ m.W", "z = m(y)"]}, "BG028", "must be called before"),
        ({"parts": {"m": "linear"}, "equations": ["y = m(x) @ m.V"]}, "BG025", "`m` has no parameter `V`"),
        (
            {"parts": {"m": "linear"}, "equations": ["y = m(x)", "z = m(concat(y, y))"]},
            "BG111",
            "width C at its first call",
        ),
        ({"equations": ["y = 2*x"], "outputs": ["y", "y"]}, "BG029", "the output `y` is listed twice"),
        ({"parts": {"C": "linear"}, "equations": ["y = C(x)"]}, "BG029", "`C` is already the name of a dim"),
        ({"equations": ["m = [3, 5]", "y, z = split(x, m)"]}, "BG028", "a value is expected here, not a list"),
        ({"equations": ["y = 2*z"]}, "BG025", "unknown name `z`"),
        ({"equations": ["y = softmix(x)"]}, "BG026", "unknown function `softmix`"),
    ],
)
def test_what_cannot_be_meant_is_one_finding(keys: dict[str, Any], code: str, message: str) -> None:
    (finding,) = [one for one in bg.check({"dims": DIMS, "block": keys}).findings if one.code != UNUSED_DIM]
    assert finding.code == code
    assert message in finding.message


# Constants, words and patterns


def test_a_constant_may_use_a_later_one_and_an_init_may_be_a_word() -> None:
    constants = {"twice": "2*half", "half": "1/2", "start": "word", "word": "ones"}
    block = {"params": {"g": {"shape": ["C"], "init": "start"}}, "equations": ["y = twice*x*g"]}
    program = bg.compile({"dims": DIMS, "constants": constants, "block": block})
    x, p = program.sample(0)
    assert np.array_equal(p["g"], np.ones_like(p["g"]))
    assert np.array_equal(program(x, p), x)


@pytest.mark.parametrize(("bias", "count"), [(True, 4), (False, 0), (None, 0)])
def test_the_biases_of_attention_may_come_from_a_constant(bias: Any, count: int) -> None:
    parts = {"a": {"kind": "attention", "heads": "H", "bias": "b"}}
    block = {"parts": parts, "equations": ["y = a(x)"]}
    program = bg.compile({"dims": DIMS, "constants": {"b": bias}, "block": block})
    assert len([name for name in program.parameters if name.startswith("a.b")]) == count


def test_a_letter_of_a_pattern_may_have_the_name_of_the_operand() -> None:
    equation = 'y = rearrange(x, "b (x q) c -> b q x c", x=2)'
    program = bg.compile({"dims": DIMS, "block": {"inputs": {"x": ["B", 6, "C"]}, "equations": [equation]}})
    x, _ = program.sample(0)
    assert np.array_equal(program(x, {}), x.reshape(2, 2, 3, -1).swapaxes(1, 2))


def test_a_block_that_is_called_twice_may_use_its_norm_in_both_calls() -> None:
    block = {"parts": {"norm": "layer_norm", "map": "linear"}, "equations": ["x = x + map(norm(x))"]}
    model = {"parts": {"encode": "b"}, "inputs": {"x": ["B", "T", "C"], "m": ["B", "T", "C"]}}
    model["equations"] = ["y = encode(x) + encode(m)"]  # type: ignore[assignment]
    dims = {"C": 8}
    assert bg.check({"dims": dims, "blocks": {"b": block}, "model": model}).findings == ()
    block["equations"] = ["x = x + map(norm(x)) + norm(tanh(x))"]
    (finding,) = bg.check({"dims": dims, "blocks": {"b": block}, "model": model}).findings
    assert finding.code == "BG202"
    assert "`encode.norm` is used twice" in finding.message


def test_a_power_of_numbers_may_be_higher_than_that_of_a_size() -> None:
    program = bg.compile({"dims": DIMS, "constants": {"k": "2**100"}, "block": {"equations": ["y = k*x"]}})
    x, _ = program.sample(0)
    assert np.array_equal(program(x, {}), 2.0**100 * x)


def test_a_misfit_of_a_block_without_inputs_says_how_to_take_any_width() -> None:
    parts = {"ff": {"kind": "feed_forward", "hidden": "4*C", "activation": "act"}}
    blocks = {"act": {"equations": ["x = x*sigmoid(x)"]}}
    spec = {"dims": DIMS, "blocks": blocks, "block": {"parts": parts, "equations": ["y = ff(x)"]}}
    (finding,) = bg.check(spec).findings
    assert finding.code == "BG104"
    assert "declare `inputs: {x: [B, T, F]}` in `act`" in finding.help


WRONG_FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "a word for a group of options": (
        {"sublayers": [{"kind": "attention", "heads": "H", "rotary": True}], "placement": "none"},
        "write `{style: ..., theta: ..., width: ...}`, or some of these; `none` switches it off",
    ),
    "a mapping for a list": (
        {"sublayers": {"attention": {"heads": "H"}}, "placement": "none"},
        "write `[one, two]`, or each on a line of its own after `- `",
    ),
}


@pytest.mark.parametrize("name", WRONG_FORMS)
def test_a_value_of_the_wrong_form_is_told_the_right_one(name: str) -> None:
    block, help = WRONG_FORMS[name]
    found = bg.check({"dims": DIMS, "block": block}).findings
    assert [finding.help for finding in found if finding.code == "BG022"] == [help]
