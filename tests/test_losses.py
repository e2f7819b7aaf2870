"""Losses: values and gradients from their definitions, what is left out, and what does not fit."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.losses import Cotangent, CrossEntropy, Sum, loss_of

LOGITS = np.array([[[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]], [[3.0, -1.0, 2.0], [1e4, 0.0, -1e4]]])
TARGETS = np.array([[2, 0], [0, 1]])


def by_hand(rows: list[tuple[list[float], int]]) -> float:
    return sum(math.log(sum(math.exp(x) for x in row)) - row[target] for row, target in rows)


def test_cross_entropy_is_the_mean_of_log_sum_exp_minus_the_targets_logit() -> None:
    value, found = CrossEntropy(TARGETS[:, :1])({"logits": LOGITS[:, :1]})
    assert value == pytest.approx(by_hand([([1.0, 2.0, 0.5], 2), ([3.0, -1.0, 2.0], 0)]) / 2, abs=1e-14)
    assert found["logits"].shape == (2, 1, 3)


def test_cross_entropy_of_huge_logits_is_exact_and_without_overflow() -> None:
    value, found = CrossEntropy(TARGETS[1:, 1:])({"logits": LOGITS[1:, 1:]})
    assert value == 1e4
    assert found["logits"].tolist() == [[[1.0, -1.0, 0.0]]]


def test_the_gradient_of_cross_entropy_is_that_of_differences() -> None:
    rng = np.random.default_rng(0)
    logits, targets = rng.standard_normal((2, 3, 5)), rng.integers(0, 5, (2, 3))
    targets[0, 1] = -1
    loss = CrossEntropy(targets, ignore=-1)
    _, found = loss({"y": logits})
    for index in np.ndindex(logits.shape):
        moved = []
        for sign in (1, -1):
            near = logits.copy()
            near[index] += sign * 1e-6
            moved.append(loss({"y": near})[0])
        assert found["y"][index] == pytest.approx((moved[0] - moved[1]) / 2e-6, abs=1e-9)


def test_ignored_positions_count_for_nothing() -> None:
    targets = np.array([[2, 9], [0, 9]])
    value, found = CrossEntropy(targets, ignore=9)({"y": LOGITS})
    few, small = CrossEntropy(targets[:, :1])({"y": LOGITS[:, :1]})
    assert value == few
    assert np.array_equal(found["y"][:, :1], small["y"])
    assert not found["y"][:, 1].any()


def test_a_loss_of_ignored_positions_alone_is_zero() -> None:
    value, found = CrossEntropy(np.full((2, 2), -100), ignore=-100)({"y": LOGITS})
    assert value == 0
    assert not found["y"].any()


def test_the_sum_is_the_mean_times_the_number_of_positions() -> None:
    mean, dmean = CrossEntropy(TARGETS)({"y": LOGITS})
    total, dtotal = CrossEntropy(TARGETS, reduce="sum")({"y": LOGITS})
    assert total == pytest.approx(4 * mean)
    np.testing.assert_allclose(dtotal["y"], 4 * dmean["y"])


def test_the_gradient_has_the_type_of_the_logits() -> None:
    _, found = CrossEntropy(TARGETS)({"y": LOGITS.astype(np.float32)})
    assert found["y"].dtype == np.float32


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (CrossEntropy(TARGETS + 1), r"BG303.* the targets hold 3 at \[0, 0\], and ids run from 0 to 2"),
        (CrossEntropy(np.array([[2, -100], [0, 1]])), r"hold -100 at \[0, 1\](.|\n)*given as `ignore=`"),
        (CrossEntropy(TARGETS[0]), r"the targets have shape \(2,\), and the logits \(2, 2, 3\)"),
        (CrossEntropy(TARGETS * 1.0), "targets are whole numbers, and these are of type float64"),
        (CrossEntropy(TARGETS, output="z"), "there is no output `z`"),
        (CrossEntropy(TARGETS, reduce="max"), "reduces by mean or sum, not `max`"),  # type: ignore[arg-type]
    ],
)
def test_targets_that_do_not_fit_are_refused(loss: CrossEntropy, message: str) -> None:
    with pytest.raises(bg.InputError, match=message):
        loss({"y": LOGITS})


def test_what_stands_in_no_file_is_told_without_a_place() -> None:
    with pytest.raises(bg.InputError, match=r"\ABG302  the cotangent of `y` has shape \(3,\)(.|\n)*help: a cotangent"):
        Cotangent(np.ones(3))({"y": LOGITS})


def test_of_several_outputs_one_must_be_named() -> None:
    outputs = {"y": LOGITS, "z": LOGITS}
    with pytest.raises(bg.InputError, match="which output holds the logits is not said"):
        CrossEntropy(TARGETS)(outputs)
    assert list(CrossEntropy(TARGETS, output="z")(outputs)[1]) == ["z"]


def test_sum_and_cotangents_are_losses_too() -> None:
    assert Sum()({"y": LOGITS})[0] == LOGITS.sum()
    value, found = Cotangent(2 * LOGITS)({"y": LOGITS})
    assert value == pytest.approx(2 * (LOGITS**2).sum())
    assert np.array_equal(found["y"], 2 * LOGITS)


def test_a_word_that_is_no_loss_is_refused() -> None:
    with pytest.raises(bg.InputError, match="there is no loss `mean`"):
        loss_of("mean")


def test_a_program_descends_on_the_cross_entropy_of_its_logits() -> None:
    text = """dims: {C: 6, V: 5}
model:
  inputs: {tokens: {ids: [B, T], below: V}}
  parts: {embed: {kind: embedding, size: V, width: C}}
  equations: |
    logits = embed(tokens) @ embed.table.T
"""
    program = bg.compile(text)
    tokens, params = program.sample(0)
    loss: Any = CrossEntropy(np.roll(tokens, -1, axis=1))
    found = program.grad(tokens, params, loss)
    value, _ = loss({"logits": program(tokens, params)})
    assert found.loss == value
    moved = {name: array - 0.1 * found.dparams[name] for name, array in params.items()}
    lower, _ = loss({"logits": program(tokens, moved)})
    slope = sum(float((array**2).sum()) for array in found.dparams.values())
    assert value - lower == pytest.approx(0.1 * slope, rel=0.05)


@pytest.mark.parametrize("loss", [CrossEntropy(np.zeros((4, 64), int)), Cotangent(np.ones((4, 64, 8192), "float32"))])
def test_a_loss_holds_little_beside_its_gradient(loss: Any) -> None:
    logits = np.random.default_rng(0).standard_normal((4, 64, 8192)).astype("float32")
    tracemalloc.start()
    _, found = loss({"logits": logits})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["logits"].shape == logits.shape
    assert most < 1.5 * logits.nbytes
