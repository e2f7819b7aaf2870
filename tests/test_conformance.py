"""Fifteen families, held against numbers that another library computed in float64 (see conformance/README.md)."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph import weights
from blockgraph.cost.parameters import number_of_parameters

SPECS = Path(__file__).parent.parent / "specs" / "models"
DATA = Path(__file__).parent / "conformance"
FAMILIES = sorted(path.parent.name for path in DATA.glob("*/config.json"))
MASKED = ("bart", "bert", "t5")
BOUNDS = {"float64": 1e-9, "float32": 1e-4}
GRADIENT_BOUNDS = {"float64": 1e-6, "float32": 1e-4}

# The recorded key of a stack's states -> the spec's name of what goes into the stack, and the stack.
STACKS = {"hidden": ("x", "layers"), "encoder_hidden": ("e", "encoder"), "decoder_hidden": ("x", "decoder")}
LAST = {"bart": "decoder.1", "bert": "layers.1", "t5": "decoder_norm"}

# Sums over the matrices at the published sizes; that of bart has its constant bias of the logits in it.
PUBLISHED = {
    "bart": 139_470_681,
    "bert": 109_514_298,
    "bloom": 559_214_592,
    "falcon": 41_303_293_952,
    "gemma2": 2_614_341_888,
    "gpt2": 124_439_808,
    "gpt_neox": 20_554_567_680,
    "llama": 8_030_261_248,
    "mistral": 7_241_732_096,
    "mixtral": 46_702_792_704,
    "olmo2": 7_298_617_344,
    "opt": 125_239_296,
    "phi": 2_779_683_840,
    "t5": 60_506_624,
    "vit": 86_567_656,
}

each_family = pytest.mark.parametrize("family", FAMILIES)
each_dtype = pytest.mark.parametrize("dtype", BOUNDS)


@cache
def recorded(family: str, name: str = "io") -> dict[str, Any]:
    """The arrays of a file, read by the description of the format and not by the package."""
    raw = (DATA / family / f"{name}.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, body = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    dtypes = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}
    return {
        key: np.frombuffer(body[slice(*one["data_offsets"])], dtypes[one["dtype"]]).reshape(one["shape"])
        for key, one in header.items()
        if key != "__metadata__"
    }


@dataclass(frozen=True)
class Model:
    """A family's spec at the sizes of its checkpoint, and the checkpoint's weights under the spec's names."""

    family: str
    program: bg.Program
    params: dict[str, Any]

    def inputs(self, masked: bool = False) -> dict[str, Any]:
        io = recorded(self.family)
        keys = {"source": "input_ids", "target": "decoder_input_ids", "tokens": "input_ids"}
        keys |= {"token_types": "token_type_ids", "pixels": "pixel_values", "keep": "masked.attention_mask"}
        found = {port.name: io[keys[port.name]] for port in self.program.graph.inputs}
        if "keep" in found:
            found["keep"] = found["keep"] == 1 if masked else np.ones(found["keep"].shape, dtype=bool)
        return found

    def cast(self, dtype: str) -> dict[str, Any]:
        return {name: array.astype(dtype) for name, array in self.params.items()}


@cache
def model(family: str) -> Model:
    spec, params, findings = weights.load(bg.load(SPECS / f"{family}.yaml"), DATA / family)
    assert [one for one in findings if one.severity == "error"] == []
    return Model(family, bg.compile(spec), params)


def spec_name(family: str, key: str) -> str | None:
    """The name in the spec of a recorded value; None for what is no value of a forward run."""
    stem, _, number = key.rpartition(".")
    if stem in STACKS:
        entry, stack = STACKS[stem]
        return f"{stack}.{int(number) - 1}" if int(number) else entry
    names = {"logits": "logits", "last_hidden_state": LAST.get(family, "final_norm")}
    return {**names, "encoder_last_hidden_state": "memory"}.get(key)


def states(family: str) -> list[str]:
    """The keys of all that a forward run makes: what is stored in float64."""
    return sorted(key for key, array in recorded(family).items() if array.dtype == np.float64)


def relative_error(found: Any, expected: Any, floor: float = 0.0) -> float:
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), floor))


def errors(family: str, trace: bg.Trace, prefix: str = "") -> dict[str, float]:
    """The error of each recorded value whose key has this prefix."""
    found = {}
    for key, expected in recorded(family).items():
        name = spec_name(family, key.removeprefix(prefix)) if key.startswith(prefix) else None
        if name is not None:
            found[key] = relative_error(trace[name], expected)
    return found


def test_there_is_a_spec_for_each_family_and_data_for_each_spec() -> None:
    assert [path.stem for path in sorted(SPECS.glob("*.yaml"))] == FAMILIES
    assert len(FAMILIES) == 15


@each_family
def test_a_model_spec_says_where_it_comes_from_and_has_no_finding(family: str) -> None:
    checked = bg.check(SPECS / f"{family}.yaml")
    assert checked.findings == ()
    assert checked.spec.name == family
    assert checked.spec.source


@each_family
def test_a_model_spec_has_the_published_number_of_parameters(family: str) -> None:
    graph = bg.check(SPECS / f"{family}.yaml").graph
    assert graph is not None
    assert number_of_parameters(graph) == PUBLISHED[family]


def test_other_sizes_of_a_family_are_other_numbers() -> None:
    one_billion = bg.check(SPECS / "llama.yaml", C=2048, N=16, D=64, F=8192)
    assert one_billion.graph is not None
    assert number_of_parameters(one_billion.graph) == 1_498_482_688


def test_patches_that_do_not_fill_the_image_are_refused() -> None:
    (finding,) = bg.check(SPECS / "vit.yaml", I=225).findings
    assert finding.message == "P = 16 does not divide I = 225: 225 / 16 leaves 1"


def test_a_llama_with_scaled_rotary_positions_is_refused(tmp_path: Path) -> None:
    config = json.loads((DATA / "llama" / "config.json").read_text(encoding="utf-8"))
    config["rope_scaling"] = {"rope_type": "llama3", "factor": 32.0}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(bg.InputError, match=r"`rope_scaling` is .* and this spec is for null"):
        weights.spec_of(SPECS / "llama.yaml", tmp_path)


@each_dtype
@each_family
def test_every_hidden_state_and_the_logits_are_those_of_the_library(family: str, dtype: str) -> None:
    one = model(family)
    found = errors(family, one.program.trace(one.inputs(), one.cast(dtype)))
    assert sorted(found) == [key for key in states(family) if not key.startswith(("masked.", "router."))]
    assert {key: error for key, error in found.items() if not error < BOUNDS[dtype]} == {}


@each_dtype
@pytest.mark.parametrize("family", MASKED)
def test_padding_hides_keys_and_still_computes(family: str, dtype: str) -> None:
    one = model(family)
    found = errors(family, one.program.trace(one.inputs(masked=True), one.cast(dtype)), "masked.")
    assert sorted(found) == [key for key in states(family) if key.startswith("masked.")]
    assert {key: error for key, error in found.items() if not error < BOUNDS[dtype]} == {}


@pytest.mark.parametrize("layer", [0, 1])
def test_the_router_of_mixtral_chooses_and_weighs_as_the_library_does(layer: int) -> None:
    one = model("mixtral")
    trace = one.program.trace(one.inputs(), one.cast("float64"))
    io = recorded("mixtral")
    np.testing.assert_array_equal(trace[f"layers.{layer}.moe.index"], io[f"router.{layer}.indices"])
    assert relative_error(trace[f"layers.{layer}.moe.weight"], io[f"router.{layer}.weights"]) < 1e-9


@each_dtype
@each_family
def test_the_gradient_of_every_stored_weight_is_that_of_the_library(family: str, dtype: str) -> None:
    one, io = model(family), recorded(family)
    _, back = one.program.vjp(one.inputs(), one.cast(dtype))
    _, gradients = back(io["cotangent"].astype(dtype))
    found = weights.to_checkpoint(one.program, gradients, DATA / family)
    expected = {key.removeprefix("grad."): array for key, array in io.items() if key.startswith("grad.")}
    floor = 1e-3 * max(float(np.abs(array).max()) for array in expected.values())
    off = {name: relative_error(found[name], array, floor) for name, array in expected.items()}
    assert {name: error for name, error in off.items() if not error < GRADIENT_BOUNDS[dtype]} == {}


@each_family
def test_a_checkpoint_comes_out_as_it_went_in(family: str) -> None:
    one, stored = model(family), recorded(family, "weights")
    written = weights.to_checkpoint(one.program, one.params, DATA / family)
    assert sorted(written) == sorted(stored)
    assert [name for name in stored if not np.array_equal(written[name], stored[name])] == []
