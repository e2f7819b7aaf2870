"""Broken specs, kept as files that say what is owed: code, line, column and path of every finding, in file order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.errors import Finding, SpecError

FOLDER = Path(__file__).parent / "broken"
FILES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".yaml", ".json"))
EXPECT = re.compile(r"# expect: (BG\d{3}) (\d+):(\d+) ?(.*)")


def expected(path: Path) -> list[tuple[str, int, int, str]]:
    """The findings that a file owes; JSON, which has no comments, keeps them in a file beside it."""
    notes = path.with_name(path.name + ".expect") if path.suffix == ".json" else path
    return [(m[1], int(m[2]), int(m[3]), m[4]) for m in EXPECT.finditer(notes.read_text(encoding="utf-8"))]


def findings(path: Path) -> tuple[Finding, ...]:
    try:
        return bg.check(path).findings
    except SpecError as error:
        return error.findings


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_broken_spec_gives_exactly_the_findings_it_owes(path: Path) -> None:
    found = [(f.code, f.place.start.line, f.place.start.column, f.place.spec_path) for f in findings(path)]
    assert found == sorted(expected(path), key=lambda one: one[1:3])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_finding_names_a_class_of_ours_or_shows_a_traceback(path: Path) -> None:
    for finding in findings(path):
        text = " ".join((finding.message, finding.help, finding.label))
        assert not re.search(r"Traceback|[A-Z][a-z]+(Instance|Keys|Error)\b|pydantic|<class", text)
        assert finding.message


def test_every_broken_spec_says_what_it_owes() -> None:
    assert len(FILES) > 20
    assert all(expected(path) for path in FILES)
