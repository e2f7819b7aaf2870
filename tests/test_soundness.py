"""Specs made at random: what checks clean keeps its promises, what is broken is reported, and proofs hold.

A tenth of what `python -m tests.soundness` runs; the figures are printed (`pytest -s`).
"""

from __future__ import annotations

import random

import blockgraph as bg
from tests import soundness
from tests.made import FAULTS, Made, spec

SPECS, BROKEN, PROOFS = 200, 100, 50


def test_specs_that_check_clean_run_with_the_promised_shapes() -> None:
    figures = soundness.clean(SPECS)
    soundness.told("Specs that fit", figures)
    assert not figures.wrong, figures.wrong[0]
    assert figures.counts["specs that check clean"] == SPECS
    assert figures.counts["bindings"] == SPECS * soundness.BINDINGS


def test_a_planted_fault_is_reported_and_its_line_is_named() -> None:
    figures = soundness.planted(BROKEN)
    soundness.told("Faults planted", figures)
    assert not figures.wrong, figures.wrong[0]
    assert figures.counts["reported"] == BROKEN
    assert figures.counts["changed line named"] >= 0.99 * BROKEN
    assert all(figures.counts[f"planted: {kind}"] for kind in FAULTS)


def test_proofs_of_causality_and_dead_parameters_agree_with_the_interpreter() -> None:
    figures = soundness.proofs(PROOFS)
    soundness.told("Proofs against the interpreter", figures)
    assert not figures.wrong, figures.wrong[0]
    assert figures.counts["causal: proved"] > PROOFS // 10
    assert figures.counts["causal: refuted"] > PROOFS // 10
    assert figures.counts["dead parameters"] > 0
    assert figures.counts["causal: not proved"] < PROOFS // 10


def test_the_generator_makes_the_same_specs_again() -> None:
    assert spec(random.Random(3)) == spec(random.Random(3))
    assert len({spec(random.Random(seed)).text for seed in range(50)}) > 45


def test_a_wrong_promise_would_be_noticed() -> None:
    turned = bg.compile("block: {inputs: {x: [T, B, C]}, equations: y = 2*x}\n").flat
    made = Made("dims: {C: 8, H: 2, G: 1, M: 3}\nblock: {equations: y = 2*x}\n", {}, ())
    rng = random.Random(5)
    assert any("promised" in soundness.bound(made, turned, rng, soundness.Figures()) for _ in range(5))
