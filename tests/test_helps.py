"""What a beginner's mistake is answered with: every such finding says what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.errors import Finding
from tests.test_cli import Run, run

__all__ = ["run"]

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


HABITS = [
    ("BG026", "x = x + attn(norm(x))", "declare it under `parts`, as `norm: layer_norm` or `norm: rms_norm`"),
    (
        "BG026",
        "x = reshape(x, H)",
        '`rearrange(x, "b t (h d) -> b h t d", h=H)`; for attention there are `heads(x, H)`',
    ),
    ("BG026", "x = view(x, H)", "write `rearrange("),
    ("BG010", "x = x.transpose(1, 2)", "write `rearrange("),
    ("BG010", "x = x - x.mean(-1)", 'write `mean(x, "b t c -> b t 1")`'),
    ("BG010", "x = x.softmax(-1)", "write `softmax(x)`, not `x.softmax()`"),
    ("BG026", "x = x + dropout(attn(x))", "leave it out: a spec has no dropout"),
    ("BG026", "x = x + linear(x)", "declare a part of this kind under `parts`, as `linear: {kind: linear}`"),
    ("BG102", "y = x @ x", "the last axis on the left meets the last axis but one on the right; `.T` swaps"),
]


@pytest.mark.parametrize(("code", "text", "help"), HABITS)
def test_what_other_libraries_write_is_answered_with_what_a_spec_has(code: str, text: str, help: str) -> None:
    found = bg.check(equation(text)).findings
    assert help in only(code, tuple(one for one in found if one.severity == "error")).help


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("heads: H", "heads: H, attn_dropout: 0.1"),
        PLAIN.replace("heads: H", "dropout: 0.1, heads: H"),
        PLAIN.replace("norm: layer_norm", "dropout: 0.1"),
        PLAIN.replace(f"[{ATTENTION}]", f"[{ATTENTION}, dropout]"),
        "dims: {C: 8}\nblock:\n  parts: {drop: {kind: dropout, p: 0.1}}\n  equations: x = x + drop(x)\n",
        "dims: {C: 8}\nblock:\n  parts: {f: {kind: feed_forward, dropout: 0.1, hidden: C, activation: relu}}\n"
        "  equations: x = x + f(x)\n",
    ],
)
def test_a_dropout_is_to_be_left_out(text: str) -> None:
    (one,) = (one for one in bg.check(text).findings if one.severity == "error")
    assert one.help == "leave it out: a spec has no dropout, it describes inference and exact gradients"


CROSS = (
    "dims: {C: 8, H: 2}\nblock:\n  inputs: {x: [B, T, C], memory: [B, S, C]}\n  norm: layer_norm\n"
    "  sublayers: [{kind: cross_attention, heads: H}]\n"
)


def test_a_sublayer_that_lacks_an_input_is_told_how_to_be_passed_it() -> None:
    (one,) = bg.check(CROSS).findings
    assert (one.code, one.help) == ("BG028", "pass it by name: `with: [memory]`")
    (one,) = bg.check(CROSS.replace(", memory: [B, S, C]", "")).findings
    assert one.help == "declare `memory` under `inputs` of the block, and pass it by name: `with: [memory]`"


def test_a_name_for_a_list_of_names_is_one_finding() -> None:
    (one,) = bg.check(CROSS.replace("heads: H}", "heads: H, with: memory}")).findings
    assert (one.code, one.help) == ("BG022", "for example `with: [memory, keep]`")


@pytest.mark.parametrize(
    ("word", "kind"), [("swiglu", "gated_feed_forward"), ("mha", "attention"), ("ffn", "feed_forward")]
)
def test_explain_and_check_know_the_same_names_of_others(word: str, kind: str, run: Run) -> None:
    assert f"did you mean `{kind}`?" in run("explain", word)[2]
    assert bg.check(PLAIN.replace(ATTENTION, word)).findings[0].help == f"did you mean `{kind}`?"


def test_specs_of_different_inputs_are_not_compared(run: Run) -> None:
    code, _, err = run("compare", "specs/pre_norm.yaml", "specs/models/gpt2.yaml")
    assert code == 1
    assert "the two specs take different inputs: x (2, 8, 64) against tokens (2, 8) of ids" in err


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
