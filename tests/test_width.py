"""What is printed for a person fits a screen of 80 columns, and neither names nor factors are cut in two."""

from __future__ import annotations

import re

import pytest

from blockgraph.cli.commands import names
from blockgraph.report import Console, columns
from blockgraph.tables import Column, table
from tests.small_specs import FILES
from tests.test_cli import ROOT, Run, run

__all__ = ["run"]

SPECS = [path.relative_to(ROOT).as_posix() for path in FILES]
SYMBOLS = Console()


@pytest.fixture(autouse=True)
def _screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def too_wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if columns(line) > 80]


@pytest.mark.parametrize("name", ["", *names()])
def test_a_help_fits_the_screen(name: str, run: Run) -> None:
    code, out, _ = run(*filter(None, [name]), "--help")
    assert code == 0
    assert out
    assert too_wide(out) == []


@pytest.mark.parametrize("spec", SPECS)
def test_the_summary_of_a_check_fits_the_screen(spec: str, run: Run) -> None:
    _, out, _ = run("check", spec)
    assert too_wide(out) == []


@pytest.mark.parametrize("spec", [one for one in SPECS if "/models/" in one])
def test_a_summary_fits_the_screen_and_breaks_formulas_between_terms(spec: str, run: Run) -> None:
    _, out, _ = run("summary", spec)
    assert too_wide(out) == []
    assert [line for line in out.splitlines() if re.search(r"[*/] *$|\*(?=  )", line)] == []


@pytest.mark.parametrize("spec", ["specs/gqa_swiglu.yaml", "specs/layouts/adaln_zero.yaml", "specs/pre_norm.yaml"])
def test_the_table_of_a_run_fits_the_screen(spec: str, run: Run) -> None:
    _, out, _ = run("run", spec)
    assert too_wide(out) == []


def test_no_name_is_cut_in_the_table_of_a_run(run: Run) -> None:
    _, out, _ = run("run", "specs/gqa_swiglu.yaml")
    rest = out.replace("gated_feed_forward", "")
    assert not re.search(r"gated|forward|feed", rest)


def test_a_column_that_wraps_gets_what_the_others_leave_and_a_spare_one_goes_first() -> None:
    head = [Column("a"), Column("formula", wrap=True), Column("kind", spare=True)]
    rows = [("x" * 20, "4*B*C*T + 4*B*D*T**2 + 8*C", "y" * 20)]
    kept = table(head, rows, SYMBOLS, 60)
    assert "kind" in kept
    assert "4*B*C*T +\n" in re.sub(r" +y* *\n", "\n", kept)
    left = table(head, rows, SYMBOLS, 40)
    assert "kind" not in left
    assert too_wide(left) == []
    assert "4*B*D*T**2 +" in left
