"""The execution plan gives the numbers of the plain interpreter, whatever the spec, the sizes and the threads."""

from __future__ import annotations

import os
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.plan import compiled
from blockgraph.plan.blas import blas
from blockgraph.plan.kernels import attention
from blockgraph.plan.memory import Life, place
from tests.agreement import compare, main, scattered, stirred
from tests.bench import cases

ROOT = Path(__file__).parent.parent
SPECS = sorted((ROOT / "specs").glob("*.yaml")) + sorted((ROOT / "specs" / "layouts").glob("*.yaml"))
SHAPES: list[dict[str, int]] = [{"B": 2, "T": 7}, {"B": 1, "T": 1}, {"B": 3, "T": 33}]


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of our own however little there is to do, and attention in many blocks that look at their scores."""
    monkeypatch.setattr(compiled, "MIN_FLOPS", 0)
    monkeypatch.setattr(compiled, "MIN_ROWS", 0)
    monkeypatch.setattr(attention, "SMALL", 0)
    monkeypatch.setattr(attention, "QUERIES", 5)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_plan_and_interpreter_agree_on_every_spec_and_every_named_value(path: Path, dtype: str, team: None) -> None:
    program = bg.compile(path)
    for number, shape in enumerate(SHAPES):
        x, params = program.sample(1, dtype, **shape)
        assert not compare(program, x, stirred(params), dtype, threads=1 + number % 2)


def test_plan_and_interpreter_agree_on_specs_made_at_random(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(50) == 0
    assert capsys.readouterr().out == "50 specs, 0 differences, 0 where a rounding moves the interpreter as far\n"


def block(mask: str = "causal", **dims: int) -> Any:
    sublayers = [
        {"kind": "attention", "heads": "H", "mask": mask},
        {"kind": "feed_forward", "hidden": "4*C", "activation": "gelu_tanh"},
    ]
    sizes = {"C": 32, "H": 4, **dims}
    return bg.compile({"dims": sizes, "block": {"norm": "layer_norm", "placement": "pre", "sublayers": sublayers}})


@pytest.mark.parametrize("steps", [255, 256, 257, 700])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_they_agree_when_rows_do_not_fill_the_last_block(steps: int, threads: int, team: None) -> None:
    program = block()
    x, params = program.sample(3, B=1, T=steps)
    assert not compare(program, x, stirred(params), "float64", threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_they_agree_on_arrays_that_are_not_contiguous(threads: int, team: None) -> None:
    for path in SPECS:
        program = bg.compile(path)
        x, params = program.sample(3)
        loose = {name: scattered(array) for name, array in stirred(params).items()}
        assert not compare(program, scattered(x), loose, "float64", threads), path.stem


@pytest.mark.parametrize("shape", [{"B": 0, "T": 4}, {"B": 2, "T": 0}])
def test_they_agree_on_inputs_of_length_zero(shape: dict[str, int]) -> None:
    program = block("full")
    x, params = program.sample(3, **shape)
    assert not compare(program, x, params, "float64")


@pytest.mark.parametrize("plan", [True, False])
def test_written_out_softmax_and_maxima_of_nothing_are_no_fault(plan: bool) -> None:
    equations = """
    s = softmax(einsum("b t c, b s c -> b t s", x, x), mask="causal")
    top = max(x, "b t c -> b 1 c")
    y = einsum("b t s, b s c -> b t c", s, x) + top - min(x, "b t c -> b 1 c")
    """
    program = bg.compile({"dims": {"C": 4}, "block": {"equations": equations}}, plan=plan)
    assert program(np.zeros((2, 0, 4)), {}).shape == (2, 0, 4)


def test_a_second_call_sees_other_inputs_and_parameters_changed_in_place() -> None:
    program, plain = block(), block()
    plain = bg.Program(plain.spec, plain.graph, plan=False)
    x, params = program.sample(3, T=300)
    program(x, params)
    for name in ("attention.Wq", "feed_forward.b1", "norm2.gamma"):
        params[name] += 0.5
        np.testing.assert_allclose(program(x, params), plain(x, params), rtol=1e-12, atol=1e-13)
    params["attention.Wo"] = params["attention.Wo"] * 2
    np.testing.assert_allclose(program(-x, params), plain(-x, params), rtol=1e-12, atol=1e-13)


def test_parameters_that_change_names_are_not_taken_for_those_of_the_last_call() -> None:
    program = block()
    x, params = program.sample(3)
    before = program(x, params)
    swapped = dict(zip(params, params.values(), strict=True))
    swapped["attention.Wq"], swapped["attention.Wk"] = params["attention.Wk"], params["attention.Wq"]
    renamed = {{"attention.Wq": "attention.Wk", "attention.Wk": "attention.Wq"}.get(n, n): a for n, a in params.items()}
    assert not np.array_equal(before, program(x, renamed))
    assert np.array_equal(program(x, swapped), program(x, renamed))


def test_a_fault_in_a_second_call_is_reported_as_in_the_first() -> None:
    program = block()
    x, params = program.sample(3)
    program(x, params)
    del params["attention.Wq"]
    with pytest.raises(bg.InputError, match=r"1 parameters are missing: attention\.Wq"):
        program(x, params)


def test_ids_out_of_range_are_reported_in_a_second_call_too() -> None:
    program = bg.compile(ROOT / "specs" / "models" / "gpt2.yaml", N=1, C=32, H=4, V=11, L=16)
    tokens, params = program.sample(3)
    program(tokens, params)
    with pytest.raises(bg.InputError, match="holds 11 at"):
        program(tokens + 11 - tokens.max() + (tokens == tokens.max()) * 0, params)


def test_results_are_the_callers_own() -> None:
    for steps in (4, 700):
        program = block()
        x, params = program.sample(3, T=steps)
        first = program(x, params)
        copy = first.copy()
        program(x + 1, params)
        assert np.array_equal(first, copy)
        first[:] = 0
        assert np.array_equal(program(x, params), copy)
        assert not any(np.may_share_memory(first, one) for one in (x, *params.values()))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_number_of_threads_gives_the_same_bits(threads: int, team: None) -> None:
    program = block()
    x, params = program.sample(3, "float32", T=400)
    one = bg.Program(program.spec, program.graph, threads=threads)
    other = bg.Program(program.spec, program.graph, threads=threads)
    assert np.array_equal(one(x, params), other(x.copy(), params))


def test_several_threads_may_call_one_program(team: None) -> None:
    program = bg.Program(*(lambda p: (p.spec, p.graph))(block()), threads=2)
    inputs = [program.sample(seed, T=300)[0] for seed in range(4)]
    params = program.init(0)
    expected = [program(x, params) for x in inputs]
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(5):
            if not np.array_equal(program(inputs[number], params), expected[number]):
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_fork_can_call_a_program_that_ran_before(team: None) -> None:
    program = bg.Program(*(lambda p: (p.spec, p.graph))(block()), threads=2)
    x, params = program.sample(3, T=300)
    expected = program(x, params)
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(program(x, params), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(blas() is None, reason="NumPy's BLAS has no known way to set its threads")
def test_the_threads_of_blas_are_restored_also_after_an_error(team: None, monkeypatch: pytest.MonkeyPatch) -> None:
    library = blas()
    assert library is not None
    before = library.get()
    program = bg.Program(*(lambda p: (p.spec, p.graph))(block()), threads=2)
    x, params = program.sample(3, T=300)
    during: list[int] = []

    def fails(*_: Any) -> None:
        during.append(library.get())
        raise OSError("no room")

    monkeypatch.setattr("blockgraph.plan.workspace.run_together", fails)
    with pytest.raises(OSError, match="no room"):
        program(x, params)
    assert during == [1]
    assert library.get() == before


def test_what_one_thread_of_a_team_raises_reaches_the_caller() -> None:
    from blockgraph.plan.team import run_together

    def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_together([[lambda: None, lambda: None], [fails, lambda: None]])
    seen: list[int] = []
    run_together([[lambda: seen.append(0)], [lambda: seen.append(1)]])
    assert sorted(seen) == [0, 1]


def test_the_hidden_rows_of_a_feed_forward_never_exist_whole() -> None:
    """64 MB of hidden values, were they all there at once; scores of all heads would be 268 MB."""
    program = bg.Program(*(lambda p: (p.spec, p.graph))(block(C=128, H=4)), threads=1)
    x, params = program.sample(0, "float32", B=1, T=4096)
    planner = program._planner
    plan = planner.ready(planner.request({"x": x}, params, {"B": 1, "T": 4096, "C": 128, "H": 4}, (), 1)).plan
    assert plan.bytes < 4 * 4 * 4096 * 128 + 4 * (1 << 20)


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_a_block_in_primitive_ops_has_the_plan_of_the_kinds(mask: str) -> None:
    plans = []
    for spec in (cases.gpt_block(mask), cases.gpt_block_spelled(mask)):
        program = bg.compile(spec)
        numbers, dtype = program.sizes(B=2, T=128), np.dtype("float32")
        plans.append(program._planner.ready(program._planner.foreseen({"x": dtype}, dtype, numbers)).plan)
    built_in, spelled = plans
    assert [type(step.op) for step in spelled.steps.steps] == [type(step.op) for step in built_in.steps.steps]
    assert (spelled.calls, spelled.bytes, len(spelled.stages)) == (built_in.calls, built_in.bytes, len(built_in.stages))


def test_the_number_of_threads_is_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    from blockgraph.plan.planner import thread_count

    monkeypatch.setenv("BLOCKGRAPH_THREADS", "3")
    assert (thread_count(), thread_count(5)) == (3, 5)
    monkeypatch.setenv("BLOCKGRAPH_THREADS", "none")
    assert thread_count() >= 1


def test_a_number_of_threads_beyond_all_reason_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from blockgraph.plan.planner import MAX_THREADS, thread_count

    monkeypatch.setenv("BLOCKGRAPH_THREADS", "99999")
    assert thread_count() == thread_count(5000) == MAX_THREADS
    assert thread_count(-1) == 1
    monkeypatch.setenv("BLOCKGRAPH_THREADS", "9" * 5000)
    assert 1 <= thread_count() <= MAX_THREADS


@pytest.mark.parametrize("score", [12.5, 24.5, -24.5])
def test_scores_whose_exponentials_float16_does_not_hold_are_shifted(score: float) -> None:
    equations = "y = merge(attend(heads(x, 1), heads(k, 1), heads(v, 1), scale=1))"
    axes = {name: ["B", "T", "C"] for name in "xkv"}
    program = bg.compile({"dims": {"C": 4}, "model": {"inputs": axes, "equations": equations}})
    ones = np.ones((1, 200, 4), np.float16)
    y = program({"x": ones, "k": ones * np.float16(score / 4), "v": ones * np.float16(3)}, {})
    np.testing.assert_array_equal(y, np.full_like(ones, 3))


def test_memory_of_a_result_is_used_again_when_nobody_has_it_any_more() -> None:
    program = block()
    x, params = program.sample(3, T=700)
    first = program(x, params)
    place, kept = first.ctypes.data, first.copy()
    part = first[:, :1]
    del first
    second = program(x + 1, params)
    assert second.ctypes.data != place, "a part of the first is still in use"
    assert np.array_equal(part, kept[:, :1])
    del part
    assert program(x, params).ctypes.data == place
    assert np.array_equal(second, program(x + 1, params))


def test_thousands_of_values_have_places_of_their_own_while_they_are_there() -> None:
    rng = np.random.default_rng(0)
    lives = [
        Life(key, int(rng.integers(1, 400)), int(first), int(first + rng.integers(0, 9)))
        for key, first in enumerate(rng.integers(0, 3000, 4000))
    ]
    places, size = place(lives)
    assert size < sum(life.bytes for life in lives) / 10
    for moment in range(0, 3000, 50):
        there = sorted(
            (places[one.key], places[one.key] + one.bytes) for one in lives if one.first <= moment <= one.last
        )
        assert all(stop <= start for (_, stop), (start, _) in pairwise(there))
