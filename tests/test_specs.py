"""Every spec in `specs/` is a fixture: what is promised of a spec is held for each of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.drawing import to_dot
from blockgraph.explain import expansion
from blockgraph.same import first_difference
from blockgraph.source.write import to_json, to_yaml
from tests.hand import LAYOUTS

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "specs").glob("*.yaml"))
each_spec = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])


def stirred(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of which none is at rest: no norm at the identity, no bias and no gate at zero."""
    rng = np.random.default_rng(1)
    return {name: array + 0.1 * rng.standard_normal(array.shape) for name, array in params.items()}


def difference(a: Any, b: Any) -> str | None:
    """What differs first in the graphs of two specs."""
    return first_difference(bg.compile(a).graph, bg.compile(b).graph)


def test_each_spec_has_a_reference_by_hand_and_the_other_way_round() -> None:
    assert [path.stem for path in FILES] == sorted(LAYOUTS)


@each_spec
def test_a_spec_is_named_as_its_file_and_says_where_it_comes_from(path: Path) -> None:
    spec = bg.load(path)
    assert spec.name == path.stem
    assert spec.source


@each_spec
def test_a_spec_has_no_finding_at_all(path: Path) -> None:
    assert bg.check(path).findings == ()


@each_spec
@pytest.mark.parametrize("change", [dict, stirred], ids=["as drawn", "stirred"])
def test_a_spec_computes_what_its_equations_by_hand_do(path: Path, change: Any) -> None:
    program = bg.compile(path)
    x, params = program.sample(42, B=2, T=5)
    params = change(params)
    y = program(x, params)
    expected = LAYOUTS[path.stem](x, params)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-12)


@each_spec
def test_every_named_value_is_finite(path: Path) -> None:
    program = bg.compile(path)
    trace = program.trace(*program.sample(0))
    assert {"x", "x.1", "x.2"} <= trace.keys()
    assert [name for name in trace if not np.isfinite(trace[name]).all()] == []


@each_spec
def test_every_named_value_of_a_run_in_float32_is_float32(path: Path) -> None:
    program = bg.compile(path)
    x, params = program.sample(0, dtype="float32")
    assert {array.dtype for array in (x, *params.values())} == {np.dtype("float32")}
    trace = program.trace(x, params)
    assert {name: trace[name].dtype for name in trace} == dict.fromkeys(trace, np.dtype("float32"))


@each_spec
def test_every_array_has_the_shape_that_was_proved(path: Path) -> None:
    program = bg.compile(path)
    graph = program.flat
    x, params = program.sample(0, B=3, T=5)
    trace = program.trace(x, params)
    numbers = {**graph.dims, "B": 3, "T": 5}
    for name, value in graph.named.items():
        shape = graph.types[value].shape
        assert shape is not None, name
        assert trace[name].shape == tuple(dim.evaluate(numbers) for dim in shape), name


@each_spec
def test_yaml_to_json_and_back_gives_an_equal_graph(path: Path, tmp_path: Path) -> None:
    as_json, as_yaml = tmp_path / "spec.json", tmp_path / "spec.yaml"
    as_json.write_text(to_json(bg.load(path).data), encoding="utf-8")
    as_yaml.write_text(to_yaml(bg.load(as_json).data), encoding="utf-8")
    assert bg.load(as_yaml).data == bg.load(path).data
    assert difference(path, as_json) is None
    assert difference(path, as_yaml) is None


@each_spec
def test_a_spec_explained_is_the_same_graph(path: Path) -> None:
    text = expansion(bg.load(path))
    assert "sublayers" not in text
    assert difference(path, text) is None


@each_spec
def test_a_spec_is_drawn(path: Path) -> None:
    text = to_dot([bg.compile(path).graph])
    assert text.startswith("digraph")
    assert path.stem in text


@pytest.mark.parametrize(
    ("name", "equations"),
    [
        ("pre_norm", ["x = x + attention(norm1(x))", "x = x + feed_forward(norm2(x))"]),
        ("post_norm", ["x = norm1(x + attention(x))", "x = norm2(x + feed_forward(x))"]),
    ],
)
def test_the_short_and_the_long_form_give_the_same_graph(name: str, equations: list[str]) -> None:
    attention = {"kind": "attention", "heads": "H"}
    feed_forward = {"kind": "feed_forward", "hidden": "4*C", "activation": "gelu_tanh"}
    parts = {"norm1": "layer_norm", "attention": attention, "norm2": "layer_norm", "feed_forward": feed_forward}
    if name == "post_norm":
        parts = {key: parts[key] for key in ("attention", "norm1", "feed_forward", "norm2")}
    spelled = {"name": name, "dims": {"C": 64, "H": 4}, "block": {"parts": parts, "equations": equations}}
    assert difference(spelled, ROOT / "specs" / f"{name}.yaml") is None


def test_pre_norm_and_post_norm_are_different_graphs() -> None:
    post_norm = {**bg.load(ROOT / "specs" / "post_norm.yaml").data, "name": "pre_norm"}
    assert difference(post_norm, ROOT / "specs" / "pre_norm.yaml") is not None


SHOW = """
import sys, hashlib
import blockgraph as bg
from blockgraph.drawing import to_dot
for path in sys.argv[1:]:
    program = bg.compile(path)
    trace = program.trace(*program.sample(3))
    print(path, list(program.parameters), [condition.text for condition in program.graph.conditions])
    for name in trace:
        print(name, hashlib.sha256(trace[name].tobytes()).hexdigest())
    print(to_dot([program.graph]))
"""


def test_nothing_depends_on_the_order_of_hashes() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", SHOW, *(path.relative_to(ROOT).as_posix() for path in FILES)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 10_000
