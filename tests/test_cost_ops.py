"""Costs of single ops: a composite costs what its expansion costs, views take no memory, gates spare work."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from math import prod

import numpy as np
import pytest

from blockgraph.cost.memory import WORKING, looks
from blockgraph.cost.report import costs
from blockgraph.cost.tally import VIEWS, Counting
from blockgraph.dims import Dim
from blockgraph.graph import Graph
from blockgraph.op import Op, load_ops
from blockgraph.ops.attend import Attend
from blockgraph.ops.join import Split
from blockgraph.ops.leaf import Leaf
from tests.op_samples import Sample
from tests.test_cost import costs_of, graph_of, known
from tests.test_ops_promises import SAMPLES, bound_op, expansion, operands_for, size_of, tupled

COMPOSITE = [
    pytest.param(sample, id=f"{sample.op.name}: {sample.name}")
    for sample in SAMPLES
    if type(sample.op).expand is not Op.expand
]


def products(graph: Graph) -> Dim:
    """Of all nodes; composite ones among them count as they say."""
    total = Dim(0)
    for node in graph.nodes:
        assert isinstance(node.op, Op)
        if not isinstance(node.op, Leaf):
            types = tuple(graph.types[value] for value in node.inputs)
            total += node.op.cost(types, tuple(graph.types[value] for value in node.outputs)).products
    return total


@pytest.mark.parametrize("sample", COMPOSITE)
def test_the_products_of_a_composite_are_those_of_its_expansion(sample: Sample) -> None:
    expanded = expansion(sample)
    if expanded is None:
        return
    cost = sample.op.cost(sample.types, sample.op.infer(*sample.types))
    assert cost.products == products(expanded[0])


def test_among_the_composites_are_some_with_products() -> None:
    costs = [
        case.values[0].op.cost(case.values[0].types, case.values[0].op.infer(*case.values[0].types))
        for case in COMPOSITE
    ]
    assert sum(cost.products != 0 for cost in costs) > 3


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_an_op_that_is_counted_as_a_view_looks_at_the_memory_of_its_operand(name: str) -> None:
    found = [sample for sample in SAMPLES if sample.op.name == name]
    assert found
    assert name in load_ops()
    for sample in found:
        for values in sample.bindings:
            sizes = {symbol: int(number) for symbol, number in values.items()}
            shape = tuple(int(dim.evaluate(sizes)) for dim in sample.types[0].shape or ())
            x = np.zeros(shape)
            y = sample.op.bind(values).forward(x)
            assert y.size == 0 or np.shares_memory(x, y)


def grown(values: Mapping[str, int], sample: Sample) -> dict[str, int]:
    """Sizes at which the largest value has some hundred thousand elements, all multiplied by one number."""
    found = dict(values)
    for factor in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128):
        found = {name: size * factor for name, size in values.items()}
        if max(prod(size_of(given.shape or (), found)) for given in sample.types) > 300_000:
            break
    return found


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(sample, id=f"{sample.op.name}: {sample.name}")
        for sample in SAMPLES
        if not isinstance(sample.op, Leaf | Attend | Split) and not sample.symbols
    ],
)
def test_an_op_holds_no_more_than_it_says_while_it_computes(sample: Sample) -> None:
    values = grown(sample.bindings[0], sample)
    op, arrays = bound_op(sample, values), operands_for(sample, values, dtype=np.float32)
    outs = op.infer(*sample.types)
    with np.errstate(all="ignore"):
        op.forward(*arrays)
        tracemalloc.start()
        made = op.forward(*arrays)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert made is not None
    held = sum(Counting(4).bytes(out).evaluate(values) for out in outs)
    assert most <= held + 4 * op.room(sample.types, outs).evaluate(values) + WORKING


@pytest.mark.parametrize("sample", [sample for sample in SAMPLES if looks(sample.op)], ids=lambda one: one.name)
def test_an_op_that_looks_at_its_operand_takes_no_memory(sample: Sample) -> None:
    for layout in ("contiguous", "transposed"):
        x = operands_for(sample, sample.bindings[0], layout)[0]
        for y in tupled(bound_op(sample, sample.bindings[0]).forward(x)):
            assert not y.size or np.shares_memory(x, y)


GATED = """
dims: {C: 8, F: 36, E: 6, K: 2}
block:
  parts:
    router: {kind: linear, out: E}
    first: {kind: feed_forward, hidden: F, activation: relu, bias: false}
    second: {kind: feed_forward, hidden: F, activation: relu, bias: false}
  equations: |
    weight, index = top_k(softmax(router(x)), K)
    gate = put(weight, index, E)
    y = GATE
"""


def active(text: str) -> int | None:
    found = costs_of(text)
    assert found.total is not None
    return known(found.total.weights.active, found)


EXPERT = 2 * 8 * 36
ROUTER = 8 * 6


@pytest.mark.parametrize(
    ("gate", "share"),
    [
        pytest.param("gate[..., 0:1]*first(x) + gate[..., 1:2]*second(x)", 2 * EXPERT * 2 // 6, id="a column each"),
        pytest.param("2*gate[..., 0:1]*first(x) + second(x)*gate[..., 5:6]", 2 * EXPERT * 2 // 6, id="scaled, behind"),
        pytest.param("gate[..., 0:1]*first(x) + second(x)", EXPERT * 2 // 6 + EXPERT, id="one is not gated"),
        pytest.param("gate[..., 0][..., None]*first(x) + second(x)", EXPERT * 2 // 6 + EXPERT, id="cut and put back"),
        pytest.param(
            "gate[..., 0:1]*first(x) + gate[..., 1:2]*first(second(x))",
            EXPERT * 4 // 6 + EXPERT * 2 // 6,
            id="one serves two choices",
        ),
        pytest.param("(1 + gate[..., 0:1])*first(x) + second(x)", 2 * EXPERT, id="never zero"),
        pytest.param("gate[..., 0:2]*first(x)[..., 0:2] + second(x)[..., 0:2]", 2 * EXPERT, id="two columns at once"),
    ],
)
def test_what_a_gate_shuts_off_is_not_active(gate: str, share: int) -> None:
    assert active(GATED.replace("GATE", gate)) == ROUTER + share


def test_experts_kept_in_one_array_are_active_in_part() -> None:
    text = """
dims: {C: 8, F: 36, E: 6, K: 2}
block:
  params: {W1: [E, C, F], W2: [E, F, C]}
  parts: {router: {kind: linear, out: E}}
  equations: |
    weight, index = top_k(softmax(router(x)), K)
    gate = put(weight, index, E)
    h = relu(einsum("b t c, e c f -> b t e f", x, W1))
    y = einsum("b t e, b t e c -> b t c", gate, einsum("b t e f, e f c -> b t e c", h, W2))
"""
    assert active(text) == ROUTER + 6 * EXPERT * 2 // 6


def test_keys_and_values_of_a_gated_attention_are_needed_everywhere() -> None:
    text = GATED.replace(
        "first: {kind: feed_forward, hidden: F, activation: relu, bias: false}", "first: {kind: attention, heads: 2}"
    )
    text = text.replace("C: 8", "C: 12").replace("GATE", "gate[..., 0:1]*first(x) + second(x)")
    queries_and_result, keys_and_values = 2 * 12 * 12 * 2 // 6, 2 * 12 * 12
    assert active(text) == 12 * 6 + queries_and_result + keys_and_values + 2 * 12 * 36


IDS = """
block:
  inputs: {tokens: {ids: [B, T], below: 7}}
  parts: {e: {kind: embedding, size: 7, width: 4}}
  equations: x = e(tokens)
"""


@pytest.mark.parametrize("width", [2, 8])
def test_the_width_of_a_number_scales_floats_and_not_ids(width: int) -> None:
    graph, positions = graph_of(IDS), Dim("B") * Dim("T")
    found = costs(graph, width).total
    assert found is not None
    assert found.activations == positions * 4 * width
    assert Counting(width).bytes(graph.types[0]) == positions * 8
