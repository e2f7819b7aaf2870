"""Checking: shapes of a deep model worked out in process, from the text of a spec or from an ONNX model in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import blockgraph as bg
from tests.bench.cases import Arrays, Case, gpt_block
from tests.bench.check import repeated, written_out
from tests.bench.contenders import Work

LAYERS = 96
DEEP = 10_000


def own(case: Case | None, params: Arrays) -> Work:
    """`check` of a spec in which every block stands by itself."""
    return _check(written_out(LAYERS))


def one(case: Case | None, params: Arrays) -> Work:
    """`check` of a stack of one block."""
    return _check(repeated(1))


def deep(case: Case | None, params: Arrays) -> Work:
    """`check` of a stack of very many."""
    return _check(repeated(DEEP))


def _check(text: str) -> Work:
    assert bg.check(text).ok
    return Work(lambda x, dy: bg.check(text), named=lambda result: {})


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
