"""Figures in Python: the options of the command, and files in the format of their ending, with or without `dot`."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.drawing import find_dot, program
from tests.test_cli import ROOT, Run, run

__all__ = ["run"]

SPEC = str(ROOT / "specs" / "pre_norm.yaml")
STARTS = {"svg": b"<svg", "png": b"\x89PNG", "dot": b"digraph", "gv": b"digraph"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, and no `dot` on the path: what draws is the embedded program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("BLOCKGRAPH_DOT", raising=False)


drawing = pytest.mark.skipif(not program._pure(), reason="graphviz-pure is not installed")


@drawing
@pytest.mark.parametrize("ending", STARTS)
def test_a_figure_is_saved_in_the_format_of_the_ending_without_a_dot_on_the_path(ending: str) -> None:
    assert bg.render(SPEC).save(f"q.{ending}") == f"q.{ending}"
    assert STARTS[ending] in Path(f"q.{ending}").read_bytes()[:300]
    assert [path.name for path in Path().iterdir()] == [f"q.{ending}"]


def test_another_ending_is_refused_and_nothing_is_written() -> None:
    for name, said in (("q.jpeg", "\\.jpeg is no format of a picture"), ("q", "no ending is no format")):
        with pytest.raises(bg.EnvironmentFailure, match=f"BG903 .*{said}"):
            bg.render(SPEC).save(name)
    Path("here").write_text("a file")
    with pytest.raises(bg.EnvironmentFailure, match=r"BG903 here/q\.gv"):
        bg.render(SPEC).save("here/q.gv")
    assert [path.name for path in Path().iterdir()] == ["here"]


def test_without_any_program_a_picture_is_refused_and_its_text_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_pure", lambda: None)
    with pytest.raises(bg.EnvironmentFailure, match=r"BG950 q\.svg"):
        bg.render(SPEC).save("q.svg")
    assert bg.render(SPEC).save("q.gv") == "q.gv"


@drawing
def test_the_methods_of_graphviz_draw_without_a_dot_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("graphviz.view", seen.append)
    figure = bg.render(SPEC)
    assert figure.render("a.gv") == "a.gv.svg"
    assert figure.render("b.gv", "sub", cleanup=True, format="png") == str(Path("sub", "b.gv.png"))
    assert figure.render("c.svg", view=True) == "c.svg"
    assert figure.view("d.svg") == "d.svg"
    assert seen == ["c.svg", "d.svg"]
    files = sorted(str(path) for path in Path().rglob("*.*"))
    assert files == ["a.gv", "a.gv.svg", "c.svg", "d.svg", str(Path("sub", "b.gv.png"))]
    assert Path("a.gv").read_text() == figure.source


@pytest.mark.parametrize(
    ("option", "value", "flags"),
    [
        ("theme", "dark", ["--theme", "dark"]),
        ("theme", "auto", ["--theme", "auto"]),
        ("params", True, ["--params"]),
        ("numbers", True, ["--numbers"]),
        ("highway", True, ["--highway"]),
        ("expand", True, ["--expand"]),
        ("shapes", "all", ["--shapes", "all"]),
        ("level", "op", ["--level", "op"]),
        ("rankdir", "LR", ["--rankdir", "LR"]),
    ],
)
def test_a_figure_takes_the_options_of_the_command(run: Run, option: str, value: object, flags: list[str]) -> None:
    figure = bg.render(SPEC, **{option: value})  # type: ignore[arg-type]
    assert run("render", SPEC, "-o", "-", *flags)[1] == figure.source
    if find_dot() is not None:
        assert ("prefers-color-scheme" in figure.pipe("svg", encoding="utf-8")) == (value == "auto")


def test_the_documentation_says_how_a_picture_is_saved() -> None:
    assert 'figure.save("x.svg")' in (inspect.getdoc(bg.render) or "")
    assert "figure.save(" in (ROOT / "README.md").read_text(encoding="utf-8")
