"""The execution plan held against the plain interpreter: the same specs, the same arrays, every named value,
and all gradients.

`python -m tests.agreement 500` compares that many specs made at random; it prints the figures. A few of those are so
ill-conditioned that the interpreter itself moves by more than the bound when its arrays move by a rounding: there a
difference counts if it is larger than that.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

import blockgraph as bg
from tests.made import sizes, spec

BOUNDS = {"float64": 1e-12, "float32": 1e-5}
"""How far a value may be from the interpreter's, compared to the largest number in it."""
NUDGES = 8
"""How often the arrays of an ill-conditioned spec are moved by a rounding."""


def stirred(params: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """Parameters that are nowhere at the identity, so that each of them shows in the numbers."""
    rng = np.random.default_rng(seed)
    return {
        name: (array + 0.1 * rng.standard_normal(array.shape)).astype(array.dtype) for name, array in params.items()
    }


def scattered(x: Any) -> Any:
    """The same arrays, not row after row in memory."""
    if isinstance(x, Mapping):
        return {name: scattered(array) for name, array in x.items()}
    wide = np.zeros(tuple(2 * size for size in x.shape), x.dtype)
    wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
    return wide[tuple(slice(None, None, 2) for _ in x.shape)]


def fault(expected: Mapping[str, Any], found: Mapping[str, Any], dtype: str) -> str:
    """What differs between two runs, by name; nothing if they agree."""
    if list(expected) != list(found):
        return f"names differ: {sorted(set(expected) ^ set(found))}"
    for name, reference in expected.items():
        array = found[name]
        if (array.shape, array.dtype) != (reference.shape, reference.dtype):
            return f"{name} is {array.shape} of {array.dtype}, not {reference.shape} of {reference.dtype}"
        if not np.array_equal(np.isnan(reference), np.isnan(array)):
            return f"{name} is not a number at other places"
        if reference.dtype.kind != "f":
            if not np.array_equal(reference, array):
                return f"{name} differs"
            continue
        finite = reference[np.isfinite(reference)]
        scale = max(1e-3, float(np.abs(finite).max())) if finite.size else 1.0
        if not np.allclose(array, reference, rtol=0, atol=scale * BOUNDS[dtype], equal_nan=True):
            return f"{name} is off by {np.nanmax(np.abs(array - reference)) / scale:.1e}"
    return ""


def with_plan(program: bg.Program, plan: bool, threads: int = 1) -> bg.Program:
    return bg.Program(program.spec, program.graph, program.findings, plan, threads)


def compare(program: bg.Program, x: Any, params: Mapping[str, Any], dtype: str, threads: int = 1) -> str:
    """Hold results and trace of a program against the interpreter; what differs, or nothing."""
    plain, planned = with_plan(program, False), with_plan(program, True, threads)
    expected = plain.trace(x, params)
    outputs = planned(x, params)
    by_name = outputs if isinstance(outputs, Mapping) else {program.graph.outputs[0].name: outputs}
    return fault(expected.outputs, by_name, dtype) or fault(expected, planned.trace(x, params), dtype)


def differences(program: bg.Program, x: Any, params: dict[str, Any], threads: int = 1) -> list[str]:
    """Names of gradients and outputs that differ by more than rounding, relative to their own largest number.

    A gradient that is small because large ones cancel in it is held against a hundredth of the largest of all.
    """
    found, wanted = (everything(with_plan(program, plan, threads), x, params) for plan in (True, False))
    assert found.keys() == wanted.keys()
    bound = BOUNDS[next(one.dtype.name for one in wanted.values() if one.dtype.kind == "f")]
    scale = max((float(np.abs(one).max(initial=0)) for one in wanted.values()), default=1.0)
    wrong = []
    for name, array in wanted.items():
        ours = found[name]
        if (
            ours.shape != array.shape
            or ours.dtype != array.dtype
            or not np.abs(ours - array).max(initial=0) <= bound * max(np.abs(array).max(initial=0), scale / 100)
        ):
            wrong.append(name)
    return wrong


def beyond_rounding(program: bg.Program, x: Any, params: dict[str, Any], names: list[str], threads: int) -> list[str]:
    """Those of the names that differ by more than twice what the interpreter moves by itself: both are off as far."""
    plain = with_plan(program, False)
    found, wanted = everything(with_plan(program, True, threads), x, params), everything(plain, x, params)
    moves = [everything(plain, nudged(x, seed), nudged(params, seed + 1)) for seed in range(0, 2 * NUDGES, 2)]
    return [
        name
        for name in names
        if found[name].shape != wanted[name].shape
        or not np.abs(found[name] - wanted[name]).max()
        <= 2 * max(np.abs(one[name] - wanted[name]).max() for one in moves)
    ]


def nudged(x: Any, seed: int) -> Any:
    """The same arrays, every number moved up or down by a rounding."""
    if isinstance(x, Mapping):
        return {name: nudged(array, seed + place) for place, (name, array) in enumerate(x.items())}
    if x.dtype.kind != "f":
        return x
    signs = np.random.default_rng(seed).choice(np.array([-1, 1], x.dtype), x.shape)
    return x + x * signs * np.finfo(x.dtype).eps


def everything(program: bg.Program, x: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Outputs, and gradients of inputs, parameters and named values."""
    out, back = program.vjp(x, params, named=True)
    outputs = out if isinstance(out, dict) else {"out": out}
    rng = np.random.default_rng(7)
    dys = {name: rng.standard_normal(y.shape).astype(y.dtype) for name, y in outputs.items() if y.dtype.kind == "f"}
    result = back(dys if isinstance(out, dict) else dys["out"])
    dx = result.dx if isinstance(result.dx, dict) else {"x": result.dx}
    found = {f"output {name}": y for name, y in outputs.items()} | {f"d{name}": one for name, one in dx.items()}
    return {**found, **result.dparams, **{f"value {name}": one for name, one in result.dvalues.items()}}


def main(count: int) -> int:
    """Specs made at random, two sizes and both dtypes each; 1 if any differs."""
    wrong = shaky = 0
    for number in range(count):
        rng = random.Random(f"agreement {number}")
        made = spec(rng)
        program = bg.compile(made.text, **sizes(rng))
        for dtype in BOUNDS:
            x, params = program.sample(number, dtype, B=rng.randint(1, 3), T=rng.choice((1, 2, 5, 9, 33)))
            params, threads = stirred(params), rng.choice((1, 2))
            found, far = compare(program, x, params, dtype, threads), differences(program, x, params, threads)
            if not found and far and not beyond_rounding(program, x, params, far, threads):
                shaky += 1
            elif found or far:
                wrong += 1
                print(f"{number} {dtype}: {found or ', '.join(far)}\n{made.text}")
    print(f"{count} specs, {wrong} differences, {shaky} where a rounding moves the interpreter as far")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
