"""The numbers of the lesson the project starts from: they were there before any of this code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg

ROOT = Path(__file__).parent.parent
SPECS = ROOT / "specs"


def compiled(name: str, **values: Any) -> Any:
    return bg.compile(SPECS / f"{name}.yaml", **values)


def rms(x: Any) -> float:
    return float(np.sqrt(np.mean(x**2)))


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("pre_norm", [0.33221701, -1.02497887, 0.70886567, 0.93717745]),
        ("post_norm", [0.36517058, -1.35171641, 0.86204628, 1.14234422]),
    ],
)
def test_one_block_gives_the_numbers_of_the_lesson(name: str, head: list[float]) -> None:
    program = compiled(name)
    x, params = program.sample(42, B=1, T=6)
    y = program(x, params)
    assert (y.shape, y.dtype) == ((1, 6, 64), np.float64)
    np.testing.assert_allclose(y[0, 0, :4], head, rtol=0, atol=5e-9)


def test_six_blocks_keep_the_size_of_the_stream_as_in_the_lesson() -> None:
    program = compiled("pre_norm_stack")
    x, params = program.sample(42, B=1, T=6)
    trace = program.trace(x, params)
    stream = [x, *(trace[f"layers.{layer}"] for layer in range(6))]
    told = "0.9526 0.9530 0.9522 0.9522 0.9507 0.9519 0.9522"
    assert " ".join(f"{rms(one):.4f}" for one in stream) == told
    assert np.array_equal(trace.outputs["x"], trace["layers.5"])


def test_two_blocks_drawn_after_a_dropped_one_give_the_numbers_of_the_lesson() -> None:
    program = compiled("pre_norm")
    rng = np.random.default_rng(42)
    x = rng.standard_normal((1, 6, 64))
    program.init(rng)
    a, b = program.init(rng), program.init(rng)
    y = program(program(x, a), b)
    assert np.round(y[0, 0, :4], 4).tolist() == [0.3635, -1.0432, 0.7447, 0.9527]


def test_the_first_draw_is_the_input_and_then_the_parameters_in_order() -> None:
    """Redrawn by hand from the generator, with the order of the parameters written out."""
    x, params = compiled("pre_norm").sample(42, B=1, T=6)
    rng = np.random.default_rng(42)
    assert np.array_equal(x, rng.standard_normal((1, 6, 64)))
    for name, shape in (
        ("attention.Wq", (64, 64)),
        ("attention.Wk", (64, 64)),
        ("attention.Wv", (64, 64)),
        ("attention.Wo", (64, 64)),
        ("feed_forward.W1", (64, 256)),
        ("feed_forward.W2", (256, 64)),
    ):
        assert np.array_equal(params[name], rng.standard_normal(shape) * 0.02), name
    assert params.keys() - {f"attention.W{c}" for c in "qkvo"} == {
        *("norm1.gamma", "norm1.beta", "norm2.gamma", "norm2.beta"),
        *("feed_forward.W1", "feed_forward.b1", "feed_forward.W2", "feed_forward.b2"),
    }


@pytest.mark.parametrize(("name", "unchanged"), [("pre_norm", True), ("post_norm", False)])
def test_with_all_branch_weights_zero_only_pre_norm_returns_its_input(name: str, unchanged: bool) -> None:
    program = compiled(name)
    x, params = program.sample(42, B=1, T=6)
    silent = {key: array if "norm" in key else np.zeros_like(array) for key, array in params.items()}
    assert np.array_equal(program(x, silent), x) is unchanged


def test_a_stack_of_four_is_four_blocks_in_a_loop_bit_for_bit() -> None:
    stack, block = compiled("pre_norm_stack", N=4), compiled("pre_norm")
    x, params = stack.sample(42, B=1, T=6)
    y = x
    for layer in range(4):
        prefix = f"layers.{layer}."
        y = block(y, {name.removeprefix(prefix): one for name, one in params.items() if name.startswith(prefix)})
    assert len(params) == 4 * len(block.parameters)
    assert np.array_equal(stack(x, params), y)
    assert not np.array_equal(x, y)


def test_the_same_seed_gives_the_same_numbers_bit_for_bit() -> None:
    first, again = (compiled("pre_norm") for _ in range(2))
    x, params = first.sample(7)
    other, others = again.sample(7)
    assert np.array_equal(x, other)
    assert np.array_equal(first(x, params), again(other, others))
    assert not np.array_equal(x, first.sample(8)[0])


def told(*arguments: str) -> bytes:
    """What `blockgraph run` prints."""
    command = [sys.executable, "-m", "blockgraph", "run", *arguments, "--seed", "42", "--batch", "1", "--time", "6"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout


def test_the_command_prints_the_numbers_of_the_lesson() -> None:
    names = ("pre_norm", "post_norm", "pre_norm_stack")
    pre, post, six = (json.loads(told(f"specs/{name}.yaml", "--format", "json")) for name in names)
    assert np.round(pre["outputs"]["x"]["head"], 8).tolist() == [0.33221701, -1.02497887, 0.70886567, 0.93717745]
    assert np.round(post["outputs"]["x"]["head"], 8).tolist() == [0.36517058, -1.35171641, 0.86204628, 1.14234422]
    sizes = " ".join(f"{layer['rms']:.4f}" for layer in six["layers"])
    assert sizes == "0.9526 0.9530 0.9522 0.9522 0.9507 0.9519 0.9522"


def test_the_same_command_twice_prints_the_same_bytes() -> None:
    first, second = (told("specs/pre_norm.yaml") for _ in range(2))
    assert first == second
    assert first
