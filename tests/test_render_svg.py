"""Pictures as Graphviz draws them have no overlap, no crossing and no text that leaves its box: a sample of all specs.

`python -m tests.geometry` looks at every spec at every level, upwards and to the right, by every program there is.
"""

from __future__ import annotations

import re
from itertools import product

import pytest

import blockgraph as bg
from blockgraph.drawing import draw, find_dot, program, to_dot
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
