"""How it is drawn: a straight spine, rails left of it, right angles, nothing on top of anything else."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from blockgraph.drawing import draw, find_dot, measure, to_dot
from blockgraph.graph import Graph
from blockgraph.op import OPS
from tests.test_render_samples import (
    SAMPLES,
    STREAM,
    Drawing,
    Spot,
    Writing,
    drawn,
    model,
    odd_one,
    post_norm,
    pre_norm,
)

Frame = tuple[float, float, float, float]


def arbitrary(seed: int) -> Graph:
    """A wiring that nobody would write, with blocks, gates, side operands and branches at random."""
    choose = random.Random(seed)
    names = ("x", "m") if choose.random() < 0.4 else ("x",)
    w = Writing(f"wiring {seed}", **dict.fromkeys(names, STREAM))
    values = list(w.given.values())
    x = values[0]
    for n in range(choose.randint(3, 9)):
        other, kind = choose.choice(values[-4:]), choose.randrange(7)
        if kind < 2:
            x = w.add(x, w.part(f"{choose.choice(['attention', 'feed_forward'])}{n}", w.part(f"norm{n}", x)))
        elif kind == 2:
            x = w.add(x, w.part(f"attention{n}", x), w.part(f"feed_forward{n}", x))
        elif kind == 3:
            x = w.times(x, w.g(OPS["sigmoid"](), other))
        elif kind == 4:
            x = w.part(f"attention{n}", x, other)
        elif kind == 5:
            x = w.part(f"norm{n}", w.add(other, x))
        else:
            x = w.add(w.times(w.param(f"a{n}"), x), w.part(f"feed_forward{n}", other))
        values.append(x)
    graph = w.finish(x, *values[1:2], names=["x", "v"])
    if len(names) > 1:
        return graph
    return model([w.finish(x), pre_norm("b")], [((0, 1), 6)] if choose.random() < 0.5 else [((0,), 3), ((1,), 1)])


WIRINGS: dict[str, Callable[[], Graph]] = SAMPLES | {f"arbitrary {n}": lambda n=n: arbitrary(n) for n in range(60)}  # type: ignore[misc]


def frame(picture: Drawing, node: str) -> Frame:
    x, y, wide, high = picture.nodes[node]
    return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2


def apart(one: Frame, other: Frame, slack: float = 0.1) -> bool:
    beside = one[2] <= other[0] + slack or other[2] <= one[0] + slack
    return beside or one[3] <= other[1] + slack or other[3] <= one[1] + slack


def inside(one: Frame, other: Frame) -> bool:
    return other[0] <= one[0] and other[1] <= one[1] and one[2] <= other[2] and one[3] <= other[3]


def around(low: Spot, high: Spot) -> Frame:
    return min(low[0], high[0]), min(low[1], high[1]), max(low[0], high[0]), max(low[1], high[1])


@pytest.mark.parametrize("name", WIRINGS)
def test_no_box_lies_on_another_and_no_border_runs_through_one(name: str) -> None:
    picture = drawn(WIRINGS[name]())
    frames = [frame(picture, node) for node in picture.nodes]
    for n, one in enumerate(frames):
        assert all(apart(one, other) for other in frames[n + 1 :])
        assert all(apart(one, plate) or inside(one, plate) for plate in picture.plates)
    for n, one in enumerate(picture.plates):
        assert all(apart(one, other) or inside(one, other) or inside(other, one) for other in picture.plates[n + 1 :])


@pytest.mark.parametrize("name", WIRINGS)
def test_all_lines_have_right_angles_and_run_through_no_box(name: str) -> None:
    picture = drawn(WIRINGS[name]())
    for line in picture.lines:
        for low, high in line.stretches:
            assert abs(low[0] - high[0]) < 0.1 or abs(low[1] - high[1]) < 0.1
            assert all(apart(around(low, high), frame(picture, node), slack=0.5) for node in picture.nodes)


@pytest.mark.parametrize("name", WIRINGS)
def test_lines_of_different_values_share_no_stretch_except_into_a_sum(name: str) -> None:
    picture = drawn(WIRINGS[name]())
    stretches = [(line, around(*stretch)) for line in picture.lines for stretch in line.stretches]
    for n, (line, one) in enumerate(stretches):
        for other_line, other in stretches[n + 1 :]:
            if line.start == other_line.start or (line.end == other_line.end and picture.text[line.end] in "+×"):
                continue
            wide = min(one[2], other[2]) - max(one[0], other[0])
            high = min(one[3], other[3]) - max(one[1], other[1])
            assert not (wide > 3 and -1 < high < 1)
            assert not (high > 3 and -1 < wide < 1)


def drawn_groups(svg: bytes, css: str) -> list[ElementTree.Element]:
    """The groups of an SVG whose class starts with these words."""
    groups = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g")
    return [group for group in groups if group.get("class", "").startswith(css)]


def across(group: ElementTree.Element) -> list[float]:
    """The x of all points of the first shape in a group."""
    shape = next(part for part in group if part.tag.endswith(("path", "ellipse")))
    if shape.tag.endswith("ellipse"):
        return [float(shape.get("cx", "nan"))]
    return [float(x) for x in re.findall(r"(-?[\d.]+),-?[\d.]+", shape.get("d", ""))]


@pytest.mark.parametrize(("made", "rails"), [(pre_norm, 2), (post_norm, 2), (odd_one, 6)])
def test_the_spine_is_straight_in_the_svg_and_its_rails_are_in_one_column_left_of_it(
    made: Callable[[], Graph], rails: int
) -> None:
    if find_dot() is None:
        pytest.skip("no Graphviz program on this machine")
    svg = draw(to_dot([made()]), "svg")
    kinds = ("add", "op norm", "op attention", "op feed_forward", "tap")
    on_spine = [across(group) for kind in kinds for group in drawn_groups(svg, f"node {kind}")]
    middles = [(min(xs) + max(xs)) / 2 for xs in on_spine]
    assert len(middles) >= rails * 4
    assert max(middles) - min(middles) < 0.1
    lines = [across(group) for group in drawn_groups(svg, "edge residual rail")]
    assert len(lines) == rails
    assert len({min(xs) for xs in lines}) == 1
    assert min(lines[0]) < min(min(xs) for xs in on_spine)


def test_pre_norm_and_post_norm_differ_only_in_where_the_norms_stand() -> None:
    picture = drawn(pre_norm(), post_norm())
    left, right = [f"n{n}" for n in range(8)], [f"n{n}" for n in range(8, 16)]
    assert sorted(picture.css[node] for node in left) == sorted(picture.css[node] for node in right)
    assert picture.nodes["n7"][1:] == picture.nodes["n15"][1:]
    shift = picture.nodes["n8"][0] - picture.nodes["n0"][0]
    for one, other in zip(left, right, strict=True):
        assert abs(picture.nodes[other][0] - picture.nodes[one][0] - shift) < 0.1
    assert picture.plates[0][1] == picture.plates[1][1]
    assert picture.plates[0][3] == picture.plates[1][3]


def test_branches_of_one_plus_stand_side_by_side() -> None:
    picture = drawn(SAMPLES["parallel"]())
    spots = {css: picture.nodes[node] for node, css in picture.css.items()}
    assert spots["op attention"][1] == spots["op feed_forward"][1]
    assert spots["op attention"][0] < spots["op feed_forward"][0]


def test_inputs_are_at_the_bottom_and_outputs_at_the_top() -> None:
    for made in SAMPLES.values():
        picture = drawn(made())
        heights = [(picture.css[node], y) for node, (_, y, *_) in picture.nodes.items()]
        everything = [y for _, y in heights]
        assert {y for css, y in heights if css == "io input"} == {min(everything)}
        assert {y for css, y in heights if css == "io output"} == {max(everything)}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_text_fits_into_its_box(name: str) -> None:
    picture = drawn(SAMPLES[name]())
    dot = to_dot([SAMPLES[name]()])
    for node, found in re.findall(r"^ *(n\d+) \[.*label=<<TABLE(.*)</TABLE>>\];$", dot, re.M):
        for size, text in re.findall(r'POINT-SIZE="([\d.]+)"[^>]*>([^<]*)<', found):
            assert measure.width(text, float(size)) <= picture.nodes[node][2] - 8


def test_widths_are_those_of_the_metrics_of_helvetica() -> None:
    # Adobe's Core 14 metrics for "Multi-Head": M 833, u 556, l 222, t 278, i 222, - 333, H 722, e 556, a 556, d 556.
    assert measure.width("Multi-Head", 1000) == 833 + 556 + 222 + 278 + 222 + 333 + 722 + 556 + 556 + 556
    assert measure.width("漢", 10) >= 10
    assert measure.width("e\N{COMBINING ACUTE ACCENT}", 1000) == 556
