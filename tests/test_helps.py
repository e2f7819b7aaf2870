"""What a beginner's mistake is answered with: every such finding says what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.errors import Finding

ATTENTION = "{kind: attention, heads: H}"
PLAIN = f"dims: {{C: 8, H: 2}}\nblock:\n  norm: layer_norm\n  sublayers: [{ATTENTION}]\n"
TOKENS = (
    "dims: {C: 8, V: 10, L: 4}\nblock:\n  inputs: {x: {ids: [B, T], below: V}}\n"
    "  parts: {table: {kind: embedding, size: V, width: C}, at: {kind: learned_positions, length: L, width: C}}\n"
    "  equations: y = table(x) + at(x)\n"
)


def equation(text: str) -> str:
    """A block of one equation with an attention beside it."""
    return f"dims: {{C: 8, H: 2}}\nblock:\n  parts: {{attn: {ATTENTION}}}\n  equations: |\n    {text}\n"


def only(code: str, found: tuple[Finding, ...]) -> Finding:
    """The one finding of a code."""
    (one,) = (one for one in found if one.code == code)
    return one


@pytest.mark.parametrize(
    ("code", "text", "values", "help"),
    [
        ("BG109", TOKENS, {"T": 5}, "keep T to at most 4, or raise L to 5"),
        ("BG022", PLAIN, {"H": 0}, "give a number from 1 on, or leave it out: the file says 2"),
        ("BG022", PLAIN, {"T": 0}, "leave it out: the arrays of a run tell it; or give a number from 1 on"),
        ("BG027", equation("x = x / layer"), {}, "write a number, or use the block in a stack: "),
        ("BG101", equation('x = x + mean(x, "b t c -> b t")'), {}, '`mean(x, "b t c -> b t 1")`'),
        ("BG101", equation('m = mean(x, "b t c -> b t")\n    x = x + m'), {}, "`[..., None]` adds one of size 1"),
    ],
)
def test_a_mistake_in_a_spec_is_answered_with_what_to_write(
    code: str, text: str, values: dict[str, Any], help: str
) -> None:
    assert help in only(code, bg.check(text, **values).findings).help


@pytest.mark.parametrize(
    ("code", "text", "x", "params", "help"),
    [
        ("BG109", TOKENS, np.zeros((1, 5), int), None, "keep T to at most 4, or raise L to 5"),
        ("BG303", TOKENS, np.array([[3, 12]]), None, "give ids from 0 to 9, or raise V to 13"),
        ("BG303", TOKENS, np.array([[-1]]), None, "give ids from 0 to 9"),
        ("BG302", PLAIN, np.zeros((2, 3, 4)), None, "give an array of shape (2, 3, 8)"),
        ("BG302", PLAIN, np.zeros((2, 8)), None, "give an array with 3 axes: B, T and C"),
        ("BG302", PLAIN, {}, None, "give a dict with x"),
        ("BG301", PLAIN, np.zeros((2, 3, 8)), {}, "`program.init(0)` draws all of them, as a dict by name"),
    ],
)
def test_arrays_that_do_not_fit_are_answered_with_those_that_would(
    code: str, text: str, x: Any, params: dict[str, Any] | None, help: str
) -> None:
    program = bg.compile(text)
    block = bg.TransformerBlock(program, program.init(0) if params is None else params)
    with pytest.raises(bg.InputError, match=code) as caught:
        block(x)
    assert only(code, caught.value.findings).help == help
