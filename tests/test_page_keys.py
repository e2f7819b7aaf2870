"""The page in a real Chromium: themes, the steps of a run, keys; and without scripts, on paper, in any window."""

from __future__ import annotations

from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.drawing import find_dot
from tests.chromium import STACK, Page, browser, chosen, focused, folder, missing, page, scale, stack

__all__ = ["browser", "folder", "page", "stack"]

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program"),
]
ENTER, ESCAPE, TAB = "\ue007", "\ue00c", "\ue004"
UP, DOWN, LEFT, RIGHT = "\ue013", "\ue015", "\ue012", "\ue014"


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
