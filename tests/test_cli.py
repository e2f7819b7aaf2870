"""The command line as a whole: finding commands, wrong usage, streams, and faults of our own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from blockgraph.__main__ import main
from blockgraph.cli.commands import load, names, summary_of

ROOT = Path(__file__).parent.parent
SPEC = str(ROOT / "specs" / "pre_norm.yaml")
STACK = str(ROOT / "specs" / "pre_norm_stack.yaml")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        return (code, *capsys.readouterr())

    return call


def process(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    command = [sys.executable, "-m", "blockgraph", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_every_file_in_the_folder_of_commands_is_a_command() -> None:
    files = {path.stem for path in (ROOT / "blockgraph" / "cli" / "commands").glob("*.py")} - {"__init__"}
    assert set(names()) == files
    assert {"check", "explain", "render", "run"} <= files


def test_help_lists_every_command(run: Run) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert all(f"\n  {name} " in out for name in names())


@pytest.mark.parametrize("name", names())
def test_the_help_of_a_command_has_examples_of_it(run: Run, name: str) -> None:
    code, out, err = run(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: blockgraph {name} ")
    assert f"\n  blockgraph {name} " in out.partition("examples:")[2]


def test_help_before_a_command_is_the_commands_help(run: Run) -> None:
    assert run("help", "run") == run("run", "--help")


def test_without_a_command_the_help_goes_to_the_error_stream(run: Run) -> None:
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("usage: blockgraph COMMAND")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chek", SPEC], "blockgraph: there is no command `chek`; did you mean `check`?\n"),
        (["--vesion"], "blockgraph: there is no option `--vesion`; did you mean `--version`?\n"),
        (["\x1b[2J"], "blockgraph: there is no command `\\x1b[2J`: there are check, explain, render, run\n"),
        (["check", SPEC, "--formt", "json"], "blockgraph check: there is no option --formt; did you mean --format?\n"),
        (["check"], "blockgraph check: the following arguments are required: SPEC\n"),
        (["run", SPEC, "more"], "blockgraph run: `more` is one argument too many\n"),
        (["check", SPEC, "--set", "C"], "argument --set: write NAME=VALUE, as in C=64, not 'C'\n"),
        (["check", SPEC, "--set", "=3"], "argument --set: write NAME=VALUE, as in C=64, not '=3'\n"),
        (["run", SPEC, "--seed", "-1"], "argument --seed: a whole number from 0 on is expected, not '-1'\n"),
        (["run", SPEC, "--batch", "0"], "argument --batch: a whole number from 1 on is expected, not '0'\n"),
        (["run", SPEC, "--time", "six"], "argument --time: a whole number from 1 on is expected, not 'six'\n"),
        (["run", SPEC, "--time", "6", "--set", "T=7"], "--time 6 and --set T=7 contradict each other\n"),
        (["render", SPEC, "-o", "a.sgv"], "cannot tell what to draw from the ending of a.sgv; did you mean .gv?\n"),
        (["render", SPEC, "-o", "-", "--format", "json"], "would both write to standard output: name a file\n"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_with_2(run: Run, words: list[str], said: str) -> None:
    if words[0].startswith("\x1b"):
        said = said.replace("check, explain, render, run", ", ".join(names()))
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) <= 2


def test_options_may_stand_between_files(run: Run) -> None:
    code, out, _ = run("check", SPEC, "--set", "C=32", STACK)
    assert code == 0
    assert [line for line in out.splitlines() if line.endswith(": ok")] == [f"{SPEC}: ok", f"{STACK}: ok"]


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["check", "--help"], ["run", "--help"]])
def test_help_and_version_load_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys; from blockgraph.__main__ import main; main(sys.argv[1:]);"
        "print(sorted({'numpy', 'networkx', 'pydantic', 'rich', 'yaml'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


@pytest.mark.parametrize("name", names())
def test_a_summary_is_that_of_the_command_without_loading_it(name: str) -> None:
    assert summary_of(name) == load(name).SUMMARY


def test_without_its_source_a_command_still_has_a_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blockgraph.cli.commands.source_of", lambda *_: "")
    assert summary_of("check") == load("check").SUMMARY


def test_the_module_is_the_program_and_tells_its_version() -> None:
    import blockgraph

    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"blockgraph {blockgraph.__version__}\n", "")


def test_a_console_that_knows_only_ascii_is_enough() -> None:
    done = process("run", SPEC, "--set", "T=3", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "---------" in done.stdout
    assert "\\u" not in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="there is no /dev/full")
def test_a_full_disk_is_one_finding_and_no_traceback() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "blockgraph", "check", SPEC],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("BG903  cannot write the output: ")
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise there")
def test_a_reader_that_goes_away_is_no_fault() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "blockgraph", "check", SPEC]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def broken(*_: object, **__: object) -> None:
    raise KeyError("x")


def test_a_fault_of_our_own_is_one_line_that_asks_for_a_report(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLOCKGRAPH_DEBUG", raising=False)
    monkeypatch.setattr("blockgraph.cli.specs.check", broken)
    code, out, err = run("run", SPEC, "--set", "T=a b")
    assert (code, out) == (2, "")
    assert err.startswith("BG900  a fault of blockgraph itself (KeyError at test_cli.py:")
    assert err.endswith(f"please report it with this command line: blockgraph run {SPEC} --set 'T=a b'\n")
    assert err.count("\n") == 1


def test_a_fault_of_our_own_with_one_spec_leaves_the_others_checked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import blockgraph.cli.specs as specs

    real = specs.check
    monkeypatch.delenv("BLOCKGRAPH_DEBUG", raising=False)
    monkeypatch.setattr(specs, "check", lambda spec: broken() if spec.name == "pre_norm" else real(spec))
    code, out, err = run("check", SPEC, STACK, "--format", "json")
    found = json.loads(out)
    assert (code, err, found["ok"]) == (2, "", False)
    assert [[one["code"] for one in spec["findings"]] for spec in found["specs"]] == [["BG900"], []]


def test_whoever_debugs_gets_the_exception_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKGRAPH_DEBUG", "1")
    monkeypatch.setattr("blockgraph.cli.specs.check", broken)
    with pytest.raises(KeyError, match="x"):
        run("run", SPEC)


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141)])
def test_an_interruption_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    def stop(*_: object) -> None:
        raise error

    monkeypatch.setattr("blockgraph.cli.specs.check", stop)
    assert run("run", SPEC) == (code, "", "")


def test_a_lack_of_memory_is_told_as_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("blockgraph.cli.specs.check", fill)
    code, out, err = run("check", SPEC)
    assert (code, out) == (2, "")
    assert err.startswith("BG904  the memory of this machine is not enough\n")


def test_standard_input_is_read_as_bytes_in_utf8(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(SPEC).read_text(encoding="utf-8").replace("name: pre_norm", "name: größe")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="ascii"))
    code, out, err = run("check", "-")
    assert (code, err) == (0, "")
    assert out.startswith("<stdin>: ok\n")
