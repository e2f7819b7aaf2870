"""`render` and `explain`: which file is written, when it is kept, and what is said when there is no picture."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from blockgraph.cli.files import write_file
from blockgraph.cli.specs import examine
from blockgraph.cli.watching import redraw
from blockgraph.drawing import find_dot
from blockgraph.errors import EnvironmentFailure
from blockgraph.report import as_data
from tests.test_cli import ROOT, SPEC, STACK, Run, run

__all__ = ["run"]

POST = str(ROOT / "specs" / "post_norm.yaml")
drawing = pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@drawing
@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("SVG", b"<?xml")])
def test_the_ending_says_the_format(run: Run, ending: str, start: bytes) -> None:
    assert run("render", SPEC, "-o", f"a.{ending}") == (0, "", f"wrote a.{ending}\n")
    assert Path(f"a.{ending}").read_bytes().startswith(start)


@drawing
def test_the_picture_is_an_svg_named_after_the_spec_unless_told_otherwise(run: Run, folder: Path) -> None:
    assert run("render", SPEC) == (0, "", "wrote pre_norm.svg\n")
    assert run("render", SPEC, POST) == (0, "", "wrote pre_norm-post_norm.svg\n")
    assert sorted(path.name for path in folder.iterdir()) == ["pre_norm-post_norm.svg", "pre_norm.svg"]


def test_dot_text_needs_no_program(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKGRAPH_DOT", "/nowhere/dot")
    assert run("render", SPEC, "-o", "a.dot") == (0, "", "wrote a.dot\n")
    text = Path("a.dot").read_text(encoding="utf-8")
    assert text.startswith("digraph")
    assert run("render", SPEC, "-o", "-") == (0, text, "")


def test_two_specs_make_one_figure(run: Run) -> None:
    _, one, _ = run("render", SPEC, "-o", "-")
    _, both, _ = run("render", SPEC, POST, "-o", "-")
    assert both.count("digraph") == 1
    assert both.count("feed_forward") == 2 * one.count("feed_forward") > 0


def test_expand_draws_every_layer(run: Run) -> None:
    _, folded, _ = run("render", STACK, "-o", "-")
    _, expanded, _ = run("render", STACK, "-o", "-", "--expand", "--set", "N=3")
    assert "× 6" in folded
    assert expanded.count("feed_forward") == 3 * folded.count("feed_forward") > 0


def test_shapes_can_be_left_out(run: Run) -> None:
    assert "(B, T, C)" in run("render", SPEC, "-o", "-", "--shapes", "all")[1]
    assert "(B, T, C)" not in run("render", SPEC, "-o", "-", "--shapes", "none")[1]


def test_a_file_that_is_there_is_kept_unless_forced(run: Run) -> None:
    Path("a.dot").write_text("mine")
    code, out, err = run("render", SPEC, "-o", "a.dot")
    assert (code, out, Path("a.dot").read_text()) == (2, "", "mine")
    assert err.splitlines() == [
        "BG902 a.dot:1:1  a.dot is there already and was kept",
        "  help: add --force to replace it, or name another file",
    ]
    assert run("render", SPEC, "-o", "a.dot", "--force")[0] == 0
    assert Path("a.dot").read_text(encoding="utf-8").startswith("digraph")


def test_without_a_program_the_dot_text_is_written_beside_and_named(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blockgraph.drawing.program.find_dot", lambda: None)
    monkeypatch.delenv("BLOCKGRAPH_DOT", raising=False)
    code, out, err = run("render", SPEC, "-o", "a.svg")
    assert (code, out) == (2, "")
    assert err.startswith("BG950 a.svg:1:1  Graphviz program not found\n")
    assert "system package `graphviz`" in err
    assert "graphviz-pure" in err
    assert "the DOT text was written to a.dot\n" in err
    assert len(err.splitlines()) <= 4
    assert [path.name for path in folder.iterdir()] == ["a.dot"]
    assert Path("a.dot").read_text(encoding="utf-8").startswith("digraph")


def test_without_a_program_a_dot_file_that_is_there_is_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blockgraph.drawing.program.find_dot", lambda: None)
    Path("a.dot").write_text("mine")
    code, out, _ = run("render", SPEC, "-o", "a.svg", "--format", "json")
    (finding,) = json.loads(out)["findings"]
    assert (code, Path("a.dot").read_text()) == (2, "mine")
    assert finding["help"].endswith("the DOT text was not written: a.dot is there already and was kept")


FAULTS = {
    "failing": ("cat >/dev/null; echo no >&2; exit 1", "BG951"),
    "hanging": ("sleep 60", "BG952"),
    "crashing": ("kill -SEGV $$", "BG951"),
    "killed": ("kill -KILL $$", "BG951"),
    "silent": ("cat >/dev/null", "BG951"),
    "garbage": ("cat", "BG951"),
    "endless": ("yes '<svg>'", "BG951"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", [["render", SPEC], ["diff", SPEC, SPEC], ["render", SPEC, "html"], ["redraw"]])
def test_each_fault_of_the_program_is_one_finding_and_leaves_the_dot_text(
    run: Run, folder: Path, command: list[str], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, code = FAULTS[fault]
    program = folder.parent / "dot"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(program))
    monkeypatch.setattr("blockgraph.drawing.program.SECONDS", 1)
    monkeypatch.setattr("blockgraph.drawing.program.OUTPUT", 1 << 20)
    if command == ["redraw"]:
        with pytest.raises(EnvironmentFailure, match=code) as caught:
            redraw([examine(SPEC, {})], "a.svg", force=False)
        told = as_data(caught.value.findings)
    else:
        words, ending = (command[:-1], "html") if command[-1] == "html" else (command, "svg")
        found, out, _ = run(*words, "-o", f"a.{ending}", "--format", "json")
        told = json.loads(out)["findings"]
        assert found == 2
    assert [one["code"] for one in told] == [code]
    assert "the DOT text was written to a.dot" in told[0]["help"]
    assert [path.name for path in folder.iterdir()] == ["a.dot"]
    assert Path("a.dot").read_text(encoding="utf-8").startswith("digraph")


@pytest.mark.parametrize("format", ["full", "json"])
def test_a_bitmap_that_was_made_smaller_says_so(
    run: Run, folder: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = folder.parent / "dot"
    words = "dot: graph is too large for cairo-renderer bitmaps. Scaling by 0.223 to fit"
    program.write_text(f"#!/bin/sh\ncat >/dev/null; printf '\\211PNG IEND'; echo '{words}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(program))
    code, out, err = run("render", SPEC, "-o", "a.png", "--format", format)
    told = json.loads(out)["findings"][0]["message"] if format == "json" else err.splitlines()[0]
    assert code == 0
    assert "made smaller by the factor 0.446" in told
    assert format == "json" or err.startswith("warning BG953 a.png")
    assert Path("a.png").exists()


def test_a_spec_with_an_error_is_drawn_and_still_a_finding(run: Run, folder: Path) -> None:
    Path("bad.yaml").write_text("block: {equations: y = x + z}\n")
    code, out, err = run("render", SPEC, "bad.yaml", "-o", "a.dot")
    assert (code, out) == (1, "")
    assert err.startswith("BG025 bad.yaml:1:")
    assert err.endswith("wrote a.dot\n")
    assert 'class="op other guilty"' in Path("a.dot").read_text(encoding="utf-8")
    assert run("render", "bad.yaml", "no.yaml", "-o", "b.dot")[0] == 2


@pytest.mark.parametrize("target", ["no/a.dot", "folder.dot", "a\0.dot"])
def test_a_place_that_cannot_be_written_is_a_finding(run: Run, folder: Path, target: str) -> None:
    Path("folder.dot").mkdir()
    code, out, err = run("render", SPEC, "-o", target)
    assert (code, out) == (2, "")
    assert err.startswith("BG903 ")
    assert [path.name for path in folder.iterdir()] == ["folder.dot"]


def test_json_names_the_files_that_were_written(run: Run) -> None:
    code, out, err = run("render", SPEC, "-o", "a.dot", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"ok": True, "findings": [], "files": ["a.dot"]}


# Files


def test_a_file_that_fails_half_way_leaves_the_old_one_and_nothing_else(folder: Path) -> None:
    Path("a").write_text("old")

    def fill(file: object) -> None:
        file.write(b"new")  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    with pytest.raises(EnvironmentFailure, match="cannot write a: No space left on device"):
        write_file("a", fill, force=True)
    assert Path("a").read_text() == "old"
    assert [path.name for path in folder.iterdir()] == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="there are other permissions")
def test_a_written_file_has_the_usual_permissions() -> None:
    write_file("a", lambda file: file.write(b"text"))
    before = os.umask(0)
    os.umask(before)
    assert stat.S_IMODE(os.stat("a").st_mode) == 0o666 & ~before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_what_is_no_regular_file_is_written_to_and_never_replaced() -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file("pipe", lambda file: file.write(b"text"))
    assert os.read(reader, 10) == b"text"
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    os.close(reader)


# Explain


def test_a_spec_is_explained_as_a_spec_that_loads(run: Run) -> None:
    code, out, err = run("explain", SPEC, "--set", "C=32")
    assert (code, err) == (0, "")
    Path("again.yaml").write_text(out)
    assert run("check", "again.yaml")[0] == 0


def test_a_topic_nobody_knows_is_a_finding_and_the_others_are_explained(run: Run) -> None:
    code, out, err = run("explain", "atention", "rms_norm")
    assert code == 1
    assert "BG039" in err
    assert "rms_norm" in out


def test_explain_as_json_holds_text_and_findings(run: Run) -> None:
    code, out, err = run("explain", "rms_norm", "no.yaml", "--format", "json")
    document = json.loads(out)
    assert (code, err, document["ok"]) == (2, "", False)
    assert [topic["topic"] for topic in document["topics"]] == ["rms_norm", "no.yaml"]
    assert [len(topic["findings"]) for topic in document["topics"]] == [0, 1]


def test_explain_alone_lists_what_can_be_explained(run: Run) -> None:
    code, out, err = run("explain")
    assert (code, err) == (0, "")
    assert "attention" in out
