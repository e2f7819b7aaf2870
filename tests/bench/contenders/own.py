"""blockgraph, called as a library."""

from __future__ import annotations

from typing import Any

import blockgraph as bg
from tests.bench.cases import Arrays, Case
from tests.bench.contenders import Work

ROOM = 64
"""Positions beyond those of the case for which a decoder has room."""


def plan(case: Case, params: Arrays) -> Work:
    """A compiled program called again."""
    return _work(case, case.program(), params)


def interpreter(case: Case, params: Arrays) -> Work:
    """The same without a plan: op by op."""
    return _work(case, bg.compile(case.spec, plan=False), params)


def spelled(case: Case, params: Arrays) -> Work:
    """The program of the spelled-out spec: its parameters have other names and the same order."""
    program = bg.compile(case.spelled or case.spec)
    return _work(case, program, dict(zip(program.parameters, params.values(), strict=True)))


def _work(case: Case, program: Any, params: Arrays) -> Work:
    if not case.backward:
        return Work(lambda x, dy: program(x, params))

    def call(x: Any, dy: Any) -> Any:
        return program.grad(x, params, bg.CrossEntropy(dy) if case.layers else dy)

    def named(result: Any) -> dict[str, Any]:
        return dict(result.dparams) if case.layers else {"x": result.dx, **result.dparams}

    return Work(call, named=named)


def decoder(case: Case, params: Arrays) -> Work:
    """One token after those of the case."""
    program = case.program()
    running: dict[str, Any] = {}

    def again(x: Any) -> None:
        running["decoder"] = program.decoder(params, length=case.time + ROOM)
        running["decoder"].step(x)

    def call(x: Any, dy: Any) -> Any:
        return running["decoder"].step(x[:, -1:])

    return Work(call, again, steps=16)
