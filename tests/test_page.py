"""The page as a file: what is in it is true, nothing in it can run or load, and it is the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.drawing import find_dot
from blockgraph.page.document import SCRIPTS, as_json, escaped
from blockgraph.page.pages import pieces
from blockgraph.page.steps import Stop, located, measured
from tests.test_cli import ROOT, SPEC, Run, run
from tests.test_render_samples import cycle, odd_one

__all__ = ["run"]

pytestmark = pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")
FOLDER = ROOT / "blockgraph" / "page"
STACK = ROOT / "specs" / "pre_norm_stack.yaml"
WRONG = """\
dims: {C: 64}
block:
  parts:
    norm: layer_norm
    ff: {kind: feed_forward, hidden: 4*C, activation: silu, out: 3*C}
  equations: |
    h = tanh(x)
    x = x + ff(norm(x))
"""


class Reader(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.texts:
            self.inside = tag
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[self.inside][-1] += data


def facts_of(text: str) -> dict[str, Any]:
    """The data of a page."""
    found: dict[str, Any] = json.loads(Reader(text).texts["script"][0])
    return found


def box(data: dict[str, Any], level: str, **wanted: str) -> dict[str, Any]:
    """The one fact of a level with these values."""
    boxes = next(one for one in data["levels"] if one["name"] == level)["boxes"].values()
    facts = [data["facts"][number] for number, _ in boxes]
    found = [fact for fact in facts if all(fact.get(key) == value for key, value in wanted.items())]
    assert len(found) == 1, [fact.get("title") for fact in facts]
    return found[0]


@pytest.fixture(scope="module")
def stack() -> str:
    return bg.render_html(STACK)


# Safety


def test_the_policy_names_every_script_and_style_and_allows_nothing_else(stack: str) -> None:
    page = Reader(stack)
    policy = next(attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes)
    assert policy is not None
    texts = [*page.texts["style"], page.texts["script"][1]]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'; script-src 'sha256-{hashes[2]}'; "
        "base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("name", ["pre_norm_stack", "models/t5", "layouts/hyper_connections"])
def test_no_element_can_load_or_run_anything(name: str) -> None:
    page = Reader(bg.render_html(ROOT / "specs" / f"{name}.yaml"))
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"link", "img", "image", "iframe", "object", "embed", "base", "a", "use", "foreignobject"}
    assert [attributes for tag, attributes in page.elements if tag == "script"] == [
        {"type": "application/json", "id": "facts"},
        {},
    ]
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")} | names & {"src", "href", "xlink:href", "style"}
    assert not re.search(
        r"url\(|@import|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(",
        "".join([*page.texts["style"], page.texts["script"][1]]),
    )


def test_ids_are_unique(stack: str) -> None:
    ids = [attributes["id"] for _, attributes in Reader(stack).elements if "id" in attributes]
    assert len(ids) == len(set(ids)) > 60


def test_text_is_escaped_for_where_it_goes() -> None:
    assert (
        as_json("</script><!-- \N{LINE SEPARATOR} & \ud800")
        == '"\\u003c/script\\u003e\\u003c!-- \\u2028 \\u0026 \\ud800"'
    )
    assert json.loads(as_json("</script>&")) == "</script>&"
    assert escaped("<b> & \" ' \r\x00\x1b\ud800") == "&lt;b&gt; &amp; &quot; &#x27; &#13;\N{REPLACEMENT CHARACTER}" + (
        "\N{REPLACEMENT CHARACTER}" * 2
    )


def test_a_name_is_never_taken_for_a_slot_of_the_template() -> None:
    text = bg.render_html({"name": "{{facts}}{{script}}", "dims": {"C": 8}, "block": {"equations": ["y = x + x"]}})
    assert Reader(text).texts["title"] == ["{{facts}}{{script}}"]


# What is in it


def test_a_part_is_told_in_full(stack: str) -> None:
    fact = box(facts_of(stack), "sublayer", name="attention")
    line = next(
        n for n, text in enumerate(STACK.read_text(encoding="utf-8").splitlines(), 1) if "kind: attention" in text
    )
    assert (fact["title"], fact["kind"]) == ("Multi-Head Attention", "attention")
    assert fact["formula"].startswith("merge(softmax(scale * query @ key.T + mask) @ value) @ Wo")
    assert fact["equations"] == ["attention(norm1(x))"]
    assert fact["inside"][0] == ["query = heads(x @ Wq, H)", "(B, H, T, C/H)", "(B, 4, T, 16)"]
    assert fact["operands"] == [["norm1", "(B, T, C)", "(B, T, 64)"]]
    assert fact["results"] == [["attention", "(B, T, C)", "(B, T, 64)"]]
    assert fact["parameters"] == [[name, "(C, C)", "(64, 64)", "4,096"] for name in ("Wq", "Wk", "Wv", "Wo")]
    # Two products of T*T*C and four of T*C*C, a multiply-add counting two.
    assert fact["costs"][0][:2] == ["FLOPs in matrix products", "4*B*C*T**2 + 8*B*C**2*T"]
    assert ["layers", "N", "6"] in fact["costs"]
    assert [number for number, _ in fact["places"]] == [line]


@pytest.mark.parametrize("name", ["pre_norm", "models/gpt2", "models/mixtral", "layouts/value_residual"])
@pytest.mark.parametrize("level", ["block", "sublayer", "op"])
def test_parameters_of_all_boxes_are_those_of_the_program(name: str, level: str) -> None:
    program = bg.compile(ROOT / "specs" / f"{name}.yaml")
    data = facts_of(bg.render_html(program))
    wanted = {re.sub(r"^(layers|first|later)\.\d+\.", "", one) for one in program.parameters}
    boxes = next(one for one in data["levels"] if one["name"] == level)
    found = set()
    for number, _ in [*boxes["boxes"].values(), *boxes["plates"].values()]:
        fact = data["facts"][number]
        names = [one[0] for one in fact.get("parameters", ())]
        found |= {one for name in names for one in (name, f"{fact.get('name')}.{name}")}
    assert wanted <= found


def test_findings_stand_with_their_box_and_the_page_of_their_code() -> None:
    data = facts_of(bg.render_html(WRONG))
    codes = [one["code"] for one in data["findings"]]
    assert codes == ["BG203", "BG101"]
    assert box(data, "sublayer", name="h")["findings"] == [0]
    assert box(data, "sublayer", name="ff")["findings"] == [1]
    assert box(data, "sublayer", title="! +")["findings"] == [1]
    assert "findings" not in box(data, "sublayer", name="norm")
    assert [one["text"].strip() for one in data["findings"]] == ["h = tanh(x)", "x = x + ff(norm(x))"]
    assert data["codes"] == {code: pieces(code) for code in ("BG101", "BG203")}
    assert ["heading", "Example that fails"] in data["codes"]["BG101"]


def test_a_code_page_in_pieces_leaves_nothing_out() -> None:
    for code in ("BG101", "BG203", "BG001"):
        whole = (ROOT / "blockgraph" / "codes" / f"{code}.md").read_text(encoding="utf-8")
        words = re.sub(r"^#+ |^```\w*$", "", whole, flags=re.MULTILINE).split()
        assert " ".join(text for _, text in pieces(code)).split() == words


def test_every_level_is_there_and_the_one_asked_for_is_first(stack: str) -> None:
    pictures = [attributes for tag, attributes in Reader(stack).elements if tag == "svg"]
    assert [one["id"] for one in pictures] == ["block-picture", "sublayer-picture", "op-picture"]
    assert ["hidden" in one for one in pictures] == [True, False, True]
    other = [one for tag, one in Reader(bg.render_html(STACK, level="op")).elements if tag == "svg"]
    assert ["hidden" in one for one in other] == [True, True, False]


def test_specs_side_by_side_have_one_page() -> None:
    data = facts_of(bg.render_html(ROOT / "specs/pre_norm.yaml", ROOT / "specs/post_norm.yaml"))
    boxes = next(one for one in data["levels"] if one["name"] == "sublayer")["boxes"]
    assert [data["facts"][number]["title"] for number, _ in boxes.values()].count("LayerNorm") == 4
    assert len(data["about"]) == 2


# A run


def test_a_trace_is_told_value_by_value() -> None:
    program = bg.compile(STACK, N=2)
    trace = program.trace(*program.sample(3, B=1, T=5))
    told = facts_of(bg.render_html(program, trace=trace))["trace"]
    for number, name in enumerate(told["names"]):
        array = trace[name]
        assert told["shapes"][number] == str(array.shape)
        wanted = [np.sqrt(np.mean(array**2)), array.min(), array.max(), array.mean()]
        assert [told[part][number] for part in ("rms", "low", "high", "mean")] == pytest.approx(wanted, rel=1e-5)
    assert [name for name in told["names"] if "." not in name.removeprefix("layers.")] == ["layers.0", "layers.1"]
    assert len(set(told["names"])) == len(told["names"])


def test_sizes_of_the_run_stand_in_the_shapes() -> None:
    program = bg.compile(STACK, N=2)
    data = facts_of(bg.render_html(program, trace=program.trace(*program.sample(3, B=1, T=5))))
    assert box(data, "sublayer", name="attention")["operands"] == [["norm1", "(B, T, C)", "(1, 5, 64)"]]


def test_steps_of_a_stack_go_through_its_copies_in_the_picture() -> None:
    graph = cycle(26)
    (repeat,) = [node for node in graph.nodes if node.op.name == "repeat"]
    stem = repeat.scope or repeat.op.path  # type: ignore[union-attr]
    found = located(graph, measured({f"{stem}.{layer}": np.zeros((2, 3, 4)) for layer in range(26)}))
    order = [(stop.graph.name, stop.copy) for _, stop in found]
    turn = order[: len(order) // 8 if len(order) % 8 == 0 else 3]
    assert order[:3] == order[3:6] == order[21:24]
    assert order[24:] != order[:2]  # the turn that is cut short is drawn by itself
    assert turn


def test_an_odd_layer_between_equal_ones_has_a_copy_of_its_own() -> None:
    graph = odd_one("stack")
    (repeat,) = [node for node in graph.nodes if node.op.name == "repeat"]
    stem = repeat.scope or repeat.op.path  # type: ignore[union-attr]
    layers = list(repeat.op.layers(graph.dims))  # type: ignore[union-attr]
    found = [
        stop for _, stop in located(graph, measured({f"{stem}.{n}": np.zeros((2, 3, 4)) for n in range(len(layers))}))
    ]
    changes = [n for n in range(1, len(layers)) if layers[n] != layers[n - 1]]
    assert [n for n in range(1, len(found)) if _drawn(found[n]) != _drawn(found[n - 1])] == changes
    assert len({_drawn(stop) for stop in found}) == len(changes) + 1


def _drawn(stop: Stop) -> tuple[int, int]:
    return id(stop.graph), stop.copy


def test_the_trace_of_another_spec_is_refused() -> None:
    program, other = bg.compile(STACK, N=2), bg.compile(STACK, N=2, C=32)
    with pytest.raises(bg.InputError, match=r"BG304 .*no value of the spec is called `nothing`"):
        bg.render_html(program, trace={"nothing": np.zeros(3)})
    with pytest.raises(bg.InputError, match=r"BG304 .*`x\.1` is \(2, 8, 32\) there, and \(B, T, C\) in the spec"):
        bg.render_html(program, trace=other.trace(*other.sample(0)))


def test_a_stack_without_layers_hands_on_what_it_was_given() -> None:
    text = STACK.read_text(encoding="utf-8").replace("repeat: N", "repeat: N-1")
    program = bg.compile(text, N=1)
    told = facts_of(bg.render_html(program, trace=program.trace(*program.sample(0))))["trace"]
    assert told["names"] == ["x.1"]


def test_what_is_not_finite_is_told_as_such() -> None:
    program = bg.compile(ROOT / "specs" / "pre_norm.yaml", C=8, H=2)
    x, params = program.sample(0)
    x[0, 0, 0] = np.inf
    told = facts_of(bg.render_html(program, trace=program.trace(x, params)))["trace"]
    assert told["rms"][0] is None
    assert told["high"][0] is None


# Size, and the same every time


def test_a_page_costs_the_same_for_ninety_six_layers_and_for_twelve() -> None:
    gpt2 = ROOT / "specs" / "models" / "gpt2.yaml"
    sizes = [len(bg.render_html(bg.load(gpt2).with_values({"N": layers}))) for layers in (12, 96)]
    assert abs(sizes[1] - sizes[0]) < 500
    assert sizes[1] < 250_000


def test_the_same_spec_gives_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    code = f"import blockgraph as bg; open('page.html', 'w', encoding='utf-8').write(bg.render_html({str(STACK)!r}))"
    found = set()
    for seed in ("0", "1"):
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths}
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
        found.add((tmp_path / "page.html").read_bytes())
    assert len(found) == 1


# Its files


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_sound(name: str) -> None:
    done = subprocess.run(["node", "--check", FOLDER / f"{name}.js"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_scripts_are_short_and_all_in_the_page() -> None:
    files = sorted(path.stem for path in FOLDER.glob("*.js"))
    assert files == sorted(SCRIPTS)
    assert all(len((FOLDER / f"{name}.js").read_text(encoding="utf-8").splitlines()) <= 400 for name in files)


# From the command line


def test_render_writes_a_page(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("render", SPEC, "-o", "a.html") == (0, "", "wrote a.html\n")
    assert facts_of(Path("a.html").read_text(encoding="utf-8"))["first"] == "sublayer"
    code, _, err = run("render", SPEC, "-o", "a.html")
    assert (code, err.splitlines()[0]) == (2, "BG902 a.html:1:1  a.html is there already and was kept")
    assert run("render", SPEC, "-o", "a.html", "--force", "--level", "op")[0] == 0
    assert facts_of(Path("a.html").read_text(encoding="utf-8"))["first"] == "op"
    _, out, _ = run("render", SPEC, "-o", "b.html", "--format", "json")
    assert json.loads(out) == {"ok": True, "findings": [], "files": ["b.html"]}


def test_render_takes_the_trace_that_run_saves(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("run", SPEC, "--save-trace", "t.npz", "--time", "6")[0] == 0
    assert run("render", SPEC, "--trace", "t.npz", "-o", "a.html")[0] == 0
    assert "(2, 6, 64)" in facts_of(Path("a.html").read_text(encoding="utf-8"))["trace"]["shapes"]
    code, _, err = run("render", str(STACK), "--trace", "t.npz", "-o", "b.html")
    assert (code, Path("b.html").exists()) == (1, False)
    assert err.startswith("BG304 t.npz:1:1  the trace is not one of this spec")
    code, _, err = run("render", SPEC, "--trace", "t.npz", "-o", "b.svg")
    assert (code, err.splitlines()[0]) == (
        2,
        "blockgraph render: --trace is for a page: name a file that ends in .html",
    )
    assert run("render", SPEC, "--trace", "no.npz", "-o", "b.html")[0] == 2


def test_a_spec_with_findings_has_a_page_and_still_ends_with_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text(WRONG, encoding="utf-8")
    Path("broken.yaml").write_text("block: [1, 2\n", encoding="utf-8")
    assert run("render", "wrong.yaml", "-o", "wrong.html")[0] == 1
    assert [one["code"] for one in facts_of(Path("wrong.html").read_text(encoding="utf-8"))["findings"]] == [
        "BG203",
        "BG101",
    ]
    assert run("render", "broken.yaml", "-o", "broken.html")[0] == 1
    data = facts_of(Path("broken.html").read_text(encoding="utf-8"))
    assert ([one["code"] for one in data["findings"]], data["levels"]) == (["BG001"], [])


def test_without_a_drawing_program_there_is_no_page(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLOCKGRAPH_DOT", "/nowhere/dot")
    code, out, err = run("render", SPEC, "-o", "a.html")
    assert (code, out) == (2, "")
    assert "BG950" in err
    assert not Path("a.html").exists()
