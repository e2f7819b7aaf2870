"""What a drawing tells on request: numbers, counts of parameters and the residual highway."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.cost.report import costs
from blockgraph.drawing import to_dot, to_mermaid
from blockgraph.drawing.extras import Extras, short
from blockgraph.facts.highway import highway
from blockgraph.graph import Graph
from tests.test_cli import ROOT, Run, run
from tests.test_render_geometry import apart, around, frame, inside
from tests.test_render_samples import SAMPLES, Drawing, drawn, folded, post_norm, pre_norm

__all__ = ["run"]

SPECS = sorted(path.relative_to(ROOT / "specs").as_posix() for path in (ROOT / "specs").rglob("*.yaml"))
MODELS = [name for name in SPECS if name.startswith("models/")]


def graph(name: str) -> Graph:
    found = bg.check(ROOT / "specs" / name).graph
    assert found is not None
    return found


def texts(dot: str) -> str:
    """All texts, one after the other."""
    return " | ".join(re.findall(r">([^<>\n]+)<", dot))


def test_sizes_are_symbols_unless_numbers_are_asked_for() -> None:
    gpt2 = graph("models/gpt2.yaml")
    assert re.search(r"V × C .* H heads .* hidden 4\*C · gelu_tanh", texts(to_dot([gpt2])))
    dot = to_dot([gpt2], numbers=True)
    told = texts(dot)
    assert re.search(r"50257 × 768 .* 1024 × 768 .* 12 heads .* hidden 3072 · gelu_tanh", told)
    assert "label=<(B, T, 50257)>" in dot
    assert "(B, T, V)" not in dot


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hidden 4*C · gelu_tanh", "hidden 256 · gelu_tanh"),
        ("hidden 8*C/3 · silu", "hidden 512/3 · silu"),
        ("heads heads · kv kv", "heads heads · kv kv"),  # a dim that is called as the words of kinds are
        ("Q × C", "Q × 64"),
        ("hidden Q*C · silu", "hidden Q*C · silu"),
        ("C**2 taps, causal", "C**2 taps, causal"),
        ("C taps, causal", "64 taps, causal"),
        ("C/Z experts", "C/Z experts"),
    ],
)
def test_only_known_symbols_in_a_detail_become_numbers(text: str, expected: str) -> None:
    assert Extras(numbers={"C": 64, "heads": 4, "kv": 2, "Z": 0}).written(text) == expected


def test_counts_of_parameters_are_those_worked_out_by_hand() -> None:
    told = texts(to_dot([graph("pre_norm.yaml")], params=True))  # C = 64, no biases in the attention
    assert told.count("128 parameters") == 2  # gamma and beta
    assert "16.4 k parameters" in told  # 4 * 64 * 64 = 16,384
    assert "33.1 k parameters" in told  # 2 * 64 * 256 + 256 + 64 = 33,088
    assert "49.7 k parameters" in told  # 2 * 128 + 16,384 + 33,088 = 49,728
    assert "parameters" not in texts(to_dot([graph("pre_norm.yaml")]))


def test_a_stack_tells_the_parameters_of_one_layer_and_a_title_those_of_all() -> None:
    told = texts(to_dot([graph("models/gpt2.yaml")], params=True))
    assert "7.09 M each" in told
    assert "124 M parameters" in told  # 124,439,808 with the tied table counted once


def test_the_plate_of_a_block_tells_the_parameters_of_all_its_parts() -> None:
    told = texts(to_dot([graph("layouts/hybrid_norm.yaml")], params=True))
    assert "normed_qkv | 16.6 k parameters" in told  # 4 * 64 * 64 of the linear maps, 3 * 64 of the norms: 16,576


def test_a_stack_with_one_set_of_parameters_does_not_say_that_each_layer_has_its_own() -> None:
    told = texts(to_dot([graph("layouts/looped_depth.yaml")], params=True))
    assert "one set of parameters | 140 k in all" in told  # 2 * 65,792 + 128 * 64 + 64 = 139,840
    assert told.count("65.8 k each") == 3  # 4 * 64 * 64 + 3 * 64 * 256 + 4 * 64 = 65,792


@pytest.mark.parametrize("name", MODELS)
def test_every_part_with_parameters_tells_what_the_summary_counts(name: str) -> None:
    found = graph(name)
    told = texts(to_dot([found], params=True))
    rows = [row for row in costs(found).rows if row.depth == 0 and not row.inner and row.tally is not None]
    for row in rows:
        size = row.tally.weights.total.subs(found.dims).as_int() if row.name in found.scopes else None  # type: ignore[union-attr]
        if size:
            assert f"{short(size)} parameters" in told, row.name


def test_a_part_that_is_called_again_tells_its_parameters_once() -> None:
    told = texts(to_dot([SAMPLES["shared_call"]()], params=True))
    assert len(re.findall(r"Feed Forward", told)) == 2
    assert len(re.findall(r"\| C\*\*2 parameters", told)) == 2  # the norm, and the first call


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00 k"),
        (9_996, "10.0 k"),
        (99_960, "100 k"),
        (999_600, "1.00 M"),
        (7_087_872, "7.09 M"),
        (124_439_808, "124 M"),
        (70_553_706_496, "70.6 G"),
    ],
)
def test_counts_have_three_digits(count: int, text: str) -> None:
    assert short(count) == text


def way(picture: Drawing) -> list[tuple[str, str]]:
    """The ends of the thick lines, from bottom to top."""
    found = [(line.start, line.end) for line in picture.lines if "highway" in line.css]
    return sorted(found, key=lambda ends: picture.nodes[ends[0]][1])


@pytest.mark.parametrize("name", SPECS)
def test_the_highway_is_one_way_and_on_it_stands_what_the_proof_says(name: str) -> None:
    found = graph(name)
    picture, proof = drawn(found, highway=True), highway(found)
    thick = way(picture)
    assert proof is not None
    assert all(low[1] == high[0] for low, high in pairwise(thick))
    for line in (line for line in picture.lines if "highway" in line.css):
        assert not apart(frame(picture, line.start), around(line.spots[0], line.spots[0]), -0.5)  # no gap
    on_way = {node for ends in thick[:-1] for node in ends[1:]}
    tolls = {node for node, css in picture.css.items() if "toll" in css}
    assert tolls <= on_way
    norms = {node for node in on_way if "norm" in picture.css[node].split()}
    assert norms == {node for node in tolls if "norm" in picture.css[node].split()}
    assert bool(norms) == any(stop.role == "norm" and stop.graph.scopes.get(stop.node.scope) for stop in proof.stops)


def test_pre_norm_has_a_free_highway_and_post_norm_two_norms_on_it() -> None:
    free, tolled = drawn(graph("pre_norm.yaml"), highway=True), drawn(graph("post_norm.yaml"), highway=True)
    assert [css for css in free.css.values() if "toll" in css] == []
    assert [css for css in tolled.css.values() if "toll" in css] == ["op norm toll"] * 2
    assert [text for text in tolled.text.values() if "on the highway" in text] == ["LayerNorm on the highway"] * 2
    assert len(way(free)) == 3  # two rails and the way out
    assert len(way(tolled)) == 5


def test_nothing_is_thick_where_every_path_goes_through_a_sublayer() -> None:
    text = "dims: {C: 64, H: 4}\nblock: {norm: layer_norm, sublayers: [{kind: attention, heads: H, residual: none}]}\n"
    found = bg.check(text).graph
    assert found is not None
    picture = drawn(found, highway=True)
    assert way(picture) == []
    assert [css for css in picture.css.values() if "toll" in css] == []
    assert "==>" not in to_mermaid([found], highway=True)


@pytest.mark.parametrize("made", [pre_norm, post_norm, folded])
def test_the_highway_leaves_everything_where_it_is_unless_a_box_tells_more(made: object) -> None:
    plain, thick = drawn(made()), drawn(made(), highway=True)  # type: ignore[operator]
    ends = {(line.start, line.end) for line in plain.lines}
    assert {(line.start, line.end) for line in thick.lines} == ends
    assert [spot[0] for spot in thick.nodes.values()] == [spot[0] for spot in plain.nodes.values()]


@pytest.mark.parametrize("name", ["post_norm.yaml", "deepnorm.yaml", *MODELS])
def test_with_all_that_can_be_told_nothing_lies_on_anything(name: str) -> None:
    picture = drawn(graph(name), highway=True, params=True, numbers=True, shapes="all")
    frames = {node: frame(picture, node) for node in picture.nodes}
    names = sorted(frames)
    assert all(apart(frames[a], frames[b]) for n, a in enumerate(names) for b in names[:n])
    for line in picture.lines:
        others = [at for node, at in frames.items() if node not in (line.start, line.end)]
        assert all(apart(around(*stretch), other, 0.0) for stretch in line.stretches for other in others)
        assert not any(inside(frames[line.end], around(*stretch)) for stretch in line.stretches)


def test_numbers_params_and_highway_are_options_of_render(run: Run) -> None:
    spec = str(ROOT / "specs" / "post_norm.yaml")
    plain, symbols = run("render", spec, "-o", "-"), run("render", spec, "-o", "-", "--symbols")
    assert plain == symbols
    assert "(B, T, 64)" in run("render", spec, "-o", "-", "--numbers")[1]
    assert "128 parameters" in run("render", spec, "-o", "-", "--params")[1]
    assert "on the highway" in run("render", spec, "-o", "-", "--highway")[1]


def test_symbols_and_numbers_contradict_each_other(run: Run, tmp_path: Path) -> None:
    code, _, err = run("render", str(ROOT / "specs" / "pre_norm.yaml"), "-o", "-", "--symbols", "--numbers")
    assert code == 2
    assert "--numbers" in err
