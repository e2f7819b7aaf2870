"""Gradients as a graph are the gradients of the plain interpreter's tape."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.adjoint import adjoint
from blockgraph.grad import Ends
from blockgraph.peephole import recognise
from blockgraph.run import Interpreter
from tests.made import sizes, spec
from tests.small_specs import FILES, NAMES, small, stirred_run


def agree(program: bg.Program, inputs: dict[str, Any], params: dict[str, Any], **free: int) -> None:
    """Hold the gradients of inputs, parameters and named values against those of the tape."""
    ends = Ends(program.flat, by_name=True, named=True)
    tape = program.tape(inputs, params)
    outputs = ends.outputs(tape.slots)
    rng = np.random.default_rng(5)
    dys = {name: rng.standard_normal(y.shape) for name, y in outputs.items() if y.dtype.kind == "f"}
    wanted = tape.pull_back(ends.by_value(dys), ends.wanted)
    made = adjoint(recognise(program.flat, keep=ends.wanted), ends.wanted)
    cotangents = {made.cotangents[value]: dy for value, dy in ends.by_value(dys).items() if value in made.cotangents}
    numbers = program.sizes(**free)
    found = Interpreter(made.graph).run({**inputs, **cotangents}, params, numbers, made.gradients.values())
    for port in program.flat.outputs:
        np.testing.assert_allclose(found[port.value], outputs[port.name], rtol=1e-12, atol=1e-13)
    scale = max(float(np.abs(one).max(initial=0)) for one in wanted.values())
    for value, gradient in wanted.items():
        ours = found[made.gradients[value]] if value in made.gradients else np.zeros_like(gradient)
        np.testing.assert_allclose(ours / scale, gradient / scale, rtol=0, atol=1e-12)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_every_spec_has_the_gradients_of_the_tape(path: Path) -> None:
    program = small(path)
    inputs, params = stirred_run(program, B=2)
    agree(program, inputs, params, B=2)


@pytest.mark.parametrize("number", range(60))
def test_specs_made_at_random_have_the_gradients_of_the_tape(number: int) -> None:
    rng = random.Random(f"adjoint {number}")
    made = spec(rng)
    program = bg.compile(made.text, **sizes(rng))
    inputs, params = program.sample(number, B=2, T=5)
    agree(program, {"x": inputs}, params, B=2, T=5)
