"""Levels and directions of a drawing, ports and names of operands, folding of cycles and of experts."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

import blockgraph as bg
from blockgraph.drawing import Rankdir, to_dot, to_mermaid, written
from blockgraph.drawing.diagram import FIGURE
from blockgraph.drawing.extent import LIMIT, boxes
from blockgraph.errors import DrawingError
from blockgraph.graph import Graph
from tests.test_cli import ROOT, Run, run
from tests.test_render_samples import Drawing, drawn, pre_norm

__all__ = ["run"]


def graph(source: object, **sizes: int) -> Graph:
    found = bg.check(source if isinstance(source, dict) else ROOT / "specs" / f"{source}.yaml", **sizes).graph
    assert found is not None
    return found


def texts(picture: Drawing, css: str) -> list[str]:
    return [picture.text[node] for node, found in picture.css.items() if found == css]


def plates(dot: str) -> list[str]:
    """The titles of all plates, outer ones first."""
    return re.findall(r'class="plate[^"]*".*?label=.*?>([^<>]+)<', dot)


def heads(dot: str) -> set[str]:
    """The names at the ends of lines."""
    return set(re.findall(r"headlabel=<<I>(.*?)</I>>", dot))


def test_at_block_level_a_block_is_one_box_that_tells_its_parts() -> None:
    picture = drawn(graph("models/gpt2"), level="block")
    (text,) = texts(picture, "op block")
    assert text == "block Causal Self-Attention · H heads Feed Forward · hidden 4*C · gelu_tanh"
    assert "× 12" in to_dot([graph("models/gpt2")], level="block")
    assert texts(drawn(graph("pre_norm"), level="block"), "op block")[0].startswith("pre_norm ")


def test_at_block_level_a_block_with_a_stack_in_it_is_still_a_plate() -> None:
    dot = to_dot([graph("layouts/looped_depth")], level="block")
    assert re.findall(r">(× \d+)<", dot) == ["× 2", "× 4", "× 2", "× 2"]
    assert len(re.findall(r'class="op block"', dot)) == 3


def test_at_op_level_attention_is_opened_into_its_steps_in_order() -> None:
    picture = drawn(graph("models/llama"), level="op")
    ops = sorted((y, picture.text[node]) for node, (x, y, *_) in picture.nodes.items() if x == picture.nodes["n0"][0])
    spine = [text.split(" ")[0] if text[0] not in "@×" else text for _, text in ops]
    inner = spine[spine.index("@ Wq") : spine.index("@ Wo") + 1]
    assert inner == [
        *("@ Wq", "heads", "rope", "rearrange", "einsum", "rearrange", "× D**-0.5"),
        *("mask", "softmax", "rearrange", "einsum", "rearrange", "merge", "@ Wo"),
    ]


def test_at_op_level_the_values_inside_a_part_have_names_and_grouped_shapes() -> None:
    dot = to_dot([graph("models/llama")], level="op")
    told = set(re.findall(r"label=<([^<>]*)>\]", dot)) | set(re.findall(r"label=<([^<>]*)>, head", dot))
    assert {"query", "key", "value (B, G, T, D)", "scores", "weights", "gate", "up (B, T, F)"} <= told
    assert "(B, G, H/G, T, D)" in told


def test_at_op_level_the_plate_of_a_part_has_the_colour_of_its_family() -> None:
    dot = to_dot([graph("pre_norm")], level="op")
    assert re.findall(r'class="plate part part_(\w+)"', dot) == ["norm", "attention", "norm", "feed_forward"]
    assert set(plates(dot)) >= {"LayerNorm", "Multi-Head ", "Feed Forward"}


def test_at_op_level_a_part_of_one_op_and_one_that_only_reads_its_table_stay_boxes() -> None:
    picture = drawn(graph("models/gpt2"), level="op")
    assert texts(picture, "op embedding") == ["Embedding V × C", "Learned Positions L × C"]
    assert "Linear" in texts(drawn(graph("models/llama"), level="op"), "op linear")


def test_at_op_level_a_relative_bias_is_opened_into_its_steps() -> None:
    text = " | ".join(drawn(graph("models/t5"), level="op").text.values())
    assert text.count("relative_buckets | lookup with table | rearrange t s h → 1 h t s") == 2


def test_at_op_level_an_activation_rope_and_softmax_are_one_box_by_their_name_in_equations() -> None:
    for name, op in (("models/llama", "silu"), ("models/llama", "rope half"), ("pre_norm", "gelu_tanh")):
        picture = drawn(graph(name), level="op")
        assert op in texts(picture, "op other")
        assert "softmax" in texts(picture, "op other")


def test_the_ops_of_a_norm_are_those_of_its_formula() -> None:
    picture = drawn(graph("models/llama"), level="op")
    found = " | ".join(picture.text.values())
    assert found.count("square") == found.count("sqrt") == 3
    assert found.count("× gamma") == 3
    assert "gamma + 0" not in found


def test_one_expert_is_drawn_for_all_that_are_alike() -> None:
    dot = to_dot([graph("models/mixtral")], level="op")
    assert dot.count(">@ Wg<") == 1
    assert "sum over experts" in dot
    assert "× 8" in plates(dot)


def test_a_sum_over_experts_is_added_to_what_the_shared_one_gives() -> None:
    picture = drawn(graph("layouts/shared_experts"), level="op")
    (total,) = [node for node, text in picture.text.items() if text == "sum over experts"]
    (plus,) = [line.end for line in picture.lines if line.start == total]
    assert picture.text[plus] == "+"
    assert len(picture.into(plus)) == 2


def test_parts_that_are_numbered_but_not_summed_are_all_drawn() -> None:
    parts = {f"f_{n}": {"kind": "linear", "out": "C"} for n in range(2)}
    found = graph({"dims": {"C": 8}, "block": {"parts": parts, "equations": ["u = f_0(x)", "x = u - f_1(x) + u"]}})
    assert to_dot([found], level="op").count(">Linear<") == 2


def test_a_port_says_the_name_of_its_value_and_no_line_beside_it_does_again() -> None:
    dot = to_dot([graph("models/mixtral")], level="op")
    assert dot.count("<I>weight</I>") == 1
    assert re.findall(r"label=<(weight\b[^<>]*)>", dot) == ["weight"]  # what the division makes is called so too


def test_each_of_several_carried_streams_has_ports_at_both_borders() -> None:
    picture = drawn(graph("layouts/residual"))
    assert sorted(texts(picture, "port")) == ["d", "d", "x", "x"]
    ports = [picture.nodes[node][:2] for node, css in picture.css.items() if css == "port"]
    assert len({x for x, _ in ports}) == 2  # each stream is a straight column
    assert len({y for _, y in ports}) <= 3


def test_a_value_that_an_equation_in_a_stack_reads_enters_by_a_port() -> None:
    assert texts(drawn(graph("layouts/value_residual")), "port") == ["v1"]
    assert texts(drawn(graph("models/t5")), "port") == []


def test_what_a_split_gives_has_a_port_each() -> None:
    picture = drawn(graph("layouts/macaron"))
    assert texts(picture, "port") == ["value", "gate"]


def test_the_trunk_is_what_is_gated_and_not_the_gate() -> None:
    picture = drawn(graph("layouts/adaln_zero"))
    spine = picture.nodes["n0"][0]
    on_spine = [picture.text[node].split(" ")[0] for node, (x, *_) in picture.nodes.items() if abs(x - spine) < 0.1]
    assert on_spine.count("LayerNorm") == 2
    assert "Multi-Head" in on_spine
    assert "Linear" not in on_spine


@pytest.mark.parametrize(
    ("equation", "pill"), [("x - m", "a − b"), ("m - x", "a − b"), ("x / m", "a ÷ b"), ("x @ m.T", "a @ b")]
)
def test_operands_whose_order_matters_are_named_where_they_enter(equation: str, pill: str) -> None:
    inputs = {"x": ["B", "T", "C"], "m": ["B", "T", "C"]} if "@" not in equation else {"x": ["T", "C"], "m": ["T", "C"]}
    dot = to_dot([graph({"block": {"inputs": inputs, "equations": [f"y = {equation}"]}})])
    (node,) = re.findall(rf"(n\d+) \[[^\n]*>{re.escape(pill)}<", dot)
    names = dict(re.findall(rf"(n\d+) -> {node} .*headlabel=<<I>(\w)</I>>", dot))
    first = "n0" if equation.startswith("x") else "n1"
    assert names[first] == "a"
    assert sorted(names.values()) == ["a", "b"]


def test_the_ports_of_attention_are_named() -> None:
    assert {"q", "k", "v"} <= heads(to_dot([graph("layouts/value_residual")]))


def test_what_a_part_is_given_beside_the_stream_is_named() -> None:
    assert heads(to_dot([graph("models/t5")])) == {"memory", "keep", "score_bias"}


def test_a_decoder_that_waits_for_its_encoder_has_no_gap_in_it() -> None:
    picture = drawn(graph("models/bart"))
    tops: dict[str, list[float]] = {}
    for start, end in (("Cross", "Cross"), ("Multi-Head", "LayerNorm")):
        x, y, *_ = next(picture.nodes[node] for node, text in picture.text.items() if text.startswith(start))
        column = [at for node, at in picture.nodes.items() if at[0] == x and picture.css[node][:2] != "io"]
        tops[start] = sorted(at[1] + at[3] / 2 for at in column if at[1] <= y or end != start)
    gaps = {start: max(high - low for low, high in pairwise(found)) for start, found in tops.items()}
    assert len(tops["Cross"]) == 7  # from the embedding to the cross-attention
    assert gaps["Cross"] <= gaps["Multi-Head"] + 1  # the encoder waits for nothing


def test_a_figure_to_the_right_has_its_spine_level_and_its_rails_above() -> None:
    upwards, right = drawn(pre_norm()), drawn(pre_norm(), rankdir="LR")
    assert len({round(y, 2) for _, y, *_ in right.nodes.values()}) == 1
    order = sorted(right.nodes, key=lambda node: right.nodes[node][0])
    assert order == sorted(upwards.nodes, key=lambda node: upwards.nodes[node][1])
    rails = [line for line in right.lines if "rail" in line.css]
    assert all(max(y for _, y in line.spots) > right.nodes["n0"][1] + 20 for line in rails)
    assert {node: size[2:] for node, size in right.nodes.items()} == {n: s[2:] for n, s in upwards.nodes.items()}


def test_figures_to_the_right_stand_under_each_other() -> None:
    found = drawn(pre_norm(), pre_norm(), rankdir="LR")
    assert found.nodes["n0"][0] == found.nodes["n8"][0]
    assert found.nodes["n0"][1] > found.nodes["n8"][1] + 50


def test_mermaid_has_the_levels_and_the_directions() -> None:
    text = to_mermaid([graph("pre_norm")], level="op", rankdir="LR")
    assert text.startswith("flowchart LR")
    assert "direction LR" in text
    assert "softmax" in text


CYCLE = """
dims: {{C: 8, H: 2, W: 4}}
blocks:
  local: {{placement: none, sublayers: [{{kind: attention, heads: H, mask: causal, window: W}}]}}
  global: {{placement: none, sublayers: [{{kind: attention, heads: H, mask: causal}}]}}
model:
  parts: {{layers: {{kind: stack, of: {of}{repeat}}}}}
  equations: x = layers(x)
"""
L1, L2, L5 = (f"{{kind: local, repeat: {count}}}" for count in (1, 2, 5))
G1 = "{kind: global, repeat: 1}"


@pytest.mark.parametrize(
    ("of", "repeat", "expected"),
    [
        ("[local, local, global]", ", repeat: 24", ["× 8 (local, local, global)"]),
        ("[local, global, local, global]", ", repeat: 8", ["× 4 (local, global)"]),
        ("[local, global, local, global]", ", repeat: 7", ["× 3 (local, global)", "local"]),
        ("[global, global, local, global, local, global]", ", repeat: 6", ["× 2 global", "× 2 (local, global)"]),
        ("[local, global]", ", repeat: 2", ["local", "global"]),
        ("[local, local, global]", ", repeat: 5", ["× 2 local", "global", "× 2 local"]),
        (f"[{L1}, {G1}, {L1}, {G1}]", "", ["× 2 (local, global)"]),
        (f"[{L5}, {G1}, {L5}, {G1}, {L2}]", "", ["× 2 (local × 5, global)", "× 2 local"]),
        (f"[{L2}, {G1}]", "", ["× 2 local", "global"]),
    ],
)
def test_what_comes_again_folds_into_one_plate(of: str, repeat: str, expected: list[str]) -> None:
    found = bg.check(CYCLE.format(of=of, repeat=repeat)).graph
    assert found is not None
    for rankdir in get_args(Rankdir):
        plates = written([found], rankdir=rankdir).plates.values()
        outer = [plate for plate in plates if plate.parent == FIGURE]
        assert [plate.title + "".join(f" {d}" for d in plate.details) for plate in outer] == expected


def test_layers_of_one_block_say_in_what_they_differ() -> None:
    assert "(block · window W, block)" in to_dot([graph("models/gemma2")])


def test_a_model_of_96_layers_folds_into_fewer_than_60_boxes() -> None:
    for name in ("models/gpt2", "models/llama", "models/mixtral"):
        assert len(written([graph(name, N=96)]).boxes) < 60


def test_a_figure_that_is_too_large_is_refused_before_it_is_begun(run: Run) -> None:
    spec = str(ROOT / "specs" / "models" / "gpt2.yaml")
    code, out, err = run("render", spec, "--expand", "--level", "op", "--set", "N=1000000", "-o", "-")
    assert (code, out) == (1, "")
    assert re.match(
        r"BG501 \S+gpt2\.yaml:\d+:\d+  with every layer drawn by itself the figure has some 4\d,\d{3},", err
    )
    assert "leave `expand` out" in err
    with pytest.raises(DrawingError, match="at most 50,000 are drawn"):
        bg.render(bg.compile(Path(spec), N=100_000), expand=True)


@pytest.mark.parametrize("name", ["models/gpt2", "models/t5", "models/gemma2", "layouts/looped_depth"])
@pytest.mark.parametrize("level", ["block", "sublayer", "op"])
@pytest.mark.parametrize("expand", [False, True])
def test_the_number_of_boxes_is_foreseen(name: str, level: str, expand: bool) -> None:
    found = graph(name)
    count = len(written([found], level=level, expand=expand).boxes)  # type: ignore[typeddict-item]
    assert count / 1.5 - 5 < boxes(found, level, expand=expand) < count * 1.5 + 5  # type: ignore[arg-type]
    assert count < LIMIT


def test_level_and_direction_are_options_of_render_and_diff(run: Run) -> None:
    spec, other = (str(ROOT / "specs" / name) for name in ("pre_norm.yaml", "post_norm.yaml"))
    assert "softmax" in run("render", spec, "--level", "op", "-o", "-")[1]
    assert 'class="op block"' in run("render", spec, "--level", "block", "-o", "-")[1]
    assert run("render", spec, "--rankdir", "LR", "-o", "-") != run("render", spec, "-o", "-")
    assert "softmax" in run("diff", spec, other, "--level", "op", "-o", "-")[1]
    assert 'class="op block changed"' in run("diff", spec, other, "--level", "block", "-o", "-")[1]


MASKED = """
name: masked
dims: {C: 8, H: 2, W: 3}
block:
  params: {Wq: [C, C], Wk: [C, C]}
  equations: |
    q = heads(x @ Wq, heads=H)
    k = heads(x @ Wk, heads=H)
    y = merge(%s)
"""
SCORES = "softmax(q @ k.T{}) @ heads(x, heads=H)"


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        (SCORES.format(""), "softmax"),
        (SCORES.format(', mask="causal"'), "softmax causal"),
        (SCORES.format(', mask="causal", window=2'), "softmax causal window 2"),
        (SCORES.format(', mask="causal", window=W'), "softmax causal window W"),
        ("attend(q, k, q)", "attend"),
        ('attend(q, k, q, mask="causal")', "attend causal"),
        ('attend(q, k, q, mask="causal", window=3)', "attend causal window 3"),
        ("attend(q, k, q, window=3)", "attend window 3"),
    ],
)
def test_what_a_mask_in_an_equation_hides_is_in_the_box(equation: str, expected: str) -> None:
    checked = bg.check(MASKED % equation)
    assert checked.ok, checked.findings
    masked = checked.graph
    assert masked is not None
    word = expected.partition(" ")[0]
    picture = drawn(masked)
    assert [text for text in picture.text.values() if text.startswith(word)] == [expected]
    if word == "softmax":
        assert expected in drawn(masked, level="op").text.values()
    else:
        title, window, size = expected.partition(" window ")
        assert re.findall(rf">({title})<", to_dot([masked], level="op")) == [title]
        assert (f">window {size}<" in to_dot([masked], level="op")) == bool(window)
    assert (f"{word} causal" in to_mermaid([masked])) == ("causal" in expected)
    numbered = drawn(masked, numbers=True).text.values()
    assert expected.replace("W", "3") in numbered


def test_a_causal_convolution_in_an_equation_says_so() -> None:
    text = "dims: {C: 8}\nblock:\n  params: {W: [4, C]}\n  equations: y = depthwise_conv(x, W%s)\n"
    for option, expected in (("", "depthwise_conv with W"), (", causal=True", "depthwise_conv causal with W")):
        checked = bg.check(text % option)
        assert checked.graph is not None, checked.findings
        assert expected in drawn(checked.graph).text.values()
