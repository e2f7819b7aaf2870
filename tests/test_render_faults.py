"""A spec with findings is drawn all the same: the step at fault is marked, with the shapes found and expected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blockgraph.drawing import find_dot
from tests.test_cli import Run, run

__all__ = ["run"]

ADD = """
dims: {C: 64, H: 4}
block:
  parts:
    norm: layer_norm
    ff: {kind: feed_forward, hidden: 4*C, activation: relu, out: 3*C}
    after: layer_norm
  equations: |
    x = x + ff(norm(x))
    x = after(x)
"""
STACK = """
dims: {C: 64}
blocks:
  layer_one:
    parts: {up: {kind: linear, out: 2*C}, norm: layer_norm, ff: {kind: linear, out: C}}
    equations: |
      h = up(norm(x))
      x = x + ff(norm(h))
model:
  parts: {layers: {kind: stack, of: layer_one, repeat: 3}, final: layer_norm}
  equations: y = final(layers(x))
"""
INPUT = """
dims: {C: 64}
blocks:
  inner:
    inputs: {x: [B, T, C]}
    parts: {norm: layer_norm}
    equations: x = norm(x)
model:
  parts:
    up: {kind: linear, out: 2*C}
    inner: inner
    mix: {kind: attention}
  equations: |
    h = up(x)
    y = inner(h)
    z = mix(y)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def drawn(run: Run, text: str) -> tuple[str, str]:
    Path("bad.yaml").write_text(text)
    code, out, err = run("render", "bad.yaml", "-o", "-")
    assert code == 1
    return out, err


def statement(dot: str, word: str) -> list[str]:
    return [line.strip() for line in dot.splitlines() if word in line]


def wires(dot: str) -> list[tuple[str, ...]]:
    """The lines of the texts beside wires at fault."""
    found = re.findall(r"^\s*n\d+ -> n\d+ \[.*label=<(<TABLE.*?>found.*?)>\];$", dot, re.MULTILINE)
    return [tuple(re.findall(r"<TD[^>]*>(.*?)</TD>", re.sub(r"&#\d+;", "", text))) for text in found]


def test_a_branch_that_does_not_fit_is_drawn_up_to_its_plus_and_on(run: Run) -> None:
    dot, err = drawn(run, ADD)
    assert err.startswith("BG101 bad.yaml:9:13")
    (plus,) = statement(dot, "guilty")
    assert 'class="add guilty"' in plus
    assert 'style="rounded,filled,dashed", color="#CC0000"' in plus
    assert wires(dot) == [("found (B, T, 3*C)", "expected (B, T, C)")]
    assert 'class="op feed_forward"' in dot
    assert len(statement(dot, "layer_norm")) == 1


def test_a_fault_in_a_stack_shows_the_block_beside_the_model(run: Run) -> None:
    dot, err = drawn(run, STACK)
    assert err.startswith("BG111 bad.yaml:8:23")
    assert dot.count('class="figure"') == 2
    stack, norm = statement(dot, "guilty")
    assert "! stack" in stack
    assert "! layer_norm" in norm
    assert "BG111: `norm` had width C at its first call," in norm
    assert wires(dot) == [("found (B, T, 2*C)", "expected (B, T, C)")]


def test_a_call_that_does_not_fit_and_a_wrong_declaration_are_both_marked(run: Run) -> None:
    dot, err = drawn(run, INPUT)
    assert "BG104 bad.yaml:15:15" in err
    assert "BG021 bad.yaml:12:5" in err
    call, part = statement(dot, "guilty")
    assert "! inner(h)" in call
    assert "BG104: `x` of `inner` does not fit" in call
    assert "! attention" in part
    assert "BG021: `heads` is required for `attention`" in part
    assert wires(dot) == [("found (B, T, 2*C)", "expected (B, T, C)")]


def test_a_spec_without_findings_has_nothing_at_fault(run: Run) -> None:
    Path("good.yaml").write_text(ADD.replace("3*C", "C").replace(", H: 4", ""))
    code, dot, err = run("render", "good.yaml", "-o", "-")
    assert (code, err) == (0, "")
    assert "guilty" not in dot
    assert "found" not in dot


def test_hostile_text_in_a_finding_stays_text(run: Run) -> None:
    dot, _ = drawn(run, 'block:\n  parts: {a: {kind: linear, out: "<b>"}}\n  equations: y = a(x)\n')
    assert "<b>" not in dot.replace("<B>", "")


@pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")
@pytest.mark.parametrize("text", [ADD, STACK, INPUT], ids=["add", "stack", "input"])
def test_the_picture_of_a_spec_with_findings_can_be_drawn(run: Run, text: str) -> None:
    Path("bad.yaml").write_text(text)
    assert run("render", "bad.yaml", "-o", "bad.svg")[0] == 1
    svg = Path("bad.svg").read_text(encoding="utf-8")
    assert "guilty" in svg
    assert "stroke-dasharray" in svg


def test_an_inner_size_that_does_not_fit_is_told_with_the_shape_that_would(run: Run) -> None:
    equations = '    h = rearrange(x, "b t c -> b c t")\n    y = x @ (h @ tanh(h))\n    x = x + y\n'
    dot, _ = drawn(run, f"dims: {{C: 64}}\nblock:\n  equations: |\n{equations}")
    assert "found (B, C, T)" in dot
    assert "expected (B, C, C)" in dot


PARAMETERS = {
    "a matrix": ("W: [3*C, C]", "tanh(x) @ W", "(B, T, 3*C)"),
    "a transposed matrix": ("W: [C, 3*C]", "tanh(x) @ W.T", "(B, T, 3*C)"),
    "a matrix on the left": ("W: [C, 3*C]", "W @ tanh(x)", "(B, 3*C, C)"),
    "a factor": ("w: [3*C]", "tanh(x) * w", "(B, T, 3*C)"),
    "a term with an axis of one": ("w: [3*T, 1]", "(tanh(x) + w)", "(B, 3*T, C)"),
    "an operand of a pattern": ("W: [3*C, C]", 'einsum("b t c, c d -> b t d", tanh(x), W)', "(B, T, 3*C)"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_wire_that_meets_a_parameter_at_fault_tells_what_the_parameter_takes(name: str, run: Run) -> None:
    declared, term, expected = PARAMETERS[name]
    dims = "dims: {C: 64, T: 8}"
    dot, _ = drawn(run, f"{dims}\nblock:\n  params: {{{declared}}}\n  equations: |\n    x = x + {term}\n")
    assert wires(dot) == [("found (B, T, C)", f"expected {expected}")]
    assert re.search(r'n1 -> n2 \[pos="[^"]*", color="#CC0000", style="dashed"', dot)


def test_a_fault_between_two_parameters_is_a_box_with_both(run: Run) -> None:
    dot, _ = drawn(run, "dims: {C: 64}\nblock:\n  params: {W: [C, 4*C], V: [3*C, C]}\n  equations: x = x @ (W @ V)\n")
    (box,) = statement(dot, "guilty")
    assert "! W @ V" in box
    assert "BG102: inner sizes differ" in box
