"""Stacks: cycles, segments, sharing, the layer's number, what is carried and what is the same for all layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from tests import hand

DIMS = {"C": 4, "N": 3, "W": 2}
MAP = {"parts": {"map": "linear"}, "equations": ["x = x + map(x)"]}
GAIN = {"params": {"g": {"shape": ["C"], "init": "normal(1)"}}, "equations": ["x = x*g"]}
DOUBLE = {"equations": ["x = 2*x"]}
TWO = {"x": ["B", "T", "C"], "d": ["B", "T", "C"]}


def stack(
    of: Any, repeat: Any, blocks: dict[str, Any], equations: Any = ("x = layers(x)",), *, constants: Any = None,
    inputs: Any = None, outputs: Any = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    layers = {"kind": "stack", "of": of, **({} if repeat is None else {"repeat": repeat}), **options}
    model: dict[str, Any] = {"parts": {"layers": layers}, "equations": list(equations)}
    model |= {} if inputs is None else {"inputs": inputs}
    model |= {} if outputs is None else {"outputs": outputs}
    return {"dims": DIMS, "constants": constants or {}, "blocks": blocks, "model": model}


def findings(spec: Any) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in bg.check(spec).findings]


@pytest.mark.parametrize(("repeat", "layers"), [(2, 2), ("N", 3), ("N - 1", 2), ("N*W", 6), (0, 0), ("N - 3", 0)])
def test_repeat_counts_layers_and_may_be_an_expression(repeat: Any, layers: int) -> None:
    program = bg.compile(stack("b", repeat, {"b": MAP}))
    assert list(program.parameters) == [f"layers.{layer}.map.W" for layer in range(layers)]
    x, p = program.sample(0)
    y = x
    for layer in range(layers):
        y = y + y @ p[f"layers.{layer}.map.W"]
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-14)


def test_layers_are_drawn_one_after_the_other_between_the_parts_around_them() -> None:
    spec = stack(
        "b", 2, {"b": {**MAP, "params": {"g": ["C"]}, "equations": ["x = g*map(x)"]}}, ["x = last(layers(first(x)))"]
    )
    parts = {"first": "linear", **spec["model"]["parts"], "last": "linear"}
    drawn = bg.compile({**spec, "model": {**spec["model"], "parts": parts}}).init(6)
    rng = np.random.default_rng(6)
    for name, shape in (
        ("first.W", (4, 4)),
        ("layers.0.g", (4,)),
        ("layers.0.map.W", (4, 4)),
        ("layers.1.g", (4,)),
        ("layers.1.map.W", (4, 4)),
        ("last.W", (4, 4)),
    ):
        assert np.array_equal(drawn[name], rng.standard_normal(shape) * 0.02), name


def test_a_list_of_blocks_cycles_and_may_stop_within_a_cycle() -> None:
    program = bg.compile(stack(["b", "g"], 5, {"b": MAP, "g": GAIN}))
    assert list(program.parameters) == [
        *("layers.0.map.W", "layers.1.g", "layers.2.map.W", "layers.3.g", "layers.4.map.W")
    ]
    x, p = program.sample(0)
    y = x
    for layer in range(5):
        y = y * p[f"layers.{layer}.g"] if layer % 2 else y + y @ p[f"layers.{layer}.map.W"]
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-12)


def test_entries_with_their_own_repeat_follow_one_another() -> None:
    of = [{"kind": "g", "repeat": 2}, {"kind": "double", "repeat": "N"}, {"kind": "g", "repeat": 1}]
    program = bg.compile(stack(of, None, {"g": GAIN, "double": DOUBLE}))
    x, p = program.sample(0)
    assert list(p) == ["layers.0.g", "layers.1.g", "layers.5.g"]
    np.testing.assert_allclose(program(x, p), x * p["layers.0.g"] * p["layers.1.g"] * 8 * p["layers.5.g"], rtol=1e-14)


@pytest.mark.parametrize(
    ("of", "repeat", "finding"),
    [
        ("b", None, ("BG021", "`repeat` is required for `stack`")),
        ("b", -1, ("BG022", "`repeat`: positive whole number expected, got -1")),
        ([{"kind": "b", "repeat": 2}, "b"], None, ("BG033", "some layers have their own `repeat` and some have none")),
        ([{"kind": "b", "repeat": 2}], 2, ("BG033", "`repeat` stands on the stack and on its layers")),
    ],
)
def test_repeat_stands_on_the_stack_or_on_every_entry(of: Any, repeat: Any, finding: tuple[str, str]) -> None:
    assert findings(stack(of, repeat, {"b": DOUBLE})) == [finding]


def test_a_shared_stack_has_one_set_of_parameters_for_each_block() -> None:
    program = bg.compile(stack(["b", "g"], 5, {"b": MAP, "g": GAIN}, share=True))
    x, p = program.sample(2)
    assert list(p) == ["layers.0.map.W", "layers.1.g"]
    rng = np.random.default_rng(2)
    rng.standard_normal(x.shape)
    assert np.array_equal(p["layers.0.map.W"], rng.standard_normal((4, 4)) * 0.02)
    assert np.array_equal(p["layers.1.g"], rng.standard_normal(4))
    y = x
    for layer in range(5):
        y = y * p["layers.1.g"] if layer % 2 else y + y @ p["layers.0.map.W"]
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-12)


def test_share_on_one_part_of_a_stacked_block_keeps_one_set_of_that_part() -> None:
    block = {"parts": {"one": {"kind": "linear", "share": True}, "own": "linear"}, "equations": ["x = own(one(x))"]}
    program = bg.compile(stack("b", 3, {"b": block}))
    x, p = program.sample(0)
    assert list(p) == ["layers.0.one.W", "layers.0.own.W", "layers.1.own.W", "layers.2.own.W"]
    y = x
    for layer in range(3):
        y = y @ p["layers.0.one.W"] @ p[f"layers.{layer}.own.W"]
    np.testing.assert_allclose(program(x, p), y, rtol=1e-12)


def test_layer_counts_from_one_in_equations_scales_options_and_inits() -> None:
    block = {
        "placement": "none",
        "skip_scale": "layer",
        "branch_scale": "1/sqrt(layer)",
        "sublayers": [{"kind": "linear", "init": "normal(0.1/layer)"}],
    }
    program = bg.compile(stack("b", 3, {"b": block}))
    x, p = program.sample(1)
    rng = np.random.default_rng(1)
    y = rng.standard_normal(x.shape)
    for layer in (1, 2, 3):
        weight = rng.standard_normal((4, 4)) * (0.1 / layer)
        np.testing.assert_allclose(p[f"layers.{layer - 1}.linear.W"], weight, rtol=1e-15)
        y = layer * y + y @ weight / np.sqrt(layer)
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-12)


def test_layer_is_that_of_the_innermost_stack() -> None:
    blocks = {
        "leaf": {"equations": ["x = x*layer"]},
        "twig": {
            "parts": {"leaves": {"kind": "stack", "of": "leaf", "repeat": 3}},
            "equations": ["x = leaves(x) + layer"],
        },
    }
    program = bg.compile(stack("twig", 2, blocks))
    x, _ = program.sample(0)
    np.testing.assert_allclose(program(x, {}), (x * 6 + 1) * 6 + 2, rtol=1e-14)


def test_layer_in_a_size_or_outside_a_stack_is_a_finding() -> None:
    (finding,) = findings(stack("b", 2, {"b": {"params": {"g": ["C*layer"]}, "equations": ["x = x*g"]}}))
    assert finding[0] == "BG022"
    assert findings({"dims": DIMS, "block": {"equations": ["x = x*layer"]}}) == [
        ("BG027", "`layer` has a meaning only inside a stack")
    ]


@pytest.mark.parametrize("call", ["layers(x, memory)", "layers(x, memory=memory)", "layers(memory=memory, x=x)"])
def test_an_input_that_is_no_output_is_the_same_for_every_layer(call: str) -> None:
    inputs = {"x": ["B", "T", "C"], "memory": ["B", "S", "C"]}
    block = {"inputs": inputs, "parts": {"map": "linear"}, "equations": ['x = x + mean(map(memory), "b s c -> b 1 c")']}
    program = bg.compile(stack("b", 3, {"b": block}, [f"x = {call}"], inputs=inputs))
    given, p = program.sample(0, T=3, S=5)
    memory = given["memory"].mean(axis=1, keepdims=True)
    expected = given["x"] + sum(memory @ p[f"layers.{layer}.map.W"] for layer in range(3))
    np.testing.assert_allclose(program(given, p), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("outputs", [["x", "d"], ["d", "x"]])
def test_two_values_are_carried_by_name_in_whatever_order_they_are_returned(outputs: list[str]) -> None:
    """x <- x @ W and d <- d + x (the new one), by hand."""
    block = {"inputs": TWO, "outputs": outputs, "parts": {"map": "linear"}, "equations": ["x = map(x)", "d = d + x"]}
    program = bg.compile(
        stack("b", 3, {"b": block}, [f"{', '.join(outputs)} = layers(x, d)"], inputs=TWO, outputs=["x", "d"])
    )
    given, p = program.sample(0)
    x, d = given["x"], given["d"]
    for layer in range(3):
        x = x @ p[f"layers.{layer}.map.W"]
        d = d + x
    y = program(given, p)
    np.testing.assert_allclose(y["x"], x, rtol=1e-12)
    np.testing.assert_allclose(y["d"], d, rtol=1e-12)


def test_an_output_that_is_no_input_comes_from_the_last_layer() -> None:
    block = {"outputs": ["x", "v"], "equations": ["v = 10*x", "x = 2*x"]}
    program = bg.compile(stack("b", 3, {"b": block}, ["x, v = layers(x)"], outputs=["x", "v"]))
    x, _ = program.sample(0)
    assert np.array_equal(program(x, {})["x"], 8 * x)
    assert np.array_equal(program(x, {})["v"], 40 * x)
    empty = stack("b", 0, {"b": block}, ["x, v = layers(x)"], outputs=["x", "v"])
    assert findings(empty) == [("BG035", "`v` comes out of no layer: `layers` has 0 layers")]


def test_a_different_first_layer_hands_a_value_to_all_later_ones() -> None:
    first = {"outputs": ["x", "v"], "parts": {"value": "linear"}, "equations": ["v = value(x)", "x = x + v"]}
    rest = {
        "inputs": {"x": ["B", "T", "C"], "v": ["B", "T", "C"]},
        "params": {"l": {"shape": [], "init": 0.5}},
        "parts": {"value": "linear"},
        "equations": ["x = x + value(x) + l*v"],
    }
    spec = {
        "dims": DIMS,
        "blocks": {"first": first, "rest": rest},
        "model": {
            "parts": {"first": "first", "rest": {"kind": "stack", "of": "rest", "repeat": "N - 1"}},
            "equations": ["x, v = first(x)", "x = rest(x, v)"],
        },
    }
    program = bg.compile(spec)
    x, p = program.sample(0)
    v = x @ p["first.value.W"]
    y = x + v
    for layer in range(2):
        y = y + y @ p[f"rest.{layer}.value.W"] + p[f"rest.{layer}.l"] * v
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-13)


def test_a_use_in_a_stack_rebinds_constants_for_its_own_layers() -> None:
    spec = stack([{"kind": "b", "set": {"w": "W"}}, "b"], 5, {"b": {"equations": ["x = x*w"]}}, constants={"w": 7})
    program = bg.compile(spec)
    x, _ = program.sample(0)
    np.testing.assert_allclose(program(x, {}), x * 2 * 7 * 2 * 7 * 2, rtol=1e-14)
    np.testing.assert_allclose(bg.compile(spec, w=1, W=3)(x, {}), x * 27, rtol=1e-14)


def test_a_use_rebinds_words_and_switches_options_off_and_may_count_layers() -> None:
    part = {"kind": "feed_forward", "hidden": "C", "activation": "act"}
    blocks = {"b": {"parts": {"ff": part}, "equations": ["x = a*ff(x)"]}}
    of = [{"kind": "b", "set": {"act": "relu", "a": "1/layer"}}, "b"]
    program = bg.compile(stack(of, 2, blocks, constants={"act": "silu", "a": 3}))
    x, p = program.sample(0)
    y = np.maximum(x @ p["layers.0.ff.W1"], 0) @ p["layers.0.ff.W2"]
    expected = 3 * hand.silu(y @ p["layers.1.ff.W1"]) @ p["layers.1.ff.W2"]
    np.testing.assert_allclose(program(x, p), expected, rtol=1e-12)


@pytest.mark.parametrize("value", [[1], {}, "4 +", float("nan")])
def test_a_value_that_is_set_and_is_none_is_one_finding_at_the_use(value: Any) -> None:
    blocks = {"b": {"equations": ["x = x*w"]}}
    if value == value:
        assert len(findings(stack({"kind": "b", "set": {"w": value}}, 2, blocks, constants={"w": 1}))) == 1
    assert len(bg.check(stack("b", 2, blocks, constants={"w": 1}), w=value).findings) == 1


def test_two_windows_in_turn_are_one_block_used_twice() -> None:
    """Layers 0 and 2 see two keys, layer 1 sees all; the value map is the identity, the scores are equal."""
    block = {
        "params": {"I": {"shape": ["C", "C"], "init": "eye"}},
        "equations": ["q = heads(0*x, 1)", 'x = merge(attend(q, q, heads(x @ I, 1), mask="causal", window=w))'],
    }
    spec = stack([{"kind": "b", "set": {"w": "W"}}, "b"], 3, {"b": block}, constants={"w": "none"})
    program = bg.compile(spec)
    x, p = program.sample(0)

    def mean_of_past(y: Any, window: int) -> Any:
        return np.stack([y[:, max(0, t + 1 - window) : t + 1].mean(axis=1) for t in range(y.shape[1])], axis=1)

    expected = mean_of_past(mean_of_past(mean_of_past(x, 2), 99), 2)
    np.testing.assert_allclose(program(x, p), expected, rtol=0, atol=1e-14)


def test_a_stack_may_be_a_sublayer_and_may_hold_a_block_with_a_stack() -> None:
    twig = {"placement": "none", "sublayers": [{"kind": "stack", "of": "leaf", "repeat": 2}]}
    spec = {"dims": DIMS, "blocks": {"leaf": MAP, "twig": twig}, "model": stack("twig", 2, {})["model"]}
    program = bg.compile(spec)
    assert list(program.parameters) == [f"layers.{i}.stack.{j}.map.W" for i in (0, 1) for j in (0, 1)]
    x, p = program.sample(0)
    y = x
    for i in (0, 1):
        inner = y
        for j in (0, 1):
            inner = inner + inner @ p[f"layers.{i}.stack.{j}.map.W"]
        y = y + inner
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-13)
    assert {"layers.1.stack.0.x.2", "layers.1.stack", "layers.0"} <= program.trace(x, p).keys()


def test_a_stack_that_is_called_twice_uses_its_parameters_twice() -> None:
    program = bg.compile(stack("b", 2, {"b": MAP}, ["x = layers(x)", "x = layers(x)"]))
    x, p = program.sample(0)
    assert list(p) == ["layers.0.map.W", "layers.1.map.W"]
    y = x
    for layer in (0, 1, 0, 1):
        y = y + y @ p[f"layers.{layer}.map.W"]
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-13)


def test_every_layer_and_every_value_in_it_has_a_name() -> None:
    program = bg.compile(stack(["b", "g"], 3, {"b": MAP, "g": GAIN}))
    x, p = program.sample(0)
    trace = program.trace(x, p)
    assert {"x", "x.1", "x.2", "layers", "layers.0", "layers.1", "layers.2"} <= trace.keys()
    assert {"layers.0.map", "layers.0.x.1", "layers.0.x.2", "layers.1.x.2"} <= trace.keys()
    assert np.array_equal(trace["layers.0"], trace["layers.1.x.1"])
    assert np.array_equal(trace["layers.2.x"], trace["x"])


@pytest.mark.parametrize(
    ("of", "blocks", "finding"),
    [
        ("b", {"b": {"equations": ["y = 2*x"]}}, ("BG035", "nothing is carried from layer to layer: `b` returns y")),
        (
            "b",
            {"b": {"equations": ["x = concat(x, x)"]}},
            ("BG110", "`b` cannot be stacked: `x` goes in as (B, T, C) and comes out as (B, T, 2*C)"),
        ),
    ],
)
def test_a_block_that_cannot_be_stacked_is_a_finding(of: Any, blocks: Any, finding: tuple[str, str]) -> None:
    assert findings(stack(of, 2, blocks)) == [finding]


def test_a_block_that_contains_itself_is_a_finding() -> None:
    one = {"a": {"parts": {"k": "a"}, "equations": ["x = k(x)"]}}
    assert findings(stack("a", 2, one)) == [("BG030", "the block `a` contains itself")]
    ring = {
        "a": {"parts": {"k": "b"}, "equations": ["x = k(x)"]},
        "b": {"parts": {"k": "a"}, "equations": ["x = k(x)"]},
    }
    (finding,) = findings(stack("a", 2, ring))
    assert finding[0] == "BG030"


# Stacks inside stacks


NESTED = {
    "small": {"parts": {"map": "linear"}, "equations": ["x = x + map(x)"]},
    "inner": {"parts": {"layers": {"kind": "stack", "of": "small", "repeat": "W"}}, "equations": ["x = layers(x)"]},
}


@pytest.mark.parametrize(
    ("inner", "rows"),
    [
        ({"kind": "inner"}, [[0, 1], [2, 3], [4, 5]]),
        ({"kind": "inner", "share": True}, [[0, 1], [0, 1], [0, 1]]),
    ],
)
def test_a_shared_part_keeps_the_layers_of_a_stack_inside_it_apart(inner: Any, rows: list[list[int]]) -> None:
    outer = {"parts": {"inner": inner}, "equations": ["x = inner(x)"]}
    program = bg.compile(stack("outer", "N", {**NESTED, "outer": outer}))
    x, p = program.sample(0)
    weights = list(p.values())
    assert len(weights) == len({one for row in rows for one in row})
    y = x
    for row in rows:
        for one in row:
            y = y + y @ weights[one]
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-14)


def test_a_part_shared_inside_a_shared_part_has_one_set() -> None:
    small = {"parts": {"map": {"kind": "linear", "share": True}}, "equations": ["x = x + map(x)"]}
    outer = {"parts": {"inner": {"kind": "inner", "share": True}}, "equations": ["x = inner(x)"]}
    program = bg.compile(stack("outer", "N", {**NESTED, "small": small, "outer": outer}))
    assert list(program.parameters) == ["layers.0.inner.layers.0.map.W"]


def test_a_stack_may_be_a_layer_with_a_repeat_of_its_own() -> None:
    program = bg.compile(stack({"kind": "stack", "of": "b", "repeat": 2}, 3, {"b": MAP}))
    names = [f"layers.{outer}.stack.{inner}.map.W" for outer in range(3) for inner in range(2)]
    assert list(program.parameters) == names
    x, p = program.sample(0)
    y = x
    for name in names:
        y = y + y @ p[name]
    np.testing.assert_allclose(program(x, p), y, rtol=0, atol=1e-14)


def test_what_a_use_sets_holds_inside_where_more_is_set() -> None:
    small = {"equations": ["x = a*b*x"]}
    middle = {"parts": {"small": {"kind": "small", "set": {"b": 3}}}, "equations": ["x = small(x)"]}
    model = {"parts": {"middle": {"kind": "middle", "set": {"a": 2}}}, "equations": ["x = middle(x)"]}
    blocks = {"small": small, "middle": middle}
    program = bg.compile({"dims": DIMS, "constants": {"a": 1, "b": 1}, "blocks": blocks, "model": model})
    assert np.array_equal(program(np.ones((1, 1, 4)), {}), np.full((1, 1, 4), 6.0))


def test_a_constant_set_anew_for_the_inner_stack_hides_the_outer_layer() -> None:
    of = {"kind": "inner", "set": {"k": "1/layer"}}
    inner_of = {"kind": "small", "set": {"k": "layer"}}
    inner = {"parts": {"layers": {"kind": "stack", "of": inner_of, "repeat": 2}}, "equations": ["x = layers(k*x)"]}
    blocks = {"small": {"equations": ["x = k*x"]}, "inner": inner}
    program = bg.compile(stack(of, 3, blocks, constants={"k": 1}))
    expected = np.full((1, 1, 4), (1 * 2) ** 3 / (1 * 2 * 3))
    np.testing.assert_allclose(program(np.ones((1, 1, 4)), {}), expected, rtol=1e-15)
