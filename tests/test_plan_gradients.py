"""Gradients by the plan are those of the plain interpreter, whatever the spec, the sizes and the threads."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.adjoint.outer import Outer
from blockgraph.dims import Dim
from blockgraph.op import Op, Type
from blockgraph.ops.activations import GeluTanh
from blockgraph.ops.arithmetic import Add, Multiply
from blockgraph.ops.matmul import MatMul, Transpose
from blockgraph.ops.rope import Rope
from blockgraph.ops.softmax import Softmax
from blockgraph.plan import again, compiled, segments, stages
from blockgraph.plan.compiled import Plan
from blockgraph.plan.kernels import attention, attention_backward
from blockgraph.plan.planner import Ready
from blockgraph.plan.rows import pointwise
from tests.agreement import differences, with_plan
from tests.made import sizes, spec
from tests.small_specs import FILES, NAMES, small, stirred_run


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of our own however little there is to do, and nothing kept that can be made again."""
    monkeypatch.setattr(compiled, "MIN_FLOPS", 0)
    monkeypatch.setattr(compiled, "MIN_ROWS", 0)
    monkeypatch.setattr(again, "LEAST", 0)
    monkeypatch.setattr(stages, "LARGE", 0)
    monkeypatch.setattr(attention, "SMALL", 0)
    for kernels in (attention, attention_backward):
        monkeypatch.setattr(kernels, "QUERIES", 5)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_spec_has_the_gradients_of_the_interpreter(path: Path, threads: int, team: None) -> None:
    program = small(path)
    x, params = stirred_run(program, B=2)
    assert not differences(program, x, params, threads)


@pytest.mark.parametrize("number", range(50))
def test_specs_made_at_random_have_the_gradients_of_the_interpreter(number: int, team: None) -> None:
    rng = random.Random(f"plan gradients {number}")
    made = spec(rng)
    program = bg.compile(made.text, **sizes(rng))
    x, params = program.sample(number, "float32" if number % 2 else "float64", B=rng.randint(1, 3), T=rng.randint(1, 9))
    assert not differences(program, x, params, threads=1 + number % 3)


def block(attention: dict[str, Any], **dims: int) -> bg.Program:
    sublayers = [
        {"kind": "attention", "heads": "H", **attention},
        {"kind": "feed_forward", "hidden": "4*C", "activation": "gelu_tanh"},
    ]
    body = {"norm": "layer_norm", "placement": "pre", "sublayers": sublayers}
    return bg.compile({"dims": {"C": 32, "H": 4, **dims}, "block": body})


MASKS: list[dict[str, Any]] = [
    {"mask": "causal"},
    {"mask": "full"},
    {"mask": "causal", "window": 70},
    {"mask": "full", "window": 5},
    {"mask": "causal", "kv_heads": 2},
    {"mask": "causal", "kv_heads": 1, "softcap": 3},
    {"mask": "causal", "alibi": True, "bias": True},
    {"mask": "causal", "sinks": True},
    {"mask": "causal", "rotary": {"style": "pairs"}, "kv_heads": 2},
]


@pytest.mark.parametrize("steps", [1, 255, 257, 600])
@pytest.mark.parametrize("attention", MASKS, ids=str)
def test_attention_in_blocks_has_the_gradients_of_attention(attention: dict[str, Any], steps: int, team: None) -> None:
    program = block(attention)
    x, params = program.sample(3, B=1 + steps % 2, T=steps)
    assert not differences(program, x, params, threads=1 + steps % 3)


FEED_FORWARDS: list[tuple[dict[str, Any], int]] = [
    ({"kind": "feed_forward", "activation": "gelu_tanh"}, 1),
    ({"kind": "feed_forward", "activation": "relu"}, 1),
    ({"kind": "feed_forward", "activation": "silu", "bias": False}, 1),
    ({"kind": "gated_feed_forward", "activation": "silu"}, 2),
    ({"kind": "gated_feed_forward", "activation": "gelu_tanh"}, 2),
]


@pytest.mark.parametrize(("part", "count"), FEED_FORWARDS, ids=str)
def test_of_the_hidden_layer_nothing_is_kept_that_can_be_made_again(
    part: dict[str, Any], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "LEAST", 0)
    assert kept_for_the_way_back(part, 24) == count


@pytest.mark.parametrize(("slow", "hidden"), [(1, 1), (4, 2)])
def test_an_activation_is_made_again_only_if_it_is_larger_than_what_is_made_by_a_product(
    slow: int, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "LEAST", 2 * 5 * 8 * 8)
    monkeypatch.setattr(again, "SLOW", slow)
    part = {"kind": "feed_forward", "activation": "gelu_tanh"}
    assert kept_for_the_way_back(part, 24) == hidden
    assert kept_for_the_way_back(part, 8) == 1


def test_no_value_is_made_again_in_more_steps_than_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "LEAST", 0)
    lines = [line for number in range(3 * again.MOST) for line in ("z = 0.5*z + b", f"x = x + z @ W{number}")]
    params: dict[str, Any] = {"b": ["C"], **{f"W{number}": ["C", "C"] for number in range(3 * again.MOST)}}
    program = bg.compile({"dims": {"C": 8}, "block": {"params": params, "equations": "\n".join(["z = x", *lines])}})
    x, values = program.sample(0, B=2, T=5)
    found = program.grad(x, values)
    (ready,) = program._differentiators[False].planner._plans.values()
    recipes = [step.op.recipe for stage in ready.plan.stages for step in stage.steps if isinstance(step.op, Outer)]
    assert max(map(len, recipes)) == again.MOST
    wanted = bg.Program(program.spec, program.graph, plan=False).grad(x, values)
    np.testing.assert_allclose(found.dx, wanted.dx, rtol=1e-12)


def kept_for_the_way_back(part: dict[str, Any], width: int) -> int:
    """How many values of this width, of a layer of 8 with 24 inside, are there for gradients."""
    sublayers = [{**part, "hidden": "3*C"}]
    program = bg.compile({"dims": {"C": 8}, "block": {"norm": "rms_norm", "sublayers": sublayers}})
    x, params = program.sample(0, B=2, T=5)
    program.grad(x, params)
    (ready,) = program._differentiators[False].planner._plans.values()
    plan = ready.plan
    before = {value for stage in plan.stages[: plan.pause] for step in stage.steps for value in step.outputs}
    read = {value for stage in plan.stages[plan.pause :] for step in stage.steps for value in step.inputs}
    return sum(plan.steps.shapes[value] == (2, 5, width) for value in before & read)


def test_a_product_that_gains_nothing_in_a_chain_waits_until_memory_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "LEAST", 0)
    shared = []
    for least in (1 << 60, 0):
        monkeypatch.setattr(stages, "LARGE", least)
        program = block({"mask": "causal"}, C=128)
        x, params = program.sample(0, B=1, T=200)
        program.grad(x, params)
        (ready,) = program._differentiators[False].planner._plans.values()
        shared.append(ready.plan.shared)
    assert shared[1] < shared[0] - x.nbytes // 2


def test_wide_blocks_have_fewer_rows_in_a_run_for_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    widest = []
    for most in (1 << 60, 0):
        monkeypatch.setattr(segments, "LOCAL", most)
        program = block({"mask": "causal"})
        x, params = program.sample(0, B=1, T=1024)
        assert not differences(program, x, params, threads=1)
        widest.append([widest_block(one.plan) for one in ready_plans(program, x, params)])
    (gradients, forward), (fewer, same) = widest
    assert fewer < 0.7 * gradients
    assert same == forward


def ready_plans(program: bg.Program, x: Any, params: dict[str, Any]) -> Iterator[Ready]:
    """What is ready for gradients, and for a run without."""
    program.grad(x, params)
    program(x, params)
    yield from program._differentiators[False].planner._plans.values()
    yield from program._planner._plans.values()


def widest_block(plan: Plan) -> int:
    """The most bytes that a block of rows holds."""
    return max(one.chain.local for stage in plan.work[0] for one in stage if isinstance(one, segments.GroupSegment))


def test_elements_at_the_same_place_are_told_from_those_that_mix() -> None:
    def answer(op: Op, *shapes: str) -> bool:
        types = tuple(Type(tuple(Dim(int(a)) if a.isdigit() else Dim(a) for a in shape.split())) for shape in shapes)
        return pointwise(op, types, op.infer(*types))

    assert answer(GeluTanh(), "B T C")
    assert answer(Multiply(), "B T C", "C")
    assert answer(Add(stretch=True), "B T C", "T C")
    assert not answer(Softmax(), "B T C")
    assert not answer(Transpose(), "T T")
    assert not answer(Rope("half"), "B T C")
    assert not answer(MatMul(), "B T C", "C C")


@pytest.mark.parametrize("shape", [{"B": 0, "T": 4}, {"B": 2, "T": 0}])
def test_inputs_of_length_zero_have_gradients_of_zero(shape: dict[str, int]) -> None:
    program = block({"mask": "full"})
    x, params = program.sample(3, **shape)
    assert not differences(program, x, params)


def test_back_may_be_called_again_with_another_cotangent(team: None) -> None:
    program = with_plan(block({"mask": "causal"}), True, 2)
    x, params = program.sample(3, B=1, T=300)
    y, back = program.vjp(x, params)
    dy = np.random.default_rng(0).standard_normal(y.shape)
    first, doubled, again = back(dy), back(2 * dy), back(dy)
    np.testing.assert_allclose(doubled.dx, 2 * first.dx, rtol=1e-12, atol=1e-14)
    assert np.array_equal(first.dx, again.dx)
    assert all(np.array_equal(one, again.dparams[name]) for name, one in first.dparams.items())


def test_two_runs_at_once_do_not_touch_each_other() -> None:
    program = block({"mask": "causal"})
    (x, params), (other, _) = program.sample(3, T=40), program.sample(4, T=40)
    y, back = program.vjp(x, params)
    z, also = program.vjp(other, params)
    late, early = also(np.ones_like(z)), back(np.ones_like(y))
    for inputs, found in ((x, early), (other, late)):
        assert np.array_equal(program.grad(inputs, params, "sum").dx, found.dx)


def test_the_memory_of_a_run_is_used_again_when_it_is_forgotten() -> None:
    program = block({"mask": "causal"})
    x, params = program.sample(3, T=40)
    spaces = set()
    for _ in range(4):
        _, back = program.vjp(x, params)
        spaces.add(id(back.__closure__[-1].cell_contents.__self__.space))
        del back
        gc.collect()
    assert len(spaces) == 1


def test_every_gradient_is_an_array_of_its_own() -> None:
    program = bg.compile({"block": {"params": {"p": ["C"]}, "equations": "y = x + p + 0 * x"}, "dims": {"C": 4}})
    x, params = program.sample(0)
    dy = np.ones_like(x)
    y, back = program.vjp(x, params)
    found = back(dy)
    arrays = [dy, x, y, found.dx, *params.values(), *found.dparams.values()]
    assert not any(np.may_share_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def test_several_threads_may_differentiate_one_program(team: None) -> None:
    program = with_plan(block({"mask": "causal"}), True, 2)
    params = program.init(0)
    inputs = [program.sample(seed, B=1, T=200)[0] for seed in range(4)]
    expected = [program.grad(x, params, "sum").dx for x in inputs]
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(5):
            if not np.array_equal(program.grad(inputs[number], params, "sum").dx, expected[number]):
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert not wrong
