"""The command lines in the pages about findings: each is run, in a folder with the files it names.

A page wraps long lines and leaves out what is beside its finding: it is held against the output without regard to
line breaks. What a page shows of a machine, such as a missing package, is staged.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import blockgraph as bg
from blockgraph.__main__ import main
from blockgraph.drawing import find_dot
from tests.test_codes import PAGES, example

ROOT = Path(__file__).parent.parent
BLOCK = """dims: {C: 64, H: 4}
block:
  norm: layer_norm
  sublayers: [{kind: attention, heads: H}, {kind: feed_forward, hidden: 4*C, activation: relu}]
"""
CONSOLES = [page for page in PAGES if "```console" in page.read_text("utf-8")]


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console with what it prints."""
    for one in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = one.partition("\n")
        yield command, output


def flat(text: str) -> str:
    """Text without regard to line breaks and indentation."""
    return " ".join(text.split())


def pattern(output: str) -> str:
    """What is shown, as a pattern: `...` stands for whatever a machine says there."""
    return ".*?".join(map(re.escape, flat(output).split("...")))


def performed(
    command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    """The exit code and the words of a command. `cat` makes the file that it shows."""
    words = shlex.split(command)
    with monkeypatch.context() as patch:
        while "=" in words[0]:
            patch.setenv(*words.pop(0).split("=", 1))
        if words[0] == "cat":
            Path(words[1]).write_text(output, encoding="utf-8")
        elif words[0] == "mkdir":
            Path(words[1]).mkdir()
        elif words[0] == "blockgraph":
            code = main(words[1:])
            out, err = capsys.readouterr()
            return code, err + out
        elif words == ["pip", "install", "blockgraph[plot]"]:
            pytest.importorskip("matplotlib")
        else:
            assert words == ["pip", "install", "graphviz-pure"], command
    return 0, output


def notes(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """Text where an array should be, and an array."""
    Path("notes.txt").write_text("numbers to come\n")
    np.save("x.npy", np.ones((1, 3, 64)))


def a_checkpoint(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """A small GPT-2 and its weights; in the example that fails a key of its config is misspelt."""
    shutil.copy(ROOT / "specs" / "models" / "gpt2.yaml", "gpt2.yaml")
    shutil.copytree(ROOT / "tests" / "conformance" / "gpt2", "gpt2")
    config = Path("gpt2", "config.json").read_text()
    Path("gpt2", "config.json").write_text(config.replace("layer_norm_epsilon", "layer_norm_eps") if fails else config)


def a_part_of_a_checkpoint(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """Two tensors have other names in the example that fails."""
    a_checkpoint(False, patch)
    path = Path("gpt2", "weights.safetensors")
    tensors = load_file(path)
    for name in list(tensors)[:2] if fails else ():
        tensors[f"other.{name}"] = tensors.pop(name)
    save_file(tensors, path)


def a_square_matrix(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """A matrix that fits either way."""
    Path("mine").mkdir()
    save_file({"model.fc.weight": np.ones((8, 8))}, Path("mine", "model.safetensors"))


def padding(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """A batch whose first position is padding."""
    np.save("keep.npy", np.arange(16).reshape(2, 8) > 0)


def the_repository(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """The spec that stands there."""
    Path("specs", "models").mkdir(parents=True)
    shutil.copy(ROOT / "specs" / "models" / "gpt2.yaml", Path("specs", "models"))


def a_fault(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """What nobody expected."""

    def broken(*given: object) -> None:
        raise ValueError("not expected")

    if fails:
        patch.setattr("blockgraph.checking.lint", broken)


def a_picture(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """One that was drawn before."""
    Path("block.svg").write_text("drawn before")


def no_package(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """matplotlib is missing."""
    if fails:
        patch.setattr("importlib.util.find_spec", lambda name: None)


class Shorter(float):
    """A time limit that is told as 30 seconds."""

    def __format__(self, spec: str) -> str:
        return "30"


def a_slow_program(fails: bool, patch: pytest.MonkeyPatch) -> None:
    """Graphviz at work on more than it can draw."""
    Path("huge.yaml").write_text(BLOCK, encoding="utf-8")
    if fails:
        Path("dot").write_text("#!/bin/sh\nexec sleep 60\n")
        Path("dot").chmod(0o755)
        patch.setenv("BLOCKGRAPH_DOT", str(Path("dot").resolve()))
        patch.setattr("blockgraph.drawing.program.SECONDS", Shorter(0.3))


STAGES: dict[str, Callable[[bool, pytest.MonkeyPatch], object]] = {
    "BG304": notes,
    "BG309": a_checkpoint,
    "BG313": a_part_of_a_checkpoint,
    "BG314": a_square_matrix,
    "BG403": padding,
    "BG501": the_repository,
    "BG900": a_fault,
    "BG902": a_picture,
    "BG905": no_package,
    "BG952": a_slow_program,
}
NEED_DOT = {"BG902", "BG903", "BG950", "BG951", "BG952", "BG953"}


def missing(code: str) -> str:
    """What a page needs that this machine has not."""
    if code in NEED_DOT and find_dot() is None:
        return "there is no Graphviz program"
    if code == "BG953" and shutil.which("dot") is None:
        return "the system Graphviz program is not on this machine; the embedded one has no such limit"
    return "needs a program written in sh" if code in ("BG951", "BG952") and os.name == "nt" else ""


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "passes"])
@pytest.mark.parametrize("page", CONSOLES, ids=lambda page: page.stem)
def test_a_command_line_of_a_page_says_what_the_page_shows(
    page: Path, fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if reason := missing(page.stem):
        pytest.skip(reason)
    language, text = example(page, "Example that fails" if fails else "Example that passes")
    assert language == "console"
    monkeypatch.chdir(tmp_path)
    Path("block.yaml").write_text(BLOCK, encoding="utf-8")
    STAGES.get(page.stem, lambda *given: None)(fails, monkeypatch)
    if ">>>" in text:
        test = doctest.DocTestParser().get_doctest(text, {"bg": bg}, page.stem, None, None)
        assert doctest.DocTestRunner().run(test).failed == 0
        return
    done = [(output, *performed(command, output, capsys, monkeypatch)) for command, output in commands(text)]
    for output, code, told in done:
        assert re.search(pattern(output), flat(told)), told
        assert fails or (code, page.stem in told) == (0, False)
    severity = re.search(r"^severity: (\w+)$", page.read_text("utf-8"), re.MULTILINE)
    assert severity is not None
    if fails:
        assert done[-1][1] == (0 if severity[1] != "error" else 2 if page.stem.startswith("BG9") else 1)
