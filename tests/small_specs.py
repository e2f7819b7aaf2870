"""Every spec of the repository at sizes that run in no time, for promises that are held against the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import blockgraph as bg

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "specs").rglob("*.yaml"))
NAMES = [path.relative_to(ROOT / "specs").with_suffix("").as_posix() for path in FILES]
SMALL = {"C": 16, "H": 4, "J": 4, "G": 2, "D": 4, "F": 12, "N": 4, "M": 2, "V": 13, "L": 16, "W": 3, "I": 12}
BY_NAME = {"vit": {"I": 8, "P": 4, "L": None}, "phi": {"R": 2}, "gpt_neox": {"C": 32}, "t5": {"K": 8, "far": 16}}


def small(path: Path) -> bg.Program:
    """The program with every dim that is a number made small."""
    spec = bg.load(path)
    sizes = {**SMALL, **BY_NAME.get(path.stem, {})}
    numbers = {name: sizes[name] for name, dim in spec.dims.items() if dim.number is not None and sizes.get(name)}
    return bg.compile(path, **numbers)


def stirred_run(program: bg.Program, seed: int = 0, **sizes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs by name, and parameters of which none is at rest."""
    inputs, params = program.sample(seed, **sizes)
    if not isinstance(inputs, dict):
        inputs = {program.graph.inputs[0].name: inputs}
    rng = np.random.default_rng(seed + 1)
    return inputs, {name: array + 0.3 * rng.standard_normal(array.shape) for name, array in params.items()}


def outputs_of(program: bg.Program, inputs: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """The outputs by name."""
    return program.trace(inputs, params).outputs
