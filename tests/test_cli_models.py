"""Whole models on the command line: checkpoints, memory, comparisons and what nobody sees."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from blockgraph.__main__ import main

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "conformance"
BLOCK = """
dims: {C: 8, H: 2, N: 24}
blocks:
  block:
    norm: layer_norm
    sublayers: [{kind: attention, heads: H}, {kind: feed_forward, hidden: 4*C, activation: relu}]
  other:
    norm: {kind: layer_norm, eps: EPS}
    sublayers: [{kind: attention, heads: H}, {kind: feed_forward, hidden: 4*C, activation: relu}]
model:
  parts:
    layers: {kind: stack, of: [{kind: block, repeat: 10}, {kind: other, repeat: 1}, {kind: block, repeat: 13}]}
    final_norm: layer_norm
  equations: |
    x = final_norm(layers(x))
"""


def answer(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> dict[str, object]:
    assert main([*map(str, words), "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_a_checkpoint_gives_the_sizes_and_the_logits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    io = load_file(DATA / "gpt2" / "io.safetensors")
    np.save(tmp_path / "ids.npy", io["input_ids"])
    words = (
        "run",
        ROOT / "specs/models/gpt2.yaml",
        "--checkpoint",
        DATA / "gpt2",
        "--input",
        f"tokens={tmp_path}/ids.npy",
    )
    document = answer(capsys, *words)
    assert document["outputs"]["logits"]["shape"] == [2, 11, 61]  # type: ignore[index]
    np.testing.assert_allclose(document["outputs"]["logits"]["head"], io["logits"][0, 0, :4], rtol=1e-9)  # type: ignore[index]


def test_a_model_that_does_not_fit_into_memory_is_refused_with_its_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(ROOT / "specs/models/mixtral.yaml"), "--dtype", "float32"]) == 2
    err = capsys.readouterr().err
    assert "BG904" in err
    assert "186,811,170,816 for parameters" in err


def test_max_memory_is_what_may_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    spec = str(ROOT / "specs/pre_norm.yaml")
    assert main(["run", spec, "--max-memory", "1K"]) == 2
    assert "1,000 are allowed" in capsys.readouterr().err
    assert main(["run", spec, "--max-memory", "10M"]) == 0


def test_compare_names_the_layer_where_two_runs_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, eps in (("a", "1e-5"), ("b", "1e-6")):
        (tmp_path / f"{name}.yaml").write_text(BLOCK.replace("EPS", eps))
    a, b = tmp_path / "a.yaml", tmp_path / "b.yaml"
    document = answer(capsys, "compare", a, b, code=1)
    first = document["first"]
    assert first["name"] == "layers.10.norm1"  # type: ignore[index]
    assert first["own"] == first["relative"] > 1e-7  # type: ignore[index]
    own = {one["name"]: one["own"] for one in document["differences"]}  # type: ignore[attr-defined]
    assert [name for name, value in own.items() if value != 0] == ["layers.10.norm1", "layers.10.norm2"]
    assert "layers.22" in own


def test_compare_with_a_saved_trace_and_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "a.yaml"
    spec.write_text(BLOCK.replace("EPS", "1e-5"))
    assert main(["run", str(spec), "--save-trace", str(tmp_path / "trace.npz")]) == 0
    capsys.readouterr()
    assert main(["compare", str(spec), str(tmp_path / "trace.npz")]) == 0
    assert capsys.readouterr().out.startswith("no difference in ")
    assert main(["compare", str(spec), str(spec)]) == 0


def test_two_runs_that_hold_no_numbers_in_the_same_places_are_not_simply_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "a.yaml"
    spec.write_text("block:\n  equations: |\n    h = x * x\n    y = h + 1\n    z = y / (y - y)\n")
    document = answer(capsys, "compare", spec, spec, code=1)
    (finding,) = document["findings"]  # type: ignore[misc]
    assert (finding["code"], finding["range"]["start"]["line"]) == ("BG402", 5)
    assert finding["message"].startswith("`z` holds infinity or values that are no numbers in both runs")
    assert (document["ok"], document["first"]) == (False, None)


@pytest.mark.parametrize(("at", "value"), [((0, 0, 1), np.nan), ((0, 0, 0), -np.inf)])
def test_infinity_in_another_place_or_of_another_sign_is_a_difference(
    at: tuple[int, ...], value: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, x = tmp_path / "a.yaml", np.ones((1, 2, 3))
    spec.write_text("block: {equations: y = 2*x}\n")
    x[0, 0, 0] = np.inf
    np.save(tmp_path / "x.npy", x)
    other = 2 * np.ones((1, 2, 3))
    other[at] = value
    np.savez(tmp_path / "trace.npz", y=other)
    document = answer(
        capsys, "compare", spec, tmp_path / "trace.npz", "--input", tmp_path / "x.npy", "--rtol", 0.5, code=1
    )
    assert document["first"]["name"] == "y"  # type: ignore[index]
    (finding,) = document["findings"]  # type: ignore[misc]
    assert finding["message"].startswith("`y` holds infinity or values that are no numbers in both runs")


def test_rows_that_see_nothing_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
dims: {C: 8, H: 2}
block:
  inputs: {x: [B, T, C], keep: {bool: [B, T, T]}}
  norm: layer_norm
  sublayers: [{kind: attention, heads: H, with: [keep]}]
"""
    (tmp_path / "s.yaml").write_text(text)
    keep = np.ones((1, 4, 4), dtype=bool)
    keep[0, 1] = False
    np.save(tmp_path / "keep.npy", keep)
    words = ("run", tmp_path / "s.yaml", "--batch", 1, "--time", 4, "--input", f"keep={tmp_path}/keep.npy")
    (note,) = answer(capsys, *words)["findings"]  # type: ignore[misc]
    assert (note["code"], note["severity"]) == ("BG403", "note")
    assert "(0, 1)" in note["message"]


@pytest.mark.parametrize("window", ["W", "W + T - 5"])
@pytest.mark.parametrize("command", ["run", "gradcheck"])
def test_a_window_that_is_a_dim_can_be_run(
    command: str, window: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"""
dims: {{C: 8, H: 2, W: 3}}
block:
  norm: layer_norm
  sublayers: [{{kind: attention, heads: H, mask: causal, window: {window}}}]
model:
  parts: {{layers: {{kind: stack, of: block, repeat: 2}}}}
  equations: y = layers(x)
"""
    (tmp_path / "s.yaml").write_text(text)
    assert answer(capsys, command, tmp_path / "s.yaml", "--batch", 1, "--time", 4)["findings"] == []


@pytest.mark.parametrize("command", ["run", "gradcheck"])
def test_a_window_without_a_number_is_told(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sublayer = "{kind: attention, heads: H, mask: causal, window: W}"
    (tmp_path / "s.yaml").write_text(
        f"dims: {{C: 8, H: 2, W: }}\nblock: {{norm: layer_norm, sublayers: [{sublayer}]}}\n"
    )
    (finding,) = answer(capsys, command, tmp_path / "s.yaml", code=1)["findings"]  # type: ignore[misc]
    assert (finding["code"], finding["message"]) == ("BG038", "`W` has no number")
