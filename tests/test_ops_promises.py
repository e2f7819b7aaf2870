"""What every op promises, written once and asked of all samples in `op_samples_*.py`."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blockgraph.dims import Dim
from blockgraph.graph import Graph, GraphBuilder
from blockgraph.op import Op, Type, load_ops
from blockgraph.ops.leaf import Input, Leaf
from blockgraph.pattern import Pattern
from tests.op_samples import Sample

LAYOUTS = ("contiguous", "transposed", "strided", "reversed")
STEP = 1e-5


def all_samples() -> list[Sample]:
    files = sorted(Path(__file__).parent.glob("op_samples_*.py"))
    return [sample for file in files for sample in importlib.import_module(f"tests.{file.stem}").SAMPLES]


OPS = load_ops()
SAMPLES = all_samples()
CASES = [
    pytest.param(sample, values, id=f"{sample.op.name}: {sample.name}, sizes {number}")
    for sample in SAMPLES
    for number, values in enumerate(sample.bindings)
]
COMPOSITE = [case for case in CASES if type(case.values[0].op).expand is not Op.expand]  # type: ignore[union-attr]
every_case = pytest.mark.parametrize(("sample", "values"), CASES)


def tupled(value: object) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def size_of(dims: Iterable[Dim], values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(dim.evaluate(values)) for dim in dims)


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same numbers in another layout in memory, read-only."""
    if layout == "transposed" and array.ndim:
        array = np.asfortranarray(array)
    elif layout == "strided" and array.ndim:
        array = np.stack([array, np.full_like(array, 7)], axis=-1)[..., 0]
    elif layout == "reversed" and array.ndim:
        array = np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    array = array.view()
    array.flags.writeable = False
    return array


def operands_for(
    sample: Sample, values: Mapping[str, int], layout: str = "contiguous", dtype: type = np.float64
) -> list:
    rng = np.random.default_rng(zlib.crc32(sample.name.encode()))
    arrays = []
    for index, given in enumerate(sample.types):
        assert given.shape is not None
        shape = size_of(given.shape, values)
        bounds = sample.ranges[index] if index < len(sample.ranges) else None
        if given.dtype == "int":
            array = rng.integers(0, sample.below, shape)
        elif given.dtype == "bool":
            array = rng.random(shape) < 0.7
        elif bounds is not None:
            array = rng.uniform(*bounds, shape).astype(dtype)
        else:
            array = rng.standard_normal(shape).astype(dtype)
        arrays.append(laid_out(np.asarray(array), layout))
    return arrays


def directions(arrays: Iterable[np.ndarray], rng: np.random.Generator) -> list:
    return [rng.standard_normal(a.shape).astype(a.dtype) if a.dtype.kind == "f" else None for a in arrays]


def bound_op(sample: Sample, values: Mapping[str, int]) -> Op:
    return sample.op.bind({**values, **sample.symbols})


def gradients(op: Op, dy: list, y: tuple, arrays: list) -> tuple:
    """What `backward` gives, called as the op expects it: without tuples when there is one output."""
    return op.backward(*((dy[0], y[0]) if len(y) == 1 else (tuple(dy), y)), *arrays)


def close(found: object, expected: object, scale: float, tolerance: float) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(scale, 1e-30))


def biggest(*arrays: np.ndarray) -> float:
    return max((float(np.abs(a).max()) for a in arrays if a is not None and a.size), default=0.0)


def test_every_op_has_samples() -> None:
    # `unknown` stands for a step that has a finding: such a graph never runs.
    wanted = {name for name, op in OPS.items() if not issubclass(op, Leaf)} - {"unknown"}
    assert wanted == {sample.op.name for sample in SAMPLES}


def test_no_sample_is_named_twice() -> None:
    names = [(sample.op.name, sample.name) for sample in SAMPLES]
    assert len(set(names)) == len(names)


@every_case
def test_array_shape_and_dtype_equal_the_inferred_type(sample: Sample, values: dict[str, int]) -> None:
    outs = sample.op.infer(*sample.types)
    y = tupled(bound_op(sample, values).forward(*operands_for(sample, values)))
    assert len(y) == len(outs)
    for array, out in zip(y, outs, strict=True):
        assert out.shape is not None
        assert np.shape(array) == size_of(out.shape, values)
        assert np.asarray(array).dtype.kind == {"float": "f", "int": "i", "bool": "b"}[out.dtype]


@every_case
def test_the_pattern_gives_the_inferred_shapes(sample: Sample, values: dict[str, int]) -> None:
    op, outs = sample.op, sample.op.infer(*sample.types)
    pattern, moves = op.pattern(sample.types), op.moves(sample.types)
    for move in moves:
        assert any(move.letter in (axis, *tupled(axis)) for axis in pattern.operands[move.operand])
    # Along an axis that is read at other positions, an op with an `infer` of its own may change the size.
    moved = {move.letter for move in moves} if type(op).infer is not Op.infer else set()
    apart = tuple(
        tuple(f"{axis}.{i}" if axis in moved else axis for axis in axes) for i, axes in enumerate(pattern.operands)
    )
    fixed = tuple(tuple("1" if axis in moved else axis for axis in axes) for axes in pattern.outputs)
    shapes = tuple(given.shape for given in sample.types if given.shape is not None)
    found = Pattern(apart, fixed).outputs_for(shapes, op.sizes_by_letter())
    for axes, shape, out in zip(pattern.outputs, found, outs, strict=True):
        assert out.shape is not None
        assert len(shape) == len(out.shape)
        kept = [i for i, axis in enumerate(axes[::-1]) if axis in moved]
        assert [d for i, d in enumerate(shape[::-1]) if i not in kept] == [
            d for i, d in enumerate(out.shape[::-1]) if i not in kept
        ]


@every_case
def test_an_unknown_shape_fits_everything(sample: Sample, values: dict[str, int]) -> None:
    for index, given in enumerate(sample.types):
        types = list(sample.types)
        types[index] = Type(None, given.dtype, given.bare)
        assert len(sample.op.infer(*types)) == len(sample.op.infer(*sample.types))
        sample.op.pattern(tuple(types))
        sample.op.moves(tuple(types))


@every_case
@pytest.mark.parametrize("layout", LAYOUTS)
def test_backward_is_the_derivative_of_forward(sample: Sample, values: dict[str, int], layout: str) -> None:
    op, arrays = bound_op(sample, values), operands_for(sample, values, layout)
    rng = np.random.default_rng(5)
    y = tupled(op.forward(*arrays))
    if all(np.asarray(array).dtype.kind != "f" for array in y):
        assert all(index in op.cuts for index, array in enumerate(arrays) if array.dtype.kind == "f")
        return
    dy = [laid_out(rng.standard_normal(np.shape(array)), layout) for array in y]
    found = gradients(op, dy, y, arrays)
    assert len(found) == len(arrays)
    for index, (array, direction) in enumerate(zip(arrays, directions(arrays, rng), strict=True)):
        if direction is None or index in op.cuts:
            assert found[index] is None
            continue
        assert np.shape(found[index]) == array.shape
        moved = [
            tupled(op.forward(*arrays[:index], array + sign * STEP * direction, *arrays[index + 1 :]))
            for sign in (1, -1)
        ]
        difference = sum(float(np.vdot(d, up - down)) for d, up, down in zip(dy, *moved, strict=True)) / (2 * STEP)
        scale = float(np.abs(found[index] * direction).sum())
        close(float(np.vdot(found[index], direction)), difference, scale + 1e-3, 1e-6)


@every_case
def test_forward_is_the_same_in_every_layout(sample: Sample, values: dict[str, int]) -> None:
    op = bound_op(sample, values)
    first, *others = (tupled(op.forward(*operands_for(sample, values, layout))) for layout in LAYOUTS)
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@every_case
def test_float32_in_gives_float32_out(sample: Sample, values: dict[str, int]) -> None:
    op, arrays = bound_op(sample, values), operands_for(sample, values, dtype=np.float32)
    y = tupled(op.forward(*arrays))
    wide = tupled(op.forward(*operands_for(sample, values)))
    for array, exact in zip(y, wide, strict=True):
        if np.asarray(exact).dtype.kind == "f":
            assert array.dtype == np.float32
            close(array, exact, biggest(np.asarray(exact)) + 1, 2e-5)
    if all(np.asarray(array).dtype.kind == "f" for array in y):
        dy = [np.ones_like(array) for array in y]
        assert all(d is None or d.dtype == np.float32 for d in gradients(op, dy, y, arrays))


@every_case
def test_operands_are_not_written_to(sample: Sample, values: dict[str, int]) -> None:
    op = bound_op(sample, values)
    arrays = [array.copy() for array in operands_for(sample, values)]
    before = [array.copy() for array in arrays]
    y = tupled(op.forward(*arrays))
    if all(np.asarray(array).dtype.kind == "f" for array in y):
        dy, kept = [np.ones_like(array) for array in y], [np.array(array) for array in y]
        gradients(op, dy, y, arrays)
        assert all((d == 1).all() for d in dy)
        assert all(np.array_equal(a, b) for a, b in zip(y, kept, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))


@every_case
def test_cost_and_label_are_stated(sample: Sample, values: dict[str, int]) -> None:
    cost = sample.op.cost(sample.types, sample.op.infer(*sample.types))
    known = {**values, **sample.symbols}
    assert cost.products.evaluate(known) >= 0  # type: ignore[arg-type]
    assert cost.elementwise.evaluate(known) >= 0  # type: ignore[arg-type]
    assert sample.op.label().strip()
    assert not bound_op(sample, values).symbols
    assert not list(sample.op.refusals())


def expansion(sample: Sample) -> tuple[Graph, list[int], int] | None:
    """The expansion as a graph, with the values of the operands and of the result; None where there is none."""
    g = GraphBuilder()
    operands = [
        g.append(Input(path=f"operand {i}", dims=given.shape or (), dtype=given.dtype), (), (given,))[0]
        for i, given in enumerate(sample.types)
    ]
    out = sample.op.expand(g, *operands)
    return None if out is None else (g.finish((), ()), operands, out)


def run(graph: Graph, known: dict[int, np.ndarray], values: Mapping[str, float]) -> dict[int, object]:
    """Every value of a graph, op by op."""
    found: dict[int, object] = dict(known)
    for node in graph.nodes:
        if node.outputs[0] in found:
            continue
        assert isinstance(node.op, Op)
        y = node.op.bind(values).forward(*(found[value] for value in node.inputs))
        found |= dict(zip(node.outputs, tupled(y), strict=True))
    return found


def run_back(
    graph: Graph, found: dict[int, object], out: int, dy: np.ndarray, values: Mapping[str, float]
) -> dict[int, object]:
    """The gradient of every value, from the last node to the first."""
    grads: dict[int, object] = {out: dy}
    for node in reversed(graph.nodes):
        if not node.inputs or not any(value in grads for value in node.outputs):
            continue
        assert isinstance(node.op, Op)
        y = tuple(found[value] for value in node.outputs)
        up = [grads.get(value, np.zeros_like(found[value])) for value in node.outputs]
        down = gradients(node.op.bind(values), up, y, [found[value] for value in node.inputs])
        for value, gradient in zip(node.inputs, down, strict=True):
            if gradient is not None:
                grads[value] = grads[value] + gradient if value in grads else gradient
    return grads


@pytest.mark.parametrize(("sample", "values"), COMPOSITE)
def test_the_fast_form_equals_its_expansion(sample: Sample, values: dict[str, int]) -> None:
    expanded = expansion(sample)
    if expanded is None:
        return
    graph, operands, out = expanded
    known = {**values, **sample.symbols}
    arrays = operands_for(sample, values)
    op = bound_op(sample, values)
    y = np.asarray(op.forward(*arrays))
    assert graph.types[out].shape == sample.op.infer(*sample.types)[0].shape
    found = run(graph, dict(zip(operands, arrays, strict=True)), known)
    close(found[out], y, biggest(y), sample.expansion)
    if y.dtype.kind != "f":
        return
    dy = np.random.default_rng(6).standard_normal(y.shape)
    grads = run_back(graph, found, out, dy, known)
    for operand, expected in zip(operands, gradients(op, [dy], (y,), arrays), strict=True):
        if expected is not None:
            close(grads[operand], expected, biggest(np.asarray(expected)) + 1e-3, 100 * sample.expansion)


@pytest.mark.parametrize(("sample", "values"), COMPOSITE)
def test_an_expansion_has_simpler_ops_only(sample: Sample, values: dict[str, int]) -> None:
    expanded = expansion(sample)
    assert expanded is None or sample.op not in [node.op for node in expanded[0].nodes]


def test_a_promise_fails_for_a_wrong_gradient() -> None:
    sample = next(sample for sample in SAMPLES if sample.op.name == "multiply")
    broken = replace(sample, op=OPS["divide"]())

    class Wrong(type(broken.op)):  # type: ignore[misc]
        def forward(self, *arrays: np.ndarray) -> np.ndarray:
            return arrays[0] * arrays[1]

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        test_backward_is_the_derivative_of_forward(replace(sample, op=Wrong()), sample.bindings[0], "contiguous")
