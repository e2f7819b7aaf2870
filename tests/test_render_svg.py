"""Pictures as Graphviz draws them have no overlap, no crossing and no text that leaves its box: a sample of all specs.

`python -m tests.geometry` looks at every spec at every level, upwards and to the right, by every program there is.
"""

from __future__ import annotations

import re
from itertools import pairwise, product

import pytest

import blockgraph as bg
from blockgraph.drawing import draw, find_dot, program, to_dot
from blockgraph.drawing.collapse import Look, collapse
from blockgraph.drawing.wiring import Wiring
from tests.geometry import ROOT, SPECS, Picture, apart, around, bends, faults, look

pytestmark = pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")
CLOSE = ["models/gpt2.yaml", "models/t5.yaml", "models/mixtral.yaml", "models/gemma2.yaml", "layouts/adaln_zero.yaml"]
CLOSE += ["layouts/decoder_cross_attention.yaml", "layouts/residual.yaml", "layouts/shared_experts.yaml"]
LEVEL = ["models/t5.yaml", "models/bart.yaml", "layouts/macaron.yaml", "layouts/value_residual.yaml", "post_norm.yaml"]


@pytest.mark.parametrize("name", SPECS)
def test_no_reader_stumbles_over_the_picture_of_a_spec(name: str) -> None:
    assert look(name) == []


@pytest.mark.parametrize("name", CLOSE)
def test_no_reader_stumbles_where_every_op_is_drawn(name: str) -> None:
    assert look(name, "op") == []


@pytest.mark.parametrize("name", LEVEL)
@pytest.mark.parametrize("level", ["block", "sublayer", "op"])
def test_no_reader_stumbles_over_a_figure_that_runs_to_the_right(name: str, level: str) -> None:
    assert look(name, level, "LR") == []


@pytest.mark.parametrize("name", ["models/t5.yaml", "layouts/value_residual.yaml", "pre_norm.yaml"])
def test_the_embedded_program_draws_no_worse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = program._pure()
    if embedded is None:
        pytest.skip("graphviz-pure is not installed")
    monkeypatch.setenv(program.VARIABLE, embedded)
    assert look(name) == look(name, "op") == look(name, "sublayer", "LR") == []


def spoilt(pattern: str, by: str) -> list[str]:
    """What is found in the picture of a pre-norm block with one thing moved."""
    graph = bg.check(ROOT / "specs" / "pre_norm.yaml").graph
    assert graph is not None
    svg = draw(to_dot([graph]), "svg").decode()
    moved = re.sub(pattern, by, svg, count=1, flags=re.S)
    assert moved != svg
    picture = Picture(moved.encode())
    return [*faults(picture), *bends(picture, graph, "sublayer", "BT")]


@pytest.mark.parametrize(
    ("pattern", "by", "fault"),
    [
        (r'(<title>n2</title>.*?d="M)[^"]*(")', r"\g<1>60,-60 C90,-60 120,-60 150,-100\2", "n1 lies on n2"),
        (r'(<title>n2</title>.*?d="M)([^"]*")', r"\g<1>0,-130 C9,-130 9,-130 \2", "the spine is"),
        (r"(<title>n1</title>.*?<text[^>]* x=\")[\d.]+", r"\g<1>0", "leaves n1"),
        (r'(y=")[-\d.]+("[^>]*>\(B, T, C\))', r"\g<1>-83\2", "'(B, T, C)' lies on n1"),
        (r'(<title>n0&#45;&gt;n1</title>.*?d="M)[^"]*', r"\g<1>110,-18 C110,-18 150,-58 150,-58", "runs aslant"),
        (r'(<title>n0&#45;&gt;n3</title>.*?d="M)[^"]*', r"\g<1>110,-51 C110,-51 110,-177 110,-177", "runs through n1"),
        (r'(<title>n0&#45;&gt;n3</title>.*?d="M)[^"]*', r"\g<1>300,-51 C300,-51 300,-177 300,-177", "beside the spine"),
    ],
)
def test_a_picture_that_is_spoilt_is_found_out(pattern: str, by: str, fault: str) -> None:
    assert any(fault in found for found in spoilt(pattern, by))


@pytest.mark.parametrize("level", ["block", "sublayer", "op"])
@pytest.mark.parametrize("rankdir", ["BT", "LR"])
@pytest.mark.parametrize("name", ["models/t5.yaml", "models/bart.yaml"])
def test_no_line_into_an_encoder_or_a_decoder_crosses_a_rail(name: str, rankdir: str, level: str) -> None:
    graph = bg.check(ROOT / "specs" / name).graph
    assert graph is not None
    picture = Picture(draw(to_dot([graph], level=level, rankdir=rankdir), "svg"))  # type: ignore[arg-type]
    rails = [edge for edge in picture.edges if "rail" in edge.css]
    assert rails or level == "block"
    for rail in rails:
        for edge in picture.edges:
            if rail.ends[0] not in edge.ends and rail.ends[1] not in edge.ends:
                pairs = product(rail.stretches, edge.stretches)
                assert [
                    (rail.name, edge.name) for one, two in pairs if not apart(around(*one), around(*two), -0.1)
                ] == []


@pytest.mark.parametrize("level", ["sublayer", "op"])
@pytest.mark.parametrize("name", ["models/t5.yaml", "models/bart.yaml", "layouts/looped_depth.yaml"])
def test_what_waits_for_an_encoder_has_no_long_gap_in_it(name: str, level: str) -> None:
    graph = bg.check(ROOT / "specs" / name).graph
    assert graph is not None
    picture = Picture(draw(to_dot([graph], level=level), "svg"))  # type: ignore[arg-type]
    wiring = Wiring(collapse(graph, Look(level)))  # type: ignore[arg-type]
    ids = {box: f"n{number}" for number, box in enumerate(wiring.live)}
    for column in wiring.columns[:2]:
        for low, high in pairwise(picture.nodes[ids[box]] for box in column):
            assert low.frame[1] - high.frame[3] < 350, (low.name, high.name)  # the steps of a norm stand beside 332


@pytest.mark.parametrize("name", ["models/falcon.yaml", "layouts/dense_moe.yaml", "layouts/parallel_branch_norms.yaml"])
def test_a_value_enters_the_plate_of_a_part_on_one_line(name: str) -> None:
    graph = bg.check(ROOT / "specs" / name).graph
    assert graph is not None
    picture = Picture(draw(to_dot([graph], level="op"), "svg"))
    entered = 0
    for plate in (one for one in picture.plates if "part_norm" in one.css):
        left, _, right, bottom = plate.frame
        places: dict[str, set[float]] = {}
        for edge in picture.edges:
            for (x, y), (_, z) in edge.stretches:
                if left < x < right and min(y, z) < bottom < max(y, z):
                    places.setdefault(edge.ends[0], set()).add(round(x))
        entered += len(places)
        assert [len(found) for found in places.values()] == [1]
    assert entered >= 2


def test_two_streams_from_one_value_part_outside_the_stack_and_have_a_port_each() -> None:
    graph = bg.check(ROOT / "specs" / "layouts" / "residual.yaml").graph
    assert graph is not None
    picture = Picture(draw(to_dot([graph]), "svg"))
    (stack,) = [plate for plate in picture.plates if "stack" in plate.css]
    fork = max((node for node in picture.nodes.values() if "tap" in node.css), key=lambda node: node.frame[3])
    assert fork.frame[1] > stack.frame[3]
    into = [edge for edge in picture.edges if edge.ends[0] == "n0"]
    assert ["port" in picture.nodes[edge.ends[1]].css for edge in into] == [True, True]
