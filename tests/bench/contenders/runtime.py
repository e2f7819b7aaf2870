"""ONNX Runtime on two threads, all its graph optimisations on, over a graph written by hand.

Queries, keys and values come of one product; norms and GELU are single operators, attention is spelled out. Weights are
initializers, which the runtime may lay out as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.bench.cases import Arrays, Case
from tests.bench.contenders import Work

THREADS = 2
OPSET = 20  # the first with Gelu


def run(case: Case, params: Arrays) -> Work:
    """A block, or the whole model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = THREADS, 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(
        model(case, params).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return Work(lambda x, dy: session.run(None, {"x": x})[0])


@dataclass
class _Writer:
    """A graph as it grows."""

    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def put(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node of one output, whose name is returned."""
        from onnx import helper

        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def give(self, array: Any) -> str:
        """An array as an initializer."""
        from onnx import numpy_helper

        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def model(self, kind: int, shape: list[int], result: str) -> Any:
        """The whole, from the input `x` to the result."""
        from onnx import TensorProto, helper

        given = helper.make_tensor_value_info("x", kind, shape)
        out = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "case", [given], [out], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def model(case: Case, params: Arrays) -> Any:
    """The case as an ONNX model."""
    from onnx import TensorProto

    if not case.layers:
        return stack(case, params, 1)
    writer = _Writer()
    table, positions = writer.give(params["embed.table"]), writer.give(params["positions.table"][: case.time])
    x = writer.put("Add", writer.put("Gather", table, "x"), positions)
    for layer in range(case.layers):
        x = _block(writer, x, case, {name: params[f"layers.{layer}.{name}"] for name in _names(params)})
    y = writer.put("MatMul", _norm(writer, x, params, "final_norm"), writer.give(params["embed.table"].T))
    return writer.model(TensorProto.INT64, [case.batch, case.time], y)


def stack(case: Case, params: Arrays, layers: int) -> Any:
    """So many blocks, one after the other, all with the same weights."""
    from onnx import TensorProto

    writer, x = _Writer(), "x"
    for _ in range(layers):
        x = _block(writer, x, case, params)
    return writer.model(TensorProto.FLOAT, [case.batch, case.time, len(params["norm1.gamma"])], x)


def _names(params: Arrays) -> list[str]:
    """The parameters of one layer."""
    first = "layers.0."
    return [name.removeprefix(first) for name in params if name.startswith(first)]


def _norm(writer: _Writer, x: str, params: Arrays, name: str) -> str:
    gamma, beta = writer.give(params[f"{name}.gamma"]), writer.give(params[f"{name}.beta"])
    return writer.put("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-5)


def _linear(writer: _Writer, x: str, weights: Any, bias: Any) -> str:
    y = writer.put("MatMul", x, writer.give(weights))
    return y if bias is None else writer.put("Add", y, writer.give(bias))


def _block(writer: _Writer, x: str, case: Case, p: Arrays) -> str:
    x = writer.put("Add", x, _attention(writer, _norm(writer, x, p, "norm1"), case, p))
    hidden = _norm(writer, x, p, "norm2")
    hidden = writer.put("Gelu", _linear(writer, hidden, p["feed_forward.W1"], p["feed_forward.b1"]), approximate="tanh")
    return writer.put("Add", x, _linear(writer, hidden, p["feed_forward.W2"], p["feed_forward.b2"]))


def _attention(writer: _Writer, x: str, case: Case, p: Arrays) -> str:
    width = len(p["attention.Wq"])
    size = width // case.heads
    fused = np.concatenate([p[f"attention.W{letter}"] for letter in "qkv"], axis=1)
    fused[:, :width] *= np.float32(size**-0.5)
    bias = None
    if "attention.bq" in p:
        bias = np.concatenate([p[f"attention.b{letter}"] for letter in "qkv"])
        bias[:width] *= np.float32(size**-0.5)
    cut = writer.give(np.array([case.batch, case.time, 3, case.heads, size]))
    turned = writer.put("Transpose", writer.put("Reshape", _linear(writer, x, fused, bias), cut), perm=[2, 0, 3, 1, 4])
    query, key, value = (writer.put("Gather", turned, writer.give(np.array(i)), axis=0) for i in range(3))
    scores = writer.put("MatMul", query, writer.put("Transpose", key, perm=[0, 1, 3, 2]))
    if case.causal:
        hidden = np.triu(np.full((case.time, case.time), -np.inf, dtype=np.float32), 1)
        scores = writer.put("Add", scores, writer.give(hidden))
    mixed = writer.put("MatMul", writer.put("Softmax", scores, axis=-1), value)
    merged = writer.put("Transpose", mixed, perm=[0, 2, 1, 3])
    merged = writer.put("Reshape", merged, writer.give(np.array([case.batch, case.time, width])))
    return _linear(writer, merged, p["attention.Wo"], p.get("attention.bo"))
