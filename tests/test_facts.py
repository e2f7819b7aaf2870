"""Proofs about every spec of the repository, held against what the interpreter computes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.dims import Dim
from blockgraph.facts import Proofs, prove, time_axis, told
from blockgraph.facts.positions import batch_axis
from tests.small_specs import FILES, NAMES, outputs_of, small, stirred_run

T, B, AT = 6, 3, 3
DEEP = [path for path in FILES if re.search(r"^dims:.*\bN:", path.read_text(encoding="utf-8"), re.MULTILINE)]
each_spec = pytest.mark.parametrize("path", FILES, ids=NAMES)


def axis_of(graph: bg.Graph, value: int, size: Dim) -> int | None:
    """The axis of a value that has this size, if it is one."""
    axes = [axis for axis, dim in enumerate(graph.types[value].shape or ()) if dim == size]
    return axes[0] if len(axes) == 1 else None


def changed(program: bg.Program, inputs: dict[str, Any], size: Dim, at: int) -> dict[str, Any]:
    """The inputs with one position changed: numbers moved, ids replaced by others; masks stay."""
    found = dict(inputs)
    for port in program.graph.inputs:
        axis = axis_of(program.graph, port.value, size)
        if axis is None or inputs[port.name].dtype == bool:
            continue
        array = inputs[port.name].copy()
        part = array[(slice(None),) * axis + (at,)]
        below = None if port.below is None else int(port.below.evaluate(program.graph.dims))
        noise = np.random.default_rng(at).standard_normal(part.shape)  # a constant would be lost in a layer norm
        part[...] = part + noise if below is None else (part + 1) % below
        found[port.name] = array
    return found


def positions_that_differ(program: bg.Program, size: Dim, at: int) -> set[int] | None:
    """Positions of the outputs that change when one of the inputs does; None if an output has no such axis."""
    sizes = {name: number for name, number in (("T", T), ("B", B)) if any_has(program, name)}
    inputs, params = stirred_run(program, **sizes)
    before = outputs_of(program, inputs, params)
    after = outputs_of(program, changed(program, inputs, size, at), params)
    found: set[int] = set()
    for port in program.graph.outputs:
        axis = axis_of(program.graph, port.value, size)
        if axis is None:
            return None
        others = tuple(i for i in range(before[port.name].ndim) if i != axis)
        differs = np.abs(before[port.name] - after[port.name]).max(axis=others) > 1e-12
        found |= {int(position) for position in np.flatnonzero(differs)}
    return found


def any_has(program: bg.Program, name: str) -> bool:
    return any(Dim(name) in (program.graph.types[port.value].shape or ()) for port in program.graph.inputs)


def agrees(verdict: str, holds: bool) -> None:
    """A proof is true; a refutation shows; nothing is asked of what is not proved."""
    if verdict != "not proved":
        assert holds == (verdict == "proved")


@each_spec
def test_a_proof_about_positions_is_what_the_interpreter_does(path: Path) -> None:
    program = small(path)
    proofs, size = prove(program.graph), time_axis(program.graph, program.graph.dims)
    if size is None:
        assert (proofs.causal, proofs.positionwise) == ("not proved", "not proved")
        return
    differing = positions_that_differ(program, size, AT)
    assert differing
    agrees(proofs.causal, min(differing) >= AT)
    agrees(proofs.positionwise, differing == {AT})


@each_spec
def test_items_of_a_batch_do_not_read_one_another(path: Path) -> None:
    program = small(path)
    size = batch_axis(program.graph, program.graph.dims)
    assert size is not None
    assert prove(program.graph).batch_independent == "proved"
    assert positions_that_differ(program, size, 1) == {1}


@each_spec
def test_dead_parameters_are_those_whose_gradient_is_zero(path: Path) -> None:
    program = small(path)
    zero = (
        zero_gradients(program, 0) & zero_gradients(program, 1) & zero_gradients(program, 2)
    )  # some expert may not be chosen in one of them
    # A bias of keys shifts the scores of a query alike, and the softmax takes that away: the gradient sums to zero.
    assert {name for name in zero if not name.endswith((".bk", "bk", "key.b"))} == set()
    assert prove(program.graph).dead_parameters == ()


def zero_gradients(program: bg.Program, seed: int) -> set[str]:
    """The parameters whose gradient is zero in one run."""
    many = {name: size for name, size in (("T", 16), ("B", 4)) if any_has(program, name)}
    inputs, params = stirred_run(program, seed, **many)
    outputs, back = program.vjp(inputs, params)
    rng = np.random.default_rng(2)
    if isinstance(outputs, dict):
        cotangent: Any = {name: rng.standard_normal(array.shape) for name, array in outputs.items()}
    else:
        cotangent = rng.standard_normal(outputs.shape)
    _, gradients = back(cotangent)
    return {name for name, gradient in gradients.items() if not np.abs(gradient).max(initial=0) > 1e-9}


@pytest.mark.parametrize("path", DEEP, ids=lambda path: path.stem)
def test_a_proof_costs_no_more_and_says_the_same_for_ten_times_the_layers(path: Path) -> None:
    graph = bg.check(path).graph
    assert graph is not None
    deep = bg.check(path, N=10 * graph.dims["N"]).graph
    assert deep is not None
    assert prove(deep) == prove(graph) or _as_words(prove(deep)) == _as_words(prove(graph))


def _as_words(proofs: Proofs) -> list[str]:
    return list(told(proofs))


CAUSAL = {
    "custom_mixer", "gqa_swiglu", "decoder_cross_attention", "decoder_cross_attention_post", "dense_moe",
    "gated_cross_attention", "gated_residual", "hybrid_norm", "hyper_connections", "layernorm_scaling", "looped_depth",
    "mix_ln", "mixture_of_experts", "ngpt", "normformer", "parallel_branch_norms", "parallel_shared_norm",
    "residual_multiplier", "scaled_pre_post", "shared_experts", "value_residual", "bart", "bloom", "falcon", "gemma2",
    "gpt2", "gpt_neox", "llama", "mistral", "mixtral", "olmo2", "opt", "phi", "t5",
}  # fmt: skip


@each_spec
def test_a_spec_is_causal_if_its_attention_has_the_mask(path: Path) -> None:
    graph = bg.check(path).graph
    assert graph is not None
    masked = "causal" in path.read_text(encoding="utf-8")
    expected = "proved" if path.stem in CAUSAL or masked else "not proved" if path.stem == "vit" else "refuted"
    assert prove(graph).causal == expected


@pytest.mark.parametrize(
    ("name", "clean", "on_path"),
    [
        ("pre_norm", True, ()),
        ("post_norm", False, ("norm1", "norm2")),
        ("parallel", True, ()),
        ("sandwich", True, ()),
        ("output_norm", True, ()),
        ("rezero", True, ()),
        ("layouts/macaron", False, ("after_norm4",)),
        ("layouts/hybrid_norm", False, ("norm2",)),
        ("layouts/residual", True, ()),
        ("deepnorm", False, ("layers.*.multiply", "layers.*.norm1", "layers.*.norm2")),
        ("models/bert", False, ("layers.*.norm1", "layers.*.norm2")),
        ("models/gpt2", True, ()),
        ("layouts/gated_residual", False, ("gate1", "gate2")),
    ],
)
def test_the_highway_names_what_stands_on_the_skip_path(name: str, clean: bool, on_path: tuple[str, ...]) -> None:
    graph = bg.check(FILES[0].parent / f"{name}.yaml").graph
    assert graph is not None
    path = prove(graph).highway
    assert path is not None
    assert (path.clean, path.on_path) == (clean, on_path)


NO_HIGHWAY = {
    "pre": "norm: rms_norm, placement: pre, sublayers: [{kind: attention, heads: H, residual: none}]",
    "post": "norm: rms_norm, placement: post, sublayers: [{kind: attention, heads: H, residual: none}]",
    "sum of branches": "parts: {n: rms_norm, a: {kind: attention, heads: H}, f: linear}, equations: x = a(n(x)) + f(x)",
}


@pytest.mark.parametrize("name", NO_HIGHWAY)
def test_there_is_no_highway_where_every_path_goes_through_a_sublayer(name: str) -> None:
    graph = bg.check(f"dims: {{C: 64, H: 4}}\nblock: {{{NO_HIGHWAY[name]}}}\n").graph
    assert graph is not None
    proofs = prove(graph)
    assert "residual highway: none, every path goes through a sublayer" in told(proofs)
    assert proofs.highway is not None
    assert proofs.as_data()["highway"] == {"clean": False, "on_path": list(proofs.highway.on_path)}


def test_a_pre_norm_block_has_two_additions() -> None:
    graph = bg.check(FILES[0].parent / "pre_norm.yaml").graph
    assert graph is not None
    path = prove(graph).highway
    assert path is not None
    assert path.adds == 2


@each_spec
def test_blocks_can_be_stacked_and_models_of_tokens_cannot(path: Path) -> None:
    graph = bg.check(path).graph
    assert graph is not None
    proofs = prove(graph)
    assert proofs.stackable == ("refuted" if path.parent.name == "models" else "proved")
    assert {one.stackable for one in proofs.blocks.values()} <= {"proved"}
