"""What is drawn: the graph's boxes and wires and nothing else, whatever a spec is called."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import time

import networkx as nx
import pytest

from blockgraph.dims import Dim
from blockgraph.drawing import find_dot, to_dot, written
from blockgraph.graph import Graph, Repeat, Scope, Segment
from blockgraph.number import Number
from blockgraph.op import OPS
from blockgraph.ops.leaf import Constant
from tests.hostile import TEXTS
from tests.test_render_samples import (
    SAMPLES,
    C,
    V,
    Writing,
    cycle,
    deepnorm,
    drawn,
    folded,
    hyper,
    mixer,
    model,
    odd_one,
    parallel,
    post_norm,
    pre_norm,
    rezero,
    seq2seq,
    shared_call,
    shared_norm,
)


def parsed_by_graphviz(dot: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Nodes and edges as the Graphviz program reads them."""
    program = find_dot()
    if program is None:
        pytest.skip("no Graphviz program on this machine")
    done = subprocess.run([program, "-Tplain"], input=dot, capture_output=True, text=True, check=True, encoding="utf-8")
    rows = [line.split() for line in done.stdout.replace("\\\n", "").splitlines()]
    nodes = [row[1] for row in rows if row[:1] == ["node"]]
    return nodes, [(row[1], row[2]) for row in rows if row[:1] == ["edge"]]


def svg_text(svg: bytes) -> str:
    """All text of an SVG, one string."""
    return "".join(html.unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg.decode(), re.S))


def wiring(dot: str) -> list[tuple[str, str]]:
    return re.findall(r"^ *(n\d+) -> (n\d+) ", dot, re.M)


def test_a_pre_norm_block_has_six_boxes_between_input_and_output() -> None:
    picture = drawn(pre_norm())
    assert [picture.css[node] for node in picture.nodes] == [
        *("io input", "op norm", "op attention", "add", "op norm", "op feed_forward", "add", "io output")
    ]
    assert [(line.start, line.end) for line in picture.lines if "residual" in line.css] == [("n0", "n3"), ("n3", "n6")]


def test_ids_count_up_in_drawing_order() -> None:
    for made in SAMPLES.values():
        dot = to_dot([made()])
        clusters = re.findall(r"subgraph (\w+) \{", dot)
        assert clusters == [f"cluster{n}" for n in range(len(clusters))]
        points = re.findall(r"^ *(p\d+) \[", dot, re.M)
        assert sorted(points, key=lambda p: int(p[1:])) == [f"p{n}" for n in range(len(points))]
        assert set(re.findall(r"^ *(n\d+) \[", dot, re.M)) == {f"n{n}" for n in range(len(drawn(made()).nodes))}


@pytest.mark.parametrize("name", TEXTS.values(), ids=TEXTS)
def test_a_hostile_name_changes_nothing_but_its_own_text(name: str) -> None:
    plain, hostile = to_dot([pre_norm("plain")]), to_dot([pre_norm(name)])
    nodes, edges = parsed_by_graphviz(hostile)
    assert (sorted(nodes), sorted(edges)) == tuple(map(sorted, parsed_by_graphviz(plain)))
    assert len([node for node in nodes if node.startswith("n")]) == 8


def test_a_name_past_the_limit_says_how_much_is_left_out() -> None:
    dot = to_dot([pre_norm("x" * 20_123)])
    assert dot.count("x" * 60) == 20_000 // 60
    assert "(123 characters more)" in dot


def test_control_characters_are_shown_by_their_symbols() -> None:
    assert "␛[31m" in html.unescape(to_dot([pre_norm("\x1b[31m")]))


def test_a_part_called_twice_is_two_boxes_that_say_so_and_no_loop() -> None:
    picture = drawn(shared_call())
    texts = [text for node, text in picture.text.items() if "feed_forward" in picture.css[node]]
    assert [re.search(r"use \d of \d, shared parameters", text)[0] for text in texts] == [  # type: ignore[index]
        "use 1 of 2, shared parameters",
        "use 2 of 2, shared parameters",
    ]
    assert nx.is_directed_acyclic_graph(nx.DiGraph(wiring(to_dot([shared_call()]))))


@pytest.mark.parametrize("name", SAMPLES)
def test_no_drawing_has_a_cycle(name: str) -> None:
    assert nx.is_directed_acyclic_graph(nx.DiGraph(wiring(to_dot([SAMPLES[name]()]))))


@pytest.mark.parametrize(
    ("made", "residual"), [(pre_norm, 2), (post_norm, 2), (rezero, 2), (parallel, 1), (shared_norm, 1)]
)
def test_each_plus_has_one_residual_edge_and_its_branches(made: object, residual: int) -> None:
    picture = drawn(made())  # type: ignore[operator]
    pluses = [node for node, css in picture.css.items() if css == "add"]
    assert len(pluses) == residual
    for plus in pluses:
        assert picture.text[plus] == "+"
        lines = picture.into(plus)
        assert len(lines) == (3 if residual == 1 else 2)
        assert len([line for line in lines if "residual" in line.css.split()]) == 1


def test_a_scale_on_the_stream_sits_on_the_rail() -> None:
    picture = drawn(deepnorm())
    scales = [node for node, css in picture.css.items() if css == "op scale"]
    assert [picture.text[node] for node in scales] == ["× a", "× a"]
    for scale in scales:
        (into,) = picture.into(scale)
        assert "residual" in into.css
        assert [line.css for line in picture.lines if line.start == scale] == ["residual rail"]


def test_a_scale_on_a_branch_stands_between_the_branch_and_the_plus() -> None:
    picture = drawn(rezero())
    scales = [node for node, css in picture.css.items() if css == "op scale"]
    assert [picture.text[node] for node in scales] == ["× a1", "× a2"]
    assert not any("residual" in line.css for scale in scales for line in picture.into(scale))


def test_a_product_with_a_matrix_on_the_stream_is_part_of_the_residual_path() -> None:
    picture = drawn(hyper())
    mixes = [node for node, text in picture.text.items() if "mix" in text]
    assert len(mixes) == 2
    assert all("residual" in line.css for mix in mixes for line in picture.into(mix))


def test_parameters_are_written_into_the_op_that_takes_them() -> None:
    assert any(text == "einsum b t c, c r → b t r with U" for text in drawn(mixer()).text.values())


def operators() -> Graph:
    """Parameters and numbers in all positions."""
    w = Writing("operators")
    x, table = w.given["x"], w.param("table", V, C)
    w.g.scopes["embed"] = Scope("embed", "embedding", "Embedding", "", "embedding")
    w.g.scope = "embed"
    tied = w.param("embed.table", V, C)
    w.g.scope = ""
    gate = w.g(OPS["tanh"](), w.param("g"))
    x = w.g(OPS["subtract"](), w.g(Constant(1)), x)
    x = w.g(OPS["divide"](), w.times(x, gate), w.g(Constant(Number("C") ** 0.5)))
    x = w.g(OPS["power"](), x, w.g(Constant(2)))
    y = w.g(OPS["matmul"](), x, w.g(OPS["transpose"](), table))
    return w.finish(y, w.g(OPS["matmul"](), x, w.g(OPS["transpose"](), tied)), names=["y", "z"])


def test_parameters_and_numbers_are_written_as_in_the_equations() -> None:
    texts = [html.unescape(text) for text in drawn(operators()).text.values()]
    assert texts == [
        *("x", "1 − ·", "× tanh(g)", "÷ C**0.5", "** 2", "@ table.T", "@ embed.table.T", "y", "z"),
    ]


def test_equal_layers_fold_into_one_plate_with_their_number() -> None:
    start = time.perf_counter()
    dot = to_dot([folded(96)])
    assert time.perf_counter() - start < 2
    assert dot.count("× 96") == 1
    assert len(drawn(folded(96)).nodes) < 60


def test_an_odd_layer_stands_between_its_folded_neighbours() -> None:
    dot = to_dot([odd_one("stack")])
    assert re.findall(r"× \d+", dot) == ["× 40", "× 55"]
    assert dot.index("× 40") < dot.index(">odd<") < dot.index("× 55")
    assert len(drawn(odd_one()).nodes) < 60


def test_a_cycle_folds_into_one_plate_with_its_members_in_order() -> None:
    dot = to_dot([cycle(24)])
    assert "× 8<" in dot
    assert re.findall(r">(\(local.*?\)|local|global)<", dot) == ["(local, local, global)", "local", "local", "global"]


def test_a_cycle_cut_short_shows_the_rest_by_itself() -> None:
    dot = to_dot([cycle(26)])
    whole = ["× 8", "(local, local, global)", "local", "local", "global"]
    assert re.findall(r">(× \d|\(local.*?\)|local|global)<", dot) == [*whole, "× 2", "local"]


def test_equal_members_of_a_cycle_fold_from_three_on() -> None:
    graph = model([pre_norm("local"), parallel("global")], [((0, 0, 0, 0, 0, 1), 48)])
    dot = to_dot([graph])
    assert "local × 5" in dot
    assert "× 8<" in dot
    assert len(drawn(graph).nodes) < 60


@pytest.mark.parametrize(
    ("count", "dims", "text"), [(Dim("N"), {}, "× N"), (Dim("N") - 1, {}, "× N - 1"), (Dim("N"), {"N": 12}, "× 12")]
)
def test_a_number_of_layers_that_is_not_known_is_shown_as_a_symbol(count: Dim, dims: dict[str, int], text: str) -> None:
    assert f">{text}<" in to_dot([model([pre_norm("block")], [((0,), count)], **dims)])


def test_expand_writes_every_layer_out() -> None:
    picture, dot = drawn(odd_one(), expand=True), to_dot([odd_one()], expand=True)
    assert len([css for css in picture.css.values() if css == "op attention"]) == 96
    assert [f"layers.{n}<" in dot for n in (0, 95, 96)] == [True, True, False]
    assert "×" not in dot.replace("V × C", "").replace("1024 × C", "")


def test_stacks_that_are_nested_deeper_than_python_recurses_are_drawn() -> None:
    graph = pre_norm("block")
    for depth in range(150):
        graph = nest(graph, f"level {depth}")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len_of_stack() + 90)
    try:
        dot = to_dot([graph])
    finally:
        sys.setrecursionlimit(limit)
    assert dot.count('class="plate stack"') == 150


def nest(graph: Graph, name: str) -> Graph:
    w = Writing(name)
    return w.finish(w.stack("inner", [graph], [((0,), 2)], w.given["x"]))


def len_of_stack() -> int:
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


def test_shapes_are_told_at_the_ends_and_where_they_change() -> None:
    labels = re.findall(r"label=<(\(.*?\))>", to_dot([mixer()]))
    assert sorted(labels) == ["(B, T, C)"] * 3 + ["(B, T, V)"] * 2
    assert re.findall(r"label=<(\(.*?\))>", to_dot([pre_norm()])) == ["(B, T, C)"] * 2
    assert not re.findall(r"label=<(\(.*?\))>", to_dot([pre_norm()], shapes="none"))


def test_all_shapes_are_told_on_request_on_every_wire() -> None:
    dot = to_dot([parallel()], shapes="all")
    assert len(re.findall(r"label=<\(B, T, C\)>", dot)) == len(wiring(dot))


def test_a_block_that_names_an_axis_anew_shows_no_change_inside() -> None:
    labels = re.findall(r"label=<(\(.*?\))>", to_dot([seq2seq()]))
    assert sorted(labels) == ["(B, S, C)", "(B, T, C)", "(B, T, C)"]


def test_known_sizes_are_written_as_numbers_on_request() -> None:
    graph = model([pre_norm("block")], [((0,), 2)], V=50257, C=768)
    assert "(B, T, 50257)" in to_dot([graph], numbers=True)
    assert "(B, T, V)" in to_dot([graph])


def test_graphs_stand_side_by_side_under_their_names() -> None:
    picture = drawn(pre_norm("one"), post_norm("two"))
    dot = to_dot([pre_norm("one"), post_norm("two")], captions=["", "B"])
    left = [x for node, (x, *_) in picture.nodes.items() if int(node[1:]) < 8]
    right = [x for node, (x, *_) in picture.nodes.items() if int(node[1:]) >= 8]
    assert len(left) == len(right) == 8
    assert max(left) < min(right)
    assert dot.index(">one<") < dot.index(">two<") < dot.index(">B<")


PROGRAM = """
from blockgraph.drawing import to_dot
from tests.test_render_samples import SAMPLES
print("".join(to_dot([made()], shapes="all") for made in SAMPLES.values()))
"""


def test_the_bytes_do_not_depend_on_the_order_of_hashes() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(runs[0]) > 10_000
    assert runs[0] == runs[1]


def test_a_graph_that_only_passes_its_input_on_is_drawn() -> None:
    w = Writing("identity")
    picture = drawn(w.finish(w.given["x"]))
    assert [(line.start, line.end) for line in picture.lines] == [("n0", "n1")]


def test_an_output_made_of_parameters_alone_is_drawn() -> None:
    w = Writing("bare")
    picture = drawn(w.finish(w.given["x"], w.times(w.param("a", C), w.g(Constant(2))), names=["x", "y"]))
    assert "a × 2" in picture.text.values()
    assert len(picture.lines) == 2


def test_a_stack_without_layers_passes_its_input_on() -> None:
    assert len(drawn(model([pre_norm("block")], [((0,), 0)])).nodes) == len(drawn(folded()).nodes) - 6


def test_no_graph_at_all_is_an_empty_figure() -> None:
    assert parsed_by_graphviz(to_dot([])) == ([], [])


def test_one_set_of_parameters_for_all_layers_is_said_on_the_plate() -> None:
    w = Writing("shared")
    repeat = Repeat("layers", (pre_norm("block"),), (Segment((0,), Dim(12)),), (0,), shared=True)
    (x,) = w.g.append(repeat, [w.given["x"]], [w.g.types[0]])
    dot = to_dot([w.finish(x)])
    assert "× 12" in dot
    assert "one set of" in dot


def test_neighbours_of_one_kind_in_different_segments_fold_into_one() -> None:
    dot = to_dot([model([pre_norm("block")], [((0,), 40), ((0,), 0), ((0,), Dim("N"))])])
    assert re.findall(r">(×.*?)<", dot) == ["× N + 40"]


@pytest.mark.parametrize("graph", [folded(), cycle(24), seq2seq(), shared_call(), mixer()], ids=lambda one: one.name)
def test_every_id_of_a_drawing_says_what_it_stands_for(graph: Graph) -> None:
    found = written([graph])
    graphs = {id(graph): graph}
    graphs |= {id(body): body for node in graph.nodes if isinstance(node.op, Repeat) for body in node.op.bodies}
    assert set(found.boxes) == set(re.findall(r"^ *(n\d+) \[", found.dot, re.MULTILINE))
    assert len(found.plates) == len(re.findall(r'class="plate( stack)?"', found.dot))
    for box in found.boxes.values():
        assert box.key is not None
        owner, key = box.key
        assert key in graphs[owner].scopes if isinstance(key, str) else graphs[owner].nodes[key]
    assert found.inside.keys() == {*found.plates, *(name for name, box in found.boxes.items() if box.plate)} - {
        name for name, plate in found.plates.items() if not plate.parent
    }
    members = [plate.key for plate in found.plates.values() if plate.key is not None]
    assert {owner for owner, _ in members} <= graphs.keys()
    assert len(members) == len(found.plates) - (graph.name == cycle(24).name)
