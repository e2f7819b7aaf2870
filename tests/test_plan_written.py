"""Calls that are written once serve every later run, whatever arrays it brings, and hold none of them."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.plan import compiled
from blockgraph.plan.segments import GroupSegment, TaskSegment
from blockgraph.plan.written import joined, stretches, written

SPEC = {
    "dims": {"C": 32, "H": 4},
    "block": {
        "norm": "layer_norm",
        "sublayers": [
            {"kind": "attention", "heads": "H", "mask": "causal"},
            {"kind": "feed_forward", "hidden": "4*C", "activation": "silu"},
        ],
    },
}
STEPS = 300
"""Positions for which an input is too large to be copied."""


@pytest.fixture(params=[1, 2])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bg.Program:
    """A block that runs on one thread or two, however little there is to do."""
    monkeypatch.setattr(compiled, "MIN_FLOPS", 0)
    monkeypatch.setattr(compiled, "MIN_ROWS", 0)
    return bg.compile(SPEC, threads=request.param)


def inputs(number: int) -> Any:
    return np.random.default_rng(number).standard_normal((1, STEPS, 32))


def test_every_later_run_computes_with_its_own_arrays(program: bg.Program) -> None:
    reference = bg.compile(SPEC, plan=False)
    _, params = program.sample(0, B=1, T=STEPS)
    kept = [(x, program(x, params)) for x in map(inputs, range(4))]
    for x, y in kept:
        np.testing.assert_allclose(y, reference(x, params), rtol=1e-12, atol=1e-12)


def test_gradients_of_every_later_run_are_those_of_its_own_arrays(program: bg.Program) -> None:
    reference = bg.compile(SPEC, plan=False)
    _, params = program.sample(0, B=1, T=STEPS)
    for number in range(3):
        x, dy = inputs(number), inputs(number + 10)
        found, wanted = program.grad(x, params, dy), reference.grad(x, params, dy)
        np.testing.assert_allclose(found.dx, wanted.dx, rtol=1e-10, atol=1e-12)


def test_nothing_is_written_twice(program: bg.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _, params = program.sample(0, B=1, T=STEPS)
    program(inputs(0), params)
    for segment in (GroupSegment, TaskSegment):
        monkeypatch.setattr(segment, "write", lambda *given: pytest.fail("a segment was written again"))
    y = program(inputs(1), params)
    np.testing.assert_allclose(y, bg.compile(SPEC, plan=False)(inputs(1), params), rtol=1e-12, atol=1e-12)


FORWARDS = {
    "cumsum": 'y = cumsum(x, "b [t] c")',
    "concat": "y = concat(x, x)*concat(x, x)",
    "where": "y = where(x > 0, x, 2*x)",
    "power": "y = (x*x)**1.5",
    "shift": "y = shift(x, 1) + x",
    "no key": 'y = merge(attend(heads(x, 4), heads(x[:, :7], 4), heads(x[:, :7], 4), mask="causal"))',
}


@pytest.mark.parametrize("name", FORWARDS)
def test_calls_that_cannot_be_kept_are_made_on_the_arrays_of_their_run(name: str) -> None:
    spec = {"dims": {"C": 32}, "block": {"equations": FORWARDS[name]}}
    planned, plain = bg.compile(spec), bg.compile(spec, plan=False)
    kept = [(x, planned(x, {}), planned.grad(x, {}).dx) for x in map(inputs, range(5))]
    for x, y, dx in kept:
        np.testing.assert_allclose(y, plain(x, {}), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(dx, plain.grad(x, {}).dx, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FORWARDS)
def test_every_way_back_takes_its_own_cotangent(name: str) -> None:
    spec = {"dims": {"C": 32}, "block": {"equations": FORWARDS[name]}}
    planned, plain = bg.compile(spec), bg.compile(spec, plan=False)
    x = inputs(0)
    y, back = planned.vjp(x, {})
    _, reference = plain.vjp(x, {})
    cotangents = [np.random.default_rng(seed).standard_normal(y.shape) for seed in range(5)]
    for dy, found in [(dy, back(dy).dx) for dy in cotangents]:
        np.testing.assert_allclose(found, reference(dy).dx, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "equation", ["y = x[..., :2]", "y = x[:, None]", 'y = rearrange(x, "b t (h d) -> b h t d", h=2)']
)
def test_gradients_come_where_the_way_there_has_nothing_to_compute(equation: str) -> None:
    spec = {"dims": {"C": 32}, "block": {"equations": equation}}
    planned, plain = bg.compile(spec), bg.compile(spec, plan=False)
    for number in range(3):
        np.testing.assert_array_equal(planned.grad(inputs(number), {}).dx, plain.grad(inputs(number), {}).dx)


@pytest.mark.parametrize("change", ["shape", "dtype", "writeable"])
def test_a_result_that_the_caller_changed_is_not_handed_out_again(change: str, program: bg.Program) -> None:
    x, params = program.sample(0, B=1, T=STEPS)
    wanted = program(x, params).copy()
    for _ in range(3):
        y = program(x, params)
        if change == "shape":
            y.shape = (-1,)
        elif change == "dtype":
            y.dtype = np.int64  # type: ignore[misc]
        else:
            y.flags.writeable = False
        del y
        np.testing.assert_array_equal(program(x, params), wanted)


def test_no_array_of_the_caller_is_held_after_a_run(program: bg.Program) -> None:
    _, params = program.sample(0, B=1, T=STEPS)
    for number in range(3):
        x = inputs(number)
        watched = weakref.ref(x)
        program(x, params)
        del x
        assert watched() is None


def test_an_input_in_the_memory_of_a_parameter_is_computed_with_rightly(program: bg.Program) -> None:
    reference = bg.compile(SPEC, plan=False)
    _, params = program.sample(0, B=1, T=STEPS)
    store = np.random.default_rng(5).standard_normal(STEPS * 32) * 0.1
    params = dict(params)
    params["attention.Wq"] = store[: 32 * 32].reshape(32, 32)
    first, second = store.reshape(1, STEPS, 32), inputs(6)
    for x in (first, second, first):
        np.testing.assert_allclose(program(x, params), reference(x, params), rtol=1e-12, atol=1e-12)


def test_two_inputs_in_the_same_memory_are_still_two() -> None:
    spec = {
        "dims": {"C": 32},
        "model": {"inputs": {"a": ["B", "T", "C"], "b": ["B", "T", "C"]}, "equations": "y = a - b*b"},
    }
    program = bg.compile(spec)
    same, other = inputs(0), inputs(1)
    for a, b in ((same, same), (same, other), (other, same)):
        np.testing.assert_array_equal(program({"a": a, "b": b}, {}), a - b * b)


def test_arguments_are_exchanged_by_place_and_let_go() -> None:
    first, second, out = np.arange(6.0), np.arange(6.0) * 10, np.zeros(3)
    stay = np.ones(3)
    found = written([(np.add, (first[::2], stay, out)), (np.add, (out, out, out))], stretches({7: first}, [stay]))
    assert found is not None
    assert [hole.value for hole in found.holes] == [7]
    joined([found]).run({7: second}.__getitem__)
    np.testing.assert_array_equal(out, 2 * (second[::2] + 1))
    found.empty()
    assert found.calls[0][1][0] is None


def test_what_cannot_be_exchanged_is_not_kept() -> None:
    x, y = np.arange(4.0), np.zeros(4)
    where = stretches({1: x}, [y])
    assert written([(x.fill, (0,))], where) is None
    assert written([(np.concatenate, ((x[:2], x[2:]), 0, y))], where) is None
    assert written([(np.negative, (y, y))], where) is not None
    assert stretches({1: x}, [x[1:2]]) is None
    assert stretches({1: x, 2: x[3:]}, []) is None
    assert stretches({1: x[::2]}, []) is None
    assert stretches({1: x, 2: y}, [np.zeros(0)]) is not None
