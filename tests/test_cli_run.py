"""`run`: the numbers it prints, where arrays come from and go to, and what is said about files that are damaged."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.report import Console
from blockgraph.tables import Column, real, table
from tests.test_cli import ROOT, SPEC, STACK, Run, run

__all__ = ["run"]

LESSON = ["--seed", "42", "--batch", "1", "--time", "6"]
TWO = """\
dims: {C: 8, V: 11, N: 2}
blocks:
  block: {norm: layer_norm, placement: pre, sublayers: [{kind: linear}]}
model:
  inputs: {x: [B, T, C], memory: [B, S, C]}
  parts: {layers: {kind: stack, of: block, repeat: N}}
  equations: |
    y = layers(x * 2)
    total = sum(memory, "b s c -> b 1 1")
    x = y * total
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    return path


def answer(run: Run, *words: object, code: int = 0) -> dict[str, Any]:
    found, out, err = run("run", *words, "--format", "json")
    assert (found, err) == (code, "")
    document: dict[str, Any] = json.loads(out)
    return document


def test_the_lessons_block_gives_the_lessons_numbers(run: Run) -> None:
    document = answer(run, SPEC, *LESSON)
    assert set(document) == {"ok", "findings", "outputs", "steps", "layers"}
    (output,) = document["outputs"].values()
    assert set(output) == {"shape", "symbolic", "rms", "head"}
    assert (output["shape"], output["symbolic"]) == ([1, 6, 64], "(B, T, C)")
    assert output["head"] == pytest.approx([0.33221701, -1.02497887, 0.70886567, 0.93717745], abs=5e-9)
    assert document["layers"] == []


def test_steps_are_those_of_the_main_module_and_measured_in_full_precision(run: Run) -> None:
    document = answer(run, SPEC, *LESSON)
    program = bg.compile(Path(SPEC))
    trace = program.trace(*program.sample(42, B=1, T=6))
    names = [step["name"] for step in document["steps"]]
    assert names == ["x.1", "norm1", "attention", "x.2", "norm2", "feed_forward", "x.3"]
    for step in document["steps"]:
        array = trace[step["name"]]
        assert (step["shape"], step["symbolic"]) == (list(array.shape), "(B, T, C)")
        assert step["rms"] == pytest.approx(np.sqrt(np.mean(array**2)), rel=1e-14)


def test_the_layers_of_a_stack_start_with_its_input(run: Run) -> None:
    layers = answer(run, STACK, *LESSON)["layers"]
    assert [layer["name"] for layer in layers] == ["x.1", *(f"layers.{index}" for index in range(6))]
    assert [round(layer["rms"], 4) for layer in layers] == [0.9526, 0.9530, 0.9522, 0.9522, 0.9507, 0.9519, 0.9522]


def test_a_stacks_input_without_a_name_of_its_own_is_measured_too(run: Run, two: Path) -> None:
    layers = answer(run, two, *LESSON)["layers"]
    x = np.random.default_rng(42).standard_normal((1, 6, 8))
    assert len(layers) == 3
    assert layers[0]["rms"] == pytest.approx(np.sqrt(np.mean((2 * x) ** 2)), rel=1e-12)


def test_the_table_has_a_row_per_step_and_fits_80_columns(run: Run) -> None:
    code, out, err = run("run", SPEC, *LESSON)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    rows = [line.split() for line in out.splitlines() if "(1, 6, 64)" in line]
    assert [row[0] for row in rows] == ["x.1", "norm1", "attention", "x.2", "norm2", "feed_forward", "x.3"]
    assert " ".join(rows[3]) == "x.2 x + attention(norm1(x)) add (B, T, C) (1, 6, 64) 0.9521"
    assert out.endswith("\nx begins with 0.33221701 -1.02497887 0.70886567 0.93717745\n")


def test_the_table_of_a_stack_has_a_row_per_layer_in_running_order(run: Run) -> None:
    _, out, _ = run("run", STACK, *LESSON)
    rows = [line.split()[0] for line in out.splitlines() if "(1, 6, 64)" in line]
    assert rows == ["x.1", *(f"layers.{index}" for index in range(6)), "layers", "x.2"]


@pytest.mark.parametrize("form", ["full", "json"])
def test_the_same_command_twice_prints_the_same_bytes(run: Run, form: str) -> None:
    assert run("run", STACK, "--format", form) == run("run", STACK, "--format", form)


def test_batch_and_time_are_short_for_set(run: Run) -> None:
    short_form = run("run", SPEC, "--batch", "3", "--time", "5", "--format", "json")
    assert short_form == run("run", SPEC, "--set", "B=3", "--set", "T=5", "--format", "json")
    assert json.loads(short_form[1])["outputs"]["x"]["shape"] == [3, 5, 64]


def test_free_sizes_are_2_and_8_unless_they_are_set(run: Run, two: Path) -> None:
    document = answer(run, two, "--set", "S=3")
    assert document["outputs"]["x"]["shape"] == [2, 8, 8]


def test_float32_computes_in_float32(run: Run) -> None:
    program = bg.compile(Path(SPEC))
    y = program(*program.sample(42, "float32", B=1, T=6))
    assert y.dtype == np.float32
    head = answer(run, SPEC, *LESSON, "--dtype", "float32")["outputs"]["x"]["head"]
    assert head == [float(number) for number in y[0, 0, :4]]


# Given arrays


def test_a_given_input_leaves_the_parameters_of_a_seed_as_they_are(run: Run, tmp_path: Path) -> None:
    drawn = np.random.default_rng(42).standard_normal((1, 6, 64))
    np.save(tmp_path / "x.npy", drawn)
    given = answer(run, SPEC, "--seed", 42, "--input", tmp_path / "x.npy")
    assert given["outputs"] == answer(run, SPEC, *LESSON)["outputs"]


def test_one_of_several_inputs_can_be_given_by_name(run: Run, two: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.ones((3, 4, 8)))
    document = answer(run, two, "--input", f"memory={tmp_path / 'm.npy'}")
    steps = {step["name"]: step for step in document["steps"]}
    assert document["outputs"]["x"]["shape"] == [3, 8, 8]
    assert steps["total"]["rms"] == 32


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.npy"], "there are 2 inputs, and `x.npy` does not say which it is"),
        (["memry=x.npy"], "there is no input `memry`"),
        (["x=x.npy", "--input", "x=x.npy"], "the input `x` is given twice"),
    ],
)
def test_an_input_must_say_which_it_is(
    run: Run, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((1, 6, 8)))
    (finding,) = answer(run, two, "--input", *words, code=1)["findings"]
    assert (finding["code"], finding["message"]) == ("BG302", message)


def test_an_input_of_another_shape_is_a_finding_with_both_shapes(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 6, 63)))
    code, out, err = run("run", SPEC, "--input", tmp_path / "x.npy")
    assert (code, out) == (1, "")
    assert "(B, T, C) with C = 64, and the array has shape (1, 6, 63)" in err


def test_parameters_come_from_a_file_of_named_arrays(run: Run, tmp_path: Path) -> None:
    program = bg.compile(Path(SPEC))
    x, params = program.sample(42, B=1, T=6)
    np.savez(tmp_path / "p.npz", **{name: 0 * array for name, array in params.items()})
    np.save(tmp_path / "x.npy", x)
    document = answer(run, SPEC, "--params", tmp_path / "p.npz", "--input", tmp_path / "x.npy")
    assert document["outputs"]["x"]["head"] == x[0, 0, :4].tolist()


def test_parameters_that_are_missing_are_named(run: Run, tmp_path: Path) -> None:
    params = bg.compile(Path(SPEC)).init(0)
    del params["attention.Wq"]
    np.savez(tmp_path / "p.npz", **params)
    (finding,) = answer(run, SPEC, "--params", tmp_path / "p.npz", code=1)["findings"]
    assert finding["code"] == "BG301"
    assert "attention.Wq" in finding["message"]


def test_every_named_value_can_be_saved(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "trace.npz"
    code, _, err = run("run", STACK, *LESSON, "--save-trace", target)
    program = bg.compile(Path(STACK))
    trace = program.trace(*program.sample(42, B=1, T=6))
    assert (code, err) == (0, f"wrote {target}: {len(trace)} arrays\n")
    with np.load(target) as saved:
        assert set(saved.files) == set(trace)
        assert all(np.array_equal(saved[name], trace[name]) for name in trace)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.npz"]


def test_a_trace_that_is_there_is_kept_unless_forced(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "trace.npz"
    target.write_bytes(b"mine")
    code, out, err = run("run", SPEC, "--save-trace", target)
    assert (code, out, target.read_bytes()) == (2, "", b"mine")
    assert err.startswith("BG902 ")
    code, _, _ = run("run", SPEC, "--save-trace", target, "--force")
    first = target.read_bytes()
    assert run("run", SPEC, "--save-trace", target, "--force")[0] == code == 0
    assert first == target.read_bytes() != b"mine"


def test_a_trace_that_cannot_be_written_leaves_nothing(run: Run, tmp_path: Path) -> None:
    code, _, err = run("run", SPEC, "--save-trace", tmp_path / "no" / "trace.npz")
    assert code == 2
    assert "BG903" in err
    assert list(tmp_path.iterdir()) == []


# Damaged files


def whole(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "npy":
        np.save(file, np.ones((1, 6, 64)))
    else:
        np.savez(file, a=np.ones(3), b=np.zeros((2, 2)))
    return file.getvalue()


@pytest.mark.parametrize("kind", ["npy", "npz"])
@pytest.mark.parametrize("part", [0.0, 0.002, 0.01, 0.1, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_a_finding(run: Run, tmp_path: Path, kind: str, part: float) -> None:
    path = tmp_path / f"cut.{kind}"
    content = whole(kind)
    path.write_bytes(content[: int(part * len(content))])
    code, out, err = run("run", SPEC, "--input" if kind == "npy" else "--params", path)
    assert (code, out) == (1, "")
    assert err.startswith(f"{'BG304' if kind == 'npy' else 'BG310'} {path}:1:1  cannot use {path}: ")


@pytest.mark.parametrize("at", range(0, 128, 3))
def test_a_header_with_a_wrong_byte_is_never_more_than_a_finding(run: Run, tmp_path: Path, at: int) -> None:
    content = bytearray(whole("npy"))
    content[at] ^= 0x15
    (tmp_path / "x.npy").write_bytes(content)
    code, _, err = run("run", SPEC, "--input", tmp_path / "x.npy")
    assert code in (0, 1)
    assert "BG9" not in err


def test_a_header_that_claims_more_than_there_is_takes_no_memory(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(2))
    content = (tmp_path / "x.npy").read_bytes().replace(b"(2,), }          ", b"(9000000000000,),}")
    (tmp_path / "x.npy").write_bytes(content)
    (finding,) = answer(run, SPEC, "--input", tmp_path / "x.npy", code=1)["findings"]
    assert finding["code"] == "BG304"


def test_an_array_of_python_objects_is_refused_and_not_run(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}, print], dtype=object), allow_pickle=True)
    (finding,) = answer(run, SPEC, "--input", tmp_path / "x.npy", code=1)["findings"]
    assert finding["code"] == "BG304"
    assert finding["message"].endswith("it holds Python objects, which can run code")


@pytest.mark.parametrize("array", [np.array(["a"]), np.ones(2, dtype=complex), np.zeros(2, dtype="M8[s]")])
def test_an_array_of_something_else_than_numbers_is_refused(run: Run, tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "x.npy", array)
    (finding,) = answer(run, SPEC, "--input", tmp_path / "x.npy", code=1)["findings"]
    assert finding["code"] == "BG304"
    assert finding["message"].endswith("the array does not hold numbers")


def test_one_array_is_no_set_of_parameters_and_the_other_way_round(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(whole("npy"))
    (tmp_path / "a.npz").write_bytes(whole("npz"))
    (one,) = answer(run, SPEC, "--params", tmp_path / "a.npy", code=1)["findings"]
    (many,) = answer(run, SPEC, "--input", tmp_path / "a.npz", code=1)["findings"]
    assert one["message"].endswith("it holds one array without a name")
    assert many["message"].endswith("it holds several arrays")


def test_a_zip_with_something_else_in_it_is_a_finding(run: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    (finding,) = answer(run, SPEC, "--params", tmp_path / "p.npz", code=1)["findings"]
    assert finding["code"] == "BG310"


@pytest.mark.parametrize("option", ["--input", "--params"])
def test_a_file_that_cannot_be_opened_exits_with_2(run: Run, tmp_path: Path, option: str) -> None:
    for path in (tmp_path / "no.npy", tmp_path):
        code, out, err = run("run", SPEC, option, path)
        assert (code, out) == (2, "")
        assert err.startswith(f"BG901 {path}:1:1  cannot open {path}: ")


# What cannot be run, and what went wrong while running


def test_a_spec_with_an_error_does_not_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("block: {equations: y = x + z}\n")
    document = answer(run, tmp_path / "bad.yaml", code=1)
    assert not document["ok"]
    assert [finding["code"] for finding in document["findings"]] == ["BG025"]


def test_a_size_without_a_number_is_asked_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "free.yaml").write_text("dims: {C: }\nblock: {parts: {f: linear}, equations: x = f(x)}\n")
    code, out, err = run("run", tmp_path / "free.yaml")
    assert (code, out) == (1, "")
    assert "BG038" in err
    assert "--set C=64" in err
    assert run("run", tmp_path / "free.yaml", "--set", "C=64")[0] == 0


def test_sizes_beyond_the_machine_are_refused_before_anything_is_drawn(run: Run) -> None:
    code, out, err = run("run", SPEC, "--set", "C=2000000000")
    assert (code, out) == (2, "")
    # 12*C**2 + 9*C parameters, 8 bytes each
    assert f"{8 * (12 * 2_000_000_000**2 + 9 * 2_000_000_000):,} for parameters" in err
    assert "the largest tensor is feed_forward.W1, 128,000,000,000,000,000,000 bytes" in err


def test_numbers_that_overflow_are_an_error_at_the_first_step(run: Run, tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("block:\n  equations: |\n    y = exp(exp(exp(x + 9)))\n    z = y - y\n")
    document = answer(run, tmp_path / "big.yaml", "--set", "C=4", code=1)
    (finding,) = document["findings"]
    assert (finding["code"], finding["severity"], finding["range"]["start"]["line"]) == ("BG402", "error", 3)
    assert document["outputs"]["z"]["rms"] is None


def test_an_output_without_axes_and_one_of_whole_numbers_have_a_head(run: Run, tmp_path: Path) -> None:
    inputs = "inputs: {x: [B, T], n: {ids: [B, T], below: 5}}"
    (tmp_path / "s.yaml").write_text(f'block:\n  {inputs}\n  outputs: [s, n]\n  equations: s = sum(x, "b t -> ")\n')
    outputs = answer(run, tmp_path / "s.yaml", "--set", "B=1", "--set", "T=3")["outputs"]
    rng = np.random.default_rng(0)
    x, n = rng.standard_normal((1, 3)), rng.integers(0, 5, (1, 3))
    assert (outputs["s"]["shape"], outputs["s"]["head"]) == ([], [pytest.approx(x.sum())])
    assert outputs["n"]["head"] == n[0].tolist()
    assert run("run", tmp_path / "s.yaml")[0] == 0


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.95263, "0.9526"),
        (0.0, "0.0000"),
        (1e-5, "1.000e-05"),
        (1e-3, "0.0010"),
        (2.5e7, "2.500e+07"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_is_shown_with_four_decimals_or_an_exponent(number: float, text: str) -> None:
    assert real(number) == text


# Tables


def test_a_cell_is_never_markup_and_never_steers_the_terminal() -> None:
    text = table([Column("a"), Column("b")], [["[bold]x[/bold]", "\x1b[2J:smile:"]], Console(color=True))
    assert "[bold]x[/bold]" in text
    assert "\\x1b[2J:smile:" in text


def test_columns_keep_their_width_and_only_those_that_wrap_break() -> None:
    rows = [["a" * 30, "one two three four five six seven", "1.5"]]
    lines = table(
        [Column("name"), Column("words", wrap=True), Column("n", right=True)], rows, Console(), 50
    ).splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[2].startswith("a" * 30)
    assert lines[2].endswith("1.5")
    assert " ".join(" ".join(lines[2:]).split()) == f"{'a' * 30} one two three 1.5 four five six seven"


def test_every_spec_of_the_repository_runs(run: Run) -> None:
    for path in sorted((ROOT / "specs").glob("*.yaml")):
        document = answer(run, path, "--batch", 1, "--time", 3)
        assert all(output["rms"] > 0 for output in document["outputs"].values()), path
