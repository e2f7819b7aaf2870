"""`check` where people work: formats for code hosts, patterns, selected codes, watching; starters, the codes' table."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import blockgraph as bg
from blockgraph.cli import watching
from blockgraph.cli.commands import names
from blockgraph.cli.commands.new import starter, starters
from blockgraph.cli.files import write_file
from blockgraph.explain.code_pages import codes, codes_table
from blockgraph.same import same_graph
from tests.test_cli import ROOT, SPEC, STACK, Run, run
from tests.test_cli_check import BAD, WARNED

__all__ = ["run"]

BOTH = BAD.replace("x = x + ff(x)", "h = tanh(x)\n    x = x + ff(x)")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("spec.yaml")


# Formats


def test_github_gets_one_command_per_finding_on_standard_output(run: Run, spec: Path) -> None:
    spec.write_text(BOTH)
    code, out, err = run("check", spec, "--format", "github")
    first, second = out.splitlines()
    assert (code, err) == (1, "")
    assert first.startswith(
        "::warning file=spec.yaml,line=5,col=5,endLine=5,endColumn=6,title=blockgraph BG203::"
        "the value `h` is never used%0Ahelp: "
    )
    assert second.startswith("::error file=spec.yaml,line=6,col=13,endLine=6,endColumn=18,title=blockgraph BG101::")


def test_what_steers_githubs_commands_is_escaped(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a,b:c%.yaml"
    path.write_text(BAD)
    _, out, _ = run("check", path, "--format", "github")
    assert out.count("\n") == 1
    assert "a%2Cb%3Ac%25.yaml,line=5," in out


def test_a_sarif_log_has_what_the_standard_requires(run: Run, spec: Path) -> None:
    spec.write_text(BOTH)
    code, out, err = run("check", spec, SPEC, "--format", "sarif")
    log = json.loads(out)
    assert (code, err, out.isascii()) == (1, "", True)
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    driver = one["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("blockgraph", bg.__version__)
    assert one["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert [invocation["executionSuccessful"] for invocation in one["invocations"]] == [True]
    check_rules(driver["rules"])
    assert [result["ruleId"] for result in one["results"]] == ["BG203", "BG101"]
    for result in one["results"]:
        check_result(result, driver["rules"])


def check_rules(rules: list[dict[str, Any]]) -> None:
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"].startswith(f"# {rule['id']}: {rule['name']}\n")
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")


def check_result(result: dict[str, Any], rules: list[dict[str, Any]]) -> None:
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in ("none", "note", "warning", "error")
    assert result["message"]["text"]
    for location in (*result["locations"], *result.get("relatedLocations", ())):
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "spec.yaml"
        region = physical["region"]
        assert min(region.values()) >= 1
        assert (region["endLine"], region["endColumn"]) >= (region["startLine"], region["startColumn"])


def test_a_clean_spec_gives_an_empty_log(run: Run) -> None:
    code, out, _ = run("check", SPEC, "--format", "sarif")
    assert (code, json.loads(out)["runs"][0]["results"]) == (0, [])


def test_a_file_that_is_not_there_is_a_result_and_the_run_no_success(run: Run) -> None:
    code, out, _ = run("check", "a b.yaml", "--format", "sarif")
    (one,) = json.loads(out)["runs"]
    assert (code, one["invocations"][0]["executionSuccessful"]) == (2, False)
    uri = one["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%20b.yaml"


@pytest.mark.parametrize("name", [name for name in names() if name != "check"])
def test_only_check_knows_the_formats_of_code_hosts(run: Run, name: str) -> None:
    code, _, err = run(name, SPEC, "--format", "sarif")
    assert (code, "invalid choice: 'sarif'" in err) == (2, True)


# What is checked and what is told


def test_a_pattern_stands_for_the_files_that_fit_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("b.yaml", "a.yaml", "c.json", "deep/er/d.yaml"):
        (tmp_path / name).write_text(BAD)
    _, out, _ = run("check", f"{tmp_path}/**/*.yaml", tmp_path / "b.yaml", "--format", "concise")
    told = [line.partition(":")[0].removeprefix(f"{tmp_path}/") for line in out.splitlines()]
    assert told == ["a.yaml", "b.yaml", "deep/er/d.yaml"]


def test_a_pattern_that_fits_nothing_is_told(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("check", f"{tmp_path}/*.yaml", "--format", "concise")
    assert (code, "BG901" in out) == (2, True)


def test_standard_input_has_the_name_it_is_given_and_its_ending_tells_the_form(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    _, out, _ = run("check", "-", "--stdin-filename", "mine.yaml", "--format", "concise")
    assert out.startswith("mine.yaml:5:13: BG101 ")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    _, out, _ = run("check", "-", "--stdin-filename", "mine.json", "--format", "concise")
    assert out.startswith("mine.json:1:1: BG001 ")


@pytest.mark.parametrize(
    ("words", "told", "code"),
    [
        ([], ["BG203", "BG101"], 1),
        (["--select", "BG2"], ["BG203"], 0),
        (["--select", "bg101"], ["BG101"], 1),
        (["--select", "BG2,BG1"], ["BG203", "BG101"], 1),
        (["--select", "BG2", "--select", "BG101"], ["BG203", "BG101"], 1),
        (["--ignore", "BG203"], ["BG101"], 1),
        (["--ignore", "BG1"], ["BG203"], 0),
        (["--ignore", "BG", "--select", "BG203"], ["BG203"], 0),
        (["--ignore", "BG203", "--select", "BG2"], [], 0),
    ],
)
def test_codes_choose_what_is_told(run: Run, spec: Path, words: list[str], told: list[str], code: int) -> None:
    spec.write_text(BOTH)
    found, out, _ = run("check", spec, "--format", "json", *words)
    assert (found, [one["code"] for one in json.loads(out)["specs"][0]["findings"]]) == (code, told)


def test_a_spec_whose_errors_are_not_selected_is_not_called_ok(run: Run, spec: Path) -> None:
    spec.write_text(BAD)
    assert run("check", spec, "--ignore", "BG1") == (0, f"{spec}: its errors are not selected\n", "")


def test_a_fault_of_the_machine_is_told_whatever_is_selected(run: Run) -> None:
    code, out, _ = run("check", "none.yaml", "--select", "BG2", "--ignore", "BG9", "--format", "concise")
    assert (code, "BG901" in out) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--select", "norm"], "codes are expected, as in BG203 or BG1,BG203, not 'norm'"),
        (["--ignore", ","], "codes are expected"),
        (["--draw", "a.svg"], "--draw goes with --watch"),
        (["--watch", "--format", "json"], "--watch is for files, and for reading"),
        (["--watch", "--draw", "a.txt"], "cannot tell what to draw from the name a.txt"),
        (["-", "--watch"], "--watch is for files, and for reading"),
        (["-", "--fix"], "leave out --format and other files"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(run: Run, words: list[str], said: str) -> None:
    code, out, err = run("check", SPEC, *words)
    assert (code, out) == (2, "")
    assert said in err


# Watching


def test_a_saved_file_is_checked_and_drawn_again(run: Run, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec.write_text(BAD)
    texts = iter([BAD.replace("out: 3*C", "out: C"), WARNED])

    def save(_: float) -> None:
        text = next(texts, None)
        if text is None:
            raise KeyboardInterrupt
        assert Path("a.dot").exists() == (text == WARNED)
        spec.write_text(text)
        os.utime(spec, ns=(len(text), len(text)))

    monkeypatch.setattr(watching.time, "sleep", save)
    code, out, err = run("check", spec, "--watch", "--draw", "a.dot")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("spec.yaml: ")] == [
        "spec.yaml: 1 error",
        "spec.yaml: ok",
        "spec.yaml: ok, 1 warning",
    ]
    assert err.count("wrote a.dot\n") == 2
    assert Path("a.dot").read_text().startswith("digraph")


def test_watching_ends_with_the_last_exit_code(run: Run, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    spec.write_text(BAD)
    monkeypatch.setattr(watching.time, "sleep", stop)
    assert run("check", spec, "--watch")[0] == 1


def test_a_picture_that_is_there_already_is_kept(run: Run, spec: Path) -> None:
    spec.write_text(WARNED)
    Path("a.svg").write_text("mine")
    code, _, err = run("check", spec, "--watch", "--draw", "a.svg")
    assert (code, Path("a.svg").read_text()) == (2, "mine")
    assert err.startswith("BG902 ")


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent otherwise there")
def test_a_real_process_sees_a_real_save_and_ends_with_ctrl_c(spec: Path) -> None:
    import signal

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        pytest.skip("Ctrl-C is ignored by whatever started the tests, and so by every process that they start")
    spec.write_text(BAD)
    command = [sys.executable, "-m", "blockgraph", "check", str(spec), "--watch", "--format", "concise"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as one:
        try:
            assert one.stdout is not None
            assert "BG101" in one.stdout.readline()
            time.sleep(0.5)
            write_file(str(spec), lambda file: file.write(WARNED.encode()), force=True)  # never seen half written
            assert "BG201" in one.stdout.readline()
            time.sleep(0.5)
            one.send_signal(signal.SIGINT)
            assert one.wait(10) == 0
        finally:
            one.kill()


# Colours


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("settings", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_are_for_a_terminal_and_never_with_no_color(
    spec: Path, settings: dict[str, str], colored: bool
) -> None:
    import pty

    spec.write_text(BAD)
    outer, inner = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm", **settings}
    subprocess.run([sys.executable, "-m", "blockgraph", "check", str(spec)], stderr=inner, env=environment, check=False)
    os.close(inner)
    text = os.read(outer, 100_000).decode()
    os.close(outer)
    assert "BG101" in text
    assert ("\x1b[" in text) == colored


def test_a_pipe_gets_no_colours_in_any_format(run: Run, spec: Path) -> None:
    spec.write_text(BAD)
    for form in ("full", "concise", "json", "github", "sarif"):
        assert "\x1b" not in "".join(run("check", spec, "--format", form)[1:])


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "utf-16"])
@pytest.mark.parametrize("form", ["full", "concise", "github", "sarif"])
def test_any_encoding_of_the_console_is_enough(spec: Path, encoding: str, form: str) -> None:
    spec.write_text(BAD.replace("dims:", "name: größe → 😀\ndims:").replace("ff(x)", "ff(ü)"), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "blockgraph", "check", str(spec), "--format", form]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


# Codes, starters, hooks


def test_the_table_of_codes_has_a_row_for_each_page(run: Run) -> None:
    code, out, err = run("explain", "--codes")
    assert (code, out, err) == (0, codes_table(), "")
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in out.splitlines()]
    assert rows[0] == ["code", "name", "severity", "what it means"]
    assert [row[0] for row in rows[2:]] == list(codes())
    assert {len(row) for row in rows} == {4}
    assert ["BG203", "unused-value", "warning"] in [row[:3] for row in rows]


def test_the_table_in_the_docs_is_the_one_that_explain_makes() -> None:
    shown = (ROOT / "blockgraph" / "codes" / "README.md").read_text(encoding="utf-8")
    assert shown == codes_table(), "write it anew: python -m blockgraph explain --codes > blockgraph/codes/README.md"


def test_the_table_and_a_topic_are_two_questions(run: Run) -> None:
    code, _, err = run("explain", "--codes", "BG101")
    assert (code, "--codes is about all codes" in err) == (2, True)


@pytest.mark.parametrize("name", starters())
def test_a_new_spec_is_clean_runs_and_has_comments(run: Run, spec: Path, name: str) -> None:
    code, out, err = run("new", "my-block", "--from", name)
    assert (code, out) == (0, "")
    assert err == "wrote my-block.yaml\nwrote blockgraph.schema.json\nnext: blockgraph check my-block.yaml\n"
    program = bg.compile("my-block.yaml")
    assert (program.spec.name, program.findings) == ("my_block", ())
    program(*program.sample(0, T=4))
    lines = Path("my-block.yaml").read_text().splitlines()
    assert lines[0] == "# yaml-language-server: $schema=blockgraph.schema.json"
    assert sum("#" in line for line in lines) >= 5
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("name", sorted({*starters()} & {path.stem for path in (ROOT / "specs").glob("*.yaml")}))
def test_a_starter_is_wired_as_the_spec_of_its_name(name: str) -> None:
    text = starter(name).replace("NAME", name)
    assert same_graph(bg.compile(text).graph, bg.compile(ROOT / "specs" / f"{name}.yaml").graph)


def test_new_keeps_a_file_that_is_there_unless_it_is_forced(run: Run, spec: Path) -> None:
    spec.write_text("mine")
    code, _, err = run("new", "spec")
    assert (code, spec.read_text()) == (2, "mine")
    assert err.startswith("BG902 ")
    Path("blockgraph.schema.json").write_text("{}")
    code, _, err = run("new", "spec", "--force")
    assert (code, err.splitlines()[0]) == (0, "wrote spec.yaml")
    assert bg.check(spec).ok
    assert Path("blockgraph.schema.json").read_text() == "{}"


def test_new_tells_a_misspelt_starter(run: Run, spec: Path) -> None:
    code, _, err = run("new", "spec", "--from", "prenorm")
    assert (code, spec.exists()) == (2, False)
    assert "there is no starter prenorm; did you mean pre_norm?" in err


def test_the_hooks_call_the_program_with_options_it_has(run: Run, spec: Path) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {hook["id"] for hook in hooks} == {"blockgraph-check", "blockgraph-fix"}
    for hook in hooks:
        assert {"id", "name", "entry", "language", "files"} <= set(hook)
        assert re.search(hook["files"], "specs/models/gpt2.yaml")
        assert re.search(hook["files"], "specs/a.json")
        assert not re.search(hook["files"], "notspecs/a.yaml")
        program, *words = hook["entry"].split()
        assert program == "blockgraph"
        spec.write_text(WARNED)
        assert run(*words, spec, STACK)[0] == 0
