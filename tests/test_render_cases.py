"""What people who draw models met in other tools, from spec to picture: skips, deep stacks, bitmaps, shapes, reuse."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.drawing import find_dot, to_dot
from tests.test_cli import ROOT, Run, run
from tests.test_render import parsed_by_graphviz

__all__ = ["run"]

drawing = pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")
STACK = str(ROOT / "specs" / "pre_norm_stack.yaml")
ODD = """
dims: {C: 64, H: 4}
blocks:
  usual:
    norm: rms_norm
    sublayers: [{kind: attention, heads: H}, {kind: feed_forward, hidden: 4*C, activation: relu}]
  odd:
    norm: layer_norm
    sublayers: [{kind: attention, heads: H}]
model:
  parts:
    layers: {kind: stack, of: [{kind: usual, repeat: 40}, {kind: odd, repeat: 1}, {kind: usual, repeat: 55}]}
  equations: y = layers(x)
"""
JOINED = """
name: joined
dims: {C: 768}
block:
  inputs: {x: [B, T, C], z: [B, T, C]}
  outputs: [both, sum]
  parts: {map: {kind: linear, out: C}}
  equations: |
    sum = map(x) + z
    both = concat(x, sum, axes="b t [c]")
"""
REUSED = """
dims: {C: 64}
block:
  parts: {ff: {kind: feed_forward, hidden: 4*C, activation: relu}, n1: layer_norm, n2: layer_norm}
  equations: |
    x = x + ff(n1(x))
    x = x + ff(n2(x))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def drawn(source: str | Path, **options: object) -> str:
    graph = bg.compile(source).graph
    return to_dot([graph], **options)  # type: ignore[arg-type]


def nodes(dot: str) -> dict[str, tuple[str, str]]:
    """Class and text of every node."""
    found = {}
    for name, rest in re.findall(r"^ *(n\d+) \[(.*)\];$", dot, re.M):
        css = re.search(r'class="([^"]*)"', rest)
        text = " ".join(re.findall(r">([^<>]+)<", rest)) or (re.search(r'label="([^"]*)"', rest) or ["", ""])[1]
        found[name] = (css[1] if css else "", html.unescape(text))
    return found


def told(dot: str) -> dict[tuple[str, str], str]:
    """What stands beside each wire."""
    rows = re.findall(r"^ *(n\d+) -> (n\d+) \[(.*)\];$", dot, re.M)
    labels = {(start, end): re.search(r"\blabel=<([^>]*)>", rest) for start, end, rest in rows}
    return {pair: label[1] if label else "" for pair, label in labels.items()}


def test_each_skip_ends_in_a_plus_and_has_a_class_of_its_own() -> None:
    dot = drawn(ROOT / "specs" / "pre_norm.yaml")
    pluses = [name for name, (css, _) in nodes(dot).items() if css == "add"]
    assert len(pluses) == 2
    for plus in pluses:
        into = re.findall(rf'^ *n\d+ -> {plus} \[.*?class="([^"]*)"', dot, re.M)
        assert sorted("residual" in css.split() for css in into) in ([True], [False, True])
        assert len(re.findall(rf"^ *n\d+ -> {plus} \[", dot, re.M)) == 2


def test_a_stack_of_96_blocks_is_one_plate_and_an_odd_block_stands_between_its_neighbours() -> None:
    even = drawn(bg.load(STACK).with_values({"N": 96}))
    assert re.findall(r">(× \d+)<", even) == ["× 96"]
    odd = drawn(ODD)
    assert re.findall(r">(× \d+)<", odd) == ["× 40", "× 55"]
    assert odd.index("× 40") < odd.index(">odd<") < odd.index("× 55")
    assert max(len(nodes(even)), len(nodes(odd))) < 60
    assert len(nodes(drawn(ODD, expand=True))) > 95 * 6


def test_a_bitmap_that_is_too_large_is_told_with_its_factor_and_the_svg_is_whole(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("dot") is None:
        pytest.skip("the system Graphviz program is not on this machine; the embedded one has no such limit")
    monkeypatch.delenv("BLOCKGRAPH_DOT", raising=False)
    expanded = ("render", STACK, "--set", "N=96", "--expand")
    code, _, err = run(*expanded, "-o", "a.png")
    assert code == 0
    factor = re.match(r"warning BG953 a\.png.* smaller by the factor (0\.\d+) and", err)
    assert factor is not None
    assert "draw SVG or PDF" in err
    assert run(*expanded, "-o", "a.svg")[::2] == (0, "wrote a.svg\n")
    svg = Path("a.svg").read_text(encoding="utf-8")
    assert 'transform="scale(1 1) ' in svg
    width, height = (float(one) for one in re.findall(r'viewBox="0\.00 0\.00 ([\d.]+) ([\d.]+)"', svg)[0])
    assert 32_767 / (height * 96 / 72) == pytest.approx(float(factor[1]), rel=1e-3)  # the most pixels that cairo has
    left, top = (float(one) for one in re.findall(r"translate\(([\d.]+) ([\d.]+)\)", svg)[0])
    for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", " ".join(re.findall(r' (?:d|points)="([^"]*)"', svg))):
        assert -0.5 <= float(x) + left <= width + 0.5
        assert -0.5 <= float(y) + top <= height + 0.5


@pytest.mark.parametrize(("numbers", "width", "wide"), [(False, "C", "2*C"), (True, "768", "1536")])
def test_every_wire_tells_its_shape_with_several_inputs_and_outputs(numbers: bool, width: str, wide: str) -> None:
    dot = drawn(JOINED, shapes="all", numbers=numbers)
    texts = {name: text for name, (_, text) in nodes(dot).items()}
    found = {(texts[start], texts[end]): label for (start, end), label in told(dot).items()}
    assert {shape for pair, shape in found.items() if pair[1] != "both"} == {f"(B, T, {width})"}
    assert [shape for pair, shape in found.items() if pair[1] == "both"] == [f"(B, T, {wide})"]
    into = {end: len([1 for _, other in told(dot) if other == end]) for end in texts}
    assert [into[name] for name, text in texts.items() if text.startswith("concat") or text == "+"] == [2, 2]


@drawing
def test_a_part_that_is_used_twice_is_drawn_twice_and_counted_once() -> None:
    dot = drawn(REUSED, params=True)
    uses = [text for _, text in nodes(dot).values() if "shared parameters" in text]
    assert [re.findall(r"use \d of 2", text) for text in uses] == [["use 1 of 2"], ["use 2 of 2"]]
    count = 2 * 64 * 256 + 256 + 64
    assert [text for text in uses if "33.1 k" in text] == uses[:1]
    assert f"{count / 1000:.1f}" == "33.1"
    assert len(set(re.findall(r"subgraph (\w+)", dot))) == dot.count("subgraph ")
    assert len(parsed_by_graphviz(dot)[0]) == len(set(parsed_by_graphviz(dot)[0]))


@pytest.mark.parametrize("name", ["blk:0", "attn::q", "http://x:1/"])
def test_a_colon_is_text_in_the_name_of_a_file_and_a_located_error_in_the_name_of_a_part(name: str) -> None:
    plain = nodes(drawn({**bg.load(STACK).data, "name": "plain"}))  # type: ignore[arg-type]
    assert nodes(drawn({**bg.load(STACK).data, "name": name})) == plain  # type: ignore[arg-type]
    text = f'dims: {{C: 64}}\nblock:\n  norm: rms_norm\n  sublayers:\n    - {{kind: linear, name: "{name}"}}\n'
    found = bg.check(text).findings
    assert [(one.severity, one.place.start.line) for one in found] == [("error", 5)]
