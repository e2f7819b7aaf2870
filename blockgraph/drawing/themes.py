"""The colours of a picture, for light and dark pages and for print, and the style that lets a reader's page choose.

Text is at least 7:1 against what is behind it. In print a family has a grey and a border of its own; the name in the
box tells it apart in any case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, Literal

from blockgraph.drawing.marking import COLOURS, Sign
from blockgraph.records import dataclass

ThemeName = Literal["light", "dark", "print"]

FILLS: Final = {  # Paul Tol's "light" scheme, chosen to be told apart with colour-blind eyes
    "norm": "#EEDD88",
    "attention": "#EE8866",
    "feed_forward": "#77AADD",
    "embedding": "#FFAABB",
    "linear": "#BBCC33",
    "other": "#DDDDDD",
}


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of one kind of page.

    `text` stands in filled boxes, `words` on paper and plates, `told` beside lines. `borders` are the style and the
    width of a family's border where they differ from the usual ones. `tints` are how much of a family's colour the
    plate of an opened part has, none without them.
    """

    paper: str
    ink: str
    rail: str
    highway: str
    text: str
    words: str
    small: str
    told: str
    operator: str
    plate: tuple[str, str, str]
    tints: Mapping[str, float]
    stack: tuple[str, str, str]
    back: tuple[str, str]
    fills: Mapping[str, str] = field(default_factory=lambda: FILLS)
    borders: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    marks: Mapping[Sign, str] = field(default_factory=lambda: COLOURS)

    def fill(self, family: str) -> str:
        """The colour of a box of a family."""
        return self.operator if family == "operator" else self.fills.get(family, self.fills["other"])

    def opened(self, family: str) -> tuple[str, str, str]:
        """Fill, border and words of the plate of an opened part: a tint of the family's colour."""
        own, (under, border, words) = self.fill(family), self.plate
        if not self.tints:
            return self.plate
        return mixed(own, under, self.tints.get(family, self.tints["other"])), mixed(own, border, 0.7), words

    def border(self, family: str) -> str:
        """The attributes of the border of an unmarked box, where it is none of the usual ones."""
        style, width = self.borders.get(family, ("", 0.0))
        return f', style="{style}", penwidth={width:g}' if style else ""


LIGHT: Final = Theme(
    paper="white",
    ink="#333333",
    rail="#4477AA",
    highway="#004488",
    text="#111111",
    words="#111111",
    small="#333333",
    told="#444444",
    operator="white",
    plate=("#F6F6F6", "#BBBBBB", "#444444"),
    tints=dict.fromkeys(FILLS, 0.16),
    stack=("#F8F8F8", "#999999", "#111111"),
    back=("#E4E4E4", "#999999"),
)
DARK: Final = Theme(
    paper="#0D1117",
    ink="#C9D1D9",
    rail="#79B8FF",
    highway="#FFD54A",
    text="#111111",
    words="#F0F6FC",
    small="#F0F6FC",
    told="#C9D1D9",
    operator="#161B22",
    plate=("#161B22", "#6E7681", "#F0F6FC"),
    tints={  # each 1.45:1 against the plate: a dark colour needs more of it
        "norm": 0.15,
        "attention": 0.22,
        "feed_forward": 0.205,
        "embedding": 0.175,
        "linear": 0.175,
        "other": 0.15,
    },
    stack=("#161B22", "#8B949E", "#F0F6FC"),
    back=("#21262D", "#8B949E"),
    marks={"+": "#56D364", "-": "#F778BA", "~": "#FFA657", "!": "#FF7B72"},
)
PRINT: Final = replace(
    LIGHT,
    ink="#000000",
    rail="#000000",
    highway="#000000",
    text="#000000",
    words="#000000",
    small="#000000",
    told="#333333",
    plate=("#FFFFFF", "#666666", "#000000"),
    tints={},
    stack=("#FFFFFF", "#333333", "#000000"),
    back=("#FFFFFF", "#333333"),
    fills={
        "attention": "#9B9B9B",
        "embedding": "#ADADAD",
        "feed_forward": "#BEBEBE",
        "linear": "#D0D0D0",
        "other": "#E2E2E2",
        "norm": "#F5F5F5",
    },
    borders={
        "attention": ("filled", 2.4),
        "feed_forward": ("filled", 1.1),
        "embedding": ("filled,diagonals", 1.1),
        "linear": ("rounded,filled", 2.4),
        "norm": ("rounded,filled", 0.6),
    },
    marks=dict.fromkeys(COLOURS, "#000000"),
)


def mixed(colour: str, under: str, share: float) -> str:
    """A colour laid thinly over another one, as #RRGGBB."""
    pairs = ((int(colour[n : n + 2], 16), int(under[n : n + 2], 16)) for n in (1, 3, 5))
    return "#" + "".join(f"{round(top * share + low * (1 - share)):02X}" for top, low in pairs)


THEMES: Final[Mapping[str, Theme]] = {"light": LIGHT, "dark": DARK, "print": PRINT}


def adaptive(svg: bytes) -> bytes:
    """An SVG in light colours with one style element that makes it dark on a page that prefers dark colours."""
    style = f"<style>\n@media (prefers-color-scheme: dark) {{\n{dark_rules()}\n}}\n</style>"
    return re.sub(rb"<svg\b[^>]*>", lambda found: found[0] + b"\n" + style.encode(), svg, count=1)


def dark_rules() -> str:
    """The style rules that make a light SVG dark; the shapes of a part that is filled keep their fill."""
    marks = [
        f'[class] path[stroke="{COLOURS[sign]}" i],[class] ellipse[stroke="{COLOURS[sign]}" i]{{stroke:{colour}}}'
        f'[class] polygon[stroke="{COLOURS[sign]}" i]{{stroke:{colour}}}'
        f'.edge polygon[fill="{COLOURS[sign]}" i]{{fill:{colour}}}'
        for sign, colour in DARK.marks.items()
    ]
    rules = [
        f".graph>polygon,.figure>polygon{{fill:{DARK.paper};stroke:none}}",
        f".figure text,.plate text,.io text{{fill:{DARK.words}}}",
        _filled(".plate", *DARK.plate[:2]),
        _filled(".stack", *DARK.stack[:2]),
        _filled(".back", *DARK.back),
        *(_filled(f".part_{family}", *DARK.opened(family)[:2]) for family in FILLS),
        f".op path,.op polygon,.op ellipse,.add ellipse{{stroke:{DARK.ink}}}",
        f".add ellipse,.operator ellipse,.scale path,.scale polygon{{fill:{DARK.operator}}}",
        f".add text,.operator text,.scale text{{fill:{DARK.words}}}",
        f".port path,.port polygon{{fill:{DARK.operator};stroke:{DARK.ink}}}.port text{{fill:{DARK.words}}}",
        f".edge path{{stroke:{DARK.ink}}}.edge polygon{{fill:{DARK.ink};stroke:{DARK.ink}}}",
        f".edge text{{fill:{DARK.told}}}",
        f".rail path{{stroke:{DARK.rail}}}.rail polygon{{fill:{DARK.rail};stroke:{DARK.rail}}}",
        f".highway path,.toll path,.toll polygon,.toll ellipse{{stroke:{DARK.highway}}}",
        f".highway polygon{{fill:{DARK.highway};stroke:{DARK.highway}}}",
        f".tap ellipse{{fill:{DARK.ink};stroke:{DARK.ink}}}",
        *marks,
    ]
    return "\n".join(rules)


def _filled(css: str, fill: str, stroke: str) -> str:
    return f"{css} path,{css} polygon{{fill:{fill};stroke:{stroke}}}"
