"""The spec language, promise by promise: modules, symbols, kinds, names, parameters and their draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.same import first_difference
from tests import hand

DIMS = {"C": 8, "H": 2}
B, T, C = 2, 8, 8  # what is sampled when nothing else is said


def module(*equations: str, dims: Any = DIMS, constants: Any = None, **keys: Any) -> Any:
    spec = {"dims": dims, "block": {**keys, "equations": list(equations)}}
    return bg.compile(spec if constants is None else {**spec, "constants": constants})


def run(*equations: str, **keys: Any) -> tuple[Any, Any, Any]:
    """Input, parameters and output of a module."""
    program = module(*equations, **keys)
    x, params = program.sample(5)
    return x, params, program(x, params)


# Forms


def test_yaml_text_json_text_plain_data_and_a_file_are_one_spec(tmp_path: Path) -> None:
    yaml = """\
name: a
dims: {C: 8}
block:
  parts: {map: linear}
  equations: |
    x = x + map(x)  # the skip path

    x = 2*x
"""
    data = {
        "name": "a",
        "dims": {"C": 8},
        "block": {"parts": {"map": "linear"}, "equations": ["x = x + map(x)", "x = 2*x"]},
    }
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "a.yaml").write_text(yaml, encoding="utf-8")
    forms = [yaml, json.dumps(data), data, tmp_path / "a.json", str(tmp_path / "a.yaml"), bg.load(data)]
    graph = bg.compile(data).graph
    assert [first_difference(bg.compile(one).graph, graph) for one in forms] == [None] * 6


def test_an_equation_may_go_over_several_lines_inside_brackets() -> None:
    spec = {"dims": DIMS, "block": {"equations": "y = (\n  x\n  + x\n)\nz = concat(y,\n  x)"}}
    program = bg.compile(spec)
    x, _ = program.sample(0)
    assert np.array_equal(program(x, {}), np.concatenate([2 * x, x], axis=-1))


@pytest.mark.parametrize(
    ("keys", "main"),
    [
        ({"block": {"equations": ["x = 1*x"]}, "blocks": {"other": {"equations": ["x = 2*x"]}}}, 1),
        ({"blocks": {"block": {"equations": ["x = 1*x"]}, "other": {"equations": ["x = 2*x"]}}}, 1),
        ({"blocks": {"only": {"equations": ["x = 3*x"]}}}, 3),
        ({"block": {"equations": ["x = 1*x"]}, "model": {"equations": ["x = 4*x"]}}, 4),
        ({"blocks": {"only": {"equations": ["x = 1*x"]}}, "model": {"equations": ["x = 4*x"]}}, 4),
    ],
)
def test_the_main_module_is_the_model_else_the_block_else_the_only_one(keys: dict[str, Any], main: int) -> None:
    program = bg.compile({"dims": DIMS, **keys})
    x, _ = program.sample(0)
    assert np.array_equal(program(x, {}), main * x)


def test_with_two_blocks_and_no_main_one_it_is_a_finding() -> None:
    spec = {"dims": DIMS, "blocks": {"a": {"equations": ["x = 1*x"]}, "b": {"equations": ["x = 2*x"]}}}
    assert [(one.code, one.message) for one in bg.check(spec).findings] == [
        ("BG031", "it is not clear which block is meant")
    ]


# Inputs and outputs


def test_the_default_input_is_x_of_b_t_c_and_the_default_output_the_last_target() -> None:
    program = module("y = 2*x", "z = 3*y")
    assert [port.name for port in program.graph.inputs] == ["x"]
    assert [port.name for port in program.graph.outputs] == ["z"]
    x, _ = program.sample(0)
    assert x.shape == (B, T, C)


def test_several_inputs_are_sampled_in_order_each_of_its_kind() -> None:
    program = module(
        "y = concat(where(keep[:, :, None], x, 0*x), lookup(table, tokens))",
        inputs={"tokens": {"ids": ["B", "T"], "below": "3*C"}, "keep": {"bool": ["B", "T"]}, "x": ["B", "T", "C"]},
        params={"table": ["3*C", "C"]},
    )
    given, params = program.sample(9, B=3, T=4)
    rng = np.random.default_rng(9)
    assert list(given) == ["tokens", "keep", "x"]
    assert np.array_equal(given["tokens"], rng.integers(0, 24, (3, 4)))
    assert given["keep"].dtype == bool
    assert given["keep"].all()
    assert np.array_equal(given["x"], rng.standard_normal((3, 4, 8)))
    assert np.array_equal(params["table"], rng.standard_normal((24, 8)) * 0.02)
    y = program(given, params)
    assert np.array_equal(y, np.concatenate([given["x"], params["table"][given["tokens"]]], axis=-1))


@pytest.mark.parametrize(
    ("outputs", "names"), [(None, ["b"]), ("a", ["a"]), (["b", "a"], ["b", "a"]), (["x", "a", "b"], ["x", "a", "b"])]
)
def test_outputs_are_what_is_listed_in_that_order(outputs: Any, names: list[str]) -> None:
    program = module("a = 2*x", "b = 3*a", **({} if outputs is None else {"outputs": outputs}))
    x, _ = program.sample(0)
    y = program(x, {})
    values = {"x": x, "a": 2 * x, "b": 6 * x}
    assert (list(y) if isinstance(y, dict) else names[:1]) == names
    for name in names:
        assert np.array_equal(y[name] if isinstance(y, dict) else y, values[name])


def test_a_call_with_two_targets_names_each_result_and_returns_both_by_default() -> None:
    x, _, y = run("a, b = split(x, 2)")
    assert list(y) == ["a", "b"]
    assert np.array_equal(y["a"], x[..., :4])
    assert np.array_equal(y["b"], x[..., 4:])


def test_rebinding_a_name_makes_numbered_versions_that_a_trace_tells() -> None:
    program = module("x = 2*x", "once = x + 1", "x = once*3")
    x, _ = program.sample(0)
    trace = program.trace(x, {})
    assert list(trace) == ["x.1", "x.2", "once", "x.3", "x"]
    assert np.array_equal(trace["x.1"], x)
    assert np.array_equal(trace["x.2"], 2 * x)
    assert np.array_equal(trace["once"], 2 * x + 1)
    assert np.array_equal(trace["x.3"], (2 * x + 1) * 3)
    assert np.array_equal(trace["x"], trace["x.3"])


# Symbols


def test_a_dim_that_is_an_expression_is_one_with_what_it_is_made_of() -> None:
    """W is declared with H*D rows and meets C columns: they are one dim, since D is C/H."""
    program = module("y = merge(heads(x, H)) @ W", dims={"D": "C/H", **DIMS}, params={"W": ["H*D", "D"]})
    assert {condition.text for condition in program.graph.conditions} == {"H divides C"}
    x, params = program.sample(0)
    assert np.array_equal(program(x, params), x @ params["W"])


def test_dims_that_are_equal_as_numbers_only_do_not_match() -> None:
    checked = bg.check({"dims": {"C": 8, "D": 8}, "block": {"params": {"W": ["D", "C"]}, "equations": ["y = x @ W"]}})
    (finding,) = checked.findings
    assert finding.code == "BG102"
    assert "C = 8 against D = 8" in finding.message


def test_an_empty_dim_is_checked_for_all_sizes_and_asked_for_at_a_run() -> None:
    spec = {"dims": {"C": None}, "block": {"parts": {"map": "linear"}, "equations": ["x = x + map(x)"]}}
    assert bg.check(spec).findings == ()
    with pytest.raises(bg.InputError, match="`C` has no number"):
        bg.compile(spec).sample(0)
    x, params = bg.compile(spec, C=5).sample(0)
    assert (x.shape, params["map.W"].shape) == ((2, 8, 5), (5, 5))


def test_setting_a_dim_moves_the_dims_made_of_it() -> None:
    spec = {"dims": {"C": 8, "H": 2, "D": "C/H"}, "block": {"params": {"g": ["D"]}, "equations": ["y = heads(x, H)*g"]}}
    for values, shape in (({}, (4,)), ({"C": 24}, (12,)), ({"H": 4}, (2,)), ({"C": "3*H"}, (3,))):
        assert bg.compile(spec, **values).init(0)["g"].shape == shape
    assert bg.load(spec).with_values({"C": 16}).overrides == {"C": 16}


def test_numbers_from_numpy_may_be_set() -> None:
    spec = {"dims": {"C": 8}, "constants": {"a": 1}, "block": {"equations": ["x = a*x"]}}
    program = bg.compile(spec, C=np.int64(4), a=np.float32(0.5))
    x, _ = program.sample(0)
    assert x.shape == (2, 8, 4)
    assert np.array_equal(program(x, {}), 0.5 * x)


def test_setting_a_name_that_is_not_there_is_a_finding() -> None:
    (finding,) = bg.check({"dims": DIMS, "block": {"equations": ["x = 2*x"]}}, CC=3).findings
    assert (finding.code, "`CC`" in finding.message) == ("BG027", True)


@pytest.mark.parametrize(
    ("constants", "factor"),
    [
        ({"a": 0.25}, 0.25),
        ({"a": 1e-5}, 1e-5),
        ({"a": "1/sqrt(C)"}, 8**-0.5),
        ({"a": "(2*H)**0.25"}, 4**0.25),
        ({"base": 3, "a": "base - 1"}, 2.0),
        ({"a": -2}, -2.0),
    ],
)
def test_constants_are_numbers_and_expressions_of_them(constants: dict[str, Any], factor: float) -> None:
    x, _, y = run("y = a*x", constants=constants)
    np.testing.assert_allclose(y, factor * x, rtol=1e-15)


def test_constants_name_words_for_options_and_for_equations() -> None:
    parts = {
        "at": {"kind": "attention", "heads": "H", "mask": "how"},
        "ff": {"kind": "feed_forward", "hidden": "C", "activation": "act"},
    }
    x, p, y = run("y = at(x)", "z = ff(y)", parts=parts, constants={"how": "causal", "act": "silu"})
    mixed = hand.attention(x, hand.under(p, "at"), heads=2, causal=True)
    np.testing.assert_allclose(y, hand.feed_forward(mixed, hand.under(p, "ff"), hand.silu), rtol=0, atol=1e-14)
    x, _, y = run("y = softmax(x, mask=how)", constants={"how": "causal"})
    assert np.array_equal(y[0, 0], [1, 0, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("off", ["none", None])
def test_none_switches_an_option_off(off: Any) -> None:
    part = {"kind": "attention", "heads": "H", "mask": "causal", "window": "w", "softcap": "cap"}
    plain_part = {**part, "window": "none", "softcap": "none"}
    block, plain_block = ({"parts": {"at": one}, "equations": ["y = at(x)"]} for one in (part, plain_part))
    spec = {"dims": DIMS, "constants": {"w": off, "cap": off}, "block": block}
    plain = {"dims": DIMS, "block": plain_block}
    program, x, p = bg.compile(spec), *bg.compile(plain).sample(0)
    expected = hand.attention(x, hand.under(p, "at"), heads=2, causal=True)
    np.testing.assert_allclose(program(x, p), expected, rtol=0, atol=1e-14)
    assert np.array_equal(program(x, p), bg.compile(plain)(x, p))
    x, p = bg.compile(spec, w=1).sample(0)
    alone = bg.compile(spec, w=1)(x, p)  # each position sees itself only
    np.testing.assert_allclose(alone, x @ p["at.Wv"] @ p["at.Wo"], rtol=0, atol=1e-14)


def test_free_symbols_are_bound_anew_at_every_call_of_a_program() -> None:
    program = module('y = x * mean(m, "b s c -> b 1 c")', inputs={"x": ["B", "T", "C"], "m": ["B", "S", "C"]})
    for b, t, s in ((1, 1, 1), (3, 7, 2), (2, 4, 9)):
        given, _ = program.sample(0, B=b, T=t, S=s)
        assert (given["x"].shape, given["m"].shape) == ((b, t, 8), (b, s, 8))
        expected = given["x"] * given["m"].mean(axis=1, keepdims=True)
        np.testing.assert_allclose(program(given, {}), expected, rtol=1e-14)


def test_one_block_serves_two_lengths() -> None:
    """The block is written for T; the memory has length S. Each part of this kind has its own parameters."""
    spec = {
        "dims": DIMS,
        "blocks": {"block": {"norm": "layer_norm", "sublayers": [{"kind": "attention", "heads": "H"}]}},
        "model": {
            "inputs": {"x": ["B", "T", "C"], "m": ["B", "S", "C"]},
            "parts": {"encoder": "block", "decoder": "block"},
            "equations": ["m = encoder(m)", 'y = decoder(x) + mean(m, "b s c -> b 1 c")'],
        },
    }
    program = bg.compile(spec)
    given, p = program.sample(0, T=3, S=5)

    def layer(x: Any, part: str) -> Any:
        own = hand.under(p, part)
        return x + hand.attention(hand.layer_norm(x, hand.under(own, "norm1")), hand.under(own, "attention"), heads=2)

    expected = layer(given["x"], "decoder") + layer(given["m"], "encoder").mean(axis=1, keepdims=True)
    np.testing.assert_allclose(program(given, p), expected, rtol=0, atol=1e-12)
    shapes = {step.name: str(program.graph.types[step.value].shape[1]) for step in program.graph.steps}
    assert (shapes["encoder.x.2"], shapes["decoder.x.2"]) == ("S", "T")
