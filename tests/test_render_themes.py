"""Colours: text can be read in every theme, families are told apart by every eye, and a page may choose the theme."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import combinations
from math import atan2, cos, exp, hypot, log, pi, sin, sqrt
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from blockgraph.drawing import adaptive, draw, find_dot, to_dot
from blockgraph.drawing.themes import DARK, FILLS, LIGHT, PRINT, THEMES, Theme
from tests.test_cli import ROOT, Run, run
from tests.test_diff_figure import difference, faulty, graph
from tests.test_render_faults import ADD, INPUT, STACK

__all__ = ["run"]

drawing = pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")
SPECS = ["deepnorm", "models/gpt2", "models/t5", "rezero"]
NAMED = {"white": "#FFFFFF", "black": "#000000"}
Rule = tuple[str, str, dict[str, str]]

# Machado, Oliveira & Fernandes 2009, table 1, severity 1.0: linear sRGB as it is seen.
EYES = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
CAT02 = ((0.7328, 0.4296, -0.1624), (-0.7036, 1.6975, 0.0061), (0.0030, 0.0136, 0.9834))
CAT02_BACK = ((1.096124, -0.278869, 0.182745), (0.454369, 0.473533, 0.072098), (-0.009628, -0.005698, 1.015326))
HPE = ((0.38971, 0.68898, -0.07868), (-0.22981, 1.18340, 0.04641), (0.0, 0.0, 1.0))
WHITE = (95.047, 100.0, 108.883)


def times(matrix: tuple[tuple[float, ...], ...], values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(sum(a * b for a, b in zip(row, values, strict=True)) for row in matrix)


def linear(colour: str) -> tuple[float, ...]:
    """Linear sRGB of `#RRGGBB`."""
    parts = [int(NAMED.get(colour, colour)[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def plain(name: str, theme: Any, **options: Any) -> str:
    return to_dot([graph(name)], theme=theme, **options)


def contrast(one: str, other: str) -> float:
    """WCAG 2: (brighter + 0.05) / (darker + 0.05)."""
    low, high = sorted(
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x), strict=True)) for x in (one, other)
    )
    return (high + 0.05) / (low + 0.05)


def adapted(xyz: tuple[float, ...], level: float) -> tuple[float, ...]:
    """The cone responses of CIECAM02: adapted to the white with degree D, then compressed."""
    degree = 1 - exp((-64 / pi / 5 - 42) / 92) / 3.6
    cones, white = times(CAT02, xyz), times(CAT02, WHITE)
    fitted = tuple(c * (degree * 100 / w + 1 - degree) for c, w in zip(cones, white, strict=True))
    found = []
    for value in times(HPE, times(CAT02_BACK, fitted)):
        power = (level * abs(value) / 100) ** 0.42
        found.append((400 * power / (power + 27.13)) * (1 if value >= 0 else -1) + 0.1)
    return tuple(found)


def cam02ucs(colour: str, eye: str) -> tuple[float, float, float]:
    """J', a', b' of Luo, Cui & Li 2006, in the viewing conditions of sRGB (20% grey, 64 lux, average surround)."""
    seen = tuple(min(max(part, 0.0), 1.0) for part in times(EYES[eye], linear(colour)))
    k = 1 / (64 / pi + 1)  # 1 / (5 L_A + 1)
    luminance = 64 / pi  # 5 L_A
    level = 0.2 * k**4 * luminance + 0.1 * (1 - k**4) ** 2 * luminance ** (1 / 3)
    n = 0.2
    nbb, z = 0.725 * (1 / n) ** 0.2, 1.48 + sqrt(n)
    r, g, b = adapted(tuple(100 * part for part in times(TO_XYZ, seen)), level)
    rw, gw, bw = adapted(WHITE, level)
    p, q = r - 12 * g / 11 + b / 11, (r + g - 2 * b) / 9
    hue = atan2(q, p)
    bright, white = ((2 * x + y + w / 20 - 0.305) * nbb for x, y, w in ((r, g, b), (rw, gw, bw)))
    lightness = 100 * (bright / white) ** (0.69 * z)
    t = 50000 / 13 * nbb * 0.25 * (cos(hue + 2) + 3.8) * hypot(p, q) / (r + g + 21 / 20 * b)
    colourful = t**0.9 * sqrt(lightness / 100) * (1.64 - 0.29**n) ** 0.73 * level**0.25
    wide = log(1 + 0.0228 * colourful) / 0.0228
    return 1.7 * lightness / (1 + 0.007 * lightness), wide * cos(hue), wide * sin(hue)


def distance(one: str, other: str, eye: str) -> float:
    return sqrt(sum((a - b) ** 2 for a, b in zip(cam02ucs(one, eye), cam02ucs(other, eye), strict=True)))


def test_the_colour_space_has_white_at_the_top_and_greys_without_colour() -> None:
    assert cam02ucs("#FFFFFF", "usual") == pytest.approx((100, 0, 0), abs=2.5)
    assert cam02ucs("#808080", "usual")[1:] == pytest.approx((0, 0), abs=2.5)


@pytest.mark.parametrize(("eye", "least"), [("usual", 16.1), ("protan", 12.5), ("deutan", 9.0), ("tritan", 11.4)])
def test_the_fills_of_families_keep_their_distance_for_every_eye(eye: str, least: float) -> None:
    for theme in (LIGHT, DARK):
        found = min(distance(a, b, eye) for a, b in combinations(theme.fills.values(), 2))
        assert found == pytest.approx(least, abs=0.06)  # as another implementation of the same formulas measured them


def test_a_pastel_set_would_not_keep_its_distance() -> None:
    pastel = ["#F2F4C1", "#FFE2BB", "#C2E8F7", "#FCE0E1", "#CBE7CF", "#DCDFF0"]  # those of Vaswani et al. 2017, fig. 1
    assert min(distance(a, b, "protan") for a, b in combinations(pastel, 2)) < 5


def test_the_greys_of_print_stay_apart_and_so_do_their_borders() -> None:
    assert set(PRINT.fills) == set(FILLS)
    for one, other in combinations(PRINT.fills.values(), 2):
        assert one[1:3] == one[3:5] == one[5:7]
        assert distance(one, other, "usual") >= 5
    borders = [PRINT.border(family) for family in FILLS]
    assert len(set(borders)) == len(FILLS)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_and_marks_stand_out_from_the_page(theme: Theme) -> None:
    for line in (theme.ink, theme.rail, theme.highway, *theme.marks.values()):
        assert (
            min(contrast(line, page) for page in (theme.paper, theme.plate[0], theme.stack[0])) >= 3
        )  # WCAG 2.1, 1.4.11
    for eye in EYES:
        assert distance(theme.ink, theme.rail, eye) >= 10


def test_the_plates_of_opened_parts_stand_out_from_a_dark_page_by_tint_and_border() -> None:
    for family in FILLS:
        tint, border, words = DARK.opened(family)
        for page in (DARK.plate[0], DARK.stack[0]):
            assert 1.4 <= contrast(tint, page) <= 1.5  # none stands out more than another
            assert min(distance(tint, page, eye) for eye in EYES) >= 11
            assert contrast(border, page) >= 4.5
        assert contrast(border, tint) >= 3
        assert min(contrast(line, tint) for line in (DARK.ink, DARK.rail, DARK.highway)) >= 4.5
        assert min(contrast(text, tint) for text in (words, DARK.told, DARK.small)) >= 7


def rules_of(svg: str) -> list[Rule]:
    """(class, rest of the selector, what it sets) in the order of weight: attributes count as a class does."""
    found: list[Rule] = []
    style = re.search(r"<style>\s*@media \(prefers-color-scheme: dark\) \{(.*)\}\s*</style>", svg, re.S)
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", style[1] if style else ""):
        sets = dict(part.split(":") for part in body.split(";"))
        for selector in selectors.strip().split(","):
            parts = re.fullmatch(r"(\.\w+|\[class\])[ >](.+)", selector)
            assert parts, selector
            found.append((parts[1], parts[2], sets))
    return sorted(found, key=lambda rule: "[" in rule[1])


def colour_of(element: ElementTree.Element, css: set[str], rules: list[Rule], what: str) -> str:
    found = element.get(what, "black")
    for name, rest, sets in rules:
        tag = element.tag.rpartition("}")[2]
        wanted = re.fullmatch(r'(\w+)(?:\[(\w+)="(.*)" i\])?', rest)
        assert wanted, rest
        held = wanted[2] is None or element.get(wanted[2], "").lower() == wanted[3].lower()
        if tag == wanted[1] and held and what in sets and (name == "[class]" or name[1:] in css):
            found = sets[what]
    return found.upper() if found.startswith("#") else NAMED.get(found, found)


def texts(svg: str) -> list[tuple[str, str, set[str]]]:
    """Each text's colour, the colours that may be behind it, and the classes around it."""
    rules, found = rules_of(svg), []
    root = ElementTree.fromstring(svg)
    surfaces: list[tuple[str, str, set[str]]] = []
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        css = set((group.get("class") or "").split())
        shapes = [e for e in group if re.search("polygon|path|ellipse", e.tag) and e.get("fill") != "none"]
        own = [colour_of(shape, css, rules, "fill") for shape in shapes if "edge" not in css]
        pages = own if own and css & {"op", "add", "cluster"} else []
        pages = pages or [page for page, _, where in surfaces if where & {"cluster", "graph"}]
        surfaces += [(page, "", css) for page in own]
        found += [
            (colour_of(e, css, rules, "fill"), page, css) for e in group if e.tag.endswith("text") for page in pages
        ]
    return found


TOLD = {"shapes": "all", "numbers": True, "params": True, "highway": True}
FIGURES: dict[str, Callable[[Any], str]] = {
    **{name: partial(plain, name) for name in SPECS},
    **{f"{name}, all told": partial(plain, name, **TOLD) for name in ("deepnorm", "models/t5", "models/mixtral")},
    "a cycle of layers": partial(plain, "models/gemma2"),
    "an own mixer": partial(plain, "custom_mixer"),
    "level block": partial(plain, "models/llama", level="block"),
    "level op": partial(plain, "models/gemma2", level="op", **TOLD),
    "to the right": partial(plain, "models/gpt2", rankdir="LR", **TOLD),
    "added and removed": lambda theme: difference("pre_norm", "post_norm", theme),
    "changed": lambda theme: difference("models/gpt2", "models/llama", theme),
    "a sum at fault": lambda theme: faulty(ADD, theme),
    "a stack at fault": lambda theme: faulty(STACK, theme),
    "a call at fault": lambda theme: faulty(INPUT, theme),
}


def pictures(theme: str) -> list[str]:
    return [FIGURES[name](theme) for name in SPECS]


@drawing
@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("theme", [*THEMES, "auto"])
def test_every_text_of_a_picture_has_a_contrast_of_seven_to_one(theme: str, name: str) -> None:
    svg = draw(FIGURES[name]("light" if theme == "auto" else theme), "svg")
    svg = adaptive(svg) if theme == "auto" else svg
    found = texts(svg.decode())
    assert len(found) >= svg.count(b"<text ") >= 5
    assert {css for _, _, around in found for css in around} >= {"op", "figure", "io", "edge"}
    assert [(css, text, page) for text, page, css in found if contrast(text, page) < 7] == []


@drawing
def test_the_figures_whose_text_is_looked_at_have_every_class_that_text_can_stand_in() -> None:
    seen: set[str] = set()
    for name in FIGURES:
        seen |= {css for _, _, around in texts(draw(FIGURES[name]("light"), "svg").decode()) for css in around}
    written = {css for name in FIGURES for css in re.findall(r'class="([^"]*)"', FIGURES[name]("light"))}
    told = {css for one in written for css in one.split()} - {"graph", "tap", "corner", "port"}
    wires = {"flow", "residual", "rail", "highway", "back"}  # wires that have no words, and the frame behind a stack
    assert told - seen <= wires
    assert seen >= {"plate", "stack", "added", "removed", "changed", "guilty", "toll", "scale", "operator"} | set(FILLS)


@drawing
def test_an_adaptive_picture_has_one_style_and_the_colours_of_the_dark_theme() -> None:
    for light, dark in zip(pictures("light"), pictures("dark"), strict=True):
        svg = adaptive(draw(light, "svg")).decode()
        assert svg.count("<style>") == svg.count("</style>") == 1
        assert sorted(map(str, texts(svg))) == sorted(map(str, texts(draw(dark, "svg").decode())))


@drawing
@pytest.mark.parametrize(("dot", "signs"), [(difference("pre_norm", "post_norm"), "+-"), (faulty(ADD), "!")])
def test_marks_take_the_colours_of_the_dark_theme_on_a_dark_page(dot: str, signs: str) -> None:
    svg = adaptive(draw(dot, "svg")).decode()
    strokes, rules = set(), rules_of(svg)
    for group in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        css = set((group.get("class") or "").split())
        strokes |= {colour_of(shape, css, rules, "stroke") for shape in group if shape.get("stroke")}
        heads = [shape for shape in group if "edge" in css and shape.tag.endswith("polygon")]
        assert all(colour_of(head, css, rules, "fill") == colour_of(head, css, rules, "stroke") for head in heads)
    assert {DARK.marks[sign] for sign in signs} <= strokes  # type: ignore[index]
    assert not strokes & set(LIGHT.marks.values())


def test_a_theme_changes_colours_and_moves_nothing() -> None:
    def moved(dot: str) -> list[str]:
        return re.findall(r'(?:pos|bb|lp)="[^"]*"', dot)

    light, dark, grey = (pictures(theme) for theme in THEMES)
    assert [moved(dot) for dot in light] == [moved(dot) for dot in dark] == [moved(dot) for dot in grey]
    assert light != dark != grey


def test_print_has_no_colours() -> None:
    for dot in pictures("print"):
        for colour in re.findall(r'"#([0-9A-F]{6})"', dot):
            assert colour[:2] == colour[2:4] == colour[4:]


@drawing
def test_the_theme_is_an_option_of_render(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = str(ROOT / "specs" / "pre_norm.yaml")
    for theme in ("light", "dark", "print", "auto"):
        for ending in ("svg", "png"):
            assert run("render", spec, "-o", f"{theme}.{ending}", "--theme", theme)[0] == 0
    styled = {path.stem for path in tmp_path.glob("*.svg") if "prefers-color-scheme" in path.read_text("utf-8")}
    assert styled == {"auto"}
    assert len({path.read_bytes() for path in tmp_path.glob("*.png")}) == 3  # a bitmap cannot choose: auto is light
    assert DARK.paper.lower() in Path("dark.svg").read_text("utf-8").lower()
