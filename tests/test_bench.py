"""The table of benchmarks: its contenders exist and compute one and the same, its figures are judged rightly.

Nothing here asserts a time.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from tests.bench import cases, check, startup, turns, worker
from tests.bench.contenders import Work, floor, lesson, own
from tests.bench.rows import FLOOR, OWN, ROWS, TORCH, Bound
from tests.bench.table import details, verdict
from tests.bench.turns import Contender

SMALL = cases.Case(cases.gpt_block("causal", 32, 4), 7, batch=2, heads=4, causal=True)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_contenders_that_exist_and_compares_ours_with_others(name: str) -> None:
    row = ROWS[name]
    for contender in row.contenders.values():
        module, _, function = contender.partition(".")
        assert callable(getattr(importlib.import_module(f"tests.bench.contenders.{module}"), function))
    assert OWN in row.contenders
    assert {bound.against for bound in row.bounds} < row.contenders.keys()


def test_the_arrays_are_in_float32_and_hold_no_zeros() -> None:
    inputs, params = SMALL.draw()
    for array in [*inputs.values(), *params.values()]:
        assert array.dtype == np.float32
        assert (array != 0).all()


@pytest.mark.parametrize("contender", [lesson.given, lesson.multiplied])
def test_the_lesson_and_a_compiled_spec_compute_the_same(contender: Any) -> None:
    inputs, params = SMALL.draw()
    results = [make(SMALL, params).call(**inputs) for make in (contender, own.plan)]
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_the_block_in_primitive_ops_is_the_block_of_kinds(mask: str) -> None:
    dims = {"C": 768, "H": 12}
    program, written = bg.compile(cases.gpt_block(mask), **dims), bg.compile(cases.gpt_block_spelled(mask), **dims)
    x, params = program.sample(0, B=1, T=5)
    same = dict(zip(written.parameters, params.values(), strict=True))
    np.testing.assert_allclose(written(x, same), program(x, params), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("backward", "times"), [(False, 1), (True, 3)])
def test_the_floor_has_the_products_that_a_block_needs(backward: bool, times: int) -> None:
    case = cases.Case(cases.gpt_block("full", 32, 4), 8, batch=2, heads=4, backward=backward)
    found = floor.products(case, case.draw()[1])
    flops = sum(2 * one.a.size * one.b.shape[-1] for one in found)
    weights, scores = 12 * 32 * 32, 2 * 8 * 32  # of one position: all matrices; its scores and their use
    assert flops == times * 2 * 16 * (weights + scores)


def test_under_the_causal_mask_the_floor_has_only_blocks_of_scores_that_are_seen() -> None:
    case = replace(cases.CASES["1x1024"], spec=cases.gpt_block("causal", 24, 12))
    seen = [one.out.shape for one in floor.products(case, case.draw()[1]) if one.out.ndim == 3 and one.b.shape[1] == 2]
    assert seen == [(12, 256, 256), (12, 256, 512), (12, 256, 768), (12, 256, 1024)]


def test_halves_of_products_are_the_whole() -> None:
    rng = np.random.default_rng(0)
    for shape in ((6, 4), (5, 6, 4)):
        a, b = rng.standard_normal(shape), rng.standard_normal((*shape[:-2], 4, 7))
        for split in (floor.Product.rows, floor.Product.columns):
            whole = floor.Product(a, b, np.zeros((*shape[:-1], 7)))
            for half in split(whole):
                half.compute()
            np.testing.assert_allclose(whole.out, a @ b)


def told(ours: float, **theirs: float) -> dict[str, Contender]:
    found = {name.replace("_", " "): Contender(name, None, figures=[figure]) for name, figure in theirs.items()}
    return {**found, OWN: Contender(OWN, None, figures=[ours])}


@pytest.mark.parametrize(
    ("ours", "words"), [(1.1, "1.10 met, goal too"), (1.2, "1.20 met"), (1.3, "1.30 missed")], ids=str
)
def test_a_figure_above_its_bound_is_told_as_missed(ours: float, words: str) -> None:
    assert verdict(Bound(FLOOR, 1.25, 1.15), told(ours, floor=1.0)) == words


def test_the_figure_is_the_median_of_the_rounds() -> None:
    assert Contender("a", None, figures=[9.0, 1.0, 2.0]).figure == 2.0


def test_a_row_whose_library_is_missing_says_so() -> None:
    found = told(1.0, floor=1.0)
    found[TORCH] = Contender(TORCH, None, missing="No module named 'torch'")
    lines = list(details(ROWS["1x128"], {**found, "ONNX Runtime": found[FLOOR]}))
    assert "    torch eager              missing: No module named 'torch'" in lines
    assert "  against torch eager, at most 0.6: not measured: No module named 'torch'" in lines


def test_contenders_that_compute_something_else_are_refused(tmp_path: Path) -> None:
    class Fixed(Contender):
        def ask(self, question: str) -> Any:
            np.savez(question.partition(" ")[2], y=np.array(self.figures))

    turns.same([Fixed("one", None, figures=[1.0, 2.0]), Fixed("two", None, figures=[1.0, 2.0001])], tmp_path)
    with pytest.raises(AssertionError, match="other: y"):
        turns.same([Fixed("one", None, figures=[1.0, 2.0]), Fixed("other", None, figures=[1.0, 2.001])], tmp_path)


def test_workers_run_without_what_forces_a_kernel_on_the_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*turns.FORCED, "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    assert not {*turns.FORCED, "OPENBLAS_NUM_THREADS"} & turns.environment().keys()


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the peak of a process's memory"
)
def test_the_peak_of_a_call_counts_what_it_holds_at_once() -> None:
    def call(x: Any, dy: Any) -> Any:
        return np.ones((x.shape[1], 500_000)).sum(axis=0)

    given = {"x": np.ones((1, 20)), "dy": np.ones((1, 20))}
    assert 0.95 * 80e6 < worker.peak(Work(call), given) < 1.1 * 80e6


def test_the_spec_whose_start_is_timed_has_forty_lines_and_nothing_to_find() -> None:
    assert len(startup.FORTY.splitlines()) == 40
    assert bg.check(startup.FORTY).findings == ()


@pytest.mark.parametrize("made", [check.repeated, check.written_out, check.stacked, check.different])
def test_the_layers_whose_check_is_timed_have_nothing_to_find(made: Any) -> None:
    assert bg.check(made(3)).findings == ()
