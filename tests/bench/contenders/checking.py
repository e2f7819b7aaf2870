"""Checking: shapes of a deep model worked out in process, from a spec or an ONNX model in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import blockgraph as bg
from tests.bench.cases import Arrays, Case, gpt_block
from tests.bench.check import LAYERS, repeated, stacked
from tests.bench.contenders import Work

DEEP = 10_000


def own(case: Case | None, params: Arrays) -> Work:
    """`check` of a loaded spec in which every block has a text of its own, as every block of an ONNX model has."""
    return _check(bg.load(stacked(LAYERS)))


def text(case: Case | None, params: Arrays) -> Work:
    """The same from text, which is read each time."""
    return _check(stacked(LAYERS))


def one(case: Case | None, params: Arrays) -> Work:
    """`check` of a stack of one block."""
    return _check(repeated(1))


def deep(case: Case | None, params: Arrays) -> Work:
    """`check` of a stack of very many."""
    return _check(repeated(DEEP))


def _check(source: bg.Spec | str) -> Work:
    assert bg.check(source).ok
    return Work(lambda x, dy: bg.check(source), named=lambda result: {})


def onnx(case: Case | None, params: Arrays) -> Work:
    """ONNX shape inference of as many blocks; their weights are small, so that it is not copying that is timed."""
    from onnx.shape_inference import infer_shapes

    from tests.bench.contenders.runtime import stack

    block = Case(gpt_block("full", 16, 4), 8, heads=4)
    found: Any = stack(block, block.draw()[1], LAYERS)
    shape = infer_shapes(found, strict_mode=True).graph.value_info[-1].type.tensor_type.shape
    assert np.prod([dim.dim_value for dim in shape.dim]) > 0
    return Work(partial(_infer, infer_shapes, found), note=f"{len(found.graph.node)} nodes", named=lambda result: {})


def _infer(infer_shapes: Any, found: Any, x: Any, dy: Any) -> Any:
    return infer_shapes(found)
