"""The gallery: a page for every spec, its facts against numbers from elsewhere, and nothing that runs or loads."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.diff import Structure, diff
from blockgraph.drawing import find_dot, program
from blockgraph.gallery import file_names
from blockgraph.gallery.sheet import likeness
from tests.test_cli import ROOT, Run, run
from tests.test_render_faults import ADD
from tests.test_render_themes import contrast

__all__ = ["run"]

drawing = pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")
MODELS = ROOT / "specs" / "models"
HOSTILE = '</title><script>alert(1)</script> "q" \' &amp; --> ]]> \u202e id="n1" <a href="http://x.y/">z</a>'

FORBIDDEN = {"script", "img", "image", "iframe", "object", "embed", "link", "base", "form", "foreignobject", "animate"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(run: Run, *names: str, code: int = 0, force: bool = False) -> dict[str, str]:
    """The pages that the command writes for some specs, by name."""
    assert run("gallery", *names, "-o", "out", *(["--force"] if force else []))[0] == code
    return {path.name: path.read_text(encoding="utf-8") for path in Path("out").iterdir()}


class Read(HTMLParser):
    """Elements with their attributes, and the text of each `dd` and `li` under its `dt` or heading."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.lists: list[tuple[str, str]] = []
        self.label, self.open, self.text = "", "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("dt", "dd", "li", "h1", "h3", "title"):
            self.open, self.text = tag, ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("dt", "h3"):
            self.label = self.text
        elif tag in ("dd", "li", "h1", "title"):
            self.lists.append((self.label if tag in ("dd", "li") else tag, self.text))


def facts(page: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for label, text in Read(page).lists:
        found.setdefault(label, []).append(text)
    return found


@drawing
def test_every_spec_has_a_page_and_a_card_that_lead_to_each_other(run: Run) -> None:
    pages = made(run, str(ROOT / "specs"))
    specs = sorted((ROOT / "specs").rglob("*.yaml"))
    assert len(pages) == len(specs) + 1
    cards = re.findall(r'<article>\n<a class="thumb" href="([^"]+)" aria-label="([^"]+)"><svg ', pages["index.html"])
    assert sorted(file for file, _ in cards) == sorted(set(pages) - {"index.html"})
    assert sorted(name for _, name in cards) == sorted(bg.load(path).name for path in specs)
    for file, _ in cards:
        links = re.findall(r'<a href="([^"]+)"', pages[file])
        assert sorted(links) == sorted(set(pages) - {file})
        assert pages[file].count("<svg ") == 1


@drawing
def test_the_pages_stay_small(run: Run) -> None:
    pages = made(run, str(ROOT / "specs"))
    assert max(len(text.encode()) for name, text in pages.items() if name != "index.html") < 200_000
    assert len(pages["index.html"].encode()) < 20_000 * len(pages)


def test_the_facts_are_those_worked_out_elsewhere(run: Run) -> None:
    pages = made(run, str(MODELS))
    assert facts(pages["gpt2.html"])["parameters"] == ["124,439,808"]
    mixtral = facts(pages["mixtral.html"])
    assert mixtral["parameters"] == ["46,702,792,704"]
    assert mixtral["active parameters"] == ["12,879,925,248"]
    # Two times 8 key/value heads of 128 numbers of 2 bytes, in 32 layers; T 8192 makes 1 GiB of it.
    assert mixtral["KV cache, 2 bytes a number"] == [f"{1_073_741_824 // 8192:,} bytes per token of T"]
    assert mixtral["attention"] == [
        "grouped-query (32 heads, 8 of keys and values), causal, rotary positions half, theta 1000000, width C/H"
    ]
    assert (mixtral["norm placement"], mixtral["norms"]) == (["pre"], ["RMSNorm (eps 1e-05)"])
    assert "proved: causal, batch items independent" in mixtral["proofs"]
    # Keys and values of 8 heads of 64 numbers in 6 layers: the encoder's own and those the decoder reads, and its own.
    own = 2 * 8 * 64 * 2 * 6
    t5 = facts(pages["t5.html"])
    assert t5["KV cache, 2 bytes a number"] == [f"{2 * own:,} bytes per token of S, {own:,} bytes per token of T"]
    assert t5["attention"] == [
        "multi-head (8 heads), sees all, a keep mask, a score bias",
        "multi-head (8 heads), causal, a score bias",
        "multi-head (8 heads), across from T to S, sees all, a keep mask",
    ]


def test_a_cache_counts_every_layer_for_one_sequence(run: Run) -> None:
    text = (
        "dims: {C: 6, H: 3, N: 5}\n"
        "block: {norm: rms_norm, sublayers: [{kind: attention, heads: H, kv_heads: 1, mask: causal}]}\n"
        "model:\n  parts: {layers: {kind: stack, of: block, repeat: N}}\n  equations: y = layers(x)\n"
    )
    Path("a.yaml").write_text(text)
    Path("b.yaml").write_text(text.replace("causal", "full"))
    pages = made(run, "a.yaml", "b.yaml")
    found = facts(pages["a.html"])
    assert found["KV cache, 2 bytes a number"] == [f"{5 * 2 * 1 * 2 * 2} bytes per token of T"]
    assert found["attention"] == ["multi-query (3 heads), causal"]
    sees_all = facts(pages["b.html"])  # nothing of it can be run token by token
    assert sees_all["attention"] == ["multi-query (3 heads), sees all"]
    assert "KV cache, 2 bytes a number" not in sees_all


def test_each_pair_is_compared_in_both_directions(run: Run) -> None:
    names = ["pre_norm", "post_norm", "rezero", "models/gpt2"]
    pages = made(run, *(str(ROOT / "specs" / f"{name}.yaml") for name in names))
    graphs = {name.rpartition("/")[2]: bg.compile(ROOT / "specs" / f"{name}.yaml").graph for name in names}
    for own in graphs:
        file = "models-gpt2.html" if own == "gpt2" else f"{own}.html"
        page = facts(pages[file])
        for other in graphs.keys() - {own}:
            assert page[other] == diff(graphs[own], graphs[other]).lines()


def test_the_most_alike_come_first(run: Run) -> None:
    pages = made(run, str(MODELS))
    names = {file.removesuffix(".html") for file in pages} - {"index"}
    kin = {name: next(other for other in facts(pages[f"{name}.html"]) if other in names) for name in names}
    pairs = {"gpt2": "opt", "llama": "mistral", "t5": "bart", "bart": "t5"}
    assert {name: kin[name] for name in pairs} == pairs


@pytest.mark.parametrize(("one", "other"), [("pre_norm", "pre_norm"), ("rezero", "layouts/rezero")])
def test_likeness_is_one_for_the_same_architecture_only(one: str, other: str) -> None:
    left, right = (Structure(bg.compile(ROOT / "specs" / f"{name}.yaml").graph) for name in (one, other))
    found = diff(left, right)
    assert (likeness(found, left, right) == 1) == found.same_architecture == (one == other)
    assert 0 < likeness(found, left, right) <= 1


@drawing
def test_specs_with_findings_show_them_and_are_not_compared(run: Run) -> None:
    Path("bad.yaml").write_text(ADD)
    Path("broken.yaml").write_text("a: [\n")
    pages = made(run, "bad.yaml", "broken.yaml", str(ROOT / "specs" / "pre_norm.yaml"), code=1)
    ends = ("bad.html", "broken.html", "pre_norm.html")
    bad, broken, good = (next(text for name, text in pages.items() if name.endswith(end)) for end in ends)
    assert "BG101 bad.yaml:9:13" in html.unescape(bad)
    assert "guilty" in bad
    assert "There is nothing to draw" in broken
    assert "BG001 broken.yaml" in html.unescape(broken)
    assert "Differences" not in bad + broken + good
    assert pages["index.html"].count('class="fault">1 error<') == 2


def test_a_spec_with_a_warning_is_compared_and_tells_it(run: Run) -> None:
    Path("warned.yaml").write_text("block:\n  equations: |\n    h = tanh(x)\n    y = x + x\n")
    shutil.copy(ROOT / "specs" / "rezero.yaml", "rezero.yaml")
    pages = made(run, ".")
    assert "warning BG203" in pages["warned.html"]
    assert "Differences" in pages["warned.html"]


def test_a_missing_program_is_one_finding_and_every_page_has_its_dot_text(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "find_dot", lambda: None)
    code, out, err = run("gallery", str(MODELS), "-o", "out", "--format", "json")
    document = json.loads(out)
    assert (code, [one["code"] for one in document["findings"]], err) == (2, ["BG950"], "")
    assert sorted(Path(name).name for name in document["files"]) == sorted(path.name for path in Path("out").iterdir())
    for path in Path("out").iterdir():
        assert path.name == "index.html" or "digraph {" in path.read_text(encoding="utf-8")


def test_a_program_that_fails_is_not_asked_for_every_picture(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("dot").write_text("#!/bin/sh\necho . >> asked\nexit 1\n")
    Path("dot").chmod(0o755)
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(Path("dot").absolute()))
    code, out, _ = run("gallery", str(MODELS), "-o", "out", "--format", "json")
    assert (code, [one["code"] for one in json.loads(out)["findings"]]) == (2, ["BG951"])
    assert len(Path("asked").read_text().splitlines()) <= 4


@drawing
def test_hostile_text_is_text_and_nothing_runs_or_loads(run: Run) -> None:
    Path("a.json").write_text(json.dumps({"name": HOSTILE, "source": HOSTILE, "block": {"equations": ["y = tanh(x)"]}}))
    shutil.copy(ROOT / "specs" / "rezero.yaml", "rezero.yaml")
    for name, page in made(run, ".").items():
        read = Read(page)
        assert not {tag for tag, _ in read.tags} & FORBIDDEN
        for _, attributes in read.tags:
            assert not [key for key in attributes if key.startswith("on") or key in ("style", "src", "xlink:href")]
            assert attributes.get("href") in (None, "a.html", "rezero.html", "index.html")
        assert html.unescape(page).count(HOSTILE) >= (1 if name == "rezero.html" else 2)
        policy = next(a["content"] for _, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
        (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@drawing
def test_text_of_the_pages_has_a_contrast_of_seven_to_one_on_both_kinds_of_page(run: Run) -> None:
    page = made(run, str(ROOT / "specs" / "rezero.yaml"))["rezero.html"]
    sets = [dict(re.findall(r"--(\w+): (#\w{6})", rule)) for rule in re.findall(r":root \{(.*?)\}", page, re.S)]
    assert len(sets) == 2
    for colours in sets:
        for text in ("ink", "soft", "link", "fault"):
            assert min(contrast(colours[text], colours[page]) for page in ("paper", "sheet")) >= 7
    assert page.count("prefers-color-scheme: dark") == 2


def test_pages_that_are_there_are_kept_unless_forced(run: Run) -> None:
    spec = str(ROOT / "specs" / "rezero.yaml")
    made(run, spec)
    Path("out/rezero.html").write_text("mine")
    code, _, err = run("gallery", spec, "-o", "out")
    assert (code, Path("out/rezero.html").read_text()) == (2, "mine")
    assert err.startswith("BG902 ")
    assert "rezero" in made(run, spec, force=True)["rezero.html"]


def test_wrong_usage_is_told(run: Run) -> None:
    Path("empty").mkdir()
    code, _, err = run("gallery", "empty", "-o", "out")
    assert (code, "there is no spec in empty" in err) == (2, True)
    Path("file").write_text("")
    code, _, err = run("gallery", str(ROOT / "specs" / "rezero.yaml"), "-o", "file/out")
    assert (code, err[:5]) == (2, "BG903")
    assert run("gallery", "none.yaml", "-o", "out2")[0] == 2


def test_a_path_that_does_not_exist_is_a_finding_and_gets_no_page(run: Run) -> None:
    code, out, err = run("gallery", "missing", "-o", "out")
    assert (code, out, err[:5], Path("out").exists()) == (2, "", "BG901", False)
    pages = made(run, "missing", str(ROOT / "specs" / "rezero.yaml"), code=2)
    assert sorted(pages) == ["index.html", "rezero.html"]
    code, out, _ = run("gallery", "missing", "-o", "out", "--format", "json")
    assert [one["code"] for one in json.loads(out)["findings"]] == ["BG901"]


def test_names_of_pages_are_apart_whatever_the_file_system_thinks_of_capitals() -> None:
    paths = ["a/x.yaml", "a/X.json", "a/b/x.yaml", "a/b-x.yaml", "a/index.yaml", "a/\u00e9 <.yaml", "a/" + "y" * 300]
    assert file_names(paths) == [
        ("", "x.html"),
        ("", "X-2.html"),
        ("b", "b-x.html"),
        ("", "b-x-2.html"),
        ("", "index-2.html"),
        ("", "_.html"),
        ("", "y" * 80 + ".html"),
    ]


def test_one_page_is_one_page(run: Run) -> None:
    code, out, err = run("gallery", str(ROOT / "specs" / "pre_norm.yaml"), "-o", "out")
    assert (code, out + err) == (0, f"wrote {Path('out', 'index.html')} and 1 page\n")
