"""Proofs about graphs made for the purpose: masks by hand, shifts, dead ends, and what cannot be told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.dims import Dim
from blockgraph.facts import causal, leak, prove
from blockgraph.facts.interval import Interval, at_most
from blockgraph.graph import Graph
from tests.small_specs import outputs_of, stirred_run

HEADS = {"dims": {"C": 8, "H": 2}}


def graph_of(equations: str, **block: Any) -> Graph:
    """The graph of a block with these equations."""
    found = bg.check({**HEADS, "block": {"equations": equations.strip().splitlines(), **block}})
    assert found.ok, found.findings
    assert found.graph is not None
    return found.graph


SCORES = 's = einsum("b t c, b s c -> b t s", x, x)\n'
FUTURE = 's = einsum("b t c, b s c -> b t s", x, x)\n'
CAUSAL_CASES = [
    ("y = tanh(x)", "proved"),
    ("y = shift(x, 1)", "proved"),
    ("y = shift(x, -1)", "refuted"),
    ("y = shift(shift(x, -1), 1)", "proved"),
    ("y = shift(shift(x, 1), -2)", "refuted"),
    ('y = cumsum(x, "b [t] c")', "proved"),
    ('y = x - mean(x, "b t c -> b 1 c")', "refuted"),
    ('y = x - mean(x, "b t c -> b t 1")', "proved"),
    (SCORES + 'y = einsum("b t s, b s c -> b t c", softmax(s, mask="causal"), x)', "proved"),
    (SCORES + 'y = softmax(s, mask="causal") @ x', "proved"),
    (SCORES + 'y = softmax(s, mask="causal", window=2) @ x', "proved"),
    (SCORES + 'y = (2*softmax(s, mask="causal")) @ tanh(x)', "proved"),
    (SCORES + "y = softmax(s) @ x", "refuted"),
    (SCORES + 'y = softmax(s, mask="causal") @ shift(x, -1)', "refuted"),
    (SCORES + 'w = softmax(s, mask="causal")\ny = (w / sum(w, "b t s -> b t 1")) @ x', "proved"),
    (SCORES + "y = s @ x", "refuted"),
    (SCORES + 'y = rearrange(softmax(s, mask="causal"), "b t s -> b s t") @ x', "refuted"),
    ("q = heads(x, H)\ny = merge(attend(q, q, q))", "refuted"),
    ('q = heads(x, H)\ny = merge(attend(q, q, q, mask="causal"))', "proved"),
    ("q = heads(x, H)\ny = merge(attend(q, q, q, window=2))", "refuted"),
    ('q = heads(x, H)\ny = merge(attend(q, shift(q, -1), q, mask="causal"))', "refuted"),
    ('q = heads(x, H)\ny = merge(attend(q, shift(q, 1), shift(q, 3), mask="causal"))', "proved"),
]


@pytest.mark.parametrize(("equations", "verdict"), CAUSAL_CASES)
def test_causality_is_told_and_is_what_the_interpreter_does(equations: str, verdict: str) -> None:
    block = {"equations": equations.splitlines()}
    program = bg.compile({**HEADS, "block": block})
    inputs, params = stirred_run(program, B=1, T=7)
    changed = {"x": inputs["x"].copy()}
    changed["x"][:, 4:] = np.random.default_rng(5).standard_normal(changed["x"][:, 4:].shape)
    (before,), (after,) = outputs_of(program, inputs, params).values(), outputs_of(program, changed, params).values()
    same = bool(np.allclose(before[:, :4], after[:, :4], rtol=0, atol=1e-12))
    assert same == (verdict == "proved")
    assert prove(program.graph).causal == verdict


@pytest.mark.parametrize(
    "equations",
    [
        'y = rearrange(rearrange(x, "b (n w) c -> (b n) w c", w=2), "(b n) w c -> b (n w) c", n=T/2)',
        # a mask written by hand with where: which elements it hides is not followed
        SCORES + 'i = cumsum(x[0, :, 0]*0 + 1, "[t]")\n'
        'm = rearrange(i, "t -> t 1") >= rearrange(i, "s -> 1 s")\n'
        "y = softmax(where(m, s, -1e9)) @ x",
    ],
)
def test_what_cannot_be_followed_is_neither_proved_nor_refuted(equations: str) -> None:
    found = bg.check({**HEADS, "block": {"equations": equations.splitlines()}})
    assert found.ok, found.findings
    assert found.graph is not None
    assert prove(found.graph).causal == "not proved"


def test_a_window_of_layers_is_followed_to_a_fixed_point() -> None:
    def stacked(equation: str, repeat: Any) -> Graph:
        data = {
            "dims": {"C": 8, "N": None},
            "block": {"equations": [equation]},
            "model": {"parts": {"layers": {"kind": "stack", "of": "block", "repeat": repeat}}},
        }
        data["model"]["equations"] = ["x = layers(x)"]
        found = bg.check(data)
        assert found.graph is not None
        return found.graph

    for repeat in (1, 3, 40, 100_000, "N"):
        assert prove(stacked("x = x + shift(x, 1)", repeat)).causal == "proved"
        assert prove(stacked("x = x + shift(x, -1)", repeat)).causal == "refuted"
        assert prove(stacked("x = x*2", repeat)).positionwise == "proved"


def test_a_shift_back_and_forth_in_two_bodies_is_proved_by_cycles() -> None:
    data = {
        "dims": {"C": 8},
        "blocks": {"back": {"equations": ["x = shift(x, 1)"]}, "ahead": {"equations": ["x = shift(x, -1)"]}},
        "model": {
            "parts": {"layers": {"kind": "stack", "of": ["back", "ahead"], "repeat": 6}},
            "equations": ["x = layers(x)"],
        },
    }
    found = bg.check(data)
    assert found.graph is not None
    assert prove(found.graph).causal == "proved"


def test_the_batch_is_told_where_items_are_mixed() -> None:
    assert prove(graph_of('y = x - mean(x, "b t c -> 1 t c")')).batch_independent == "refuted"
    assert prove(graph_of('y = x - mean(x, "b t c -> b 1 c")')).batch_independent == "proved"


@pytest.mark.parametrize(
    ("equations", "dead"),
    [
        ("y = x*stop_gradient(w)", ("w",)),
        ("y = where(x*w > 0, x, 2*x)", ("w",)),
        ("y = x*w", ()),
        ("y = x + 0*w", ("w",)),
        ('y = x + sinusoid(x*w, style="half")', ("w",)),
        ("y = x*stop_gradient(w) + w", ()),
    ],
)
def test_a_parameter_behind_a_cut_is_dead_and_its_gradient_is_zero(equations: str, dead: tuple[str, ...]) -> None:
    data = {**HEADS, "block": {"params": {"w": ["C"]}, "equations": equations.splitlines()}}
    program = bg.compile(data)
    assert prove(program.graph).dead_parameters == dead
    inputs, params = stirred_run(program)
    y, back = program.vjp(inputs, params)
    _, gradients = back(np.random.default_rng(0).standard_normal(y.shape))
    assert tuple(name for name, gradient in gradients.items() if not gradient.any()) == dead


def carried(repeat: Any) -> bg.Program:
    """A second stream is written by every layer and read by the next one, so that of the last is lost."""
    data = {
        "dims": {"C": 8},
        "block": {
            "inputs": {"x": ["B", "T", "C"], "v": ["B", "T", "C"]},
            "outputs": ["x", "v"],
            "params": {"w": ["C"], "u": ["C"]},
            "equations": ["x = x + u*tanh(v)", "v = w*x"],
        },
        "model": {
            "parts": {"layers": {"kind": "stack", "of": "block", "repeat": repeat}},
            "equations": ["x, v = layers(x, x)", "y = x + 0*v"],
        },
    }
    return bg.compile(data)


def test_only_the_last_layer_has_a_dead_parameter_where_nobody_reads_it_after_it() -> None:
    program = carried(5)
    assert prove(program.graph).dead_parameters == ("layers.4.w",)
    inputs, params = stirred_run(program)
    y, back = program.vjp(inputs, params)
    _, gradients = back(np.ones(y.shape))
    assert [name for name, gradient in gradients.items() if not gradient.any()] == ["layers.4.w"]
    assert prove(carried(100_000).graph).dead_parameters == ("layers.99999.w",)


def test_a_parameter_dead_in_all_layers_is_named_once() -> None:
    data = {
        "dims": {"C": 8},
        "block": {"params": {"w": ["C"]}, "equations": ["x = x*stop_gradient(w)"]},
        "model": {
            "parts": {"layers": {"kind": "stack", "of": "block", "repeat": 3}},
            "equations": ["x = layers(x)"],
        },
    }
    found = bg.check(data)
    assert found.graph is not None
    assert prove(found.graph).dead_parameters == ("layers.*.w",)


def test_the_path_of_a_leak_leads_through_the_op_that_reads_ahead() -> None:
    graph = graph_of("h = tanh(x)\nk = shift(h, -1)\ny = x + k")
    assert causal(graph, {}) == "refuted"
    found = leak(graph, {})
    assert found is not None
    assert found.path == ("x", "h", "k", "y")
    assert found.culprit == "k = shift(h, -1)"


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        (0, 0, True),
        (Dim("T") - 1, 0, None),
        (0, Dim("T") - 1, True),
        (Dim("T"), 0, False),
        (1 - Dim("W"), 0, True),
        (Dim("T") - Dim("S"), 0, None),
        (Dim("T"), Dim("T") * Dim("H"), None),
        (2, Dim("T") + 1, True),
    ],
)
def test_sizes_are_compared_for_all_numbers(left: Dim | int, right: Dim | int, order: bool | None) -> None:
    assert at_most(left, right) is order


def test_intervals_add_and_join() -> None:
    window = Interval(1 - Dim("W"), 0)
    assert window + window == Interval(2 - 2 * Dim("W"), 0)
    assert window.hull(Interval(0, 0)) == window
    assert window.hull(Interval(-1, 2)) == Interval(None, 2)
    assert window.is_past
    assert Interval(0, Dim("T") - Dim("S")).is_past is False
    assert Interval(None, None).reads_later


def test_a_stack_of_stacks_takes_no_longer_for_being_deep() -> None:
    blocks: dict[str, Any] = {"b0": {"equations": ["x = x + shift(x, 1)"]}}
    for depth in range(1, 14):
        inner = {"kind": "stack", "of": f"b{depth - 1}", "repeat": 3}
        blocks[f"b{depth}"] = {"parts": {"s": inner}, "equations": ["x = s(x)"]}
    found = bg.check({"dims": {"C": 4}, "blocks": blocks, "model": {"parts": {"m": "b13"}, "equations": ["x = m(x)"]}})
    assert found.graph is not None, found.findings
    assert prove(found.graph).causal == "proved"
