"""Faults met in public by users of other tools, as the smallest spec that would trip over them here."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import blockgraph as bg

FOUR = {"dims": {"C": 4}, "block": {"parts": {"norm": "layer_norm"}, "equations": ["y = norm(x)"]}}
UNIT = np.array([[[1.0, 0, 0, 0]]])


def values(spec: Any, x: Any = UNIT, seed: int = 0) -> Any:
    program = bg.compile(spec)
    return program(x, program.init(seed))


def wired(placement: str) -> dict[str, Any]:
    """A block whose only sublayer returns its input."""
    block = {"norm": "layer_norm", "placement": placement, "sublayers": ["same"]}
    return {"dims": {"C": 4}, "blocks": {"same": {"equations": ["y = x"]}, "block": block}}


# A norm divides by n, adds eps under the root and normalises the last axis (R32)


def test_layer_norm_divides_by_n_with_eps_under_the_root() -> None:
    expected = [1.7320046, -0.5773349, -0.5773349, -0.5773349]
    np.testing.assert_allclose(values(FOUR)[0, 0], expected, rtol=0, atol=1e-6)


def test_layer_norm_takes_each_position_by_itself() -> None:
    x = np.array([[[1.0, 0, 0, 0], [1000.0, -2000, 5, 7]]])
    y = values(FOUR, x)
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-12)
    np.testing.assert_allclose(y[:, :1], values(FOUR), rtol=0, atol=1e-15)


# The skip path carries the raw stream (R38)


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        ("pre", [2.7320046, -0.5773349, -0.5773349, -0.5773349]),
        ("post", [1.7320393, -0.5773464, -0.5773464, -0.5773464]),
    ],
)
def test_a_placement_adds_the_branch_to_the_raw_stream(placement: str, expected: list[float]) -> None:
    np.testing.assert_allclose(values(wired(placement))[0, 0], expected, rtol=0, atol=1e-6)


def test_the_normed_skip_path_compiles_as_written_with_a_warning_at_the_add() -> None:
    text = """\
dims: {C: 4}
blocks:
  f_: {equations: "y = x"}
  block:
    parts: {ln: layer_norm, g: f_}
    equations: |
      h = ln(x)
      x = h + g(h)
"""
    checked = bg.check(text)
    (finding,) = checked.findings
    assert checked.ok
    assert (finding.severity, finding.message) == ("warning", "the skip path carries the output of ln, not its input")
    assert (finding.place.start.line, finding.place.start.column) == (8, 11)
    np.testing.assert_allclose(values(text)[0, 0], [3.4640092, -1.1546697, -1.1546697, -1.1546697], rtol=0, atol=1e-6)


@pytest.mark.parametrize("placement", ["pre", "post", "sandwich", "output"])
def test_no_placement_of_the_short_form_is_warned_about(placement: str) -> None:
    spec = {
        "dims": {"C": 4},
        "block": {"norm": "layer_norm", "placement": placement, "sublayers": ["linear", "linear"]},
    }
    assert bg.check(spec).findings == ()


def test_a_skip_path_that_is_normed_on_purpose_is_not_warned_about() -> None:
    block = {"norm": "layer_norm", "residual": "normed", "sublayers": ["linear"]}
    assert bg.check({"dims": {"C": 4}, "block": block}).findings == ()


# One norm feeds queries, keys and values (R39)


def test_in_self_attention_one_norm_feeds_queries_keys_and_values() -> None:
    block = {"norm": "layer_norm", "sublayers": [{"kind": "attention", "heads": "H"}]}
    graph = bg.compile({"dims": {"C": 4, "H": 2}, "block": block}).graph
    norms = [node for node in graph.nodes if node.op.name == "layer_norm"]
    assert len(norms) == 1
    readers = graph.users(norms[0].outputs[0])
    assert [node.text.split()[0] for node in readers] == ["query", "key", "value"]
    assert graph.nx.out_degree(norms[0].id) == 3


# Symbols stay symbols (R20, R21)


def test_free_symbols_are_not_frozen_to_the_first_sizes() -> None:
    program = bg.compile(
        {"dims": {"C": 4, "H": 2}, "block": {"norm": "layer_norm", "sublayers": [{"kind": "attention", "heads": "H"}]}}
    )
    before = [str(one) for one in program.graph.types]
    for b, t in ((1, 1), (3, 7), (1, 1)):
        x, params = program.sample(0, B=b, T=t)
        assert program(x, params).shape == (b, t, 4)
    assert [str(one) for one in program.graph.types] == before


def test_shapes_are_told_in_the_names_of_the_user() -> None:
    program = bg.compile(
        {
            "dims": {"C": 6, "H": 2},
            "block": {
                "inputs": {
                    "x": ["T", "C"],
                    "t": ["T", 1],
                    "c": [1, "C"],
                    "two": ["T", 2],
                    "three": ["T", 3],
                    "past": ["P", "C"],
                },
                "params": {"W": ["C", "4*C"]},
                "equations": [
                    "stretched = t * c",
                    "joined = concat(two, three)",
                    'longer = concat(past, x, axes="[t] c")',
                    "wide = x @ W",
                    "cut = heads(x, H)",
                ],
                "outputs": ["stretched", "joined", "longer", "wide", "cut"],
            },
        }
    )
    graph = program.graph
    shapes = {port.name: tuple(map(str, graph.types[port.value].shape or ())) for port in graph.outputs}
    assert shapes == {
        "stretched": ("T", "C"),
        "joined": ("T", "5"),
        "longer": ("P + T", "C"),
        "wide": ("T", "4*C"),
        "cut": ("H", "T", "C/H"),
    }


def test_an_axis_of_one_written_in_an_input_stretches_under_plus_and_a_width_of_one_does_not() -> None:
    inputs = {"x": ["B", "T", "C"], "memory": ["B", 1, "C"]}
    spec = {"dims": {"C": 4}, "block": {"inputs": inputs, "equations": ["y = x + memory"]}}
    program = bg.compile(spec)
    given, _ = program.sample(0)
    assert np.array_equal(program(given, {}), given["x"] + given["memory"])
    narrow = {"dims": {"C": 4}, "block": {"parts": {"m": {"kind": "linear", "out": 1}}, "equations": ["y = x + m(x)"]}}
    assert [one.code for one in bg.check(narrow).findings] == ["BG101"]


# A module used twice (R63)


def test_a_part_called_at_two_places_is_two_calls_of_one_set_of_parameters() -> None:
    block = {
        "parts": {
            "ff": {"kind": "feed_forward", "hidden": "4*C", "activation": "relu"},
            "n1": "layer_norm",
            "n2": "layer_norm",
        },
        "equations": ["x = x + ff(n1(x))", "x = x + ff(n2(x))"],
    }
    program = bg.compile({"dims": {"C": 4}, "block": block})
    assert [key for key in program.graph.scopes if key.startswith("ff")] == ["ff", "ff#2"]
    assert {program.graph.scopes[key].path for key in ("ff", "ff#2")} == {"ff"}
    assert [name for name in program.parameters if name.startswith("ff")] == ["ff.W1", "ff.b1", "ff.W2", "ff.b2"]
    assert len([node for node in program.graph.nodes if node.op.name == "param" and node.op.path == "ff.W1"]) == 1
    assert program.findings == ()


# Sizes that do not divide are told once, and not again in what follows from them


def test_heads_that_do_not_divide_the_width_are_one_finding_even_with_grouped_keys() -> None:
    part = {"kind": "attention", "heads": "H", "kv_heads": "G"}
    block = {"parts": {"at": part}, "equations": ["y = at(x)"]}
    spec = {"dims": {"C": 64, "H": 6, "G": 2}, "block": block}
    (finding,) = bg.check(spec).findings
    assert (finding.code, finding.message) == ("BG103", "H = 6 does not divide C = 64: 64 / 6 leaves 4")
    conditions = bg.compile(spec, H=4).graph.conditions
    assert sorted(condition.text for condition in conditions) == ["G divides H", "H divides C"]


# Deep graphs at the default recursion limit (R91)


def test_five_thousand_chained_equations_are_checked_and_run() -> None:
    assert sys.getrecursionlimit() <= 1000
    block = {"equations": "\n".join(["x = x + 0.001*tanh(x)"] * 5000)}
    program = bg.compile({"dims": {"C": 4}, "block": block})
    x, _ = program.sample(0, B=1, T=2)
    expected = x
    for _ in range(5000):
        expected = expected + 0.001 * np.tanh(expected)
    np.testing.assert_allclose(program(x, {}), expected, rtol=1e-10)
    assert len(program.trace(x, {})) == 5002


@pytest.mark.parametrize("layers", [400, 1000])
def test_a_deep_stack_is_checked_and_run(layers: int) -> None:
    spec = {
        "dims": {"C": 4},
        "blocks": {"b": {"params": {"g": {"shape": [], "init": 0.5}}, "equations": ["x = x + g*0"]}},
        "model": {"parts": {"layers": {"kind": "stack", "of": "b", "repeat": layers}}, "equations": ["x = layers(x)"]},
    }
    program = bg.compile(spec)
    x, params = program.sample(0)
    assert len(params) == layers
    assert np.array_equal(program(x, params), x)


@pytest.mark.parametrize(("depth", "fits"), [(90, True), (300, False), (600, False)])
def test_a_deeply_nested_expression_runs_or_is_refused_at_its_place(depth: int, fits: bool) -> None:
    text = "x = " + "tanh(" * depth + "x" + ")" * depth
    checked = bg.check({"dims": {"C": 4}, "block": {"equations": [text]}})
    assert checked.ok is fits
    if not fits:
        assert any(one.code.startswith("BG0") and "100" in one.message + one.help for one in checked.findings)
