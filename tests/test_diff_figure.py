"""The figure of a difference and that of a spec with faults keep the rules of every drawing, their notes included."""

from __future__ import annotations

import re
from functools import cache

import pytest

import blockgraph as bg
from blockgraph.diff import diff
from blockgraph.diff.marks import marks
from blockgraph.drawing import ThemeName, faults, measure, mended, to_dot
from blockgraph.drawing.marking import CLASSES, COLOURS, LINES, SHOWN
from blockgraph.graph import Graph
from tests.test_diff_fingerprint import ROOT
from tests.test_render_faults import ADD, INPUT
from tests.test_render_geometry import Frame, apart, around, frame, inside
from tests.test_render_samples import Drawing

PAIRS = [
    ("pre_norm", "post_norm"),
    ("pre_norm", "parallel"),
    ("models/llama", "models/gemma2"),
    ("models/gpt2", "models/llama"),
    ("models/t5", "models/bart"),
    ("layouts/pre_norm", "layouts/hyper_connections"),
    ("layouts/macaron", "layouts/value_residual"),
]


def graph(name: str) -> Graph:
    found = bg.check(ROOT / "specs" / f"{name}.yaml").graph
    assert found is not None
    return found


@cache
def difference(left: str, right: str, theme: ThemeName = "light") -> str:
    one, other = graph(left), graph(right)
    return to_dot([one, other], marks=marks(diff(one, other)), theme=theme)


def faulty(text: str, theme: ThemeName = "light") -> str:
    checked = bg.check(text)
    assert checked.graph is not None
    found = mended(checked.graph, checked.findings, lambda _, number: text.splitlines()[number - 1])
    return to_dot([found], marks=faults([found], checked.findings), theme=theme)


FIGURES = [pytest.param(difference, pair, id=" ".join(pair)) for pair in PAIRS]
FIGURES += [pytest.param(faulty, (text,), id=name) for name, text in (("add", ADD), ("input", INPUT))]


def labels(dot: str) -> list[Frame]:
    """The frames of the texts beside wires."""
    found = []
    for x, y, text in re.findall(r'-> n\d+ \[.* lp="([-\d.]+),([-\d.]+)", label=<(.*)>\];$', dot, re.M):
        plain = re.sub(r"&#\d+;", "x", text)
        lines = re.findall("<TD[^>]*>([^<]*)", plain) or [plain]
        wide, high = max(measure.width(line, 9.5) for line in lines), 12 * len(lines)
        found.append((float(x) - wide / 2, float(y) - high / 2, float(x) + wide / 2, float(y) + high / 2))
    return found


@pytest.mark.parametrize(("make", "arguments"), FIGURES)
def test_marks_move_nothing_onto_anything_else(make: object, arguments: tuple[str, ...]) -> None:
    dot = make(*arguments)  # type: ignore[operator]
    picture = Drawing(dot)
    frames = [frame(picture, node) for node in picture.nodes]
    assert frames
    for n, one in enumerate(frames):
        assert all(apart(one, other) for other in frames[n + 1 :])
        assert all(apart(one, plate) or inside(one, plate) for plate in picture.plates)
    for line in picture.lines:
        for low, high in line.stretches:
            assert abs(low[0] - high[0]) < 0.1 or abs(low[1] - high[1]) < 0.1
            assert all(apart(around(low, high), one, slack=0.5) for one in frames)
    for label in labels(dot):
        assert all(apart(label, one, slack=1.5) for one in frames)


@pytest.mark.parametrize(("make", "arguments"), FIGURES)
def test_every_note_fits_into_its_box(make: object, arguments: tuple[str, ...]) -> None:
    dot = make(*arguments)  # type: ignore[operator]
    picture, seen = Drawing(dot), 0
    for node, found in re.findall(r"^ *(n\d+) \[.*label=<<TABLE(.*)</TABLE>>.*\];$", dot, re.M):
        for size, text in re.findall(r'POINT-SIZE="([\d.]+)"[^>]*>([^<]*)<', found):
            plain = re.sub(r"&#\d+;", "x", text)
            assert measure.width(plain, float(size)) <= picture.nodes[node][2] - 8
            seen += 1
    assert seen


def test_each_kind_of_mark_differs_in_sign_and_in_line_not_in_colour_alone() -> None:
    assert len(set(SHOWN.values())) == len(set(CLASSES.values())) == len(set(LINES.values())) == 4
    assert len(set(COLOURS.values())) == 4
    assert {line for line, _ in LINES.values()} <= {"solid", "dashed"}  # dots on a rim look like the teeth of a comb


def test_a_difference_marks_both_sides() -> None:
    dot = difference("models/gpt2", "models/llama")
    found = {name: dot.count(f' {name}"') for name in ("removed", "added", "changed")}
    # gone: the add of the positions and the product with the token table; new: the head. The table is no longer shared,
    # and three norms, the attention and the feed-forward differ.
    assert found == {"removed": 2, "added": 1, "changed": 12}
    assert "rotary positions (half, theta" in dot
