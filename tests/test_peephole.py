"""Spelled-out attention, norms and activations become the ops that the built-in kinds make, and compute the same."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.graph import Graph
from blockgraph.peephole import recognise
from blockgraph.run import Interpreter
from tests.made import sizes, spec
from tests.small_specs import FILES, NAMES, small, stirred_run

LEAVES = ("input", "param", "constant")
HEAD = """
dims: {C: 12, H: 4, G: 2, D: C/H, F: 20}
constants: {pi: 3.141592653589793}
block:
"""


def program(body: str, **sizes: int) -> bg.Program:
    return bg.compile(HEAD + body, **sizes)


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op.name for node in graph.nodes if node.op.name not in LEAVES)


def outputs(made: bg.Program, graph: Graph, dtype: str = "float64", **sizes: int) -> list[np.ndarray]:
    x, params = made.sample(3, dtype, **sizes)
    params = {name: array + 0.3 if array.ndim == 1 else array * 20 for name, array in params.items()}
    inputs = x if isinstance(x, dict) else {graph.inputs[0].name: x}
    numbers = made.sizes(**sizes)
    slots = Interpreter(graph).run(inputs, params, numbers)
    return [slots[port.value] for port in graph.outputs]


def recognised(body: str, wanted: str, times: int = 1) -> Counter[str]:
    made = program(body)
    small = recognise(made.flat)
    for free in ({"B": 2, "T": 5}, {"B": 1, "T": 1}, {"B": 3, "T": 17}):
        for dtype, rtol in (("float64", 1e-12), ("float32", 1e-5)):
            pairs = zip(outputs(made, small, dtype, **free), outputs(made, made.flat, dtype, **free), strict=True)
            for found, reference in pairs:
                assert found.dtype == reference.dtype
                scale = np.abs(reference).max()
                np.testing.assert_allclose(found / scale, reference / scale, rtol=0, atol=rtol)
    found = ops(small)
    assert found[wanted] == times, found
    return found


ACTIVATIONS = {
    "gelu_tanh": [
        "y = 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))",
        "y = x * (0.5 + 0.5 * tanh(sqrt(2/pi) * x * (1 + 0.044715 * x * x)))",
        "y = 0.5*x + tanh((0.044715 * (x*x*x) + x) * 0.7978845608028654) * x / 2",
        "u = x**3\ninner = (x + 0.044715*u) / sqrt(pi/2)\ny = (1 + tanh(inner)) * x * 0.5",
    ],
    "gelu_erf": [
        "y = x * (1 + erf(x / sqrt(2))) / 2",
        "y = 0.5 * x * (1 + erf(x * 0.7071067811865476))",
        "y = x/2 + x*erf(x/2**0.5)/2",
    ],
    "silu": ["y = x * sigmoid(x)", "y = sigmoid(x) * x", "y = x / (1 + exp(-x))", "y = x * (1 / (exp(-x) + 1))"],
    "quick_gelu": ["y = x * sigmoid(1.702 * x)", "y = sigmoid(x * 1.702) * x"],
    "relu_squared": ["y = relu(x) * relu(x)", "y = relu(x)**2", "r = relu(x)\ny = r*r"],
    "sigmoid": ["y = 1 / (1 + exp(-x))", "y = 1 / (exp(0 - x) + 1)"],
}


@pytest.mark.parametrize(("op", "text"), [(op, text) for op, texts in ACTIVATIONS.items() for text in texts])
def test_an_activation_spelled_out_is_one_node(op: str, text: str) -> None:
    body = "  equations: |\n" + "".join(f"    {line}\n" for line in text.splitlines())
    assert recognised(body, op) == {op: 1}


def test_an_activation_of_a_sum_keeps_the_sum() -> None:
    body = "  params: {W: [C, F], V: [C, F]}\n  equations: |\n    h = x @ W + x @ V\n    y = h * sigmoid(h)\n"
    assert recognised(body, "silu") == {"silu": 1, "add": 1, "matmul": 2}


@pytest.mark.parametrize(
    "text",
    [
        "y = 0.5 * x * (1 + tanh(0.7979 * (x + 0.044715 * x**3)))",
        "y = 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.0447 * x**3)))",
        "y = x * sigmoid(1.7 * x)",
        "y = x * sigmoid(-x)",
        "y = x / (2 + exp(-x))",
        "y = x / (1 + exp(x))",
        "y = x * (1 + erf(x)) / 2",
    ],
)
def test_what_only_looks_like_an_activation_stays(text: str) -> None:
    small = recognise(program(f"  equations: |\n    {text}\n").flat)
    assert not set(ops(small)) & set(ACTIVATIONS) - {"sigmoid"}


MEAN = 'm = mean(x, "b t c -> b t 1")'
LAYER_NORMS = [
    f'{MEAN}\nd = x - m\nv = mean(d*d, "b t c -> b t 1")\ny = d / sqrt(v + 0.00001) * g + s',
    f'{MEAN}\nv = mean((x - m)**2, "b t c -> b t 1")\ny = (x - m) / sqrt(v + 0.00001) * g + s',
    f'{MEAN}\nd = x - m\nv = mean(d**2, "... c -> ... 1")\ny = s + g * d * (v + 0.00001)**-0.5',
    'm = sum(x, "b t c -> b t 1") / C\nd = x - m\nv = sum(d*d, "b t c -> b t 1") / C\n'
    "y = g * (d / sqrt(0.00001 + v)) + s",
    f'{MEAN}\nd = x - m\nr = 1 / sqrt(mean(d*d, "b t c -> b t 1") + 0.00001)\ny = d * r * g + s',
]


@pytest.mark.parametrize("text", LAYER_NORMS)
def test_a_layer_norm_spelled_out_is_one_node(text: str) -> None:
    body = "  params: {g: [C], s: [C]}\n  equations: |\n" + "".join(f"    {line}\n" for line in text.splitlines())
    assert recognised(body, "layer_norm") == {"layer_norm": 1}


RMS_NORMS = [
    'y = x / sqrt(mean(x*x, "b t c -> b t 1") + 0.000001) * g',
    'y = g * x * (mean(x**2, "b t c -> b t 1") + 0.000001)**-0.5',
    'y = x * (1 + g) / sqrt(sum(x*x, "b t c -> b t 1") / C + 0.000001)',
    'n = x / sqrt(mean(x*x, "b t c -> b t 1") + 0.000001)\ny = n * (g + 1)',
]


@pytest.mark.parametrize("text", RMS_NORMS)
def test_an_rms_norm_spelled_out_is_one_node(text: str) -> None:
    body = "  params: {g: [C]}\n  equations: |\n" + "".join(f"    {line}\n" for line in text.splitlines())
    found = recognised(body, "rms_norm")
    assert set(found) <= {"rms_norm", "add"}


@pytest.mark.parametrize(
    "text",
    [
        'y = x / sqrt(mean(x*x, "b t c -> b 1 c") + 0.000001)',
        'y = x / sqrt(sum(x*x, "b t c -> b t 1") + 0.000001)',
        'y = x / (mean(x*x, "b t c -> b t 1") + 0.000001)',
        'd = x - mean(x, "b t c -> b 1 c")\ny = d / sqrt(mean(d*x, "b t c -> b t 1") + 1)',
    ],
)
def test_what_only_looks_like_a_norm_stays(text: str) -> None:
    body = "  equations: |\n" + "".join(f"    {line}\n" for line in text.splitlines())
    assert not {"layer_norm", "rms_norm"} & set(ops(recognise(program(body).flat)))


PROJECTIONS = """\
  params: {Wq: [C, C], Wk: [C, C], Wv: [C, C], Wo: [C, C]}
  equations: |
"""
CUT = 'rearrange(x @ W{}, "b t (h d) -> b h t d", h=H)'
ATTENTIONS = {
    "einsum": f"""
    q = {CUT.format("q")}
    k = {CUT.format("k")}
    v = {CUT.format("v")}
    w = softmax(einsum("b h t d, b h s d -> b h t s", q, k) / sqrt(D), mask="causal")
    y = rearrange(einsum("b h t s, b h s d -> b h t d", w, v), "b h t d -> b t (h d)") @ Wo
""",
    "matrix products": f"""
    q = {CUT.format("q")}
    k = {CUT.format("k")}
    v = {CUT.format("v")}
    w = softmax(q @ k.T * D**-0.5, mask="causal")
    y = rearrange(w @ v, "b h t d -> b t (h d)") @ Wo
""",
    "heads last": """
    q = rearrange(x @ Wq, "b t (h d) -> b t h d", h=H)
    k = rearrange(x @ Wk, "b t (h d) -> b t h d", h=H)
    v = rearrange(x @ Wv, "b t (h d) -> b t h d", h=H)
    w = softmax(einsum("b i h d, b j h d -> b h i j", q, k) * (1 / sqrt(D)), mask="causal")
    o = einsum("b h i j, b j h d -> b i h d", w, v)
    y = rearrange(o, "b i h d -> b i (h d)") @ Wo
""",
    "values first": """
    q = heads(x @ Wq, H)
    k = heads(x @ Wk, H)
    v = heads(x @ Wv, H)
    w = softmax(D**-0.5 * einsum("b h s e, b h t e -> b h t s", k, q), mask="causal")
    y = merge(einsum("b h s d, b h t s -> b h t d", v, w)) @ Wo
""",
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_spelled_out_is_the_plan_of_the_kind(name: str) -> None:
    kind = bg.compile(HEAD + "  parts: {a: {kind: attention, heads: H, mask: causal}}\n  equations: y = a(x)\n")
    found = recognised(PROJECTIONS + ATTENTIONS[name].strip("\n"), "attend")
    assert found == ops(kind.flat)


def test_projections_by_einsum_are_matrix_products() -> None:
    body = """\
  params: {Wq: [C, H, D], Wk: [C, H, D], Wv: [C, H, D], Wo: [H, D, C]}
  equations: |
    q = einsum("b t c, c h d -> b h t d", x, Wq)
    k = einsum("b t c, c h d -> b h t d", x, Wk)
    v = einsum("b t c, c h d -> b h t d", x, Wv)
    w = softmax(einsum("b h t d, b h s d -> b h t s", q, k))
    y = einsum("b h t d, h d c -> b t c", einsum("b h t s, b h s d -> b h t d", w, v), Wo)
"""
    found = recognised(body, "attend")
    assert found["matmul"] == 4
    assert found["einsum"] == 0
    assert found["heads"] == 3


def test_grouped_heads_a_bias_and_a_cap_are_recognised() -> None:
    body = """\
  inputs: {x: [B, T, C], bias: [B, H, T, T]}
  params: {Wq: [C, C], Wk: [C, G*D], Wv: [C, G*D]}
  equations: |
    q = rearrange(x @ Wq, "b t (g r d) -> b g r t d", g=G, d=D)
    k = heads(x @ Wk, G)
    v = heads(x @ Wv, G)
    s = einsum("b g r t d, b g s d -> b g r t s", q, k) * 0.4
    w = softmax(5 * tanh(s / 5))
    y = rearrange(einsum("b g r t s, b g s d -> b g r t d", w, v), "b g r t d -> b t (g r d)")
    z = softmax(heads(x, H) @ heads(x, H).T + bias) @ heads(x, H)
    out = y + merge(z)
"""
    recognised(body, "attend", 2)


def test_a_softmax_spelled_out_is_one_node() -> None:
    body = """\
  equations: |
    e = exp(x - max(x, "b t c -> b t 1"))
    y = e / sum(e, "b t c -> b t 1")
"""
    assert recognised(body, "softmax") == {"softmax": 1}


@pytest.mark.parametrize(
    "text",
    [
        'w = softmax(einsum("b h t d, b h s d -> b h s t", q, q))\ny = einsum("b h s t, b h s d -> b h t d", w, q)',
        'w = softmax(einsum("b h t d, b h s d -> b h t s", q, q))\ny = einsum("b h t s, b h t d -> b h s d", w, q)',
        'w = softmax(einsum("b h t d, b h s d -> b h t s", q, q))\ny = w @ q + merge(q)[:, :1, None, :D] * w[..., :1]',
    ],
)
def test_what_only_looks_like_attention_computes_the_same(text: str) -> None:
    lines = ["q = heads(x, H)", *text.splitlines(), "out = merge(y)"]
    made = program("  equations: |\n" + "".join(f"    {line}\n" for line in lines))
    (found,), (wanted,) = outputs(made, recognise(made.flat), T=6), outputs(made, made.flat, T=6)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_a_value_that_is_asked_for_stays() -> None:
    made = program(PROJECTIONS + ATTENTIONS["einsum"].strip("\n"))
    weights = made.flat.named["w"]
    small = recognise(made.flat, keep={weights})
    assert weights in {value for node in small.nodes for value in node.outputs}
    assert ops(small)["attend"] == 0
    assert ops(small)["softmax"] == 1


def test_the_same_computation_twice_is_done_once() -> None:
    body = "  equations: |\n    a = tanh(x * 2)\n    b = tanh(x * 2)\n    y = a + b\n"
    assert recognised(body, "tanh") == {"tanh": 1, "multiply": 1, "add": 1}


@pytest.mark.parametrize("path", ["specs/pre_norm.yaml", "specs/gqa_swiglu.yaml", "specs/models/gemma2.yaml"])
def test_the_built_in_kinds_stay_what_they_are(path: str) -> None:
    made = bg.compile(path)
    found, before = ops(recognise(made.flat)), ops(made.flat)
    assert all(found[name] == before[name] for name in ("attend", "layer_norm", "rms_norm", "gelu_tanh", "silu"))


def agree(made: bg.Program, inputs: dict[str, np.ndarray], params: dict[str, np.ndarray], **free: int) -> None:
    seen = recognise(made.flat)
    numbers = made.sizes(**free)
    found, wanted = (Interpreter(graph).run(inputs, params, numbers) for graph in (seen, made.flat))
    for value, array in wanted.items():
        assert found[value].dtype == array.dtype
        scale = max(float(np.abs(array).max(initial=0)), 1e-300)
        np.testing.assert_allclose(found[value] / scale, array / scale, rtol=0, atol=1e-12)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_every_spec_computes_the_same(path: Path) -> None:
    made = small(path)
    inputs, params = stirred_run(made, B=2)
    agree(made, inputs, params, B=2)
    again = recognise(made.flat)
    assert len(recognise(again).nodes) == len(again.nodes), "a second look finds nothing more"


@pytest.mark.parametrize("number", range(60))
def test_specs_made_at_random_compute_the_same(number: int) -> None:
    rng = random.Random(f"peephole {number}")
    made = spec(rng)
    numbers = sizes(rng)
    program = bg.compile(made.text, **numbers)
    inputs, params = program.sample(number, B=2, T=5)
    agree(program, {"x": inputs}, params, B=2, T=5)
