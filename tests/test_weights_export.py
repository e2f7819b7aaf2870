"""A rule read backwards: export and gradients in the names of the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import blockgraph as bg
from blockgraph import weights

BY_HEAD = "rearrange(tensor, '(h three d) c -> three (h d) c', three=3, h=H)"
BIAS = "rearrange(tensor, '(h three d) -> three (h d)', three=3, h=H)"


def attention(layout: str, weight: str, bias: str, **more: Any) -> dict[str, Any]:
    """Two layers of attention whose q, k and v are cut out of one tensor by `weight` and `bias`, {} the number."""
    rules: dict[str, Any] = {"layers.*.attention.Wo": "h.*.o.weight", "layers.*.attention.bo": "h.*.o.bias"}
    for index, letter in enumerate("qkv"):
        rules[f"layers.*.attention.W{letter}"] = {"from": "h.*.qkv.weight", "take": weight.format(index)}
        rules[f"layers.*.attention.b{letter}"] = {"from": "h.*.qkv.bias", "take": bias.format(index)}
    part = {"kind": "attention", "heads": "H", "bias": True}
    return {
        "dims": {"C": 8, "H": 2, "N": 2},
        "blocks": {"one": {"parts": {"attention": part}, "equations": "x = x + attention(x)"}},
        "model": {"parts": {"layers": {"kind": "stack", "of": "one", "repeat": "N"}}, "equations": "y = layers(x)"},
        "checkpoint": {"layout": layout, "weights": rules, **more},
    }


SPECS = {
    "by head, out_in": attention("out_in", BY_HEAD + "[{}]", BIAS + "[{}]"),
    "blocks, in_out": attention("in_out", "tensor[:, {0}*C:({0}+1)*C]", "tensor[{0}*C:({0}+1)*C]"),
}
SHAPES = {"by head, out_in": (24, 8), "blocks, in_out": (8, 24)}


def original(case: str, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {"qkv.weight": SHAPES[case], "qkv.bias": (24,), "o.weight": (8, 8), "o.bias": (8,)}
    return {f"h.{n}.{name}": rng.standard_normal(shape) for n in range(2) for name, shape in shapes.items()}


@pytest.mark.parametrize("case", SPECS)
def test_what_is_imported_and_exported_again_is_the_same_bit_for_bit(case: str, tmp_path: Path) -> None:
    arrays = original(case)
    save_file(arrays, tmp_path / "model.safetensors")
    found = weights.load(SPECS[case], tmp_path)
    (tmp_path / "out").mkdir()
    path = weights.export(bg.compile(found.spec), found.params, tmp_path / "out")
    again = load_file(path)
    assert {name: array.tobytes() for name, array in again.items()} == {n: a.tobytes() for n, a in arrays.items()}


@pytest.mark.parametrize("case", SPECS)
def test_the_adjoint_of_the_import_is_its_adjoint(case: str, tmp_path: Path) -> None:
    """<load(tensors), g> = <tensors, to_checkpoint(g)> for any g."""
    arrays = original(case)
    save_file(arrays, tmp_path / "model.safetensors")
    found = weights.load(SPECS[case], tmp_path)
    rng = np.random.default_rng(1)
    grads = {name: rng.standard_normal(array.shape) for name, array in found.params.items()}
    back = weights.to_checkpoint(bg.compile(found.spec), grads)
    here = sum(float((found.params[name] * grads[name]).sum()) for name in grads)
    there = sum(float((arrays[name] * back[name]).sum()) for name in arrays)
    assert back.keys() == arrays.keys()
    assert abs(here - there) < 1e-12 * abs(here)


OVERLAP = {
    "dims": {"C": 2},
    "block": {"params": {"a": ["C"], "b": ["C"]}, "equations": "y = x * a + b"},
    "checkpoint": {"weights": {"a": {"from": "t", "take": "tensor[:C]"}, "b": {"from": "t", "take": "tensor[1:C+1]"}}},
}


def test_several_parameters_of_one_tensor_add_up_their_gradients(tmp_path: Path) -> None:
    save_file({"t": np.array([1.0, 2.0, 3.0])}, tmp_path / "x.safetensors")
    found = weights.load(OVERLAP, tmp_path / "x.safetensors")
    assert found.params["b"].tolist() == [2.0, 3.0]
    grads = {"a": np.array([1.0, 10.0]), "b": np.array([100.0, 1000.0])}
    back = weights.to_checkpoint(bg.compile(found.spec), grads, like=tmp_path / "x.safetensors")
    assert back["t"].tolist() == [1.0, 110.0, 1000.0]


def test_a_shape_that_the_parts_do_not_tell_is_asked_for() -> None:
    with pytest.raises(bg.SpecError, match=r"BG315.*the shape of `t` cannot be told"):
        weights.to_checkpoint(bg.compile(OVERLAP), {"a": np.ones(2), "b": np.ones(2)})


def test_stacked_and_indexed_tensors_are_taken_apart_and_put_together(tmp_path: Path) -> None:
    spec = {
        "dims": {"C": 3, "E": 2},
        "blocks": {"one": {"params": {"w": ["E", "C"], "v": ["C"]}, "equations": "x = x * sum(w, 'e c -> c') + v"}},
        "model": {"parts": {"layers": {"kind": "stack", "of": "one", "repeat": 2}}, "equations": "y = layers(x)"},
        "checkpoint": {"weights": {"layers.*.w": "h.*.e.*.w", "layers.*.v": "all"}},
    }
    program = bg.compile(spec)
    params = program.init(0)
    found = weights.to_checkpoint(program, params)
    assert sorted(found) == ["all", "h.0.e.0.w", "h.0.e.1.w", "h.1.e.0.w", "h.1.e.1.w"]
    assert found["h.1.e.0.w"].tolist() == params["layers.1.w"][0].tolist()
    assert found["all"].tolist() == [params["layers.0.v"].tolist(), params["layers.1.v"].tolist()]
    save_file({name: np.ascontiguousarray(array) for name, array in found.items()}, tmp_path / "x.safetensors")
    again = weights.load(spec, tmp_path / "x.safetensors").params
    assert {name: array.tolist() for name, array in again.items()} == {n: a.tolist() for n, a in params.items()}


def test_a_tensor_with_axes_of_one_finds_its_shape() -> None:
    spec = {
        "dims": {"C": 2},
        "block": {"params": {"a": ["C"], "b": ["C"]}, "equations": "y = x * a + b"},
        "checkpoint": {
            "weights": {"a": {"from": "t", "take": "tensor[0]"}, "b": {"from": "token", "take": "tensor[0, 0]"}}
        },
    }
    program = bg.compile(spec)
    found = weights.to_checkpoint(program, program.init(0))
    assert {name: array.shape for name, array in found.items()} == {"t": (1, 2), "token": (1, 1, 2)}


def test_a_tensor_whose_axes_are_turned_finds_its_shape() -> None:
    spec = {
        "dims": {"C": 2, "F": 3},
        "block": {"params": {"W": ["C", "F"]}, "equations": "y = x @ W"},
        "checkpoint": {"weights": {"W": {"from": "t", "take": "tensor.T"}}},
    }
    program = bg.compile(spec)
    params = program.init(0)
    assert weights.to_checkpoint(program, params)["t"].tolist() == params["W"].T.tolist()
