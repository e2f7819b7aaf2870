"""Everything of a page put together: escaped for where it goes, and a policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from blockgraph.drawing import dark_rules

SCRIPTS: Final = ("dom", "view", "fold", "picture", "panel", "search", "trace", "main")
UNSAFE: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
INVALID: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
SLOT: Final = re.compile(r"\{\{(\w+)\}\}")


def escaped(text: str) -> str:
    """Text for HTML, character for character; what no file may hold is replaced."""
    return html.escape(INVALID.sub("\N{REPLACEMENT CHARACTER}", text)).replace("\r", "&#13;")


def as_json(found: Any) -> str:
    """JSON that can stand in a script element: ASCII, without any character that HTML knows."""
    return json.dumps(found, separators=(",", ":"), allow_nan=False).translate(UNSAFE)


def document(slots: Mapping[str, str], facts: Any) -> str:
    """The HTML of a page; `slots` are markup for the template."""
    style, dark, script = _own("page.css"), f"{_own('dark.css')}{dark_rules()}\n", "".join(map(_script, SCRIPTS))
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {digest(style)} {digest(dark)}",
            f"script-src {digest(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    filled = {**slots, "policy": policy, "style": style, "dark": dark, "script": script, "facts": as_json(facts)}
    return SLOT.sub(lambda slot: filled[slot[1]], _own("page.html"))


def _script(name: str) -> str:
    return _own(f"{name}.js")


def _own(name: str) -> str:
    """A file beside this module; line ends as HTML reads them."""
    return (files("blockgraph.page") / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """How a policy names a text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
