"""The page in a real Chromium: nothing of a spec runs, nothing is asked for, all answers to mouse and keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.drawing import find_dot
from tests.chromium import Page, browser, missing
from tests.test_cli import ROOT

__all__ = ["browser"]

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program"),
]
STACK = ROOT / "specs" / "pre_norm_stack.yaml"
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


def chosen(page: Page) -> str:
    """The title of what is chosen in the picture."""
    found: str = page.run("picture.svg.querySelector('.chosen').getAttribute('aria-label')")
    return found


def focused(page: Page) -> str:
    found: str = page.run("document.activeElement.id")
    return found


def scale(page: Page) -> float:
    """The width of the part of the picture that is shown."""
    return float(page.run("picture.svg.getAttribute('viewBox')").split()[2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def stack(folder: Path) -> Path:
    """A page with a trace."""
    program = bg.compile(STACK)
    path = folder / "stack.html"
    path.write_text(bg.render_html(program, trace=program.trace(*program.sample(0))), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Page, stack: Path) -> Iterator[Page]:
    """The page of a stack, opened anew; whatever a test does, the page neither complains nor asks for anything."""
    browser.open(stack)
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == [stack.as_uri()]


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


def test_folding_keeps_what_is_left_apart_and_on_upright_lines(browser: Page, folder: Path) -> None:
    path = folder / "t5.html"
    path.write_text(bg.render_html(ROOT / "specs/models/t5.yaml"), encoding="utf-8")
    browser.open(path)
    for folding in ("foldAll(true)", "toggle(picture.plates[0])", "toggle(picture.plates[1])"):
        browser.run(f"(() => {{ foldAll(false); {folding} }})()")
        assert browser.run("picture.folding.folded.size") > 0
        frames = browser.run("probes.frames()")
        for number, (left, top, right, bottom) in enumerate(frames):
            for other in frames[number + 1 :]:
                assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, (folding, other)
        assert browser.run("probes.slanted()") == 0
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


# Theme


def test_the_page_takes_the_theme_of_the_machine_until_told_otherwise(browser: Page, stack: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    fill = "getComputedStyle(document.querySelector('.figure > polygon')).fill"
    browser.open(stack)
    assert (browser.run(paper), browser.text("#theme")) == ("rgb(255, 255, 255)", "Dark")
    browser.click("#theme")
    assert (browser.run(paper), browser.run(fill), browser.text("#theme")) == ("rgb(13, 17, 23)",) * 2 + ("Light",)
    browser.press("d")
    assert browser.run(paper) == "rgb(255, 255, 255)"
    browser.open(stack, dark=True)
    assert (browser.run(paper), browser.run(fill), browser.text("#theme")) == ("rgb(13, 17, 23)",) * 2 + ("Light",)
    browser.click("#theme")
    assert browser.run(paper) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_of_the_page_is_at_least_seven_to_one(browser: Page, stack: Path, dark: bool) -> None:
    browser.open(stack, dark=dark)
    browser.click(".op.attention")
    found = browser.run("probes.contrasts()")
    assert len(found) > 60
    assert found[0][0] >= 7, found[0]


# A run


def test_the_slider_goes_through_the_steps_of_a_run(page: Page) -> None:
    program = bg.compile(STACK)
    trace = program.trace(*program.sample(0))
    names = page.run("page.trace.names")
    assert names[:3] == ["x.1", "layers.0.norm1", "layers.0.attention.query"]
    at = names.index("layers.2.attention.query")
    page.run(
        "(() => { trace.slider.value = arguments[0]; trace.slider.dispatchEvent(new Event('input')); })()".replace(
            "arguments[0]", str(at)
        )
    )
    array = trace["layers.2.attention.query"]
    told = page.run("[...document.querySelectorAll('#reading > *')].map(one => one.textContent)")
    assert told[:3] == [f"{at + 1} / {len(names)}", "layers.2.attention.query", str(array.shape)]
    values = [float(text.split()[1]) for text in told[3:]]
    assert values == pytest.approx([(array**2).mean() ** 0.5, array.min(), array.max(), array.mean()], abs=5e-5)
    assert page.run("[...document.querySelectorAll('.step')].map(one => one.getAttribute('aria-label'))") == [
        "Multi-Head Attention, attention, H heads"
    ]
    page.press(",")
    assert names[at - 1] in page.text("#reading")
    page.press(".", ".")
    assert names[at + 1] in page.text("#reading")
    page.click("#next")
    page.click("#back")
    assert names[at + 1] in page.text("#reading")
    page.click("#step")
    page.press("\ue011")  # Home, in the slider
    assert "x.1" in page.text("#reading")


def test_every_step_of_a_run_has_its_box_at_every_level(page: Page) -> None:
    for level in ("block", "sublayer", "op"):
        page.run("showLevel(arguments[0])", level)
        assert page.run(f"page.trace.boxes.{level}.every(id => picture.stops.has(id))")
    page.run("foldAll(true)")
    page.run("trace.go(9)")
    assert page.run("picture.svg.querySelector('.step').classList.contains('stack')")


# Keys


def test_arrows_go_along_the_edges(page: Page) -> None:
    page.run("picture.current.element.focus()")
    names = []
    for key in (UP, UP, UP, UP, UP, UP, UP, UP, DOWN):
        page.press(key)
        names.append(chosen(page).partition(",")[0])
    assert names == ["LayerNorm", "Multi-Head Attention", "+", "LayerNorm", "Feed Forward", "+", "x", "x", "+"]
    page.press(LEFT)
    assert chosen(page) == "+, x.2"  # along the residual path
    assert page.run("picture.svg.querySelectorAll('[tabindex=\"0\"]').length") == 1
    assert page.run("document.activeElement === document.querySelector('.chosen')")


def test_enter_opens_the_details_and_escape_goes_back(page: Page) -> None:
    page.click("#panel .close")
    page.run("picture.current.element.focus()")
    page.press(UP, ENTER)
    assert focused(page) == "panel"
    assert page.text("#panel h2") == "LayerNorm"
    page.press(ESCAPE)
    assert page.count("#panel") == 0
    assert page.run("document.activeElement.getAttribute('aria-label')").startswith("LayerNorm")
    page.press(ENTER, ESCAPE, UP, " ")
    assert page.text("#panel h2") == "Multi-Head Attention"
    page.press(UP)
    assert page.text("#panel h2") == "+"  # the details follow


def test_keys_fold_the_plate_around(page: Page) -> None:
    page.run("picture.current.element.focus()")
    page.press(UP, "f")
    assert chosen(page).startswith("× 6")
    assert page.run("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.press(DOWN)
    assert chosen(page) == "x, x.1"
    page.press(UP, "f")
    assert page.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    page.run("picture.choose([...picture.stops.values()][2]).element.focus()")
    page.press("p")
    assert chosen(page).startswith("× 6")


def test_the_tab_key_goes_through_everything_once_and_the_focus_is_seen(page: Page) -> None:
    seen = []
    for _ in range(30):
        page.press(TAB)
        name, marked = page.run("probes.focus()")
        if name == "BODY":
            break
        assert marked, name
        seen.append(name)
    tools = ["search", "sublayer", "out", "fit", "in", "fold", "unfold", "theme", "help"]
    assert seen[: len(tools) + 1] == [*tools, "sublayer-n0"]
    assert seen[-4:] == ["back", "next", "step", "DIV"]
    assert len(set(seen) - {"BUTTON", "DIV"}) == len([name for name in seen if name not in ("BUTTON", "DIV")])


def test_the_list_of_keys_opens_and_closes(page: Page) -> None:
    page.press("?")
    assert page.count("#keys") == 1
    assert page.run("document.querySelector('#keys').open")
    page.press("+")
    page.press(ESCAPE)
    assert page.count("#keys") == 0
    page.click("#help")
    page.click("#keys button")
    assert page.count("#keys") == 0


def test_keys_in_the_search_field_are_text(page: Page) -> None:
    before = scale(page)
    page.press("/")
    page.press("+-0df1/?")
    assert page.run("search.field.value") == "+-0df1/?"
    assert scale(page) == before
    assert page.run("document.documentElement.dataset.theme") == "light"


def test_everything_that_answers_has_a_role_and_a_name(page: Page) -> None:
    assert page.run("probes.nameless()") == []
    assert page.run("[...document.querySelectorAll('.stop')].every(one => one.getAttribute('role') === 'button')")


# Without scripts, on paper, in small windows


def test_without_scripts_there_are_a_picture_and_a_table(browser: Page, stack: Path) -> None:
    browser.open(stack, script=False)
    shown = browser.driver.find_elements("css selector", ".picture")
    assert [one.is_displayed() for one in shown] == [False, True, False]
    rows = browser.driver.find_elements("css selector", "#parts tbody tr")
    assert any("Multi-Head Attention" in row.text and "(B, T, C)" in row.text for row in rows)
    hidden = browser.driver.find_elements("css selector", ".tools, #panel, #trace")
    assert not any(one.is_displayed() for one in hidden)
    assert browser.driver.find_element("css selector", "noscript p").is_displayed()
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_on_paper_the_whole_picture_and_the_table_are_light(browser: Page, stack: Path) -> None:
    browser.open(stack, dark=True)
    browser.press("+", "+", "+")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.count(".tools, #panel, #trace, .handle") == 0
    assert browser.count(".picture") == 1
    assert browser.count("#parts table") == 1
    whole = browser.run("picture.folding.content.width")
    assert scale(browser) == pytest.approx(whole)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert len(browser.driver.print_page()) > 20_000


@pytest.mark.parametrize("width", [360, 820, 1280, 1920])
def test_no_window_scrolls_sideways_and_the_picture_keeps_room(browser: Page, stack: Path, width: int) -> None:
    browser.open(stack, width, 740)
    for number in range(browser.run("picture.stops.size")):
        browser.run(f"pick([...picture.stops.values()][{number}], true)")
        assert browser.run("document.scrollingElement.scrollWidth") <= width
    room = browser.run("(({width, height}) => [width, height])(stage.getBoundingClientRect())")
    assert room[0] >= min(width, 360) - 1
    assert room[1] >= 160


def test_nothing_moves_where_motion_is_not_wanted(browser: Page, stack: Path) -> None:
    browser.open(stack)
    duration = "getComputedStyle(document.querySelector('.stop')).transitionDuration"
    assert browser.run(duration) == "0.15s"
    reduced = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", reduced)
    assert browser.run(duration) == "0s"
