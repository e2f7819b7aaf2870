"""The Graphviz program: found, missing, broken, slow."""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
import struct
import time
from pathlib import Path

import pytest

from blockgraph.drawing import Rankdir, draw, find_dot, picture, program, to_dot
from blockgraph.errors import EnvironmentFailure
from blockgraph.graph import Graph
from tests.test_render_samples import folded, pre_norm

DOT = to_dot([pre_norm()])


def fake(folder: Path, script: str, name: str = "dot") -> Path:
    """A program that does what the script says."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLOCKGRAPH_DOT", raising=False)


def test_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = fake(tmp_path, "exit 0", "mine")
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(mine))
    assert find_dot() == str(mine)


def test_a_dot_on_the_path_comes_before_the_embedded_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = fake(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_dot() == str(system)


def test_the_embedded_program_is_found_when_the_path_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("importlib.metadata").files("graphviz-pure") or pytest.skip("graphviz-pure is not installed")
    monkeypatch.setenv("PATH", "")
    found = find_dot()
    assert found is not None
    assert Path(found).stem == "graphviz-pure"


def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(program, "_pure", lambda: None)


def test_without_a_program_there_is_dot_text_and_a_short_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    missing(monkeypatch)
    assert find_dot() is None
    assert to_dot([pre_norm()]) == DOT
    with pytest.raises(EnvironmentFailure, match="Graphviz program not found") as caught:
        draw(DOT, "svg")
    (finding,) = caught.value.findings
    assert finding.code == "BG950"
    assert finding.is_environment
    assert "pip install graphviz-pure" in finding.help
    assert "system package" in finding.help
    assert len(str(caught.value).splitlines()) <= 3


def test_a_variable_that_names_no_program_is_said_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKGRAPH_DOT", "no-such-program")
    with pytest.raises(EnvironmentFailure, match=r"BG950 .*\$BLOCKGRAPH_DOT names no-such-program"):
        draw(DOT, "svg")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("cat >/dev/null; echo 'syntax error in line 1' >&2; exit 1", r"syntax error in line 1 \(exit code 1\)"),
        ("cat >/dev/null; exit 0", r"it said nothing \(exit code 0\)"),
        ("cat", r"what it wrote is not one \(exit code 0\)"),
        ("cat >/dev/null; echo '<svg>no end'", r"what it wrote is not one \(exit code 0\)"),
        ("cat >/dev/null; echo '<svg><g></svg>'", r"what it wrote is not one \(exit code 0\)"),
        ("cat >/dev/null; echo '<svg></svg>'; exit 4", r"it said nothing \(exit code 4\)"),
        ("kill -SEGV $$", r"it said nothing \(it was ended by SIGSEGV\)"),
        ("echo 'no memory' >&2; kill -KILL $$", r"no memory \(it was ended by SIGKILL\)"),
        ("exit 3", r"exit code 3"),
    ],
)
def test_a_program_that_fails_or_says_nothing_is_a_finding(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(fake(tmp_path, script)))
    with pytest.raises(EnvironmentFailure, match=rf"BG951 .*made no SVG: .*{said}"):
        draw(DOT, "svg")


def test_a_program_that_cannot_be_started_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "dot"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(broken))
    with pytest.raises(EnvironmentFailure, match="BG951 "):
        draw(DOT, "svg")


def test_a_slow_program_is_stopped_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "child"
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(fake(tmp_path, f"sleep 60 & echo $! > {note}; wait")))
    monkeypatch.setattr(program, "SECONDS", 0.5)
    start = time.monotonic()
    with pytest.raises(EnvironmentFailure, match=r"BG952 .*more than 0\.5 seconds"):
        draw(DOT, "svg")
    assert time.monotonic() - start < 10
    time.sleep(0.2)
    child = Path("/proc") / note.read_text().strip() / "status"
    assert not child.exists() or "zombie" in child.read_text()


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_program_that_writes_without_end_is_stopped(
    stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "BLOCKGRAPH_DOT", str(fake(tmp_path, f"echo '<svg>'; while :; do echo {'y' * 4096}{stream}; done"))
    )
    monkeypatch.setattr(program, "OUTPUT", 4 << 20)
    monkeypatch.setattr(program, "SECONDS", 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EnvironmentFailure, match="BG952" if stream else r"BG951 .*stopped after 4 MiB of output"):
        draw(DOT, "svg")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # in KiB


def test_a_program_that_reads_nothing_may_still_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(fake(tmp_path, "exec 0</dev/null; sleep 0.1; echo '<svg></svg>'")))
    assert draw(DOT * 1000, "svg") == b"<svg></svg>\n"


def test_a_bitmap_that_was_made_smaller_brings_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "dot: graph is too large for cairo-renderer bitmaps. Scaling by 0.223 to fit"
    monkeypatch.setenv(
        "BLOCKGRAPH_DOT", str(fake(tmp_path, f"cat >/dev/null; printf '\\211PNG IEND'; echo '{words}' >&2"))
    )
    image, (warning,) = picture(DOT, "png")
    assert image == b"\x89PNG IEND"
    assert (warning.code, warning.severity) == ("BG953", "warning")
    assert "by the factor 0.446 and" in warning.message  # of twice the plain size
    assert "SVG or PDF" in warning.help


def test_a_bitmap_that_only_lost_some_of_its_second_pixels_brings_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "dot: graph is too large for cairo-renderer bitmaps. Scaling by 0.613224 to fit"
    program = fake(tmp_path, f"cat >/dev/null; printf '\\211PNG IEND'; echo '{words}' >&2")
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(program))
    assert picture(DOT, "png") == (b"\x89PNG IEND", ())


@pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")
@pytest.mark.parametrize("graphs", [[pre_norm()], [folded()], [pre_norm(), folded()]], ids=["one", "stack", "two"])
@pytest.mark.parametrize("rankdir", ["BT", "LR"])
def test_a_bitmap_has_whole_pixels_up_to_its_rim_and_twice_as_many_as_at_96_dpi(
    graphs: list[Graph], rankdir: Rankdir
) -> None:
    dot = to_dot(graphs, rankdir=rankdir)
    left, bottom, right, top = map(float, re.findall(r'graph \[layout=.*? bb="([^"]*)"', dot)[0].split(","))
    pads = map(float, re.findall(r'pad="([^"]*)"', dot)[0].split(","))
    points = [side + 2 * 72 * pad for side, pad in zip((right - left, top - bottom), pads, strict=True)]
    pixels = [side * 96 / 72 for side in points]
    assert pixels == pytest.approx([round(side) for side in pixels], abs=1e-3)
    png = draw(dot, "png")
    assert struct.unpack(">II", png[16:24]) == tuple(2 * round(side) for side in pixels)


@pytest.mark.parametrize("format", ["svg", "png", "pdf"])
def test_the_system_program_draws_every_format(format: str) -> None:
    if shutil.which("dot") is None:
        pytest.skip("no system dot on this machine")
    assert len(draw(to_dot([folded()]), format)) > 1000  # type: ignore[arg-type]


def embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = program._pure()
    if found is None:
        pytest.skip("graphviz-pure is not installed")
    monkeypatch.setenv("BLOCKGRAPH_DOT", found)


def test_the_embedded_program_draws_svg_and_png(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded(monkeypatch)
    assert draw(DOT, "svg").count(b'class="edge residual rail"') == 2
    assert draw(DOT, "png").startswith(b"\x89PNG")


def test_a_pdf_from_the_embedded_program_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded(monkeypatch)
    with pytest.raises(EnvironmentFailure, match="install the system package"):
        draw(DOT, "pdf")


def test_both_programs_draw_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("dot") is None:
        pytest.skip("no system dot on this machine")
    import re

    system = re.findall(rb' d="(M[^"]*)"', draw(DOT, "svg"))
    embedded(monkeypatch)
    assert re.findall(rb' d="(M[^"]*)"', draw(DOT, "svg")) == system
    assert len(system) == 14


def test_an_expanded_stack_of_96_blocks_is_drawn_unscaled_within_the_limit() -> None:
    if find_dot() is None:
        pytest.skip("no Graphviz program on this machine")
    start = time.monotonic()
    svg = draw(to_dot([folded(96)], expand=True), "svg").decode()
    assert time.monotonic() - start < program.SECONDS / 3
    assert 'transform="scale(1 1) ' in svg
    assert svg.count('class="node op attention"') == 96


def test_the_environment_is_not_touched() -> None:
    before = dict(os.environ)
    find_dot()
    assert dict(os.environ) == before
