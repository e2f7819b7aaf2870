"""`probe`: what it reads off a run, held against NumPy by hand, and what it says about depth."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.cli import progress
from blockgraph.cli.commands.probe import told_apart
from blockgraph.cli.terminal import Terminal
from blockgraph.probe import Reading, measure, summarise
from blockgraph.resize import with_depth
from tests.test_cli import ROOT, Run, run

__all__ = ["run"]

SPECS = ROOT / "specs"
PRE, POST = "specs/pre_norm.yaml", "specs/post_norm.yaml"
SMALL = ["--set", "C=16", "--set", "H=2", "--time", "4", "--batch", "1", "--init", "xavier"]


def answer(run: Run, *words: object, code: int = 0) -> dict[str, Any]:
    found, out, _ = run("probe", *words, "--format", "json")
    assert found == code
    document: dict[str, Any] = json.loads(out)
    return document


def rms(x: Any) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def reading(program: bg.Program, x: Any, params: dict[str, Any], seed: int = 0) -> Reading:
    return measure(program.graph, program.flat, program.tape(x, params), seed)


LINEAR = """dims: {C: 3, N: 2}
blocks:
  b:
    parts: {f: linear}
    equations: |
      x = 0.5*x + f(x)
model:
  parts: {layers: {kind: stack, of: b, repeat: N}}
  equations: |
    x = layers(x)
"""


def test_streams_branches_and_gradients_are_those_of_a_linear_stack_by_hand() -> None:
    program = bg.compile(LINEAR)
    x, params = program.sample(3, B=1, T=1)
    first, second = (20 * params[f"layers.{layer}.f.W"] for layer in range(2))
    found = reading(program, x, {"layers.0.f.W": first, "layers.1.f.W": second}, seed=7)
    y = 0.5 * x + x @ first
    z = 0.5 * y + y @ second
    dz = np.random.default_rng([7, 1]).standard_normal(z.shape)
    dz /= np.linalg.norm(dz)
    dy = 0.5 * dz + dz @ second.T
    dx = 0.5 * dy + dy @ first.T
    assert found.layers == ("layers.0", "layers.1")
    assert found.stream == pytest.approx([rms(x), rms(y), rms(z)])
    assert found.branches == {"f": pytest.approx([rms(x @ first), rms(y @ second)])}
    assert found.ratios == {"f": pytest.approx([rms(x @ first) / rms(0.5 * x), rms(y @ second) / rms(0.5 * y)])}
    assert found.gradient == pytest.approx([np.linalg.norm(dx), np.linalg.norm(dy), 1.0])
    assert found.skip == pytest.approx([0.25, 0.5])
    shares = [np.vdot(0.5 * dy, dx) / np.vdot(dx, dx), np.vdot(0.5 * dz, dy) / np.vdot(dy, dy)]
    assert found.share == pytest.approx(shares)
    assert found.parameters["layers.1.f.W"] == pytest.approx(np.linalg.norm(np.outer(y, dz)))
    assert found.norms == 0


def test_a_norm_on_the_skip_path_is_counted_and_weakens_what_comes_along_it() -> None:
    program = with_depth(bg.compile(SPECS / "post_norm.yaml", C=8, H=2), 1)
    x, params = program.sample(0, B=1, T=1)
    params = {name: 10 * one if one.ndim > 1 else one for name, one in params.items()}
    found = reading(program, x, params, seed=5)
    trace = program.trace(x, params)
    dy = np.random.default_rng([5, 1]).standard_normal(x.shape)
    dy /= np.linalg.norm(dy)
    sums = [x + trace["layers.0.attention"], trace["layers.0.x.2"] + trace["layers.0.feed_forward"]]
    for value in sums[::-1]:  # the derivative of (v - mean) / sqrt(var + eps), as a matrix
        v = value.ravel()
        root = np.sqrt(v.var() + 1e-5)
        normed = (v - v.mean()) / root
        matrix = (np.eye(8) - 1 / 8 - np.outer(normed, normed) / 8) / root
        dy = (matrix.T @ dy.ravel()).reshape(dy.shape)
    assert found.norms == 2
    assert found.skip == pytest.approx([np.linalg.norm(dy)])


@pytest.mark.parametrize("path", sorted((SPECS / "layouts").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_layout_can_be_probed(path: Path) -> None:
    program = bg.compile(path, C=16)
    program = with_depth(program, 4)
    x, params = program.sample(0, B=1, T=3)
    found = reading(program, x, params)
    assert len(found.stream) == len(found.layers) + 1 >= 5
    assert all(number is not None and number > 0 for number in (*found.stream, *found.gradient))
    assert all(one is None or (a := found.share[i]) is None or np.isfinite(a) for i, one in enumerate(found.skip))
    assert found.parameters.keys() == params.keys()


def test_branches_are_named_after_the_part_that_works_whatever_stands_around_it() -> None:
    for name in ("pre_norm", "post_norm", "sandwich", "output_norm", "rezero", "layerscale", "parallel"):
        program = with_depth(bg.compile(SPECS / f"{name}.yaml", C=8, H=2), 1)
        x, params = program.sample(0, B=1, T=2)
        assert set(reading(program, x, params).branches) == {"attention", "feed_forward"}, name


def test_the_skip_path_of_pre_norm_stays_open_and_that_of_post_norm_closes_with_depth(run: Run) -> None:
    document = answer(run, PRE, POST, "--depth", "2,6,12,24,48", "--seeds", 3, *SMALL)
    assert document["ok"]
    probes = {(one["name"], one["depth"]): one for one in document["probes"]}
    assert set(probes) == {(name, depth) for name in ("pre_norm", "post_norm") for depth in (2, 6, 12, 24, 48)}
    for depth in (2, 6, 12, 24, 48):
        pre, post = (probes[name, depth] for name in ("pre_norm", "post_norm"))
        assert pre["norms_on_skip_path"] == 0
        assert post["norms_on_skip_path"] == 2 * depth
        assert pre["curves"]["skip"]["median"] == pytest.approx([1.0] * depth)
        assert len(pre["curves"]["stream"]["median"]) == depth + 1
    closing = [probes["post_norm", depth]["curves"]["skip"]["median"][0] for depth in (2, 6, 12, 24, 48)]
    assert closing == sorted(closing, reverse=True)
    assert closing[-1] < 1e-4 * closing[0]
    deep = {name: probes[name, 48]["curves"] for name in ("pre_norm", "post_norm")}
    assert deep["pre_norm"]["stream"]["median"][-1] > 3 * deep["pre_norm"]["stream"]["median"][0]
    assert deep["post_norm"]["stream"]["median"][-1] == pytest.approx(1, rel=1e-3)


def test_depth_overrides_the_stacks_repeat_and_numbers_made_of_it_follow(run: Run) -> None:
    words = ["specs/deepnorm.yaml", "--set", "C=8", "--set", "H=2", "--seeds", 1, "--depth"]
    few, many = (answer(run, *words, depth)["probes"][0] for depth in (2, 8))
    assert (len(few["layers"]), len(many["layers"])) == (2, 8)
    by_hand = [with_depth(bg.compile(SPECS / "deepnorm.yaml", C=8, H=2), depth) for depth in (2, 8)]
    assert [one.graph.dims["N"] for one in by_hand] == [2, 8]


def test_median_and_range_are_over_the_seeds(run: Run) -> None:
    (probe,) = answer(run, PRE, "--depth", 3, "--seeds", 3, "--seed", 5, *SMALL)["probes"]
    singles = [answer(run, PRE, "--depth", 3, "--seeds", 1, "--seed", seed, *SMALL)["probes"][0] for seed in (5, 6, 7)]
    rows = sorted(one["curves"]["gradient"]["median"][0] for one in singles)
    found = probe["curves"]["gradient"]
    assert [found["low"][0], found["median"][0], found["high"][0]] == rows
    assert rows[0] < rows[1] < rows[2]


def test_init_draws_the_matrices_in_another_way(run: Run) -> None:
    words = [PRE, "--depth", 1, "--seeds", 1, "--set", "C=16", "--set", "H=2"]
    small, large = (
        answer(run, *words, "--init", init)["probes"][0]["branches"]["attention"]["median"][0]
        for init in ("normal(0.01)", "normal(0.1)")
    )
    assert large == pytest.approx(100 * small, rel=0.05)  # two matrices in a row


def test_given_parameters_and_inputs_are_taken_as_they_are(run: Run, tmp_path: Path) -> None:
    program = bg.compile(SPECS / "pre_norm_stack.yaml", C=8, H=2, N=3)
    x, params = program.sample(9, B=1, T=5)
    np.savez(tmp_path / "p.npz", **params)
    np.save(tmp_path / "x.npy", x)
    words = ["specs/pre_norm_stack.yaml", "--set", "C=8", "--set", "H=2", "--set", "N=3", "--seeds", 2]
    (probe,) = answer(run, *words, "--params", tmp_path / "p.npz", "--input", tmp_path / "x.npy")["probes"]
    trace = program.trace(x, params)
    expected = [rms(x), *(rms(trace[f"layers.{layer}"]) for layer in range(3))]
    assert probe["curves"]["stream"]["low"] == pytest.approx(expected)
    assert probe["curves"]["stream"]["high"] == pytest.approx(expected)
    assert probe["curves"]["gradient"]["low"][0] < probe["curves"]["gradient"]["high"][0]


def test_two_specs_stand_side_by_side_in_80_columns_with_a_row_for_each_layer(run: Run) -> None:
    code, out, err = run("probe", PRE, POST, "--depth", "2,12", "--seeds", 2, *SMALL)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(len(line) for line in lines) <= 80
    (head,) = [line for line in lines if "pre_norm, 12 layers" in line]
    assert "post_norm, 12 layers" in head
    for title in ("stream RMS", "gradient norm", "share by skip path", "attention / stream", "d attention.Wq"):
        (row,) = [line for line in lines if line.startswith(f"{title} ")]
        assert sum(row.count(bar) for bar in "▁▂▃▄▅▆▇█") >= 12, title
    assert "A: pre_norm, B: post_norm" in lines
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("layer ")) + 2 :]
    assert [line.split()[0] for line in table] == [str(layer) for layer in range(13)]


@pytest.mark.parametrize("name", ["pre_norm", "layouts/decoder_cross_attention", "layouts/macaron", "models/gpt2"])
def test_one_spec_alone_fits_into_80_columns_too(run: Run, name: str) -> None:
    sizes = ["--set", "V=11"] if name == "models/gpt2" else []
    words = [f"specs/{name}.yaml", "--depth", 10, "--seeds", 2, "--set", "C=24", *sizes, "--time", 3]
    code, out, err = run("probe", *words)
    assert (code, err) == (0, "")
    assert max(len(line) for line in out.splitlines()) <= 80
    assert sum(line.startswith("layers.") for line in out.splitlines()) == 10


def test_a_terminal_without_such_signs_gets_plain_ones() -> None:
    from blockgraph.cli.probe_tables import ProbeTables
    from blockgraph.report import Console

    program = with_depth(bg.compile(SPECS / "pre_norm.yaml", C=8, H=2), 3)
    readings = [reading(program, *program.sample(seed, B=1, T=2), seed) for seed in range(2)]
    text = ProbeTables([summarise("pre_norm", 3, readings)]).text(Console("ascii"), 80)
    assert text.isascii()
    assert "\\" not in text


def test_the_first_value_that_is_not_finite_is_named_at_its_step(run: Run, tmp_path: Path) -> None:
    program = bg.compile(SPECS / "pre_norm_stack.yaml", C=8, H=2, N=4)
    _, params = program.sample(0, B=1, T=3)
    params["layers.2.feed_forward.W2"][0, 0] = np.inf
    np.savez(tmp_path / "p.npz", **params)
    words = ["specs/pre_norm_stack.yaml", "--set", "C=8", "--set", "H=2", "--set", "N=4", "--seeds", 1]
    document = answer(run, *words, "--params", tmp_path / "p.npz", code=1)
    (finding,) = [one for one in document["findings"] if one["code"] == "BG402"]
    assert finding["message"].startswith("`layers.2.feed_forward` holds infinity")
    assert document["probes"][0]["curves"]["stream"]["median"][-1] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--depth", "2,x"], "a whole number from 1 on is expected, not 'x'"),
        (["--init", "glorot"], "write normal(std), uniform(a) or xavier(gain), not 'glorot'"),
        (["--params", "p.npz", "--depth", "2"], "--params gives the parameters as they are: leave out --depth"),
        (["--plot", "depth.txt"], "cannot tell what to draw from the ending of depth.txt"),
    ],
)
def test_options_that_make_no_sense_end_with_2(run: Run, words: list[str], message: str) -> None:
    code, out, err = run("probe", PRE, *words)
    assert (code, out) == (2, "")
    assert message in err


def test_parameters_for_two_specs_end_with_2(run: Run) -> None:
    code, _, err = run("probe", PRE, POST, "--params", "p.npz")
    assert code == 2
    assert "--params belongs to one spec, and there are 2" in err


def test_a_plot_without_matplotlib_is_refused_before_any_work(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find(name))
    code, out, err = run("probe", PRE, "--plot", tmp_path / "depth.svg")
    assert (code, out) == (2, "")
    assert "BG905" in err
    assert 'pip install "blockgraph[plot]"' in err
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_a_plot_has_a_curve_for_each_spec_and_depth_and_is_the_same_twice(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "depth.svg"
    words = ["probe", PRE, POST, "--depth", "2,4", "--seeds", 2, *SMALL, "--plot", path]
    code, _, err = run(*words)
    assert code == 0
    assert "wrote" in err
    first = path.read_text()
    for label in ("pre_norm, 2 layers", "pre_norm, 4 layers", "post_norm, 4 layers", "RMS of the stream"):
        assert label in first
    code, _, err = run(*words)
    assert code == 2
    assert "BG902" in err
    assert run(*words, "--force")[0] == 0
    assert path.read_text() == first


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_for_a_person_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream, form, drawn in ((Tty(), "full", True), (Tty(), "json", False), (io.StringIO(), "full", False)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(progress.tracked(range(3), 3, "runs", Terminal(form))) == [0, 1, 2]  # type: ignore[arg-type]
        assert bool(stream.getvalue()) is drawn


def test_the_skip_path_is_the_cheapest_of_several() -> None:
    text = "dims: {C: 4}\nblock:\n  parts: {n: layer_norm}\n  equations: |\n    x = n(x) + (3*x + x)\n"
    program = with_depth(bg.compile(text), 2)
    found = reading(program, *program.sample(0, B=1, T=2))
    assert found.norms == 0
    assert found.skip == pytest.approx([1.0, 1.0])
    assert set(found.branches) == {"n", "×"}


def test_specs_of_the_same_name_are_told_apart_by_their_files(run: Run, tmp_path: Path) -> None:
    text = (ROOT / PRE).read_text()
    name = next(line.removeprefix("name: ") for line in text.splitlines() if line.startswith("name: "))
    paths = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    paths[0].write_text(text)
    paths[1].write_text((ROOT / POST).read_text().replace("name: post_norm", f"name: {name}"))
    words = [*SMALL, "--depth", "2", "--seeds", "1"]
    assert [one["name"] for one in answer(run, *paths, *words)["probes"]] == ["one.yaml", "two.yaml"]
    _, out, _ = run("probe", *paths, *words)
    assert "A: one.yaml, B: two.yaml" in out
    assert "one.yaml, 2 layers" in out


@pytest.mark.parametrize(
    ("names", "paths", "told"),
    [
        (["a", "b"], ["a.yaml", "b.yaml"], ["a", "b"]),
        (["a", "a", "b"], ["d/one.yaml", "d/two.yaml", "b.yaml"], ["one.yaml", "two.yaml", "b"]),
        (["a", "a"], ["d/a.yaml", "e/a.yaml"], ["d/a.yaml", "e/a.yaml"]),
        (["a", "a"], ["a.yaml", "a.yaml"], ["a.yaml (1)", "a.yaml (2)"]),
    ],
)
def test_files_then_paths_then_numbers_tell_specs_apart(names: list[str], paths: list[str], told: list[str]) -> None:
    assert told_apart(names, paths) == told
