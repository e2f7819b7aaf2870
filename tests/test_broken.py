"""Broken specs, kept as files that say what is owed: code, line, column and path of every finding, in file order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.errors import Finding, SpecError

FOLDER = Path(__file__).parent / "broken"
FILES = sorted(path for path in FOLDER.rglob("*") if path.suffix in (".yaml", ".json"))
AT_LEAST = {"yaml": 60, "json": 40, "schema": 80, "shapes": 80, "hostile": 40}
EXPECT = re.compile(r"# expect: (BG\d{3}) (\d+):(\d+) ?(.*)")


def expected(path: Path) -> list[tuple[str, int, int, str]]:
    """The findings that a file owes; where a comment cannot stand, as in JSON, they are in a file beside it."""
    beside = path.with_name(path.name + ".expect")
    text = (beside if beside.exists() else path).read_text(encoding="utf-8", errors="replace")
    return [(m[1], int(m[2]), int(m[3]), m[4]) for m in EXPECT.finditer(text)]


def name_of(path: Path) -> str:
    """The file as the tests call it."""
    return path.relative_to(FOLDER).as_posix()


def findings(path: Path) -> tuple[Finding, ...]:
    try:
        return bg.check(path).findings
    except SpecError as error:
        return error.findings


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_broken_spec_gives_exactly_the_findings_it_owes(path: Path) -> None:
    owed = sorted(expected(path), key=lambda one: one[1:3])
    found = [(f.code, f.place.start.line, f.place.start.column, f.place.spec_path) for f in findings(path)]
    if len(found) == len(owed):  # a file may leave the path out
        found = [(*one[:3], one[3] if due[3] else "") for one, due in zip(found, owed, strict=True)]
    assert found == owed


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_finding_names_a_class_of_ours_or_shows_a_traceback(path: Path) -> None:
    for finding in findings(path):
        text = " ".join((finding.message, finding.help, finding.label))
        assert not re.search(r"Traceback|[A-Z][a-z]+(Instance|Keys|Error)\b|pydantic|<class", text)
        assert finding.message


def test_every_broken_spec_says_what_it_owes() -> None:
    assert len(FILES) > 300
    assert all(expected(path) for path in FILES)


@pytest.mark.parametrize("folder", AT_LEAST)
def test_every_family_of_mistakes_has_its_files(folder: str) -> None:
    assert sum(path.parent.name == folder for path in FILES) >= AT_LEAST[folder]
