"""What the difference of two specs says, in the words of the field; every expected text is written by hand."""

from __future__ import annotations

from itertools import permutations

import pytest

import blockgraph as bg
from blockgraph.diff import Structure, diff, fingerprint
from blockgraph.diff.changes import Change, layer_list, merged, over_layers
from blockgraph.graph import Graph
from tests.test_diff_fingerprint import ROOT

BLOCK = """
dims: {C: 64, H: 4}
block:
  norm: layer_norm
  placement: pre
  sublayers:
    - {kind: attention, heads: H}
    - {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}
"""
BOTH = "    - {kind: attention, heads: H}\n    - {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}"
GROUP = "{parallel: [{kind: attention, heads: H}, {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}], norms: %s}"
STACK = """
dims: {C: 64, H: 4, W: 4096, N: 6}
constants: {w: none, r: none}
blocks:
  layer_one:
    norm: rms_norm
    sublayers:
      - {kind: attention, heads: H, mask: causal, window: w}
      - {kind: gated_feed_forward, hidden: 4*C, activation: silu}
model:
  parts:
    layers: {kind: stack, of: layer_one, repeat: N}
    final_norm: rms_norm
  equations: |
    x = final_norm(layers(x))
"""


def graph(text: str) -> Graph:
    checked = bg.check(text)
    assert checked.ok, checked.findings
    assert checked.graph is not None
    return checked.graph


def told(text: str, *edits: tuple[str, str]) -> str:
    other = text
    for old, new in edits:
        assert old in other, old
        other = other.replace(old, new)
    return str(diff(graph(text), graph(other)))


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([("64", "128")], "same architecture up to sizes; sizes: C 64 -> 128"),
        ([("64", "")], "same architecture up to sizes; sizes: C 64 -> open"),
        ([("H}", "H, kv_heads: 2}")], "attention: kv_heads H -> 2"),
        ([("H}", "H, qk_norm: {kind: rms_norm, over: head}}")], "+ per-head RMSNorm on q and k"),
        ([("H}", "H, qk_norm: {kind: layer_norm, over: width}}")], "+ full-width LayerNorm on q and k"),
        ([("H}", "H, window: 16, mask: causal}")], "attention: mask full -> causal; + sliding window 16"),
        ([("H}", "H, rotary: {style: half}}")], "+ rotary positions (half, theta 10000, width C/H)"),
        ([("H}", "H, bias: [q, k]}")], "+ bias on q, k (attention)"),
        ([("H}", "H, softcap: 50, sinks: true}")], "+ softcap 50; + attention sinks"),
        ([("H}", "H, scale: 1}")], "attention: scale default -> 1"),
        ([("H}", "H, alibi: true}")], "+ ALiBi"),
        ([("4*C", "8/3*C"), ("64", "96")], "feed_forward: hidden 4*C -> 8*C/3; sizes: C 64 -> 96"),
        ([("gelu_tanh", "relu")], "feed_forward: activation gelu_tanh -> relu"),
        ([("gelu_tanh", "gelu_tanh, bias: false")], "- bias (feed_forward)"),
        (
            [("feed_forward", "gated_feed_forward"), ("gelu_tanh", "silu")],
            "feed_forward -> gated_feed_forward; gated_feed_forward: activation gelu_tanh -> silu; "
            "- bias (gated_feed_forward)",
        ),
        ([("pre", "post")], "attention, feed_forward: placement pre -> post"),
        ([("pre", "sandwich")], "attention, feed_forward: placement pre -> sandwich"),
        ([("pre", "[input, after]")], "attention, feed_forward: placement pre -> [input, after]"),
        ([("4*C", "4*C, placement: post")], "feed_forward: placement pre -> post"),
        ([("pre\n", "pre\n  residual: normed\n")], "attention, feed_forward: residual stream -> normed"),
        ([("pre\n", "pre\n  skip_scale: 0.5\n")], "+ skip scale 0.5 (attention, feed_forward)"),
        ([("4*C", "4*C, branch_scale: 0.5")], "+ branch scale 0.5 (feed_forward)"),
        (
            [("layer_norm", "rms_norm")],
            "norm1, norm2: LayerNorm (eps 1e-05) -> RMSNorm (eps 1e-06)",
        ),
        (
            [("pre", "post"), ("layer_norm", "rms_norm")],
            "attention, feed_forward: placement pre -> post; "
            "attention, feed_forward: norm LayerNorm (eps 1e-05) -> RMSNorm (eps 1e-06)",
        ),
        ([(BOTH, f"    - {GROUP % 'separate'}")], "attention, feed_forward: in turn -> in parallel"),
        ([(BOTH, f"    - {GROUP % 'shared'}")], "attention, feed_forward: in turn -> in parallel with one norm"),
        ([("    - {kind: attention, heads: H}\n", "")], "- attention"),
        ([("gelu_tanh}", "gelu_tanh}\n    - {kind: feed_forward, hidden: C, activation: relu}")], "+ feed_forward2"),
    ],
)  # fmt: skip
def test_one_change_of_a_block_is_told_in_one_phrase(edits: list[tuple[str, str]], expected: str) -> None:
    assert told(BLOCK, *edits) == expected


@pytest.mark.parametrize("placement", ["pre", "post", "sandwich", "output", "none", "[input, after]"])
@pytest.mark.parametrize("dropped", [("attention",), ("feed_forward",), ("attention", "feed_forward")])
def test_a_residual_that_is_dropped_is_told_of_the_sublayer_it_was_around(
    placement: str, dropped: tuple[str, ...]
) -> None:
    whole = BLOCK.replace("placement: pre", f"placement: {placement}")
    whole = whole.replace("  norm: layer_norm\n", "") if placement == "none" else whole
    less = whole
    for kind in dropped:
        less = less.replace(f"kind: {kind}, ", f"kind: {kind}, residual: none, ")
    names = ", ".join(dropped)
    assert str(diff(graph(whole), graph(less))) == f"{names}: residual stream -> none"
    assert str(diff(graph(less), graph(whole))) == f"{names}: residual none -> stream"


def test_a_group_that_loses_its_residual_is_told_by_its_sublayers() -> None:
    whole = BLOCK.replace(BOTH, f"    - {GROUP % 'separate'}")
    assert told(whole, ("separate", "separate, residual: none")) == "attention, feed_forward: residual stream -> none"


@pytest.mark.parametrize("placement", ["pre", "post", "sandwich", "output"])
def test_what_else_changes_with_a_dropped_residual_is_told_beside_it(placement: str) -> None:
    whole = BLOCK.replace("placement: pre", f"placement: {placement}")
    less = whole.replace("heads: H", "heads: H, residual: none").replace("gelu_tanh", "relu")
    expected = "attention: residual stream -> none; feed_forward: activation gelu_tanh -> relu"
    assert str(diff(graph(whole), graph(less))) == expected


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            [("of: layer_one", "of: [layer_one, {kind: layer_one, set: {w: 4096}}]")],
            "+ sliding window 4096 on layers 1, 3, 5",
        ),
        (
            [("of: layer_one", "of: [{kind: layer_one, repeat: 3}, {kind: layer_one, set: {w: W}, repeat: 3}]"),
             (", repeat: N}", "}")],
            "+ sliding window W on layers 3-5",
        ),
        (
            [("of: layer_one", "of: [layer_one, {kind: layer_one, set: {w: W}}]"), ("N: 6", "N: 40")],
            "6 -> 40 layers; + sliding window W on layers 1, 3, 5",
        ),
        ([("N: 6", "N: 12")], "6 -> 12 layers"),
        ([("repeat: N", "repeat: N, share: true")], "+ one set of parameters for all layers"),
        ([("heads: H", "heads: H, share: true")], "+ one set of parameters for all layers (attention)"),
        ([("    final_norm: rms_norm\n", ""), ("final_norm(layers(x))", "layers(x)")], "- final norm (RMSNorm)"),
        ([("window: w", "window: 8")], "+ sliding window 8"),
    ],
)  # fmt: skip
def test_changes_in_stacks_name_the_layers_unless_it_is_all(edits: list[tuple[str, str]], expected: str) -> None:
    assert told(STACK, *edits) == expected


def test_the_words_are_those_of_the_second_spec_whatever_the_first_calls_its_parts() -> None:
    other = """
dims: {width: 64, n: 4}
block:
  parts:
    a: layer_norm
    mixer: {kind: attention, heads: n, kv_heads: 2}
    b: layer_norm
    mlp: {kind: feed_forward, hidden: 8*width/2, activation: gelu_tanh}
  inputs: {s: [B, L, width]}
  equations: |
    s = mixer(a(s)) + s
    s = s + mlp(b(s))
"""
    assert str(diff(graph(BLOCK), graph(other))) == "mixer: kv_heads H -> 2"
    assert str(diff(graph(other), graph(BLOCK))) == "attention: kv_heads 2 -> H"


def test_sizes_are_compared_between_dims_that_mean_the_same() -> None:
    other = (
        BLOCK.replace("C: 64", "D: 128").replace("4*C", "4*D").replace("block:\n", "block:\n  inputs: {x: [B, T, D]}\n")
    )
    found = diff(graph(BLOCK), graph(other))
    assert (found.same_architecture, found.same) == (True, False)
    assert found.lines() == ["same architecture up to sizes", "sizes: C (D on the right) 64 -> 128"]


def test_real_models_differ_in_what_their_papers_say() -> None:
    llama, mistral = (bg.check(ROOT / "specs" / "models" / f"{name}.yaml").graph for name in ("llama", "mistral"))
    assert llama is not None
    assert mistral is not None
    assert diff(llama, mistral).lines() == [
        "attention: rotary positions theta 500000 -> theta 10000",
        "+ sliding window W",
        "sizes: V 128256 -> 32000",
    ]


def test_inputs_of_a_stack_are_matched_by_what_they_are() -> None:
    t5, bart = (bg.check(ROOT / "specs" / "models" / f"{name}.yaml").graph for name in ("t5", "bart"))
    assert t5 is not None
    assert bart is not None
    for left, right, sign in ((t5, bart, "-"), (bart, t5, "+")):
        lines = diff(left, right).lines()
        ports = [line for line in lines if "input" in line or "reads" in line]
        assert ports == [f"{sign} input score_bias in encoder", f"{sign} input score_bias in decoder"]


def test_inputs_are_matched_by_their_places_where_there_are_as_many_and_else_by_kind_and_name() -> None:
    text = "dims: {C: 8}\nblock:\n  inputs: {x: [B, T, C], m: [B, T, C], keep: {bool: [B, T, 1]}}\n"
    text += "  equations: y = tanh(where(keep, x, m))\n"
    renamed = ("x: [B, T, C], m:", "m: [B, T, C], x:"), ("x, m))", "m, x))")
    assert told(text, *renamed, ("tanh(", "tanh(2*")) == "+ multiply by 2"
    gone = ("x: [B, T, C], m: [B, T, C], keep: {bool: [B, T, 1]}", "keep: {bool: [B, T, 1]}, m: [B, T, C]")
    assert told(text, gone, ("where(keep, x, m)", "where(keep, m, 0)")).split("; ")[0] == "- input x"


def test_another_use_of_a_part_is_called_one() -> None:
    text = "dims: {C: 8}\nblock:\n  parts: {a: {kind: linear, out: C}}\n"
    text += "  equations: |\n    h = tanh(x)\n    u = a(h)\n    y = u + a(u)\n"
    assert told(text, ("a(u)", "a(h)")) == "a (use 2): reads a -> tanh"


def test_any_two_specs_are_the_same_or_differ_in_words() -> None:
    graphs = [bg.check(path).graph for path in sorted((ROOT / "specs").rglob("*.yaml"))]
    known = [(Structure(graph), fingerprint(graph)) for graph in graphs if graph is not None]
    assert len(known) == len(graphs) > 60
    for (one, ours), (two, theirs) in permutations(known, 2):
        found = diff(one, two)
        assert found.same_architecture == (ours == theirs)
        assert "the wiring differs" not in str(found)


@pytest.mark.parametrize("name", ["models/t5", "layouts/looped_depth", "layouts/gated_residual"])
def test_a_structure_that_was_compared_before_gives_the_same_words(name: str) -> None:
    used = bg.check(ROOT / "specs" / f"{name}.yaml").graph
    assert used is not None
    structure = Structure(used)
    for path in sorted((ROOT / "specs" / "models").glob("*.yaml")):
        other = bg.check(path).graph
        assert other is not None
        assert diff(structure, other).lines() == diff(used, other).lines()
        assert diff(Structure(other), structure).lines() == diff(other, used).lines()


def test_untied_embeddings_are_told_by_the_parameters() -> None:
    text = """
dims: {C: 8, V: 10}
model:
  inputs: {tokens: {ids: [B, T], below: V}}
  parts: {embed: {kind: embedding, size: V, width: C}}
  equations: y = embed(tokens) @ embed.table.T
"""
    edits = (
        ("width: C}}", "width: C}, head: {kind: linear, out: V}}"),
        ("embed(tokens) @ embed.table.T", "head(embed(tokens))"),
    )
    assert told(text, *edits) == "- output tied to embed; + head (linear)"
    untied = text
    for old, new in edits:
        untied = untied.replace(old, new)
    assert told(untied, *((new, old) for old, new in edits)) == "+ output tied to embed; - head (linear)"


def test_learned_positions_that_come_or_go_are_told_as_the_part_they_are() -> None:
    text = """
dims: {C: 8, V: 10, L: 16}
model:
  inputs: {tokens: {ids: [B, T], below: V}}
  params: {b: [C]}
  parts: {embed: {kind: embedding, size: V, width: C}, places: {kind: learned_positions, length: L, width: C}}
  equations: y = tanh(embed(tokens) + places(tokens) + b)
"""
    assert told(text, (" + places(tokens)", ""), (", places: {kind: learned_positions, length: L, width: C}", "")) == (
        "- places (learned_positions)"
    )
    assert (
        told(text.replace("places", "learned_positions"), (" + b", ""), ("params: {b: [C]}", "outputs: [y]"))
        == "- add b"
    )


def test_another_operand_is_told_as_what_is_read() -> None:
    text = "dims: {C: 8}\nblock:\n  parts: {a: {kind: linear, out: C}, b: {kind: linear, out: C}}\n"
    text += "  equations: |\n    h = a(x)\n    y = h + b(h)\n"
    assert told(text, ("b(h)", "b(x)")) == "b: reads a -> x"


def test_what_no_rule_has_a_word_for_still_differs() -> None:
    text = "dims: {C: 8}\nblock:\n  inputs: {x: [B, T, C], m: [B, T, C]}\n  equations: y = x - m\n"
    assert told(text, ("x - m", "m - x")) == "subtract: reads x, m -> m, x"


def test_layers_are_listed_shortly() -> None:
    assert layer_list([3]) == "3"
    assert layer_list([1, 3, 5]) == "1, 3, 5"
    assert layer_list([0, 1, 2, 3]) == "0-3"
    assert layer_list(range(0, 40, 2)) == "0, 2, ..., 38"
    assert layer_list([0, 1, 5]) == "0, 1, 5"


def test_equal_changes_are_merged_over_units_and_layers() -> None:
    one, two = Change("~", "placement pre -> post", ("a",)), Change("~", "placement pre -> post", ("b",))
    assert [str(change) for change in merged([one, two])] == ["a, b: placement pre -> post"]
    assert over_layers([(one, (0, 2)), (one, (1, 3))], 4) == [one]
    assert [str(change) for change in over_layers([(one, (0, 2))], 4)] == ["a: placement pre -> post on layers 0, 2"]
    many = merged(Change("+", "bias", (name,)) for name in "abcdef")
    assert [str(change) for change in many] == ["+ bias (a, b, c, d and 2 more)"]
