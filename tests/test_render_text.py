"""A spec's name and source are shown character for character, whatever they are, in every format, by both programs."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from blockgraph.cli import main
from blockgraph.drawing import program
from tests.hostile import TEXTS, shown_as
from tests.test_render_mermaid import words

PLAIN = sorted(set(TEXTS) - {"right to left", "override", "emoji", "scripts", "invisible", "long", "long words"})
"""Those of which the font has every glyph; the long ones take a while and are no other in a PDF."""
ELEMENTS = {"svg", "g", "title", "polygon", "path", "polyline", "ellipse", "text"}
Program = str


@pytest.fixture(params=["system", "embedded"])
def drawer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Program:
    """One of the two programs, for whoever draws."""
    found = shutil.which("dot") if request.param == "system" else program._pure()
    if found is None:
        pytest.skip(f"the {request.param} Graphviz program is not on this machine")
    monkeypatch.setenv("BLOCKGRAPH_DOT", found)
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rendered(text: str, ending: str) -> bytes:
    """What `render` writes of a spec with this name, and with it turned round as its source."""
    spec = {"name": text, "source": text[::-1], "block": {"parts": {"norm": "rms_norm"}, "equations": ["y = norm(x)"]}}
    Path("a.json").write_text(json.dumps({**spec, "dims": {"C": 4}}), encoding="utf-8")
    assert main(["render", "a.json", "-o", f"a.{ending}", "--force"]) == 0
    return Path(f"a.{ending}").read_bytes()


def test_the_table_has_what_it_is_to_have() -> None:
    assert {"\\", '"', "<", "{", "|", ":", "\n", "%", "&", "\x1b", "\u202e"} <= set("".join(TEXTS.values()))
    assert max(map(len, TEXTS.values())) >= 10_000


@pytest.mark.parametrize("name", TEXTS)
def test_an_svg_shows_the_text_and_has_no_script_link_or_reference(name: str, drawer: Program) -> None:
    svg = rendered(TEXTS[name], "svg").decode()
    assert not re.search(r"<!DOCTYPE|<!ENTITY|<\?xml-", svg)
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        assert element.tag.rpartition("}")[2] in ELEMENTS
        for key, value in element.items():
            assert not re.search(r"href|^on|^style$|base", key)
            assert not re.search(r"url\(|:", value)
    shown = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    told = "".join(shown).replace("\N{NO-BREAK SPACE}", " ")
    assert told.startswith(shown_as(TEXTS[name]) + shown_as(TEXTS[name][::-1]))
    assert told.count("RMSNorm") == 1


@pytest.mark.parametrize("name", TEXTS)
def test_the_dot_text_that_all_pictures_are_made_of_has_the_text(name: str) -> None:
    dot = rendered(TEXTS[name], "dot").decode()
    label = next(line for line in dot.splitlines() if 'class="figure"' in line or 'POINT-SIZE="14"' in line)
    shown = "".join(html.unescape(part) for part in re.findall(r"<FONT[^>]*>(?:<B>)?([^<]*)", label))
    told = shown.replace("\\\\", "\\").replace("\N{NO-BREAK SPACE}", " ")
    assert told == shown_as(TEXTS[name]) + shown_as(TEXTS[name][::-1])


@pytest.mark.parametrize("name", PLAIN)
def test_a_pdf_shows_the_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("pdftotext") is None or shutil.which("dot") is None:
        pytest.skip("pdftotext or the system Graphviz program is not on this machine")
    monkeypatch.delenv("BLOCKGRAPH_DOT", raising=False)
    rendered(TEXTS[name], "pdf")
    done = subprocess.run(["pdftotext", "-raw", "a.pdf", "-"], capture_output=True, check=True)
    told = "".join(done.stdout.decode().split())
    controls = re.compile("[\u2400-\u241f\ufffd]")
    for text in (TEXTS[name], TEXTS[name][::-1]):
        assert controls.sub("", "".join(shown_as(text).split())) in controls.sub("", told)


@pytest.mark.parametrize("name", TEXTS)
def test_a_mermaid_chart_shows_the_text(name: str) -> None:
    chart = rendered(TEXTS[name], "mmd").decode()
    (title,) = re.findall(r'subgraph plate0\["(.*)"\]', chart)
    told = "".join(words(part) for part in title.split("<br/>"))
    assert "".join(told.split()) == "".join((shown_as(TEXTS[name]) + shown_as(TEXTS[name][::-1])).split())
    assert len(re.findall(r"^ +n\d+[\[(]", chart, re.M)) == 3


@pytest.mark.parametrize("name", TEXTS)
def test_the_pages_of_a_gallery_show_the_text(name: str) -> None:
    rendered(TEXTS[name], "dot")
    assert main(["gallery", "a.json", "-o", "out"]) == 0
    for file in ("a.html", "index.html"):
        page = Path("out", file).read_text(encoding="utf-8")
        (title,) = re.findall(r"<h1><bdi>(.*?)</bdi></h1>" if file == "a.html" else r'aria-label="(.*?)"', page, re.S)
        shown = re.sub("[\x01-\x08\x0b\x0c\x0e-\x1f]", "\N{REPLACEMENT CHARACTER}", TEXTS[name])
        assert html.unescape(title) == shown
        assert not re.search(r"<script|<img|<image|\son\w+=", page)


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_to_explore_shows_the_text(name: str) -> None:
    page = rendered(TEXTS[name], "html").decode()
    (title,) = re.findall(r"<h1><bdi>(.*?)</bdi></h1>", page, re.S)
    assert html.unescape(title) == re.sub("[\x01-\x08\x0b\x0c\x0e-\x1f]", "\N{REPLACEMENT CHARACTER}", TEXTS[name])
    assert html.unescape(page).count("\N{REPLACEMENT CHARACTER}") == 0 or name == "controls"
    assert len(re.findall(r"<script", page)) == 2  # the facts and the page's own
    assert not re.search(r"<img|<image|<iframe|<a href", page)


def test_a_bitmap_is_drawn_of_every_text(drawer: Program) -> None:
    for name in sorted(set(TEXTS) - {"long", "long words"}):
        assert rendered(TEXTS[name], "png").startswith(b"\x89PNG")
