"""One GPT-2-sized block in float32 against the same block written by hand in NumPy, on the same weights."""

from __future__ import annotations

from functools import partial

import numpy as np

import blockgraph as bg
from tests.bench import lesson
from tests.bench.timing import interleaved, table


def block(mask: str) -> dict[str, object]:
    """A pre-norm block of width 768 with 12 heads."""
    attention = {"kind": "attention", "heads": "H", "mask": mask}
    feed_forward = {"kind": "feed_forward", "hidden": "4*C", "activation": "gelu_tanh"}
    return {"dims": {"C": 768, "H": 12}, "block": {"norm": "layer_norm", "sublayers": [attention, feed_forward]}}


def main(rounds: int = 15) -> None:
    """Print the tables; the two must agree before they are timed."""
    for mask in ("full", "causal"):
        program = bg.compile(block(mask))
        for batch, time in ((1, 128), (1, 1024), (8, 128)):
            x, params = program.sample(0, dtype="float32", B=batch, T=time)
            hand = lesson.block(x, params, 12, causal=mask == "causal")
            np.testing.assert_allclose(program(x, params), hand, atol=1e-4)
            contenders = {
                "lesson, x*x*x": partial(lesson.block, x, params, 12, causal=mask == "causal"),
                "blockgraph, plain interpreter": partial(program, x, params),
            }
            table(f"One block forward, {batch}x{time}, {mask}", interleaved(contenders, rounds), "lesson, x*x*x")
