"""What the README shows is true: its specs check, its Python runs, its two forms are one graph."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.cli import main
from blockgraph.report import formatted
from blockgraph.same import same_graph

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SPECS = re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", SPECS, ids=range(len(SPECS)))
def test_every_spec_of_the_readme_checks_and_runs(text: str) -> None:
    program = bg.compile(text)
    assert program.findings == ()
    inputs, params = program.sample(0)
    assert np.isfinite(program(inputs, params)).all()


def test_the_two_forms_of_the_first_block_are_one_graph() -> None:
    assert same_graph(bg.compile(SPECS[0]).graph, bg.compile(SPECS[1]).graph)


def test_the_python_of_the_readme_runs_and_leaves_what_its_command_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in PYTHON:
        exec(compile(code, "README.md", "exec"), names)
    assert names["y"].shape == (1, 6, 128)  # type: ignore[attr-defined]
    (command,) = re.findall(r"^blockgraph (generate .*drawn.safetensors.*)$", README, re.MULTILINE)
    capsys.readouterr()
    assert main(shlex.split(command)) == 0
    assert len(capsys.readouterr().out.split()) >= 8


def test_the_finding_that_the_readme_shows_is_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = re.search(r"^```text\n(BG101.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(
        "dims: {C: 64}\nblock:\n  parts: {norm: layer_norm,\n"
        "    ff: {kind: feed_forward, hidden: 4*C, activation: relu, out: 3*C}}\n"
        "  equations: |\n    x = x + ff(norm(x))\n"
    )
    checked = bg.check("mine.yaml")
    assert formatted(checked.findings, lambda _, number: checked.spec.document.line(number)) == shown[1]
