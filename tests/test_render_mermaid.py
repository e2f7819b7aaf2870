"""The Mermaid text shows what the DOT text shows: read back, it has the same boxes, wires, plates and texts."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

import blockgraph as bg
from blockgraph.drawing import Mark, Marks, to_mermaid
from blockgraph.graph import Graph, Repeat
from tests.hostile import TEXTS, shown_as
from tests.test_cli import ROOT, Run, run
from tests.test_render_samples import SAMPLES, drawn, post_norm, pre_norm

__all__ = ["run"]

NODE = re.compile(r'^ +(n\d+)(?:\(\("(.*)"\)\)|\(\["(.*)"\]\)|\["(.*)"\]|\("(.*)"\)):::(\w+)$')
WIRE = re.compile(r'^  (n\d+) (-->|==>)(?:\|"(.*)"\|)? (n\d+)$')
PLATE = re.compile(r'^ +subgraph (plate\d+)\["(.*)"\]$')
REST = re.compile(r"^(flowchart BT| +direction BT| +end|  classDef \w+ [\w:,#-]+|  class n\d+ \w+)$")


def words(text: str) -> str:
    """A text as Mermaid shows it: codes become characters, breaks become spaces."""
    return html.unescape(re.sub(r"#(\d+);", r"&#\1;", text.replace("<br/>", " ")))


class Chart:
    """A Mermaid text read back; a line that is none of ours is an error."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, str] = {}
        self.css: dict[str, str] = {}
        self.wires: list[tuple[str, str, str, str]] = []
        self.plates: dict[str, str] = {}
        self.inside: dict[str, tuple[str, ...]] = {}
        around: list[str] = []
        for line in text.splitlines():
            if node := NODE.match(line):
                self.nodes[node[1]] = words(next(part for part in node.groups()[1:5] if part is not None))
                self.css[node[1]], self.inside[node[1]] = node[6], tuple(around)
            elif wire := WIRE.match(line):
                self.wires.append((wire[1], wire[4], wire[2], words(wire[3] or "")))
            elif plate := PLATE.match(line):
                around.append(plate[1])
                self.plates[plate[1]] = words(plate[2])
            else:
                assert REST.match(line), line
                if line.strip() == "end":
                    around.pop()
        assert around == []

    @property
    def shape(self) -> nx.MultiDiGraph:
        made = nx.MultiDiGraph()
        made.add_nodes_from((node, {"text": text}) for node, text in self.nodes.items())
        made.add_edges_from((start, end) for start, end, _, _ in self.wires)
        return made


def chart(*graphs: Graph, **options: object) -> Chart:
    return Chart(to_mermaid(graphs, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SAMPLES)
def test_boxes_and_wires_are_those_of_the_dot_text(name: str) -> None:
    found, picture = chart(SAMPLES[name]()), drawn(SAMPLES[name]())
    dot = nx.MultiDiGraph()
    dot.add_nodes_from((node, {"text": html.unescape(text)}) for node, text in picture.text.items())
    dot.add_edges_from((line.start, line.end) for line in picture.lines)
    assert found.nodes == dict(dot.nodes(data="text"))
    assert sorted(found.shape.edges()) == sorted(dot.edges())
    rails = sorted((line.start, line.end) for line in picture.lines if "rail" in line.css)
    assert len([wire for wire in found.wires if wire[2] == "==>"]) == len(
        {end for _, end in rails if "add" in picture.css[end]}
    )


def test_plates_are_subgraphs_with_their_numbers_of_layers() -> None:
    found = chart(SAMPLES["nested"]())
    assert len([text for text in found.plates.values() if text.startswith("×")]) == 2
    inner = next(plate for plate, text in found.plates.items() if text.startswith("×"))
    assert any(inner in around for around in found.inside.values())
    assert max(len(around) for around in found.inside.values()) == 3


def test_several_graphs_stand_beside_each_other_under_their_names() -> None:
    found = chart(pre_norm(), post_norm(), captions=["one source"])
    assert [text for text in found.plates.values() if "norm" in text] == ["pre_norm one source", "post_norm"]
    assert nx.number_weakly_connected_components(found.shape) == 2


@pytest.mark.parametrize(
    "name", [*TEXTS.values(), "end", "1. item", "- item", "`code`", "**b** _i_", "%% no", "a|b", "#35;"]
)
def test_a_hostile_name_is_text_and_nothing_else(name: str) -> None:
    found = chart(pre_norm(name))
    title = "".join(found.plates["plate0"].split())
    assert title == "".join(shown_as(name).split())
    assert len(found.nodes) == len(drawn(pre_norm()).nodes)
    text = to_mermaid([pre_norm(name)])
    quoted = re.findall(r'"([^"]*)"', text)
    assert not re.search(r"[<>&`*_|\[\]{};%-]", re.sub(r"<br/>|#\d+;", "", "".join(quoted)))


def test_shapes_are_told_where_they_change_everywhere_or_nowhere() -> None:
    counts = [
        sum(bool(wire[3]) for wire in chart(pre_norm(), shapes=told).wires) for told in ("none", "changes", "all")
    ]
    assert counts[0] == 0
    assert counts[1] == 2  # below the first norm, and the output
    assert counts[2] == len(chart(pre_norm()).wires)


def test_numbers_parameters_highway_and_marks_are_told_as_in_dot() -> None:
    graph = bg.check(ROOT / "specs" / "post_norm.yaml").graph
    assert graph is not None
    marks = Marks({(id(graph), "attention"): Mark("+")}, {})
    text = to_mermaid([graph], numbers=True, params=True, highway=True, marks=marks)
    found = Chart(text)
    assert "LayerNorm 128 parameters on the highway" in found.nodes.values()
    assert any(wire[3] == "(B, T, 64)" for wire in found.wires)
    assert sum(wire[2] == "==>" for wire in found.wires) == 5
    assert len(re.findall(r"^  class n\d+ toll$", text, re.M)) == 2
    assert len(re.findall(r"^  class n\d+ added$", text, re.M)) == 1


def test_expand_writes_every_layer() -> None:
    graph = SAMPLES["odd_one"]()
    (stack,) = (node.op for node in graph.nodes if isinstance(node.op, Repeat))
    layers = len(list(stack.layers({})))
    assert len(chart(graph, expand=True).nodes) > layers > len(chart(graph).nodes)


def test_the_text_is_the_same_whatever_the_hash_seed() -> None:
    code = "import sys, blockgraph as bg; from blockgraph.drawing import to_mermaid\n"
    code += "sys.stdout.buffer.write(to_mermaid([bg.check(sys.argv[1]).graph], params=True, highway=True).encode())"
    spec = str(ROOT / "specs" / "models" / "t5.yaml")
    texts = {
        subprocess.run(
            [sys.executable, "-c", code, spec],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1


def test_the_ending_mmd_asks_for_mermaid_and_needs_no_program(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLOCKGRAPH_DOT", "/nowhere/dot")
    spec = str(ROOT / "specs" / "pre_norm.yaml")
    assert run("render", spec, "-o", "a.mmd") == (0, "", "wrote a.mmd\n")
    assert len(Chart((tmp_path / "a.mmd").read_text("utf-8")).nodes) == 8


def test_a_difference_is_drawn_as_mermaid_with_its_marks(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("blockgraph.drawing.program.find_dot", lambda: None)
    one, other = (str(ROOT / "specs" / f"{name}.yaml") for name in ("pre_norm", "post_norm"))
    assert run("diff", one, other, "-o", "a.mmd")[0] == 1
    text = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), Path("a.mmd").read_text(encoding="utf-8"))
    assert text.startswith("flowchart ")
    assert [text.count(f"{sign} LayerNorm") for sign in "\N{MINUS SIGN}+~"] == [2, 2, 0]
    assert text.count("placement pre → post") == 2
    assert text.count("removed, ~ changed") == text.count("added, ~ changed") == 1
    assert run("diff", one, one, "-o", "b.mmd")[0] == 0
    assert "LayerNorm" in Path("b.mmd").read_text(encoding="utf-8")
    assert not re.search(r"class n\d+ ", Path("b.mmd").read_text(encoding="utf-8"))
