"""Gradients of whole programs: fan-out, broadcasts, sharing, cuts, kept and freed and recomputed activations."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.grad import gradient_name
from tests.bench.memory import owned

SPECS = Path(__file__).parent.parent / "specs"
Array = Any


def compiled(equations: str, head: str = "inputs: {x: [B, T, C]}", dims: str = "C: 4") -> bg.Program:
    lines = "\n".join(f"    {line}" for line in equations.splitlines())
    return bg.compile(f"dims: {{{dims}}}\nblock:\n  {head}\n  equations: |\n{lines}\n")


def difference(program: bg.Program, x: Any, params: dict[str, Array], dy: Array, moved: str | None, by: Array) -> float:
    """The derivative of <y, dy> along `by`, of the input or of one parameter, by central differences."""
    h, ends = 1e-5, []
    for sign in (1, -1):
        if moved is None:
            y = program(x + sign * h * by, params)
        else:
            y = program(x, {**params, moved: params[moved] + sign * h * by})
        ends.append(float(np.vdot(y, dy)))
    return (ends[0] - ends[1]) / (2 * h)


def gradients(equations: str, x: Array, dy: Array | None = None) -> Array:
    program = compiled(equations, "inputs: {x: [N]}", "C: 1")
    y, back = program.vjp(x, {})
    return back(np.ones_like(y) if dy is None else dy).dx


def test_a_value_used_twice_gets_the_sum_of_both_ways() -> None:
    assert gradients("y = 3*x\na = 2*y\nb = 5*y\nc = a + b", np.array([2.0])).tolist() == [21.0]
    assert gradients("c = x + x", np.array([2.0])).tolist() == [2.0]


def test_a_stream_that_feeds_queries_keys_values_and_the_skip_agrees_with_differences() -> None:
    program = bg.compile("dims: {C: 8}\nblock: {placement: none, sublayers: [{kind: attention, heads: 2}]}\n")
    x, params = program.sample(3, B=2, T=5)
    params = {name: 20 * array for name, array in params.items()}
    rng = np.random.default_rng(0)
    dy, by = rng.standard_normal(x.shape), rng.standard_normal(x.shape)
    _, back = program.vjp(x, params)
    found = float(np.vdot(back(dy).dx, by))
    assert found == pytest.approx(difference(program, x, params, dy, None, by), rel=1e-6)


def test_the_gradient_of_a_broadcast_operand_has_the_operands_shape() -> None:
    program = compiled("y = x + bias", "params: {bias: [C]}")
    _, dparams = program.grad(np.ones((2, 3, 4)), {"bias": np.ones(4)})
    assert dparams["bias"].tolist() == [6.0] * 4
    head = "inputs: {x: [B, M, C]}\n  params: {bias: [C], gain: [1, M, 1]}"
    gated = compiled("y = (x + bias) * gain", head, "C: 4, M: 3")
    x, bias = np.arange(24.0).reshape(2, 3, 4), np.arange(4.0)
    gain = np.array([2.0, -1.0, 0.5]).reshape(1, 3, 1)
    _, dparams = gated.grad(x, {"bias": bias, "gain": gain})
    assert dparams["gain"].shape == (1, 3, 1)
    np.testing.assert_allclose(dparams["gain"], (x + bias).sum(axis=(0, 2)).reshape(1, 3, 1))
    assert dparams["bias"].tolist() == [2 * (2 - 1 + 0.5)] * 4


def test_nothing_comes_from_the_branch_that_was_not_chosen() -> None:
    x = np.array([-1.0, -4.0])
    assert gradients("y = where(x > 0, sqrt(x), x)", x).tolist() == [1.0, 1.0]


def test_a_masked_softmax_and_its_logarithm_have_finite_gradients() -> None:
    head = "inputs: {x: [B, T, C], keep: {bool: [B, T, C]}}"
    program = compiled("w = softmax(x, keep=keep)\ny = where(keep, log(w), 0)", head)
    x = np.random.default_rng(0).standard_normal((1, 2, 4))
    keep = np.array([[[True, False, True, True], [True, True, False, False]]])
    dx, _ = program.grad({"x": x, "keep": keep}, {})
    exps = np.where(keep, np.exp(x), 0)
    weights = exps / exps.sum(axis=-1, keepdims=True)
    expected = np.where(keep, 1 - keep.sum(axis=-1, keepdims=True) * weights, 0)
    np.testing.assert_allclose(dx["x"], expected, atol=1e-12)


def test_a_row_that_sees_no_key_has_no_gradient_and_spoils_none() -> None:
    text = """dims: {D: 3}
block:
  inputs: {q: [B, H, T, D], k: [B, H, T, D], v: [B, H, T, D], keep: {bool: [B, T, T]}}
  equations: |
    y = attend(q, k, v, keep=keep)
"""
    program = bg.compile(text)
    inputs, _ = program.sample(0, B=1, H=2, T=4)
    inputs["keep"][0, 1] = False
    y, back = program.vjp(inputs, {})
    dy = np.random.default_rng(1).standard_normal(y.shape)
    dx = back(dy).dx
    assert not y[:, :, 1].any()
    assert not dx["q"][:, :, 1].any()
    assert all(np.isfinite(one).all() for one in dx.values())
    rows = [0, 2, 3]
    one = {**inputs, "q": inputs["q"][:, :, rows], "keep": inputs["keep"][:, rows]}
    open_rows = bg.compile(text.replace("q: [B, H, T, D]", "q: [B, H, S, D]").replace("[B, T, T]", "[B, S, T]"))
    _, other = open_rows.vjp(one, {})
    for name in ("k", "v"):
        np.testing.assert_allclose(dx[name], other(dy[:, :, rows]).dx[name], atol=1e-14)


TIED = """dims: {C: 6, V: 5}
model:
  inputs: {tokens: {ids: [B, T], below: V}}
  parts: {embed: {kind: embedding, size: V, width: C, init: normal(1)}}
  equations: |
    x = embed(tokens)
    logits = x @ embed.table.T
"""


def test_a_tied_table_is_one_parameter_with_the_gradient_of_both_uses() -> None:
    program = bg.compile(TIED)
    tokens, params = program.sample(0, B=2, T=3)
    assert list(params) == ["embed.table"]
    rng = np.random.default_rng(1)
    table, dy = params["embed.table"], rng.standard_normal((2, 3, 5))
    _, dparams = program.grad(tokens, params, dy)
    as_head = np.einsum("btv,btc->vc", dy, table[tokens])
    as_input = np.zeros_like(table)
    np.add.at(as_input, tokens, dy @ table)
    np.testing.assert_allclose(dparams["embed.table"], as_head + as_input, atol=1e-12)
    changed = table.copy()
    changed[tokens[0, 0], 0] += 1
    again = program(tokens, {"embed.table": changed})
    np.testing.assert_allclose(again, changed[tokens] @ changed.T, atol=1e-12)


def test_layers_that_share_their_parameters_add_up_their_gradients() -> None:
    text = """dims: {C: 3}
blocks: {b: {parts: {f: linear}, equations: x = x + f(x)}}
model:
  parts: {layers: {kind: stack, of: b, repeat: 2, share: true}}
  equations: |
    x = layers(x)
"""
    program = bg.compile(text)
    x, params = program.sample(0, B=1, T=2)
    ((name, weight),) = params.items()
    _, dparams = program.grad(x, params)
    y = x + x @ weight
    ones = np.ones_like(x)
    middle = ones + ones @ weight.T
    expected = np.einsum("btc,btd->cd", y, ones) + np.einsum("btc,btd->cd", x, middle)
    np.testing.assert_allclose(dparams[name], expected, atol=1e-12)


def test_stop_gradient_stops() -> None:
    assert gradients("y = x * stop_gradient(x)", np.array([3.0])).tolist() == [3.0]


def test_backward_twice_gives_the_same_bit_for_bit() -> None:
    program = bg.compile(SPECS / "pre_norm.yaml")
    x, params = program.sample(0, B=1, T=4)
    y, back = program.vjp(x, params)
    first, second = back(np.ones_like(y) + y), back(np.ones_like(y) + y)
    assert np.array_equal(first.dx, second.dx)
    assert all(np.array_equal(first.dparams[name], second.dparams[name]) for name in params)


STACKS = ["pre_norm_stack", "deepnorm", "layouts/value_residual", "layouts/hyper_connections", "layouts/looped_depth"]
STACKS += ["layouts/decoder_cross_attention", "layouts/shared_layers", "pre_norm"]


@pytest.mark.parametrize("name", STACKS)
def test_freed_and_recomputed_activations_give_the_same_gradients_bit_for_bit(name: str) -> None:
    program = bg.compile(SPECS / f"{name}.yaml", plan=False)
    x, params = program.sample(1, B=1, T=3)
    y, back = program.vjp(x, params, named=True)
    dy = np.random.default_rng(2).standard_normal(y.shape)
    kept = back(dy)
    freed = program.grad(x, params, dy, named=True)
    again = program.grad(x, params, dy, named=True, recompute="layers")
    for other in (freed, again):
        assert other.dvalues.keys() == kept.dvalues.keys()
        for found, expected in ((other.dparams, kept.dparams), (other.dvalues, kept.dvalues)):
            assert all(np.array_equal(found[key], expected[key]) for key in expected)
    inputs = kept.dx if isinstance(kept.dx, dict) else {"x": kept.dx}
    others = again.dx if isinstance(again.dx, dict) else {"x": again.dx}
    assert all(np.array_equal(inputs[key], others[key]) for key in inputs)


def peak(work: Any) -> int:
    work()
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_activations_are_freed_on_the_way_and_recomputing_keeps_layer_inputs_only() -> None:
    program = bg.compile(SPECS / "pre_norm_stack.yaml", C=16, N=24, plan=False)
    x, params = program.sample(0, B=4, T=64)
    dy = np.ones_like(x)
    given = {id(array) for array in (x, *params.values())}
    kept = owned(array for array in program.tape(x, params).slots.values() if id(array) not in given)
    whole = peak(lambda: program.vjp(x, params)[1](dy))
    freed = peak(lambda: program.grad(x, params, dy))
    recomputed = peak(lambda: program.grad(x, params, dy, recompute="layers"))
    weights = sum(array.nbytes for array in params.values())
    assert freed < 1.1 * kept
    assert whole > freed
    # one stream per layer, the activations and gradients of one or two layers, and the gradients of the parameters
    assert recomputed < 24 * x.nbytes + kept / 24 * 3 + weights
    assert recomputed < freed / 3


def test_activations_are_gone_when_a_tape_is_used_up() -> None:
    program = bg.compile(SPECS / "pre_norm.yaml")
    x, params = program.sample(0, B=1, T=3)
    tape = program.tape(x, params)
    made = {slot for call in tape.calls for slot in call.outputs}
    (port,) = program.flat.outputs
    tape.use_up({port.value: np.ones_like(x)}, ())
    assert not made & tape.slots.keys()


def test_backward_goes_through_thousands_of_equations() -> None:
    assert sys.getrecursionlimit() <= 1000
    equations = 5000
    lines = "\n".join("x = x + f(x)" for _ in range(equations))
    program = compiled(lines, "parts: {f: {kind: linear, init: 0.0}}", "C: 2")
    x, params = program.sample(0, B=1, T=1)
    dx, dparams = program.grad(x, params)
    assert np.array_equal(dx, np.ones_like(x))
    np.testing.assert_allclose(dparams["f.W"], equations * x[0, 0][:, None] * np.ones(2))


def test_backward_goes_through_a_stack_of_400_blocks() -> None:
    program = bg.compile(SPECS / "pre_norm_stack.yaml", C=4, H=1, N=400)
    x, params = program.sample(0, B=1, T=1)
    for how in (None, "layers"):
        dx, dparams = program.grad(x, params, x, recompute=how)
        assert np.isfinite(dx).all()
        assert len(dparams) == len(params)


def test_the_gradient_of_a_value_is_called_d_and_its_name() -> None:
    names = ["x", "x.2", "layers.3.attention.query", "layers.0", "moe.experts.0"]
    told = ["dx", "dx.2", "layers.3.attention.dquery", "dlayers.0", "moe.dexperts.0"]
    assert [gradient_name(name) for name in names] == told


def test_named_gradients_are_there_only_when_asked_for() -> None:
    program = compiled("h = 3*x\ny = h*h")
    x = np.full((1, 1, 4), 2.0)
    y, back = program.vjp(x, {}, named=True)
    values = back(np.ones_like(y)).dvalues
    assert values["dh"].tolist() == [[[12.0] * 4]]
    assert values["dx"].tolist() == [[[36.0] * 4]]
    assert program.vjp(x, {})[1](np.ones_like(y)).dvalues == {}


def test_ids_and_booleans_have_no_gradient() -> None:
    program = bg.compile(TIED)
    tokens, params = program.sample(0)
    dx, _ = program.grad({"tokens": tokens}, params)
    assert dx == {}
    assert program.grad(tokens, params).dx is None


def test_several_outputs_take_cotangents_by_name_and_those_left_out_are_zero() -> None:
    program = compiled("a = 2*x\nb = 3*x", "outputs: [a, b]")
    x = np.ones((1, 1, 4))
    _, back = program.vjp(x, {})
    assert back({"a": x}).dx.tolist() == (2 * x).tolist()
    assert back({"a": x, "b": x}).dx.tolist() == (5 * x).tolist()


@pytest.mark.parametrize(
    ("dy", "message"),
    [
        (np.ones((1, 1, 3)), r"the cotangent of `a` has shape \(1, 1, 3\), and the output has \(1, 1, 4\)"),
        ({"c": np.ones((1, 1, 4))}, "there is no output `c`"),
        (np.ones((1, 1, 4), dtype=complex), "is of type complex128"),
    ],
)
def test_a_cotangent_that_does_not_fit_is_refused(dy: Any, message: str) -> None:
    program = compiled("a = 2*x")
    _, back = program.vjp(np.ones((1, 1, 4)), {})
    with pytest.raises(bg.InputError, match=message):
        back(dy)


def test_one_cotangent_for_two_outputs_is_refused() -> None:
    _, back = compiled("a = 2*x\nb = 3*x", "outputs: [a, b]").vjp(np.ones((1, 1, 4)), {})
    with pytest.raises(bg.InputError, match="there are 2 outputs, and one cotangent is given"):
        back(np.ones((1, 1, 4)))


def test_only_layers_can_be_recomputed() -> None:
    with pytest.raises(bg.InputError, match="`blocks` cannot be recomputed"):
        compiled("a = 2*x").grad(np.ones((1, 1, 4)), {}, recompute="blocks")  # type: ignore[arg-type]
