"""`gradcheck`: right gradients pass, a wrong sign is found where it is, kinks are left out, large specs are shrunk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.gradcheck import GradientCheck, Row, stirred
from blockgraph.ops.activations import GeluTanh
from blockgraph.ops.norms import LayerNorm
from blockgraph.resize import with_depth
from blockgraph.shrink import is_large, shrink, sizes_for
from tests.test_cli import ROOT, Run, run

__all__ = ["run"]

SPECS = ROOT / "specs"
SMALL = "specs/pre_norm.yaml"
SIZES = ["--set", "C=8", "--set", "H=2", "--time", "3"]
RELU = "dims: {C: 4}\nblock:\n  equations: y = x + relu(x)\n"


def checked(program: bg.Program, x: Any, params: dict[str, Any], **options: Any) -> dict[str, Row]:
    return {row.name: row for row in GradientCheck(program.flat, program.tape(x, params), **options).rows()}


def answer(run: Run, *words: object, code: int = 0) -> dict[str, Any]:
    found, out, _ = run("gradcheck", *words, "--format", "json")
    assert found == code
    document: dict[str, Any] = json.loads(out)
    return document


@pytest.mark.parametrize("path", sorted((SPECS / "layouts").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_layout_has_right_gradients(path: Path) -> None:
    program, _ = shrink(bg.compile(path))
    x, params = program.sample(0, T=3)
    rows = checked(program, x, stirred(params, 0), directions=1, elements=1)
    assert rows.keys() >= params.keys()
    assert {name: row.error for name, row in rows.items() if not row.error < 1e-6} == {}


@pytest.mark.parametrize("path", sorted((SPECS / "models").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_model_shrinks_and_has_right_gradients(path: Path) -> None:
    large = bg.compile(path)
    assert is_large(large)
    program, changes = shrink(large)
    assert changes
    assert not is_large(program) or path.stem in ("gpt_neox",)
    x, params = program.sample(0, **sizes_for(program))
    rows = checked(program, x, stirred(params, 0), directions=1, elements=0)
    assert {name: row.error for name, row in rows.items() if not row.error < 1e-6} == {}


def test_a_flipped_sign_fails_for_what_stands_before_it_and_only_that(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    slope = GeluTanh.slope
    monkeypatch.setattr(GeluTanh, "slope", lambda self, y, x: -slope(self, y, x))
    document = answer(run, SMALL, *SIZES, code=1)
    wrong = {one["name"] for one in document["tensors"] if not one["ok"]}
    behind = {"feed_forward.W2", "feed_forward.b2"}
    assert wrong == {one["name"] for one in document["tensors"]} - behind
    (finding,) = document["findings"]
    assert finding["code"] == "BG404"
    assert "11 of 13 gradients differ" in finding["message"]


def test_one_wrong_element_is_found_by_a_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    backward = LayerNorm.backward

    def wrong(self: LayerNorm, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        dx, dgamma, dbeta = backward(self, dy, y, *arrays)
        dgamma = dgamma.copy()
        dgamma[3] *= 1.001
        return dx, dgamma, dbeta

    monkeypatch.setattr(LayerNorm, "backward", wrong)
    program = bg.compile(SPECS / "pre_norm.yaml", C=8, H=2)
    x, params = program.sample(0, T=3)
    rows = checked(program, x, stirred(params, 0), elements=0)
    assert {name for name, row in rows.items() if row.error > 1e-6} == {"norm1.gamma", "norm2.gamma"}


def test_elements_at_a_kink_are_listed_as_skipped_and_the_check_passes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "relu.yaml").write_text(RELU)
    np.save(tmp_path / "x.npy", np.array([[[0, 1e-9, 1.0, -2.0], [0.5, 0.2, -0.3, 4.0]]]))
    document = answer(run, tmp_path / "relu.yaml", "--input", tmp_path / "x.npy", "--elements", 8)
    (tensor,) = document["tensors"]
    assert tensor["ok"]
    assert sorted(one["index"] for one in tensor["skipped"]) == [[0, 0, 0], [0, 0, 1]]
    assert {one["at"] for one in tensor["skipped"]} == {"relu"}
    assert tensor["checks"] == 2 + 6
    code, out, err = run("gradcheck", tmp_path / "relu.yaml", "--input", tmp_path / "x.npy")
    assert (code, err) == (0, "")
    assert "skipped: x [0, 0, 1], closer than the step to a kink of relu" in out


def test_the_slope_of_relu_at_zero_is_zero() -> None:
    program = bg.compile(RELU.replace("x + relu(x)", "1*relu(x)"))
    dx, _ = program.grad(np.zeros((1, 1, 4)), {})
    assert not dx.any()


def test_a_tensor_that_moves_a_hidden_kink_is_skipped_as_a_whole() -> None:
    program = bg.compile("dims: {C: 300}\nblock:\n  params: {b: [C]}\n  equations: y = relu(x*0 + b)\n")
    rows = checked(program, np.ones((1, 1, 300)), {"b": np.zeros(300)})
    assert rows["b"].checks == 0
    assert [one.index for one in rows["b"].skipped] == [None]
    assert rows["x"].checks


def test_a_choice_that_a_step_would_change_is_a_kink() -> None:
    text = 'dims: {C: 3}\nblock:\n  equations: y = max(x, "b t c -> b t 1")\n'
    rows = checked(bg.compile(text), np.array([[[1.0, 1.0 + 1e-9, 0.0]]]), {}, elements=3)
    assert sorted(one.index for one in rows["x"].skipped) == [(0, 0, 0), (0, 0, 1)]
    assert rows["x"].error < 1e-6


KINKS = {
    "abs": ("y = abs(x)", [0.0, 1.0, -2.0], [(0, 0, 0)]),
    "compare": ("y = where(x > 0.5, x, 2*x)", [0.5 + 1e-9, 1.0, -2.0], [(0, 0, 0)]),
    "min": ('y = min(x, "b t c -> b t 1")', [3.0, 1.0, 1.0], [(0, 0, 1), (0, 0, 2)]),
    "top_k": ("y, i = top_k(x, 2)", [0.5, 0.25, 0.25 + 1e-9], [(0, 0, 1), (0, 0, 2)]),
}


@pytest.mark.parametrize("name", KINKS)
def test_ops_that_have_a_kink_say_on_which_side_they_are(name: str) -> None:
    equations, x, expected = KINKS[name]
    head = "  outputs: [y, i]\n" if name == "top_k" else ""
    program = bg.compile(f"dims: {{C: 3}}\nblock:\n{head}  equations: |\n    {equations}\n")
    rows = checked(program, np.array([[x]]), {}, elements=3)
    assert sorted(one.index for one in rows["x"].skipped) == expected
    assert {one.at for one in rows["x"].skipped} == {name}
    assert rows["x"].error < 1e-6


def test_everything_is_float64_whatever_is_given(run: Run, tmp_path: Path) -> None:
    program = bg.compile(SPECS / "pre_norm.yaml", C=8, H=2)
    x, params = program.sample(0, dtype="float32", T=3)
    np.savez(tmp_path / "p.npz", **params)
    np.save(tmp_path / "x.npy", x)
    words = [SMALL, "--set", "C=8", "--set", "H=2", "--params", tmp_path / "p.npz", "--input", tmp_path / "x.npy"]
    document = answer(run, *words)
    assert document["worst"] < 1e-6
    assert document["tensors"][0]["shape"] == [2, 3, 8]


def test_a_large_spec_is_shrunk_and_the_report_says_so(run: Run) -> None:
    document = answer(run, "specs/models/gpt2.yaml", "--directions", 1, "--elements", 0)
    assert document["shrunk"]["N"] == [12, 2]
    assert document["shrunk"]["C"] == [768, 8]
    code, out, _ = run("gradcheck", "specs/models/gpt2.yaml", "--directions", 1, "--elements", 0)
    assert code == 0
    assert "shrunk for the check: C 768 -> 8" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_a_size_that_is_set_stays_when_a_spec_is_shrunk(run: Run) -> None:
    words = ["specs/pre_norm_stack.yaml", "--set", "C=12", "--directions", 1, "--elements", 0]
    document = answer(run, *words)
    assert document["shrunk"] == {"H": [4, 2], "N": [6, 2]}


def test_full_checks_a_spec_in_its_own_sizes(run: Run) -> None:
    words = ["specs/pre_norm_stack.yaml", "--set", "C=4", "--set", "H=1", "--directions", 1, "--elements", 0, "--full"]
    document = answer(run, *words)
    assert document["shrunk"] == {}
    assert any(one["name"].startswith("layers.5.") for one in document["tensors"])


def test_shrinking_keeps_groups_windows_and_every_layer_of_a_pattern() -> None:
    gemma, _ = shrink(bg.compile(SPECS / "models" / "gemma2.yaml"))
    numbers = gemma.graph.dims
    assert numbers["H"] > numbers["G"]
    windows = {getattr(node.op, "window", None) is not None for node in gemma.flat.nodes if node.op.name == "attend"}
    assert windows == {True, False}
    assert sizes_for(gemma)["T"] > numbers["W"]
    mixed, _ = shrink(bg.compile(SPECS / "layouts" / "mix_ln.yaml"))
    assert mixed.graph.dims["N"] == 4


def test_depth_is_a_dim_a_number_or_a_stack_of_the_block_itself() -> None:
    assert with_depth(bg.compile(SPECS / "pre_norm_stack.yaml"), 3).graph.dims["N"] == 3
    one = with_depth(bg.compile(SPECS / "pre_norm.yaml", C=8, H=2), 3)
    two = bg.compile(SPECS / "pre_norm_stack.yaml", C=8, H=2, N=3)
    x, params = one.sample(4)
    assert np.array_equal(x, two.sample(4)[0])
    assert list(params) == list(two.parameters)
    assert np.array_equal(one(x, params), two(x, params))
    text = (SPECS / "pre_norm_stack.yaml").read_text().replace("repeat: N", "repeat: 2").replace(", N: 6", "")
    written = with_depth(bg.compile(text), 5)
    assert len([name for name in written.parameters if name.endswith("attention.Wq")]) == 5


def test_a_depth_that_a_spec_cannot_have_is_refused() -> None:
    with pytest.raises(bg.InputError, match=r"runs of layers that do not make 3|divide"):
        with_depth(bg.compile(SPECS / "layouts" / "mix_ln.yaml"), 3)
    text = "dims: {C: 4}\nblock:\n  parts: {f: {kind: linear, out: 2*C}}\n  equations: y = f(x)\n"
    with pytest.raises(bg.InputError, match="has no stack, and its output cannot be its own input"):
        with_depth(bg.compile(text), 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rtol", "0"], "a positive number such as 1e-6 is expected, not '0'"),
        (["--directions", "0", "--elements", "0"], "leave nothing to check"),
        (["--dtype", "float32"], "there is no option --dtype"),
    ],
)
def test_options_that_make_no_sense_end_with_2(run: Run, words: list[str], message: str) -> None:
    code, out, err = run("gradcheck", SMALL, *words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_parameters_that_are_no_numbers_are_refused_by_name(value: float, run: Run, tmp_path: Path) -> None:
    params = bg.compile(ROOT / SMALL, C=8, H=2).init(0)
    params["feed_forward.W1"][3, 4] = value
    np.savez(tmp_path / "w.npz", **params)
    code, out, err = run("gradcheck", SMALL, *SIZES, "--params", tmp_path / "w.npz")
    assert (code, out) == (1, "")
    assert "BG402 specs/pre_norm.yaml:1:1  the parameter `feed_forward.W1` holds infinity" in err
    assert err.count("BG4") == 1


def test_a_run_that_overflows_is_told_by_its_first_step_and_not_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "block:\n  params: {w: {shape: [], init: 1}}\n  equations: y = exp(1e4 * w + x*x)\n"
    )
    code, out, err = run("gradcheck", tmp_path / "s.yaml")
    assert (code, out) == (1, "")
    assert err.count("BG402") == 1
    assert "`y` holds infinity" in err


def test_a_spec_with_findings_is_not_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("dims: {C: 4}\nblock:\n  equations: y = z\n")
    code, out, err = run("gradcheck", tmp_path / "bad.yaml")
    assert (code, out) == (1, "")
    assert "`z`" in err
