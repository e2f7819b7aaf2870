"""Every spec in `specs/layouts` is the wiring that was published: its numbers are those of equations by hand.

So that no wrong wiring can pass, the equations by hand are changed one operation at a time (a plus to a minus, a norm
or a scale dropped, two names swapped), and each change must move the output.
"""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.drawing import to_dot
from blockgraph.explain import expansion
from blockgraph.same import first_difference
from blockgraph.source.write import to_json
from tests import layout_equations
from tests.layout_maps import MAPS

ROOT = Path(__file__).parent.parent
FILES = {path.stem: path for path in sorted((ROOT / "specs" / "layouts").glob("*.yaml"))}
SMALL = {"C": 16, "N": 4}
# Changes that are none, and why: for each layout the line that comes out.
EQUAL = {
    "hybrid_norm": {"nk(q(x)), nq(k(x))": "the two weights only meet as a product"},
    "parallel_shared_norm": {"x = x + ff(h) + attn(h)": "the order of a sum"},
    "shared_experts": {"x = x + (always(h) + moe(h))": "the order of a sum"},
}
each_layout = pytest.mark.parametrize("name", FILES)


def compiled(name: str) -> bg.Program:
    """A program small enough to be run a few hundred times by hand."""
    dims = bg.load(FILES[name]).dims
    return bg.compile(FILES[name], **{dim: size for dim, size in SMALL.items() if dim in dims})


def sampled(program: bg.Program) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs by name and parameters, none of them at rest: no norm at the identity, no gate shut, not all visible."""
    symbols = {s for port in program.graph.inputs for dim in program.graph.types[port.value].shape for s in dim.symbols}
    x, params = program.sample(7, **{symbol: size for symbol, size in {"T": 4, "S": 5}.items() if symbol in symbols})
    inputs = x if isinstance(x, dict) else {program.graph.inputs[0].name: x}
    rng = np.random.default_rng(1)
    if "keep" in inputs:
        inputs["keep"] = np.array([[True, True, False, True, False], [False, True, True, True, True]])
    return inputs, {name: array + 0.5 * rng.standard_normal(array.shape) for name, array in params.items()}


def by_hand(equations: Callable[..., Any], name: str, inputs: dict[str, Any], params: dict[str, Any]) -> Any:
    return equations(**inputs, **{argument: make(params) for argument, make in MAPS[name].items()})


def only(inputs: dict[str, Any]) -> Any:
    return next(iter(inputs.values())) if len(inputs) == 1 else inputs


def test_each_layout_has_its_equations_and_their_maps_by_hand() -> None:
    own = [one for one in vars(layout_equations).values() if inspect.isfunction(one)]
    written = {one.__name__ for one in own if one.__module__ == layout_equations.__name__}
    assert set(FILES) == written == set(MAPS)


@each_layout
def test_a_layout_is_named_as_its_file_says_where_it_comes_from_and_has_no_finding(name: str) -> None:
    checked = bg.check(FILES[name])
    assert (checked.spec.name, bool(checked.spec.source), checked.findings) == (name, True, ())


@each_layout
def test_a_layout_runs_at_its_own_sizes(name: str) -> None:
    program = bg.compile(FILES[name])
    trace = program.trace(*program.sample(0))
    assert [value for value in trace if not np.isfinite(trace[value]).all()] == []


@each_layout
def test_a_layout_is_drawn(name: str) -> None:
    text = to_dot([bg.compile(FILES[name]).graph])
    assert text.startswith("digraph")
    assert name in text


@each_layout
def test_a_layout_is_the_same_graph_when_written_as_json_or_written_out_in_full(name: str, tmp_path: Path) -> None:
    graph, file = bg.compile(FILES[name]).graph, tmp_path / f"{name}.json"
    file.write_text(to_json(bg.load(FILES[name]).data), encoding="utf-8")
    assert first_difference(graph, bg.compile(file).graph) is None
    assert first_difference(graph, bg.compile(expansion(bg.load(FILES[name]))).graph) is None


@each_layout
def test_a_layout_computes_what_its_equations_by_hand_do(name: str) -> None:
    program = compiled(name)
    inputs, params = sampled(program)
    expected = by_hand(getattr(layout_equations, name), name, inputs, params)
    y = program(only(inputs), params)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-10)


@each_layout
def test_no_other_wiring_computes_the_same(name: str) -> None:
    program = compiled(name)
    inputs, params = sampled(program)
    y = program(only(inputs), params)
    alive: Counter[str] = Counter()
    for family, text, equations in mutants(getattr(layout_equations, name)):
        other = outcome(equations, name, inputs, params)
        if other is None or other.shape != y.shape:
            continue  # a wiring that does not fit cannot be taken for the right one
        alive[family] += 1
        with np.errstate(all="ignore"):
            same = bool(np.abs(other - y).max() <= 1e-6)
        assert same is any(line in text for line in EQUAL.get(name, ())), text
    assert min(alive[family] for family in ("sign", "dropped", "swapped")) > 0, alive


@each_layout
def test_the_gradient_of_a_layout_is_the_slope_along_a_random_direction(name: str) -> None:
    program, rng, step = compiled(name), np.random.default_rng(2), 1e-6
    inputs, params = sampled(program)
    y, back = program.vjp(inputs, params)
    dy = rng.standard_normal(y.shape)
    slopes = {key: one for part in back(dy) for key, one in part.items()}
    values = {key: array for key, array in {**inputs, **params}.items() if key != "keep"}
    assert slopes.keys() == values.keys()
    along = {key: rng.standard_normal(array.shape) for key, array in values.items()}

    def total(distance: float) -> float:
        moved = {key: array + distance * along[key] for key, array in values.items()}
        x = {key: moved.get(key, array) for key, array in inputs.items()}
        return float((dy * program(x, {key: moved[key] for key in params})).sum())

    slope = (total(step) - total(-step)) / (2 * step)
    np.testing.assert_allclose(sum((slopes[key] * along[key]).sum() for key in values), slope, rtol=1e-5)


def outcome(equations: Callable[..., Any], name: str, inputs: dict[str, Any], params: dict[str, Any]) -> Any:
    """What changed equations compute; None if they cannot be computed at all."""
    try:
        with np.errstate(all="ignore"):
            found = by_hand(equations, name, inputs, params)
    except Exception:
        return None
    return found if isinstance(found, np.ndarray) else None


def mutants(equations: Callable[..., Any]) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Each changed function, with the kind of the change and its text."""
    tree = ast.parse(inspect.getsource(equations))
    for index, node in enumerate(ast.walk(tree)):
        for number, (family, _) in enumerate(edits(node)):
            other = copy.deepcopy(tree)
            old = next(itertools.islice(ast.walk(other), index, None))
            yield family, *built(Replaced(old, list(edits(old))[number][1]).visit(other), equations)
    for one, two in itertools.combinations(sorted(bound_names(tree)), 2):
        yield "swapped", *built(Renamed({one: two, two: one}).visit(copy.deepcopy(tree)), equations)


def edits(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may stand in a node's place."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Add | ast.Sub):
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield "sign", ast.BinOp(node.left, other, node.right)
        yield "dropped", node.left
        if not isinstance(node.op, ast.Div | ast.Pow):
            yield "dropped", node.right
    elif isinstance(node, ast.Call) and len(node.args) == 1:
        yield "dropped", node.args[0]
    elif isinstance(node, ast.Call):
        for one, two in itertools.combinations(range(len(node.args)), 2):
            args = list(node.args)
            args[one], args[two] = args[two], args[one]
            yield "swapped", ast.Call(node.func, args, node.keywords)
    elif isinstance(node, ast.Assign | ast.For):
        yield "dropped", ast.Pass()


def bound_names(tree: ast.AST) -> set[str]:
    """The arguments and all names that are assigned."""
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return (arguments | stored) - {"_"}


class Replaced(ast.NodeTransformer):
    """One node in another's place."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


class Renamed(ast.NodeTransformer):
    """Names that are read, changed for others."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        new = self.names.get(node.id, node.id) if isinstance(node.ctx, ast.Load) else node.id
        return ast.Name(new, node.ctx)


def built(tree: Any, equations: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    names = dict(vars(layout_equations))
    exec(compile(ast.fix_missing_locations(tree), "mutant", "exec"), names)
    return ast.unparse(tree), names[equations.__name__]


@pytest.mark.parametrize("name", ["rezero", "gated_cross_attention", "adaln_zero"])
def test_a_layout_whose_gates_start_at_zero_starts_as_identity(name: str) -> None:
    program = bg.compile(FILES[name])
    inputs, params = program.sample(0)
    x = inputs["x"] if isinstance(inputs, dict) else inputs
    np.testing.assert_array_equal(program(inputs, params), x)


@pytest.mark.parametrize(
    ("name", "part", "ratio"),
    [
        ("pre_norm", "attention.Wo", 2),  # 1/sqrt(2N): four times the layers
        ("pre_norm", "feed_forward.W2", 2),
        ("pre_norm", "attention.Wv", 1),
        ("deepnorm", "attention.Wv", 2**0.5),  # (8N)**(-1/4)
        ("deepnorm", "attention.Wo", 2**0.5),
        ("deepnorm", "feed_forward.W1", 2**0.5),
        ("deepnorm", "feed_forward.W2", 2**0.5),
        ("deepnorm", "attention.Wq", 1),
    ],
)
def test_weights_start_smaller_in_a_deeper_stack_as_published(name: str, part: str, ratio: float) -> None:
    shallow, deep = (bg.compile(FILES[name], N=depth).init(0)[f"layers.0.{part}"] for depth in (3, 12))
    np.testing.assert_allclose(shallow / deep, ratio, rtol=1e-12)


def test_shared_layers_have_the_parameters_of_one() -> None:
    names = bg.compile(FILES["shared_layers"]).parameters
    assert {name.split(".")[1] for name in names} == {"0"}
