"""Checkpoints held against a spec: what fits is loaded, and each kind of misfit is one finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import blockgraph as bg
from blockgraph import weights

LINEAR = {"dims": {"C": 2}, "block": {"params": {"W": ["C", "C"]}, "equations": "y = x @ W"}}
TIED = {
    "dims": {"C": 4, "V": 7},
    "model": {
        "inputs": {"tokens": {"ids": ["B", "T"], "below": "V"}},
        "parts": {"embed": {"kind": "embedding", "size": "V", "width": "C"}, "norm": "layer_norm"},
        "equations": "logits = norm(embed(tokens)) @ embed.table.T",
    },
}
UNTIED = {
    **TIED,
    "model": {
        "inputs": TIED["model"]["inputs"],  # type: ignore[index]
        "parts": {**TIED["model"]["parts"], "head": {"kind": "linear", "out": "V"}},  # type: ignore[index]
        "equations": "logits = head(norm(embed(tokens)))",
    },
}


def linear(**checkpoint: Any) -> dict[str, Any]:
    return {**LINEAR, "checkpoint": checkpoint}


def stored(folder: Path, **arrays: Any) -> Path:
    path = folder / "x.npz"
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})
    return path


def faults(spec: Any, path: Path, **options: Any) -> tuple[bg.Finding, ...]:
    with pytest.raises(bg.BlockgraphError, match="BG") as caught:
        weights.load(spec, path, **options)
    return tuple(one for one in caught.value.findings if one.severity == "error")


@pytest.mark.parametrize(
    ("layout", "y"), [({}, [1, 2]), ({"layout": "in_out"}, [1, 2]), ({"layout": "out_in"}, [1, 3])]
)
def test_a_square_weight_is_applied_as_the_declared_layout_says(layout: Any, y: list[int], tmp_path: Path) -> None:
    found = weights.load(linear(**layout), stored(tmp_path, W=[[1.0, 2.0], [3.0, 4.0]]))
    program = bg.compile(found.spec)
    assert program(np.array([[[1.0, 0.0]]]), found.params).tolist() == [[y]]


def test_a_layout_is_not_applied_to_tables_vectors_and_matrices_on_the_left(tmp_path: Path) -> None:
    spec = {
        "dims": {"C": 3},
        "block": {
            "inputs": {"x": ["T", "C"]},
            "params": {"L": ["C", "C"], "g": ["C"], "W": ["C", "C"]},
            "equations": "y = L @ rearrange(x * g, 't c -> c t')\ny = rearrange(y, 'c t -> t c') @ W",
        },
        "checkpoint": {"layout": "out_in"},
    }
    arrays = {"L": np.arange(9.0).reshape(3, 3), "g": np.arange(3.0), "W": np.arange(9.0).reshape(3, 3)}
    found = weights.load(spec, stored(tmp_path, **arrays)).params
    assert found["L"].tolist() == arrays["L"].tolist()
    assert found["g"].tolist() == arrays["g"].tolist()
    assert found["W"].tolist() == arrays["W"].T.tolist()


def test_an_embedding_is_no_linear_map_even_where_it_is_the_output_too(tmp_path: Path) -> None:
    table = np.arange(28.0).reshape(7, 4)
    path = stored(tmp_path, **{"embed.table": table, "norm.gamma": np.ones(4), "norm.beta": np.zeros(4)})
    found = weights.load({**TIED, "checkpoint": {"layout": "out_in"}}, path).params
    assert found["embed.table"].tolist() == table.tolist()


def test_a_transposed_shape_is_refused_with_the_remedy_and_never_transposed_unasked(tmp_path: Path) -> None:
    spec = {
        "dims": {"C": 2304, "F": 768},
        "block": {"parts": {"map": {"kind": "linear", "out": "F"}}, "equations": "y = map(x)"},
    }
    (one,) = faults(spec, stored(tmp_path, **{"map.W": np.zeros((768, 2304))}))
    assert one.code == "BG306"
    assert "`map.W` has shape (768, 2304)" in one.message
    assert "(2304, 768) is expected" in one.message
    assert one.help == "the transposed shape fits; set `layout: out_in` under `checkpoint:`"
    (two,) = faults({**spec, "checkpoint": {"layout": "out_in"}}, stored(tmp_path, **{"map.W": np.zeros((2304, 768))}))
    assert two.help == "the transposed shape fits; set `layout: in_out` under `checkpoint:`"


def test_many_transposed_weights_are_one_finding(tmp_path: Path) -> None:
    spec = {
        "dims": {"C": 4, "F": 6},
        "block": {
            "parts": {"ff": {"kind": "feed_forward", "hidden": "F", "activation": "relu"}},
            "equations": "y = ff(x)",
        },
    }
    arrays = {"ff.W1": np.zeros((6, 4)), "ff.W2": np.zeros((4, 6)), "ff.b1": np.zeros(6), "ff.b2": np.zeros(4)}
    (one,) = faults(spec, stored(tmp_path, **arrays))
    assert "(and 1 more)" in one.message


MISSING_PREFIX = {"a": ["C"], "b": ["C"], "d": ["C"]}


def vectors(**names: Any) -> dict[str, Any]:
    return {"dims": {"C": 2}, "block": {"params": MISSING_PREFIX, "equations": "y = x * a + b * d"}, **names}


def test_names_that_all_carry_one_prefix_are_one_finding_that_proposes_to_strip_it(tmp_path: Path) -> None:
    path = stored(tmp_path, **{f"model.{name}": np.ones(2) for name in "abd"})
    (one,) = faults(vectors(), path)
    assert one.code == "BG301"
    assert one.message == ("3 parameters are missing: a, b, d; 3 tensors are unexpected: model.a, model.b, model.d")
    assert one.help.startswith("strip `model.` from the names in the file, and all of them match")


def test_names_that_all_lack_one_prefix_are_one_finding_that_proposes_to_add_it(tmp_path: Path) -> None:
    rules = {name: f"model.{name}" for name in "abd"}
    path = stored(tmp_path, a=np.ones(2), b=np.ones(2), d=np.ones(2))
    (one,) = faults(vectors(checkpoint={"weights": rules}), path)
    assert one.help.startswith("add `model.` to those names, and all of them match")


def test_a_missing_and_an_extra_tensor_are_named_each_with_its_count(tmp_path: Path) -> None:
    (one,) = faults(vectors(), stored(tmp_path, a=np.ones(2), b=np.ones(2)))
    assert (one.code, one.message) == ("BG301", "1 parameter is missing: d")
    everything = {name: np.ones(2) for name in "abdefgh"}
    (two,) = faults(vectors(), stored(tmp_path, **everything))
    assert (two.code, two.message) == ("BG305", "4 tensors are unexpected: e, f, g, ...")
    both = faults(vectors(), stored(tmp_path, a=np.ones(2), b=np.ones(2), z=np.ones(2)))
    assert [one.code for one in both] == ["BG301", "BG305"]


def test_partial_loading_is_only_on_request_and_says_how_much_was_loaded(tmp_path: Path) -> None:
    path = stored(tmp_path, a=np.ones(2), z=np.ones(2))
    assert faults(vectors(), path)
    found = weights.load(vectors(), path, partial=True)
    assert list(found.params) == ["a"]
    (note,) = found.findings
    assert (note.code, note.severity) == ("BG313", "note")
    assert note.message == "1 of 3 parameters loaded; 1 tensors of the file not used"


def test_partial_loading_still_refuses_a_wrong_shape(tmp_path: Path) -> None:
    (one,) = faults(vectors(), stored(tmp_path, a=np.ones(3)), partial=True)
    assert one.code == "BG306"


SIZED = {
    "dims": {"C": 4, "F": 6, "V": 10},
    "model": {
        "inputs": {"tokens": {"ids": ["B", "T"], "below": "V"}},
        "parts": {
            "embed": {"kind": "embedding", "size": "V", "width": "C"},
            "ff": {"kind": "feed_forward", "hidden": "F", "activation": "relu"},
        },
        "equations": "y = ff(embed(tokens)) @ embed.table.T",
    },
}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"C": 8}, ["`C` is 4 in the spec and 8 in the file: "]),
        ({"F": 7}, ["`F` is 6 in the spec and 7 in the file: "]),
        ({"V": 11}, ["`V` is 10 in the spec and 11 in the file: `embed.table` has shape (11, 4) in the file"]),
        ({"C": 8, "V": 11}, ["`C` is 4 in the spec and 8", "`V` is 10 in the spec and 11"]),
    ],
)
def test_a_dim_of_another_number_is_one_finding_whatever_depends_on_it(
    other: dict[str, int], told: list[str], tmp_path: Path
) -> None:
    params = bg.compile(SIZED, **other).init(0)
    found = faults(SIZED, stored(tmp_path, **params))
    assert [one.code for one in found] == ["BG306"] * len(told)
    assert all(one.message.startswith(start) for one, start in zip(found, told, strict=True))
    (name, number), *_ = other.items()
    assert found[0].help.endswith(f"the right weights: `--set {name}={number}`, or {name}={number} in Python")
    with pytest.raises(bg.InputError, match=f"`{name}` is [0-9]+ in the spec and {number} in the parameters") as caught:
        bg.compile(SIZED)(np.zeros((1, 2), int), params)
    assert [one.code for one in caught.value.findings] == ["BG301"] * len(told)
    del params["ff.b2"]
    codes = [one.code for one in faults(SIZED, stored(tmp_path, **params))]
    assert codes == ["BG301", *["BG306"] * len(told)]


def test_a_dim_that_is_right_elsewhere_is_not_the_cause_of_one_wrong_tensor(tmp_path: Path) -> None:
    params = {**bg.compile(SIZED).init(0), "ff.b1": np.zeros(5)}
    (one,) = faults(SIZED, stored(tmp_path, **params))
    assert one.message.startswith("`ff.b1` has shape (5,) in the file, and (6,) is expected there")


def test_a_width_that_is_a_multiple_is_explained(tmp_path: Path) -> None:
    spec = {
        "dims": {"C": 8, "F": 84},
        "block": {
            "parts": {"ff": {"kind": "gated_feed_forward", "hidden": "F", "activation": "silu"}},
            "equations": "y = ff(x)",
        },
        "checkpoint": {
            "layout": "out_in",
            "weights": {"ff.Wg": "gate.weight", "ff.Wu": "up.weight", "ff.Wd": "down.weight"},
        },
    }
    gated = {"gate.weight": np.ones((28, 8)), "up.weight": np.ones((28, 8)), "down.weight": np.ones((8, 28))}
    path = stored(tmp_path, **gated)
    (one,) = faults(spec, path)
    assert one.code == "BG306"
    assert one.message == (
        "`F` is 84 in the spec and 28 in the file: `gate.weight` has shape (28, 8) in the file, "
        "and (84, 8) is expected there: `ff.Wg` is (C = 8, F = 84) (and 2 more)"
    )
    assert one.help.startswith("84 = 3 x 28; the width here means each of gate and up; if these are the right weights")
    assert {
        name: array.shape for name, array in weights.load({**spec, "dims": {"C": 8, "F": 28}}, path).params.items()
    } == {
        "ff.Wg": (8, 28),
        "ff.Wu": (8, 28),
        "ff.Wd": (28, 8),
    }


def test_a_tied_spec_is_saved_with_one_array_and_a_record_and_reloads_bit_for_bit(tmp_path: Path) -> None:
    program = bg.compile(TIED)
    params = program.init(3)
    weights.save(program, params, tmp_path / "x.safetensors")
    assert sorted(load_file(tmp_path / "x.safetensors")) == ["embed.table", "norm.beta", "norm.gamma"]
    found = weights.load(program, tmp_path / "x.safetensors")
    assert found.findings == ()
    assert {name: array.tobytes() for name, array in found.params.items()} == {
        name: array.tobytes() for name, array in params.items()
    }
    notes = weights.open_checkpoint(str(tmp_path / "x.safetensors")).notes
    assert json.loads(notes["ties"]) == {"logits": "embed.table"}


def test_an_untied_spec_names_the_missing_head_and_the_array_it_was_tied_to(tmp_path: Path) -> None:
    program = bg.compile(TIED)
    weights.save(program, program.init(3), tmp_path / "x.safetensors")
    (one,) = faults(UNTIED, tmp_path / "x.safetensors")
    assert one.code == "BG307"
    assert "`head.W` is missing: in the file it is tied to `embed.table`, which serves as `logits` too" in one.message
    assert "x @ embed.table.T" in one.help


RULES = {"embed.table": "wte.weight", "norm.gamma": "ln.weight", "norm.beta": "ln.bias"}
HUGGING = {"wte.weight": np.ones((7, 4)), "ln.weight": np.ones(4), "ln.bias": np.ones(4)}


def folder_of(folder: Path, config: dict[str, Any], arrays: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    save_file(arrays, folder / "model.safetensors")
    return folder


def test_a_config_that_says_tied_explains_the_missing_head(tmp_path: Path) -> None:
    path = folder_of(tmp_path, {"hidden": 4, "tie_word_embeddings": True}, HUGGING)
    rules = {**RULES, "head.W": "lm_head.weight"}
    spec = {**UNTIED, "checkpoint": {"layout": "out_in", "config": {"C": "hidden"}, "weights": rules}}
    (one,) = faults(spec, path)
    assert one.code == "BG307"
    assert "`head.W` is missing: in the file it is tied to `wte.weight`, which serves as the output too" in one.message


def test_a_head_that_the_file_has_and_a_tied_spec_does_not_use_is_explained(tmp_path: Path) -> None:
    path = folder_of(tmp_path, {}, {**HUGGING, "lm_head.weight": np.zeros((7, 4))})
    (one,) = faults({**TIED, "checkpoint": {"weights": RULES}}, path)
    assert one.code == "BG305"
    assert one.help.startswith("`lm_head.weight` has the shape of `embed.table`, which this spec uses more than once")


def test_a_shared_stack_is_saved_once_and_says_so_to_one_that_does_not_share(tmp_path: Path) -> None:
    stack = {"kind": "stack", "of": "one", "repeat": 3, "share": True}
    spec: dict[str, Any] = {
        "dims": {"C": 4},
        "blocks": {"one": {"parts": {"norm": "rms_norm"}, "equations": "x = x + norm(x)"}},
        "model": {"parts": {"layers": stack}, "equations": "y = layers(x)"},
    }
    program = bg.compile(spec)
    params = program.init(0)
    assert list(params) == ["layers.0.norm.gamma"]
    weights.save(program, params, tmp_path / "x.safetensors")
    assert weights.load(spec, tmp_path / "x.safetensors").params.keys() == params.keys()
    alone = {**spec, "model": {"parts": {"layers": {**stack, "share": False}}, "equations": "y = layers(x)"}}
    (one,) = faults(alone, tmp_path / "x.safetensors")
    assert one.code == "BG307"
    assert one.message.startswith("2 parameters are missing: layers.1.norm.gamma, layers.2.norm.gamma; in the file ")
    assert "`layers.0.norm.gamma` are one array" in one.message


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_the_dtype_of_the_file_is_kept_unless_another_is_asked_for(dtype: str, tmp_path: Path) -> None:
    array = np.array([[1.5, -2.0], [0.25, 3.0]], dtype)
    save_file({"W": array}, tmp_path / "x.safetensors")
    assert weights.load(LINEAR, tmp_path / "x.safetensors").params["W"].dtype == np.dtype(dtype)
    other = weights.load(LINEAR, tmp_path / "x.safetensors", dtype="float64").params["W"]
    assert other.dtype == np.float64
    assert other.tolist() == array.tolist()


def test_whole_numbers_are_taken_as_floats_and_booleans_are_refused(tmp_path: Path) -> None:
    found = weights.load(LINEAR, stored(tmp_path, W=[[1, 2], [3, 4]])).params["W"]
    assert found.dtype == np.float64
    assert found.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    (one,) = faults(LINEAR, stored(tmp_path, W=np.ones((2, 2), bool)))
    assert one.code == "BG311"


def test_a_dim_without_a_number_is_asked_for(tmp_path: Path) -> None:
    (one,) = faults({**LINEAR, "dims": {"C": None}}, stored(tmp_path, W=np.ones((2, 2))))
    assert (one.code, one.message) == ("BG038", "`C` has no number")


def test_a_spec_with_an_error_is_not_loaded(tmp_path: Path) -> None:
    (one,) = faults({**LINEAR, "block": {"equations": "y = x @ W"}}, stored(tmp_path, W=np.ones((2, 2))))
    assert one.code == "BG025"


def test_parameters_that_are_not_the_programs_are_not_saved(tmp_path: Path) -> None:
    program = bg.compile(LINEAR)
    with pytest.raises(bg.InputError, match=r"BG301.*`W` is missing; `V` is unknown"):
        weights.save(program, {"V": np.ones(2)}, tmp_path / "x.safetensors")
    with pytest.raises(bg.InputError, match=r"BG301.*`W` has shape \(2,\), and \(2, 2\) is expected"):
        weights.save(program, {"W": np.ones(2)}, tmp_path / "x.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_gap_that_only_has_the_shape_of_what_layers_share_is_no_tie(tmp_path: Path) -> None:
    stack = {"kind": "stack", "of": "one", "repeat": 2, "share": True}
    blocks = {"one": {"params": {"w": ["C", "C"]}, "equations": "x = x @ w"}}
    model: dict[str, Any] = {"parts": {"layers": stack}, "equations": "y = layers(x)"}
    program = bg.compile({"dims": {"C": 4}, "blocks": blocks, "model": model})
    weights.save(program, program.init(0), tmp_path / "x.safetensors")
    more = {**model, "params": {"v": ["C", "C"]}, "equations": "y = layers(x) @ v"}
    (one,) = faults({"dims": {"C": 4}, "blocks": blocks, "model": more}, tmp_path / "x.safetensors")
    assert (one.code, one.message) == ("BG301", "1 parameter is missing: v")
