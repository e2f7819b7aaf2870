"""What a forward and backward of twelve GPT-2-sized layers in float32 needs at its peak, beside parameters and results.

`kept` is the sum of all activations that the forward leaves for the backward, each once, views not counted.
`python -m tests.bench memory --recompute` measures only the way that keeps the inputs of layers and no more.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import blockgraph as bg
from tests.bench.cases import gpt_block

LAYERS = 12


def stack() -> dict[str, Any]:
    """Twelve pre-norm blocks of width 768 with 12 heads."""
    one = gpt_block("causal")
    parts = {"layers": {"kind": "stack", "of": "block", "repeat": LAYERS}}
    return {**one, "model": {"parts": parts, "equations": "x = layers(x)"}}


def owned(arrays: Iterable[Any]) -> int:
    """The bytes of arrays, counting memory that several look at once."""
    bases = {}
    for array in arrays:
        base = array
        while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
            base = base.base
        if isinstance(base, np.ndarray):
            bases[id(base)] = base.nbytes
    return sum(bases.values())


def peak(work: Callable[[], Any]) -> tuple[Any, int, float]:
    """What comes out, the most bytes that are alive at once beside those that were there before, and the seconds."""
    gc.collect()
    tracemalloc.start()
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, most, seconds


def main(words: Sequence[str] = ()) -> None:
    """Print the table; all ways must give the same gradients."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench memory", description=__doc__)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--time", type=int, default=1024)
    parser.add_argument("--recompute", action="store_true")
    options = parser.parse_args(words)
    measure(options.batch, options.time, options.recompute)


def measure(batch: int, length: int, recompute: bool) -> None:
    """Each way in turn."""
    program = bg.compile(stack())
    x, params = program.sample(0, dtype="float32", B=batch, T=length)
    dy = np.random.default_rng(1).standard_normal(x.shape).astype(np.float32)
    given = {id(array) for array in (x, *params.values())}
    tape = program.tape(x, params)
    kept = owned(array for array in tape.slots.values() if isinstance(array, np.ndarray) and id(array) not in given)
    del tape
    weights = sum(array.nbytes for array in params.values())
    ways: dict[str, Callable[[], Any]] = {
        "vjp, all kept to the end": lambda: program.vjp(x, params)[1](dy),
        "grad, freed as soon as used": lambda: program.grad(x, params, dy),
        'grad, recompute="layers"': lambda: program.grad(x, params, dy, recompute="layers"),
    }
    print(f"\nForward and backward of {LAYERS} layers, {batch}x{length}, width 768, float32")
    print(f"  {'gradients of the parameters':32} {weights / 2**20:8.1f} MiB")
    print(f"  {'activations kept by a forward':32} {kept / 2**20:8.1f} MiB")
    first: dict[str, Any] = {}
    for name, work in list(ways.items())[2 if recompute else 0 :]:
        (_, dparams), most, seconds = peak(work)
        first = first or dparams
        for key, array in dparams.items():
            np.testing.assert_array_equal(array, first[key], err_msg=key)
        print(f"  {name:32} {most / 2**20:8.1f} MiB at the peak   {seconds:6.2f} s")
