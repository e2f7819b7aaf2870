"""Lints about wiring: each in a case that deserves it and in one that does not, and none on the repository's specs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import blockgraph as bg
from blockgraph.errors import Finding
from blockgraph.lints import lint
from tests.small_specs import FILES, NAMES

ATTENTION = "{kind: attention, heads: H}"
FEED = "{kind: feed_forward, hidden: 4*C, activation: relu}"


def linted(text: str) -> list[Finding]:
    """What the lints say of a spec without other findings."""
    checked = bg.check(text)
    assert checked.graph is not None
    errors = [one for one in checked.findings if one.severity == "error" and one.code != "BG112"]
    assert errors == []
    return [one for one in lint(checked.graph, checked.spec) if one.code not in ("BG221",)]


def codes(text: str) -> list[str]:
    return sorted(one.code for one in linted(text))


def stack(placement: str, model: str, repeat: int = 2, parts: str = "", sublayers: str = ATTENTION) -> str:
    """A model of one stack."""
    return (
        f"dims: {{C: 64, H: 4}}\nblock:\n  norm: layer_norm\n  placement: {placement}\n  sublayers:\n"
        f"    - {sublayers}\n    - {FEED}\nmodel:\n  parts:\n    layers: {{kind: stack, of: block, repeat: {repeat}}}\n"
        f"{parts}  equations: {model}\n"
    )


KINDS = list(enumerate(["attention, heads: H", "feed_forward, hidden: 4*C, activation: relu"]))
FINAL = "    final_norm: layer_norm\n"
HEAD = "    head: {kind: linear, out: 7}\n"


def block(equations: str, params: str = "", parts: str = "") -> str:
    """A block by equations."""
    lines = "".join(f"    {line}\n" for line in equations.split("; "))
    return f"dims: {{C: 64, H: 4}}\nblock:\n{params}  parts:\n{parts}  equations: |\n{lines}"


PARTS = f"    norm: layer_norm\n    norm2: layer_norm\n    attention: {ATTENTION}\n    ff: {FEED}\n"
MAP = "    map: linear\n"


@pytest.mark.parametrize("dropped", [0, 1])
def test_post_norm_with_a_residual_dropped_has_no_normed_skip(dropped: int) -> None:
    sublayers = [f"{{kind: {kind}, residual: none}}" if n == dropped else f"{{kind: {kind}}}" for n, kind in KINDS]
    text = "dims: {C: 64, H: 4}\nblock:\n  norm: layer_norm\n  placement: post\n  sublayers:\n"
    assert codes(text + "".join(f"    - {one}\n" for one in sublayers)) == ["BG212"]


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_spec_of_the_repository_deserves_a_lint(path: Path) -> None:
    checked = bg.check(path)
    assert checked.graph is not None
    assert lint(checked.graph, checked.spec) == ()


def test_a_final_norm_behind_a_post_norm_stack_is_told_at_its_call() -> None:
    text = stack("post", "x = final_norm(layers(x))", parts=FINAL)
    (finding,) = linted(text)
    assert (finding.code, finding.severity) == ("BG210", "warning")
    assert "its input is already the output of `layers.1.norm2`" in finding.message
    assert text.splitlines()[finding.place.start.line - 1][finding.place.start.column - 1 :].startswith("final_norm(")
    assert codes(stack("post", "x = layers(x)")) == []


CASES: list[tuple[str, str, str]] = [
    ("BG210", block("x = norm2(norm(x)) + ff(x)", parts=PARTS), block("x = norm(x) + ff(norm2(x))", parts=PARTS)),
    (
        "BG211",
        stack("pre", "y = head(layers(x))", parts=HEAD),
        stack("pre", "y = head(final_norm(layers(x)))", parts=HEAD + FINAL),
    ),
    (
        "BG211",
        stack("sandwich", "y = head(layers(x)[:, 0])", parts=HEAD),
        stack("post", "y = head(layers(x))", parts=HEAD),
    ),
    ("BG211", stack("pre", "y = head(2*layers(x))", parts=HEAD), stack("pre", "x = layers(x)")),
    (
        "BG212",
        block("x = x + attention(norm(x)); x = ff(norm2(x))", parts=PARTS),
        block("x = x + attention(norm(x)); x = x + ff(norm2(x))", parts=PARTS),
    ),
    (
        "BG212",
        stack("pre", "x = layers(x)", sublayers="{kind: attention, heads: H, residual: none}"),
        block("x = attention(norm(x))", parts=PARTS),
    ),
    (
        "BG213",
        block("x = x + norm(ff(x) + w)", "  params: {w: {shape: [1]}}\n", PARTS),
        block("x = x + norm(ff(x) + w)", "  params: {w: {shape: [C]}}\n", PARTS),
    ),
    (
        "BG213",
        stack("pre", "x = layers(x)", sublayers="{kind: attention, heads: H, bias: [q, k, v]}"),
        stack("pre", "x = layers(x)", sublayers="{kind: attention, heads: H, bias: [q, v]}"),
    ),
    (
        "BG213",
        stack("pre", "x = layers(x)", sublayers="{kind: attention, heads: H, bias: [k]}"),
        stack("pre", "x = layers(x)", sublayers="{kind: attention, heads: H, bias: [k], rotary: {style: half}}"),
    ),
    (
        "BG214",
        block("x = x + norm(g*ff(x))", "  params: {g: {shape: []}}\n", PARTS),
        block("x = x + g*norm(ff(x))", "  params: {g: {shape: []}}\n", PARTS),
    ),
    (
        "BG214",
        block("x = x + norm(g*ff(x))", "  params: {g: {shape: [1]}}\n", PARTS),
        block("x = x + norm(g*ff(x))", "  params: {g: {shape: [C]}}\n", PARTS),
    ),
    ("BG214", block("x = x + norm(ff(x)/8)", parts=PARTS), block("x = norm(x + ff(x)/8)", parts=PARTS)),
    (
        "BG216",
        stack("pre", "x = layers(x)", sublayers="{kind: attention, heads: H, scale: C**-0.5}"),
        stack("pre", "x = layers(x)", sublayers="{kind: attention, heads: H, scale: (C/H)**-0.5}"),
    ),
    (
        "BG216",
        block('q = heads(x, H); s = q @ rearrange(q, "b h t d -> b h d t"); x = x + merge(softmax(s/sqrt(C)) @ q)'),
        block('q = heads(x, H); s = q @ rearrange(q, "b h t d -> b h d t"); x = x + merge(softmax(s/sqrt(C/H)) @ q)'),
    ),
    ("BG217", stack("post", "x = layers(x)", 13), stack("post", "x = layers(x)", 12)),
    (
        "BG218",
        block("h = tanh(x); x = x + attention(norm(x)) + ff(norm2(h))", parts=PARTS),
        block("x = x + attention(norm(x)) + ff(norm2(x))", parts=PARTS),
    ),
    (
        "BG218",
        block("h = tanh(x); x = x + attention(norm(h)) + ff(x)", parts=PARTS),
        block("h = x + attention(norm(x)); x = h + ff(norm2(h))", parts=PARTS),
    ),
    (
        "BG218",
        block("h = x + map(x); y = h + attention(norm(h)) + ff(norm2(x))", parts=PARTS + MAP),
        block("h = x + map(x); y = h + attention(norm(h)) + ff(norm2(h))", parts=PARTS + MAP),
    ),
    (
        "BG218",
        block("h = x + map(x); y = x + attention(norm(x)) + ff(norm2(h))", parts=PARTS + MAP),
        block("h = x + attention(norm(x)); y = x + attention(norm(x)) + ff(norm2(h))", parts=PARTS),
    ),
    (
        "BG218",
        block("h = x + map(x); x = h + attention(norm(x)) + ff(norm2(h))", parts=PARTS + MAP),
        block("u = attention(norm(x)); h = x + u; v = map(h); g = h + v; y = x + u + v + ff(g)", parts=PARTS + MAP),
    ),
]


@pytest.mark.parametrize(("code", "fails", "passes"), CASES)
def test_a_lint_tells_the_flaw_and_nothing_else(code: str, fails: str, passes: str) -> None:
    assert set(codes(fails)) == {code}
    assert code not in codes(passes)


def tokens(attention: str, extra: str = "", embed: str = "embed(tokens)") -> str:
    """A model of tokens whose layers are post-norm."""
    return (
        "dims: {C: 64, H: 4, V: 50, L: 32}\n"
        f"block:\n  norm: layer_norm\n  placement: post\n  sublayers:\n    - {attention}\n"
        "model:\n  inputs: {tokens: {ids: [B, T], below: V}}\n  parts:\n"
        f"    embed: {{kind: embedding, size: V, width: C}}\n{extra}"
        f"    layers: {{kind: stack, of: block, repeat: 2}}\n  equations: x = layers({embed})\n"
    )


POSITIONS = "    positions: {kind: learned_positions, length: L, width: C}\n"


@pytest.mark.parametrize(
    "text",
    [
        tokens("{kind: attention, heads: H, mask: causal}"),
        tokens("{kind: attention, heads: H, window: 4}"),
        tokens("{kind: attention, heads: H, alibi: true}"),
        tokens("{kind: attention, heads: H, rotary: {style: half}}"),
        tokens(ATTENTION, POSITIONS, "embed(tokens) + positions(tokens)"),
        tokens(ATTENTION, embed='embed(tokens) + sinusoid(embed(tokens), style="half")'),
        tokens(ATTENTION, embed="shift(embed(tokens), 1)"),
        tokens(ATTENTION, embed='cumsum(embed(tokens), "b [t] c")'),
    ],
)
def test_whatever_tells_positions_apart_is_enough(text: str) -> None:
    assert codes(text) == []


def test_a_model_that_cannot_tell_positions_apart_is_told() -> None:
    assert codes(tokens(ATTENTION)) == ["BG215"]


@pytest.mark.parametrize(("window", "expected"), [(31, []), (32, ["BG220"]), (33, ["BG220"])])
def test_a_window_as_long_as_the_longest_sequence_is_idle(window: int, expected: list[str]) -> None:
    attention = f"{{kind: attention, heads: H, mask: causal, window: {window}}}"
    assert codes(tokens(attention, POSITIONS, "embed(tokens) + positions(tokens)")) == expected


def growing(std: str, equation: str, repeat: int = 24) -> str:
    return (
        f"dims: {{C: 64}}\nblock:\n  parts:\n    norm: layer_norm\n    ff: {{kind: feed_forward, hidden: 4*C, "
        f"activation: relu, init: normal({std})}}\n  equations: {equation}\n"
        f"model:\n  parts:\n    layers: {{kind: stack, of: block, repeat: {repeat}}}\n  equations: x = layers(x)\n"
    )


@pytest.mark.parametrize(
    ("std", "equation", "expected"),
    [
        ("0.2", "x = x + ff(x)", True),
        ("0.02", "x = x + ff(x)", False),
        ("0.2", "x = x + ff(norm(x))", False),
        ("0.2", "x = norm(x + ff(x))", False),
    ],
)
def test_a_stream_that_explodes_is_predicted_and_does_explode(std: str, equation: str, expected: bool) -> None:
    text = growing(std, equation)
    assert ("BG219" in codes(text)) == expected
    if "BG204" in {one.code for one in bg.check(text).findings}:
        text = text.replace("    norm: layer_norm\n", "")
    program = bg.compile(text)
    x, params = program.sample(0)
    trace: Any = program.trace(x, params)
    first, last = (float((trace[f"layers.{layer}"] ** 2).mean() ** 0.5) for layer in (0, 23))
    assert (last > 50 * first) == expected


def test_a_claim_of_causality_is_refuted_with_its_path_in_block_and_layer_and_part() -> None:
    claimed = f"block:\n  causal: true\n  norm: layer_norm\n  sublayers: [{ATTENTION}]\n"
    text = "dims: {C: 64, H: 4}\n" + claimed
    (finding,) = linted(text)
    assert (finding.code, finding.severity, finding.place.start.line) == ("BG112", "error", 3)
    assert finding.message == (
        "`block` says it is causal, and earlier positions read later ones: x -> norm1 -> attention -> x.2"
    )
    (related,) = finding.related
    assert related.place is not None
    assert related.place.start.line == 5
    model = "model:\n  parts: {layers: {kind: stack, of: block, repeat: 2}}\n  equations: x = layers(x)\n"
    assert codes(text + model) == ["BG112"]
    part = "model:\n  parts: {one: block}\n  equations: x = one(x)\n"
    assert codes(text + part) == ["BG112"]
    assert codes(text.replace("heads: H", "heads: H, mask: causal") + part) == []


def test_a_dim_that_nothing_names_is_told_at_its_declaration() -> None:
    text = "dims: {C: 64, H: 4, F: 9}\nblock:\n  norm: layer_norm\n  sublayers: [{kind: attention, heads: H}]\n"
    checked = bg.check(text)
    assert checked.graph is not None
    (finding,) = [one for one in lint(checked.graph, checked.spec) if one.code == "BG221"]
    assert (finding.message, finding.place.start.column) == ("the dim `F` is never used", 21)


def test_a_stack_whose_share_of_layers_has_no_number_is_not_judged() -> None:
    text = """
dims: {C: 8, N: 4, P: }
blocks:
  a: {equations: x = x + tanh(x)}
  b: {equations: x = x + relu(x)}
model:
  parts: {layers: {kind: stack, of: [{kind: a, repeat: P}, {kind: b, repeat: N - P}]}}
  equations: y = layers(x)
"""
    assert not [one for one in bg.check(text).findings if one.code == "BG219"]
