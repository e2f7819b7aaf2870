"""What a spec says in full, and what a kind, a function, a placement or a finding's code means."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from blockgraph.elaborate import elaborate
from blockgraph.elaborate.calls import functions
from blockgraph.errors import BlockgraphError, Finding, Place, in_file_order, near
from blockgraph.explain.code_pages import codes, page
from blockgraph.explain.function_page import function_text
from blockgraph.explain.kind_page import kind_text
from blockgraph.explain.placement_page import placement_text
from blockgraph.explain.table import WIDTH, columns, reflowed
from blockgraph.explain.written_out import expansion
from blockgraph.facts import prove
from blockgraph.habits import NO_DROPOUT, is_dropout
from blockgraph.kind import called_elsewhere, load_kinds
from blockgraph.lints import lint
from blockgraph.placement import NAMED
from blockgraph.source import decode, parse
from blockgraph.source.tree import BYTE_LIMIT
from blockgraph.spec import Spec, from_document, load
from blockgraph.suppress import suppressed

__all__ = ["expansion", "explain_spec", "explain_word", "main_text", "topics", "topics_text"]

ENDINGS = (".yaml", ".yml", ".json")
STDIN = "<stdin>"
BETWEEN = "\n" + "-" * 72 + "\n\n"


def main_text(topic: str, sets: Mapping[str, Any], width: int = WIDTH) -> tuple[str, tuple[Finding, ...]]:
    """The text about a topic and what was found on the way; no text if there was an error.

    A topic is a spec if it is `-`, ends like one or is a file; else a word. `sets` rebind a spec's dims and constants.
    What is said of a word fits into `width` columns; a spec written out is a file and looks the same everywhere.
    """
    if topic == "-" or topic.endswith(ENDINGS) or os.path.isfile(topic):
        return explain_spec(topic, sets)
    return explain_word(topic, width)


def explain_spec(path: str, sets: Mapping[str, Any]) -> tuple[str, tuple[Finding, ...]]:
    """The expansion of a spec file, `-` for standard input; its findings alone if one of them is an error."""
    try:
        spec = _standard_input() if path == "-" else load(Path(path))  # never text, whatever it begins with
    except BlockgraphError as error:
        return "", in_file_order(error.findings)
    if sets:
        spec = spec.with_values(sets)
    result = elaborate(spec)
    found = result.findings
    if result.graph is not None:
        failed = any(one.severity == "error" for one in found)
        found = in_file_order((*found, *lint(result.graph, None if failed else spec)))
    found = suppressed(spec.document, found)
    if result.graph is None or any(one.severity == "error" for one in found):
        return "", found
    return expansion(spec, prove(result.graph)), found


def _standard_input() -> Spec:
    stream = getattr(sys.stdin, "buffer", None)
    content = stream.read(BYTE_LIMIT + 1) if stream is not None else b""
    return from_document(parse(decode(content, STDIN), STDIN))


def explain_word(word: str, width: int = WIDTH) -> tuple[str, tuple[Finding, ...]]:
    """All that goes by a name; a finding with the nearest names if nothing does."""
    found = [text(word, width) for title, text in _TEXTS.items() if word in topics()[title]]
    if word.upper() in topics()["codes"]:
        found = [_page(word.upper(), width)]
    return (BETWEEN.join(found), ()) if found else ("", (_unknown(word),))


def topics() -> dict[str, tuple[str, ...]]:
    """Everything that can be explained beside specs: kinds, placements, functions, codes."""
    return {
        "kinds": tuple(sorted(load_kinds())),
        "placements": tuple(NAMED),
        "functions": tuple(functions()),
        "codes": codes(),
    }


def topics_text(width: int = WIDTH) -> str:
    """The topics in columns, and how to ask for one."""
    lines = columns([(f"{title}:", ", ".join(names)) for title, names in topics().items()], width)
    return "\n".join(["Ask about a spec file, or about one of these words:", "", *lines]) + "\n"


def _page(code: str, width: int) -> str:
    return "\n".join(reflowed(page(code), width)) + "\n"


_TEXTS: dict[str, Callable[[str, int], str]] = {
    "kinds": lambda word, width: kind_text(load_kinds()[word], width),
    "placements": placement_text,
    "functions": lambda word, width: function_text(functions()[word], width),
    "codes": _page,
}


def _unknown(word: str) -> Finding:
    choices = [name for names in topics().values() for name in names]
    nearest = called_elsewhere(word) or near(word, choices)
    meant = [name for name in choices if name.startswith(f"{word}_")] or ([nearest] if nearest else [])
    guess = " or ".join(dict.fromkeys(f"`{name}`" for name in meant))
    if is_dropout(word):
        return Finding("BG039", f"nothing is known about `{word}`", Place(""), NO_DROPOUT)
    help = f"did you mean {guess}?" if meant else "`blockgraph explain` without a word lists what there is"
    return Finding("BG039", f"nothing is known about `{word}`", Place(""), help)
