"""The pages about findings: one for every code that can be emitted, with examples that do what they say."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import blockgraph as bg

PACKAGE = Path(bg.__file__).parent
PAGES = sorted((PACKAGE / "codes").glob("BG*.md"))
SECTIONS = ["What it means", "Why it matters", "Example that fails", "Example that passes"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that an example writes go where pytest clears them away."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def emitted() -> set[str]:
    """Every code that stands in the package's own source text."""
    return {code for path in PACKAGE.rglob("*.py") for code in re.findall(r"\bBG[0-9]{3}\b", path.read_text("utf-8"))}


def example(page: Path, section: str) -> tuple[str, str]:
    """The language and the text of a page's example."""
    found = re.search(rf"^## {section}\n\n```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page.name} has no example under {section}"
    return found[1], found[2]


def findings(language: str, text: str) -> Iterator[bg.Finding]:
    """What blockgraph says about an example."""
    try:
        if language == "python":
            exec(compile(text, "<example>", "exec"), {})
        else:
            yield from bg.check(text if "\n" in text.strip() else text + "\n").findings
    except bg.BlockgraphError as error:
        yield from error.findings


def test_every_code_of_the_package_has_a_page() -> None:
    assert emitted() - {page.stem for page in PAGES} == set()


def test_every_page_is_about_a_code_that_is_emitted() -> None:
    assert {page.stem for page in PAGES} - emitted() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_head_and_its_sections(page: Path) -> None:
    text = page.read_text("utf-8")
    head = re.match(r"# (BG[0-9]{3}): [a-z]+(-[a-z]+)*\n\nseverity: (error|warning|note)\n\n", text)
    assert head is not None
    assert head[1] == page.stem
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles in (SECTIONS, [*SECTIONS, "Notes"])


def test_no_two_pages_share_a_name() -> None:
    names = [page.read_text("utf-8").splitlines()[0].partition(": ")[2] for page in PAGES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_failing_example_reports_its_code_and_no_other_error(page: Path) -> None:
    language, text = example(page, "Example that fails")
    if language == "console":
        assert page.stem in text
        return
    found = list(findings(language, text))
    assert page.stem in {one.code for one in found}
    severity = next(one.severity for one in found if one.code == page.stem)
    assert f"\nseverity: {severity}\n" in page.read_text("utf-8")
    assert {one.code for one in found if one.severity == "error"} <= {page.stem}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_passing_example_has_no_error_and_not_the_code(page: Path) -> None:
    language, text = example(page, "Example that passes")
    if language == "console":
        assert text.startswith("$ ")
        return
    found = list(findings(language, text))
    assert [one for one in found if one.severity == "error" or one.code == page.stem] == []
