"""The page in a real Chromium: nothing of a spec runs, nothing is asked for, all answers to mouse and keys."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import blockgraph as bg
from blockgraph.drawing import find_dot
from tests.chromium import STACK, Page, browser, chosen, focused, folder, missing, page, scale, stack
from tests.test_cli import ROOT

__all__ = ["browser", "folder", "page", "stack"]

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program"),
]
SAMPLE = ["pre_norm", "models/t5", "layouts/hyper_connections", "layouts/mixture_of_experts", "models/gemma2"]
EVERY = sorted(path.relative_to(ROOT / "specs").with_suffix("").as_posix() for path in (ROOT / "specs").rglob("*.yaml"))
HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    "<!-- <script> -->",
    "\"'><img src=x onerror='window.hacked = 1'>",
    "{a|b} {{title}} {{facts}} ${window.hacked = 1} `x`",
    "back\\slash \\u003cscript\\u003e \\",
    "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe \N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}",
    "smile \N{GRINNING FACE} ключ 漢字",
    "line\N{LINE SEPARATOR}and\N{PARAGRAPH SEPARATOR}paragraph",
    "&amp; &#65; &lt;script&gt;",
    "x" * 10_000,
]
ENTER, ESCAPE, TAB = "\ue007", "\ue00c", "\ue004"
UP, DOWN, LEFT, RIGHT = "\ue013", "\ue015", "\ue012", "\ue014"
WRONG = """\
dims: {C: 64}
block:
  parts:
    ff: {kind: feed_forward, hidden: 4*C, activation: silu, out: 3*C}
  equations: |
    h = tanh(x)
    x = x + ff(x)
"""


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one in SAMPLE else pytest.mark.slow) for one in EVERY])
def test_the_page_of_every_spec_opens_in_silence(browser: Page, folder: Path, name: str) -> None:
    path = folder / f"{name.replace('/', '-')}.html"
    path.write_text(bg.render_html(ROOT / "specs" / f"{name}.yaml"), encoding="utf-8")
    browser.open(path)
    for level in ("block", "op", "sublayer"):
        browser.run("showLevel(arguments[0])", level)
        assert browser.count(".node.stop") > 1
        browser.run("foldAll(true)")
        browser.run("foldAll(false)")
    assert browser.run("[...picture.stops.values()].every(stop => (pick(stop, true), panel.isOpen))")
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text_and_nothing_runs(browser: Page, folder: Path, name: str) -> None:
    path = folder / "hostile.html"
    spec = {"name": name, "source": name, "dims": {"C": 64}, "block": {"equations": ["h = tanh(x)", "y = x + x"]}}
    path.write_text(bg.render_html(spec), encoding="utf-8")
    browser.open(path)
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    assert browser.run("window.hacked") is None
    assert browser.run("document.querySelectorAll('script, img, iframe, object, embed, link').length") == 2
    assert browser.run("document.title") == name
    assert browser.text("h1") == name
    assert browser.text("header p") == name
    assert name in browser.text("#panel")
    shown = browser.run("[...picture.svg.querySelectorAll('.figure text')].map(one => one.textContent).join('')")
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", name * 2)
    browser.open(path, 360, 700)
    assert browser.run("document.scrollingElement.scrollWidth") == 360
    assert browser.run("stage.clientHeight") > 150


# Looking


def test_keys_and_buttons_zoom(page: Page) -> None:
    whole = scale(page)
    page.press("+")
    assert scale(page) == pytest.approx(whole / 1.25, rel=0.01)
    page.press("-", "-")
    assert scale(page) == pytest.approx(whole * 1.25, rel=0.01)
    page.press("0")
    assert scale(page) == pytest.approx(whole, rel=0.001)
    page.click("#in")
    assert scale(page) < whole
    page.click("#fit")
    page.click("#out")
    assert scale(page) > whole


def test_the_wheel_zooms_with_control_around_the_pointer_and_else_scrolls_the_page(page: Page) -> None:
    event = "{{deltaY: -200, ctrlKey: {}, cancelable: true, clientX: 300, clientY: 300}}"
    turn = f"stage.dispatchEvent(new WheelEvent('wheel', {event}))"
    under = (
        "JSON.stringify(view.point(view.place({clientX: 300, clientY: 300})), (k, v) => v.toFixed ? v.toFixed(1) : v)"
    )
    whole, point = scale(page), page.run(under)
    assert page.run(turn.format("false")) is True
    assert scale(page) == whole
    assert page.run(turn.format("true")) is False
    assert scale(page) < whole
    assert page.run(under) == point


def test_a_drag_moves_the_picture_and_chooses_nothing(page: Page) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    page.press("+", "+", "+", "+")
    before, width = page.run("view.middle.y"), scale(page)
    box = page.driver.find_element("css selector", ".op.attention")
    ActionChains(page.driver, duration=20).click_and_hold(box).move_by_offset(0, 60).release().perform()
    assert page.run("view.middle.y") < before
    assert scale(page) == width
    assert page.count(".chosen") == 0


def test_levels_are_switched_by_button_and_key(page: Page) -> None:
    levels = ["block", "sublayer", "op"]
    counts = []
    for number, level in enumerate(levels):
        page.press(str(number + 1)) if number else page.click("#levels button", 0)
        checked = page.run("[...document.querySelectorAll('#levels [aria-checked=true]')].map(one => one.textContent)")
        shown = page.run(
            "[...document.querySelectorAll('.picture')].filter(one => one.clientHeight).map(one => one.id)"
        )
        assert (checked, shown) == ([level], [f"{level}-picture"])
        counts.append(page.count(".node.stop"))
    assert counts == sorted(counts)
    assert counts[2] > 2 * counts[1]
    page.click("#levels button", 2)
    page.press(LEFT)
    assert page.run("picture.level.name") == "sublayer"
    assert page.text(":focus") == "sublayer"


def test_a_tall_picture_begins_where_it_can_be_read_and_fit_shows_all(page: Page) -> None:
    page.press("3")
    assert page.run("view.scale") > 0.55
    page.press("0")
    assert page.run("view.scale") < 0.55
    height = page.run("view.size.height / view.scale")
    assert height > page.run("picture.folding.content.height")


# Folding


def test_a_plate_folds_and_unfolds(page: Page) -> None:
    height, before, seen = "picture.folding.content.height", page.run("probes.drawn()"), page.count(".node.stop")
    tall = page.run(height)
    page.click("#fold")
    assert page.run("picture.svg.querySelector('.stack').getAttribute('aria-expanded')") == "false"
    assert page.count(".node.stop") == seen - 6
    assert page.run("picture.svg.querySelector('.folded-note').textContent") == "6 parts folded"
    assert page.run(height) < tall / 2
    page.click("#unfold")
    assert page.run("picture.svg.querySelector('.stack').getAttribute('aria-expanded')") == "true"
    assert page.count(".node.stop") == seen
    assert page.run(height) == tall
    page.click(".handle")
    assert page.count(".node.stop") == seen - 6
    page.click(".handle")
    assert page.run("probes.drawn()") == before


def test_a_figure_that_runs_to_the_right_gets_narrower_and_no_lower(browser: Page, folder: Path) -> None:
    path = folder / "gpt2.html"
    path.write_text(bg.render_html(ROOT / "specs/models/gpt2.yaml", rankdir="LR"), encoding="utf-8")
    browser.open(path)
    size, before = "(({width, height}) => [width, height])(picture.folding.content)", browser.run("probes.drawn()")
    wide, high = browser.run(size)
    browser.click("#fold")
    folded = browser.run(size)
    assert folded[0] < wide * 0.6
    assert folded[1] == high
    ends = "[...picture.svg.querySelectorAll('{}')].map(one => one.getBBox()).map(({{x, width}}) => x + width)"
    texts = browser.run(ends.format(".stack > text:not([hidden])"))
    (right,) = browser.run(ends.format(".cluster.stack > path"))
    assert len(texts) == 3
    assert max(texts) < right
    browser.click("#unfold")
    assert browser.run("probes.drawn()") == before
    assert browser.complaints() == []


@pytest.mark.parametrize("rankdir", ["BT", "LR"])
def test_folding_keeps_what_is_left_apart_and_on_straight_lines(browser: Page, folder: Path, rankdir: Any) -> None:
    path = folder / f"t5-{rankdir}.html"
    path.write_text(bg.render_html(ROOT / "specs/models/t5.yaml", rankdir=rankdir), encoding="utf-8")
    browser.open(path)
    for folding in ("foldAll(true)", "toggle(picture.plates[0])", "toggle(picture.plates[1])"):
        browser.run(f"(() => {{ foldAll(false); {folding} }})()")
        assert browser.run("picture.folding.folded.size") > 0
        frames = browser.run("probes.frames()")
        for number, (left, top, right, bottom) in enumerate(frames):
            for other in frames[number + 1 :]:
                assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, (folding, other)
        assert browser.run("probes.slanted()") == 0
        tips = browser.run("probes.tips()")
        for (x, y), other in combinations(tips, 2):
            assert abs(x - other[0]) + abs(y - other[1]) > 5, folding
    assert browser.complaints() == []


# Details


def test_a_click_on_a_box_shows_what_is_known_of_it(page: Page) -> None:
    page.click(".op.attention")
    program = bg.compile(STACK)
    text = page.run("panel.element.innerText")
    assert text.splitlines()[1] == "Multi-Head Attention"
    for name in ("Wq", "Wk", "Wv", "Wo"):
        shape = program.parameters[f"layers.0.attention.{name}"].dims
        count = int(shape[0].evaluate({"C": 64}) * shape[1].evaluate({"C": 64}))
        assert re.search(rf"^{name}\s+\(C, C\)\s+\(64, 64\)\s+{count:,}$", text, re.MULTILINE)
    assert "query = heads(x @ Wq, H)\n(B, H, T, C/H)  =  (2, 4, 8, 16)" in text
    assert "attention(norm1(x))" in text
    lines = STACK.read_text(encoding="utf-8").splitlines()
    where = next(number for number, line in enumerate(lines, 1) if "kind: attention" in line)
    assert f"{where}  {lines[where - 1].strip()}" in text
    assert "8*B*C**2*T" in text
    assert page.run("document.querySelector('.chosen').id").startswith("sublayer-n")
    page.click("#panel .close")
    assert page.count("#panel, .chosen") == 0


def test_a_row_of_the_table_leads_to_the_box(page: Page) -> None:
    page.press("1")
    row = page.run(
        "[...document.querySelectorAll('tr[data-box]')].findIndex(one => one.textContent.includes('Feed Forward'))"
    )
    page.click("tr[data-box]", row)
    assert chosen(page).startswith("Feed Forward")
    assert page.run("picture.level.name") == "sublayer"


def test_findings_stand_at_their_box_with_the_page_of_their_code(browser: Page, folder: Path) -> None:
    path = folder / "wrong.html"
    path.write_text(bg.render_html(WRONG), encoding="utf-8")
    browser.open(path)
    assert [code for code in ("BG101", "BG203") if code in browser.text("#panel")] == ["BG101", "BG203"]
    browser.click(".guilty")
    text = browser.text("#panel")
    assert "BG101" in text
    assert "BG203" not in text
    assert "(B, T, 3*C)" in text
    assert browser.run("document.querySelector('#panel details').open") is False
    browser.click("#panel summary")
    assert browser.count("#panel details pre") == 2
    assert "Example that passes" in browser.text("#panel details")
    browser.run("pick([...picture.stops.values()].find(stop => stop.fact.title === 'tanh'), true)")
    assert "BG203" in browser.text("#panel")
    assert "BG101" not in browser.text("#panel")
    assert browser.complaints() == []


def test_a_spec_that_cannot_be_read_has_a_page_of_its_findings(browser: Page, folder: Path) -> None:
    from blockgraph.errors import Finding, Place
    from blockgraph.page import Subject, page

    path = folder / "unread.html"
    finding = Finding("BG001", "this `[` is never closed", Place("a.yaml"), "add the missing `]`")
    path.write_text(page([Subject("a.yaml", findings=(finding,))]), encoding="utf-8")
    browser.open(path)
    assert "this `[` is never closed" in browser.text("#panel")
    assert browser.count("#found li") == 1
    for key in (UP, "f", "p", "+", "0", "1", ENTER, ESCAPE, "/", "a", ENTER):
        browser.press(key)
    assert browser.complaints() == []


# Search


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        ("feed", ["Feed Forward"]),
        ("layer_norm", ["LayerNorm", "LayerNorm"]),
        ("Wq", ["Multi-Head Attention"]),
        ("norm2", ["LayerNorm"]),
        ("4*C gelu", ["Feed Forward"]),
        ("zebra", []),
    ],
)
def test_search_finds_names_kinds_and_parameters(page: Page, words: str, titles: list[str]) -> None:
    page.press("/")
    assert focused(page) == "search"
    page.press(words)
    assert page.run("[...document.querySelectorAll('#hits [role=option] > bdi')].map(one => one.textContent)") == titles
    assert page.count(".node.hit") == len(titles)
    assert page.run("picture.svg.classList.contains('searching')") is bool(titles)
    assert page.run("search.field.getAttribute('aria-expanded')") == "true"
    page.press(ESCAPE)
    assert page.count(".hit, #hits") == 0
    assert page.run("search.field.value") == ""


def test_enter_chooses_a_hit_also_in_a_folded_plate(page: Page) -> None:
    page.click("#fold")
    page.press("/")
    page.press("layer_norm", DOWN, ENTER)
    assert chosen(page).startswith("LayerNorm, norm2")
    assert page.run("document.activeElement === document.querySelector('.chosen')")
    assert page.run("picture.folding.folded.size") == 0
    assert page.count("#hits") == 0
    assert "norm2" in page.text("#panel")
