"""The short form: each placement, group, scale and `with` is the equations that it says it is.

Every row gives sublayers and the same block spelled out by hand; the two must be one graph, parameters and names
included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.explain import expansion
from blockgraph.same import first_difference
from tests import hand

DIMS = {"C": 8, "H": 2}
A = {"kind": "attention", "heads": "H"}
L = {"kind": "linear"}
N = "layer_norm"
PAIR = ["linear", "linear"]

# name: (the block in short form, its parts in the order of the flow, its equations)
WIRINGS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "pre": (
        {"norm": N, "placement": "pre", "sublayers": PAIR},
        {"norm1": N, "linear": L, "norm2": N, "linear2": L},
        ["x = x + linear(norm1(x))", "x = x + linear2(norm2(x))"],
    ),
    "pre is the default": (
        {"norm": N, "sublayers": PAIR},
        {"norm1": N, "linear": L, "norm2": N, "linear2": L},
        ["x = x + linear(norm1(x))", "x = x + linear2(norm2(x))"],
    ),
    "post": (
        {"norm": N, "placement": "post", "sublayers": PAIR},
        {"linear": L, "norm1": N, "linear2": L, "norm2": N},
        ["x = norm1(x + linear(x))", "x = norm2(x + linear2(x))"],
    ),
    "sandwich": (
        {"norm": N, "placement": "sandwich", "sublayers": PAIR},
        {"input_norm1": N, "linear": L, "output_norm1": N, "input_norm2": N, "linear2": L, "output_norm2": N},
        ["x = x + output_norm1(linear(input_norm1(x)))", "x = x + output_norm2(linear2(input_norm2(x)))"],
    ),
    "output": (
        {"norm": N, "placement": "output", "sublayers": PAIR},
        {"linear": L, "norm1": N, "linear2": L, "norm2": N},
        ["x = x + norm1(linear(x))", "x = x + norm2(linear2(x))"],
    ),
    "none": (
        {"placement": "none", "sublayers": PAIR},
        {"linear": L, "linear2": L},
        ["x = x + linear(x)", "x = x + linear2(x)"],
    ),
    "a list of one place": (
        {"norm": N, "placement": ["after"], "sublayers": ["linear"]},
        {"linear": L, "norm1": N},
        ["x = norm1(x + linear(x))"],
    ),
    "a list of input and after": (
        {"norm": N, "placement": ["input", "after"], "sublayers": ["linear"]},
        {"input_norm1": N, "linear": L, "after_norm1": N},
        ["x = after_norm1(x + linear(input_norm1(x)))"],
    ),
    "a list of all three": (
        {"norm": N, "placement": ["after", "output", "input"], "sublayers": ["linear"]},
        {"input_norm1": N, "linear": L, "output_norm1": N, "after_norm1": N},
        ["x = after_norm1(x + output_norm1(linear(input_norm1(x))))"],
    ),
    "a placement as one equation": (
        {"placement": "x = x + 0.5*f(x)", "sublayers": PAIR},
        {"linear": L, "linear2": L},
        ["x = x + 0.5*linear(x)", "x = x + 0.5*linear2(x)"],
    ),
    "a placement as equations with a norm": (
        {"norm": N, "placement": "h = norm(x)\nx = h + f(h)", "residual": None, "sublayers": ["linear"]},
        {"norm1": N, "linear": L},
        ["h = norm1(x)", "x = h + linear(h)"],
    ),
    "a list of equations with a part of its own": (
        {
            "norm": N,
            "placement": {"parts": {"gate": L}, "equations": ["g = sigmoid(gate(x))", "x = x + g*f(norm(x))"]},
            "sublayers": PAIR,
        },
        {"norm1": N, "linear": L, "gate1": L, "norm2": N, "linear2": L, "gate2": L},
        ["g = sigmoid(gate1(x))", "x = x + g*linear(norm1(x))", "g = sigmoid(gate2(x))", "x = x + g*linear2(norm2(x))"],
    ),
    "a group with a norm for each member": (
        {"norm": N, "sublayers": [{"parallel": PAIR}]},
        {"norm1": N, "linear": L, "norm2": N, "linear2": L},
        ["x = x + linear(norm1(x)) + linear2(norm2(x))"],
    ),
    "a group with one norm": (
        {"norm": N, "sublayers": [{"norms": "shared", "parallel": PAIR}]},
        {"norm1": N, "linear": L, "linear2": L},
        ["h = norm1(x)", "x = x + linear(h) + linear2(h)"],
    ),
    "a group after which another sublayer counts on": (
        {"norm": N, "sublayers": [{"norms": "shared", "parallel": PAIR}, "linear"]},
        {"norm1": N, "linear": L, "linear2": L, "norm3": N, "linear3": L},
        ["h = norm1(x)", "x = x + linear(h) + linear2(h)", "x = x + linear3(norm3(x))"],
    ),
    "a group with branch norms": (
        {"norm": N, "placement": "sandwich", "sublayers": [{"parallel": PAIR}]},
        {"input_norm1": N, "linear": L, "output_norm1": N, "input_norm2": N, "linear2": L, "output_norm2": N},
        ["x = x + output_norm1(linear(input_norm1(x))) + output_norm2(linear2(input_norm2(x)))"],
    ),
    "a post-norm group": (
        {"norm": N, "placement": "post", "sublayers": [{"parallel": PAIR}]},
        {"linear": L, "linear2": L, "norm1": N},
        ["x = norm1(x + linear(x) + linear2(x))"],
    ),
    "a group with a placement of its own": (
        {"norm": N, "placement": "post", "sublayers": [{"placement": "pre", "parallel": PAIR}]},
        {"norm1": N, "linear": L, "norm2": N, "linear2": L},
        ["x = x + linear(norm1(x)) + linear2(norm2(x))"],
    ),
    "residual normed": (
        {"norm": N, "residual": "normed", "sublayers": ["linear"]},
        {"norm1": N, "linear": L},
        ["h = norm1(x)", "x = h + linear(h)"],
    ),
    "residual none": (
        {"norm": N, "residual": "none", "sublayers": ["linear"]},
        {"norm1": N, "linear": L},
        ["x = linear(norm1(x))"],
    ),
    "residual of one sublayer": (
        {"norm": N, "sublayers": [{"kind": "linear", "residual": "none"}, "linear"]},
        {"norm1": N, "linear": L, "norm2": N, "linear2": L},
        ["x = linear(norm1(x))", "x = x + linear2(norm2(x))"],
    ),
    "scales of the block": (
        {"norm": N, "skip_scale": 2, "branch_scale": "1/C", "sublayers": ["linear"]},
        {"norm1": N, "linear": L},
        ["x = 2*x + (1/C)*linear(norm1(x))"],
    ),
    "scales of a sublayer": (
        {"norm": N, "branch_scale": 3, "sublayers": [{"kind": "linear", "branch_scale": 0.5}, "linear"]},
        {"norm1": N, "linear": L, "norm2": N, "linear2": L},
        ["x = x + 0.5*linear(norm1(x))", "x = x + 3*linear2(norm2(x))"],
    ),
    "scales in a group": (
        {
            "placement": "none",
            "sublayers": [
                {"skip_scale": 2, "branch_scale": 3, "parallel": [{"kind": "linear", "branch_scale": 5}, "linear"]}
            ],
        },
        {"linear": L, "linear2": L},
        ["x = 2*x + 5*linear(x) + 3*linear2(x)"],
    ),
    "a negative scale": (
        {"placement": "none", "skip_scale": -1, "sublayers": ["linear"]},
        {"linear": L},
        ["x = (-1)*x + linear(x)"],
    ),
    "a norm of one sublayer": (
        {"norm": N, "sublayers": [{"kind": "linear", "norm": {"kind": "rms_norm", "eps": 1e-3}}, "linear"]},
        {"norm1": {"kind": "rms_norm", "eps": 1e-3}, "linear": L, "norm2": N, "linear2": L},
        ["x = x + linear(norm1(x))", "x = x + linear2(norm2(x))"],
    ),
    "a placement of one sublayer": (
        {"norm": N, "sublayers": ["linear", {"kind": "linear", "placement": "post"}]},
        {"norm1": N, "linear": L, "linear2": L, "norm2": N},
        ["x = x + linear(norm1(x))", "x = norm2(x + linear2(x))"],
    ),
    "a placement of equations of one sublayer": (
        {"norm": N, "sublayers": ["linear", {"kind": "linear", "placement": "x = f(x) - x"}]},
        {"norm1": N, "linear": L, "linear2": L},
        ["x = x + linear(norm1(x))", "x = linear2(x) - x"],
    ),
    "names of sublayers": (
        {"norm": N, "sublayers": [{"kind": "linear", "name": "token"}, "linear", {"kind": "linear", "name": "last"}]},
        {"norm1": N, "token": L, "norm2": N, "linear": L, "norm3": N, "last": L},
        ["x = x + token(norm1(x))", "x = x + linear(norm2(x))", "x = x + last(norm3(x))"],
    ),
}


def long_form(parts: dict[str, Any], equations: list[str], **more: Any) -> dict[str, Any]:
    return {"dims": DIMS, "block": {"parts": parts, "equations": equations, **more}}


@pytest.mark.parametrize("name", WIRINGS)
def test_sublayers_are_the_equations_that_they_stand_for(name: str) -> None:
    block, parts, equations = WIRINGS[name]
    block = {key: value for key, value in block.items() if value is not None}
    graph = bg.compile({"dims": DIMS, "block": block}).graph
    assert first_difference(graph, bg.compile(long_form(parts, equations)).graph) is None
    explained = expansion(bg.load({"dims": DIMS, "block": block}))
    assert first_difference(graph, bg.compile(explained).graph) is None


def test_a_placement_of_equations_gives_each_sublayer_its_own_params_before_the_parts() -> None:
    program = bg.compile(
        {
            "dims": DIMS,
            "block": {
                "norm": "rms_norm",
                "placement": {
                    "params": {"a": {"shape": [], "init": 0.5}, "g": {"shape": ["C"], "init": "ones"}},
                    "equations": "x = x + a*g*f(norm(x))",
                },
                "sublayers": PAIR,
            },
        }
    )
    assert list(program.parameters) == [
        *("a1", "g1", "a2", "g2"),
        *("norm1.gamma", "linear.W", "norm2.gamma", "linear2.W"),
    ]
    x, p = program.sample(1)
    assert (float(p["a2"]), p["g1"].tolist()) == (0.5, [1.0] * 8)
    p = {name: array + 0.1 * np.arange(array.size).reshape(array.shape) for name, array in p.items()}
    h = x + p["a1"] * p["g1"] * (hand.rms_norm(x, hand.under(p, "norm1")) @ p["linear.W"])
    y = h + p["a2"] * p["g2"] * (hand.rms_norm(h, hand.under(p, "norm2")) @ p["linear2.W"])
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-12)


def test_a_placement_on_several_streams_takes_the_name_of_the_first_input() -> None:
    program = bg.compile(
        {
            "dims": {"C": 8, "M": 3},
            "block": {
                "inputs": {"X": ["B", "T", "M", "C"]},
                "norm": "rms_norm",
                "placement": {
                    "params": {
                        "read": {"shape": ["M"], "init": "1/M"},
                        "mix": {"shape": ["M", "M"], "init": "eye"},
                        "write": {"shape": ["M"], "init": "ones"},
                    },
                    "equations": [
                        'y = f(norm(einsum("m, b t m c -> b t c", read, X)))',
                        'X = einsum("m n, b t n c -> b t m c", mix, X) + einsum("m, b t c -> b t m c", write, y)',
                    ],
                },
                "sublayers": PAIR,
            },
        }
    )
    X, p = program.sample(0)
    assert p["read1"].tolist() == [1 / 3] * 3
    assert np.array_equal(p["mix2"], np.eye(3))
    expected = X
    for k, linear in ((1, "linear"), (2, "linear2")):
        h = (expected * (1 / 3)).sum(axis=2)
        y = hand.rms_norm(h, hand.under(p, f"norm{k}")) @ p[f"{linear}.W"]
        expected = expected + y[:, :, None, :]
    np.testing.assert_allclose(program(X, p), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("passed", [["keep", "score_bias"], {"keep": "visible", "score_bias": "distance"}])
def test_with_passes_further_values_to_a_sublayer_by_name(passed: Any) -> None:
    keep, bias = ("keep", "score_bias") if isinstance(passed, list) else ("visible", "distance")
    inputs = {"x": ["B", "T", "C"], keep: {"bool": ["B", "T"]}, bias: [1, "H", "T", "T"]}
    sublayers = [{**A, "with": passed}]
    program = bg.compile({"dims": DIMS, "block": {"inputs": inputs, "norm": N, "sublayers": sublayers}})
    given, p = program.sample(3, B=2, T=5)
    given[keep] = np.array([[True, True, False, True, True], [False, False, False, False, False]])
    branch = hand.attention(
        hand.layer_norm(given["x"], hand.under(p, "norm1")), hand.under(p, "attention"), heads=2,
        keep=given[keep], score_bias=given[bias],
    )  # fmt: skip
    np.testing.assert_allclose(program(given, p), given["x"] + branch, rtol=0, atol=1e-12)
    assert np.array_equal(program(given, p)[1], given["x"][1])  # a row that sees nothing adds nothing


def test_with_passes_an_input_of_the_block_to_a_block_used_as_a_sublayer() -> None:
    spec = {
        "dims": DIMS,
        "blocks": {
            "pool": {
                "inputs": {"x": ["B", "T", "C"], "memory": ["B", "S", "C"]},
                "equations": ['y = x * mean(memory, "b s c -> b 1 c")'],
            },
            "block": {
                "inputs": {"x": ["B", "T", "C"], "memory": ["B", "S", "C"]},
                "norm": {"kind": "layer_norm", "affine": False},
                "sublayers": [{"kind": "pool", "with": ["memory"]}, "linear"],
            },
        },
    }
    program = bg.compile(spec)
    given, p = program.sample(0, T=3, S=7)
    x, memory = given["x"], given["memory"]
    plain = {"gamma": 1.0, "beta": 0.0}
    x = x + hand.layer_norm(x, plain) * memory.mean(axis=1, keepdims=True)
    expected = x + hand.layer_norm(x, plain) @ p["linear.W"]
    np.testing.assert_allclose(program(given, p), expected, rtol=0, atol=1e-12)


def test_a_placement_touches_only_the_first_argument_of_a_sublayer() -> None:
    """The memory that is passed on is the input itself, not a normalised copy of it."""
    inputs = {"x": ["B", "T", "C"], "memory": ["B", "T", "C"]}
    spec = {
        "dims": DIMS,
        "blocks": {
            "take": {"inputs": inputs, "equations": ["y = memory + 0*x"]},
            "block": {"inputs": inputs, "norm": N, "sublayers": [{"kind": "take", "with": ["memory"]}]},
        },
    }
    program = bg.compile(spec)
    given, p = program.sample(0)
    np.testing.assert_allclose(program(given, p), given["x"] + given["memory"], rtol=0, atol=1e-12)


def test_a_norm_that_says_share_is_one_layer_for_all_its_uses() -> None:
    norm = {"kind": "layer_norm", "share": True}
    program = bg.compile({"dims": {"C": 8}, "block": {"norm": norm, "placement": "pre", "sublayers": PAIR}})
    assert program.findings == ()
    assert list(program.parameters) == ["norm1.gamma", "norm1.beta", "linear.W", "linear2.W"]
    x, p = program.sample(0)
    p["norm1.gamma"] = np.linspace(0.5, 2, 8)
    norm = hand.under(p, "norm1")
    h = x + hand.layer_norm(x, norm) @ p["linear.W"]
    np.testing.assert_allclose(program(x, p), h + hand.layer_norm(h, norm) @ p["linear2.W"], rtol=0, atol=1e-12)


def test_a_norm_in_the_short_form_may_be_a_block_of_the_file() -> None:
    spec = {
        "dims": DIMS,
        "blocks": {
            "squash": {"params": {"a": {"shape": [], "init": 2}}, "equations": ["y = tanh(a*x)"]},
            "block": {"norm": "squash", "placement": "sandwich", "sublayers": ["linear"]},
        },
    }
    program = bg.compile(spec)
    x, p = program.sample(0)
    assert list(p) == ["input_norm1.a", "linear.W", "output_norm1.a"]
    expected = x + np.tanh(2 * (np.tanh(2 * x) @ p["linear.W"]))
    np.testing.assert_allclose(program(x, p), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("block", "code", "message"),
    [
        ({"norm": N, "placement": "pre_norm", "sublayers": PAIR}, "BG034", "unknown placement `pre_norm`"),
        ({"norm": N, "placement": ["before"], "sublayers": PAIR}, "BG034", "`before` is no place for a norm"),
        ({"placement": "post", "sublayers": PAIR}, "BG021", "this placement needs a norm"),
        ({"placement": "x = x + linear(x)", "sublayers": PAIR}, "BG034", "never calls f"),
        ({"placement": "none", "residual": "normed", "sublayers": PAIR}, "BG033", "needs a norm before the sublayer"),
        (
            {"norm": N, "sublayers": [{"parallel": ["linear", {"kind": "linear", "residual": "none"}]}]},
            "BG033",
            "`residual` has no effect in one member of a group",
        ),
        (
            {"norm": N, "sublayers": [{"parallel": ["linear", {"kind": "linear", "skip_scale": 2}]}]},
            "BG033",
            "`skip_scale` has no effect in one member of a group",
        ),
        (
            {"placement": {"params": {"x": []}, "equations": "x = x*f(x)"}, "sublayers": PAIR},
            "BG029",
            "`x` of the placement is already the name of an input",
        ),
        ({"placement": "x = x + f(x)", "skip_scale": 2, "sublayers": ["linear"]}, "BG033", "has no effect beside"),
        ({"norm": N, "sublayers": PAIR, "equations": ["x = x"]}, "BG033", "cannot stand beside `sublayers`"),
    ],
)
def test_a_wiring_that_makes_no_sense_is_one_finding(block: dict[str, Any], code: str, message: str) -> None:
    (finding,) = bg.check({"dims": DIMS, "block": block}).findings
    assert finding.code == code
    assert message in finding.message


@pytest.mark.parametrize("taken", [{"dims": {**DIMS, "h": 3}}, {"dims": DIMS, "constants": {"h": 3}}])
def test_the_copy_that_a_group_shares_has_a_name_that_the_file_does_not_use(taken: dict[str, Any]) -> None:
    block = {"norm": N, "sublayers": [{"norms": "shared", "parallel": PAIR}]}
    program = bg.compile({**taken, "block": block})
    assert {finding.code for finding in program.findings} <= {"BG221"}  # the name that is taken is not used
    x, p = program.sample(0)
    h = hand.layer_norm(x, hand.under(p, "norm1"))
    np.testing.assert_allclose(program(x, p), x + h @ p["linear.W"] + h @ p["linear2.W"], rtol=0, atol=1e-13)


def test_who_asks_for_no_norm_is_told_which_placement_that_is() -> None:
    spec = {"dims": DIMS, "block": {"norm": "none", "sublayers": [A]}}
    assert [finding.help for finding in bg.check(spec).findings if finding.code == "BG023"] == [
        "to go without norms leave `norm` out and write `placement: none`"
    ]
    elsewhere = {"dims": DIMS, "block": {"parts": {"f": "none"}, "equations": "y = f(x)"}}
    (finding,) = (one for one in bg.check(elsewhere).findings if one.code == "BG023")
    assert finding.help.startswith("one of attention, ")
