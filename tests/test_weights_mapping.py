"""The `checkpoint:` section: what it may say, what it takes from config.json, and how names pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import blockgraph as bg
from blockgraph import weights
from blockgraph.module import Report
from blockgraph.weights.mapping import findings, read_mapping

SPEC: dict[str, Any] = {
    "dims": {"C": 6, "H": 3, "D": "C/H", "R": "D"},
    "constants": {"eps": 1e-6, "cap": None, "act": "gelu"},
    "block": {"params": {"W": ["C", "C"], "r": ["R"]}, "equations": "y = x @ W\nz = r * eps"},
}
SPEC["block"]["outputs"] = ["y", "z"]


def folder_of(folder: Path, config: Any, **arrays: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    save_file({name: np.asarray(array) for name, array in arrays.items()}, folder / "model.safetensors")
    return folder


def told(spec: Any, config: Any, folder: Path) -> tuple[bg.Finding, ...]:
    """The findings of the config's part, whether they are errors or notes."""
    folder_of(folder, config, x=np.zeros(1))
    try:
        return weights.spec_of(bg.load(spec), folder)[1]
    except bg.BlockgraphError as error:
        return error.findings


def sized(spec: Any, config: Any, folder: Path) -> dict[str, Any]:
    folder_of(folder, config, x=np.zeros(1))
    return weights.spec_of(bg.load(spec), folder)[0].overrides


def mapped(**config: Any) -> dict[str, Any]:
    return {**SPEC, "checkpoint": {"config": config}}


def test_dims_and_constants_come_from_keys_and_dotted_keys(tmp_path: Path) -> None:
    spec = mapped(C="hidden", eps="norm.eps", act="hidden_act", cap="a.b.c")
    config = {"hidden": 8, "norm": {"eps": 1e-5}, "hidden_act": "relu", "a": {"b": {"c": 3}}}
    assert sized(spec, config, tmp_path) == {"C": 8, "eps": 1e-5, "act": "relu", "cap": 3}


def test_an_expression_uses_keys_and_the_dims_that_the_config_has_set(tmp_path: Path) -> None:
    spec = mapped(R="D*rope.part", C="hidden", H="n - 1")
    assert sized(spec, {"hidden": 24, "n": 4, "rope": {"part": 0.5}}, tmp_path) == {"C": 24, "H": 3, "R": 4}


def test_for_a_dim_a_whole_valued_float_counts(tmp_path: Path) -> None:
    found = sized(mapped(C="hidden"), {"hidden": 8.0}, tmp_path)
    assert found == {"C": 8}
    assert type(found["C"]) is int


@pytest.mark.parametrize("value", [8.5, 0, -8, True, "8", [8], {"a": 1}, 1e400])
def test_a_dim_takes_nothing_but_a_positive_whole_number(value: Any, tmp_path: Path) -> None:
    (one,) = told(mapped(C="hidden"), {"hidden": value}, tmp_path)
    assert (one.code, one.severity) == ("BG308", "error")
    assert one.place.spec_path == "checkpoint.config.C"
    assert "`C` must be a positive whole number, and `hidden` of" in one.message


@pytest.mark.parametrize("value", [True, [1], {"a": 1}])
def test_a_constant_takes_a_number_or_a_word(value: Any, tmp_path: Path) -> None:
    (one,) = told(mapped(eps="e"), {"e": value}, tmp_path)
    assert one.code == "BG308"
    assert "`eps` must be a number or a word" in one.message


@pytest.mark.parametrize(
    ("config", "reason"), [({}, "no key `norm_eps`"), ({"norm_eps": None}, "null under `norm_eps`")]
)
def test_a_key_that_is_absent_or_null_leaves_the_value_of_the_spec_and_says_so(
    config: Any, reason: str, tmp_path: Path
) -> None:
    (one,) = told(mapped(eps="norm_eps"), config, tmp_path)
    assert (one.code, one.severity) == ("BG309", "note")
    assert one.message.startswith("`eps` keeps 1e-06, the value of this spec: ")
    assert one.message.endswith(reason)
    assert one.related[0].place is not None
    assert one.related[0].place.spec_path == "constants.eps"


def test_a_key_that_is_absent_in_an_expression_leaves_the_value_too(tmp_path: Path) -> None:
    (one,) = told(mapped(R="D*rope.part"), {"rope": {}}, tmp_path)
    assert one.severity == "note"
    assert "`R` keeps D" in one.message


def test_a_misspelt_key_of_the_config_is_suggested(tmp_path: Path) -> None:
    (one,) = told(mapped(eps="layer_norm_epsilon"), {"layer_norm_eps": 1}, tmp_path)
    assert one.help == "did you mean `layer_norm_eps`?"


def test_what_is_set_by_hand_wins_over_the_config_and_a_note_says_so(tmp_path: Path) -> None:
    folder_of(tmp_path, {"hidden": 8}, x=np.zeros(1))
    spec, (note,) = weights.spec_of(bg.load(mapped(C="hidden")).with_values({"C": 12}), tmp_path)
    assert spec.overrides == {"C": 12}
    assert (note.code, note.severity) == ("BG309", "note")


def test_a_config_that_differs_from_what_the_spec_assumes_is_an_error(tmp_path: Path) -> None:
    spec = {
        **SPEC,
        "checkpoint": {"expect": {"act": "gelu", "n": 1, "bias": False, "a.b": [1, 2], "w": None, "v": "none"}},
    }
    good = {"act": "gelu", "n": 1.0, "bias": False, "a": {"b": [1, 2]}, "w": None, "v": None}
    assert told(spec, good, tmp_path) == ()
    bad = {"act": "relu", "n": 2, "bias": 0, "a": {"b": [1]}, "w": 3, "v": 0}
    found = told(spec, bad, tmp_path)
    assert [one.code for one in found] == ["BG308"] * 6
    assert found[0].message.startswith("`act` is relu in ")
    assert found[0].message.endswith("and this spec is for gelu")
    assert found[0].place.spec_path == "checkpoint.expect.act"


def test_a_config_that_does_not_say_what_the_spec_assumes_is_a_note(tmp_path: Path) -> None:
    (one,) = told({**SPEC, "checkpoint": {"expect": {"act": "gelu"}}}, {}, tmp_path)
    assert (one.code, one.severity) == ("BG309", "note")
    assert "the spec assumes `act: gelu`" in one.message


def test_a_folder_without_a_config_keeps_the_sizes_and_says_so(tmp_path: Path) -> None:
    (one,) = weights.spec_of(bg.load(mapped(C="hidden")), tmp_path)[1]
    assert (one.code, one.severity) == ("BG309", "note")


SECTIONS = {
    "an unknown key": ({"weight": {}}, "BG020", "checkpoint.weight", "did you mean `weights`?"),
    "a wrong layout": ({"layout": "in-out"}, "BG022", "checkpoint.layout", "out_in"),
    "a list for a mapping": ({"weights": ["a"]}, "BG022", "checkpoint.weights", ""),
    "an unknown dim": ({"config": {"CC": "a"}}, "BG027", "checkpoint.config.CC", ""),
    "a number for a key": ({"config": {"C": 3}}, "BG022", "checkpoint.config.C", ""),
    "a broken expression": ({"config": {"C": "a +"}}, "BG016", "checkpoint.config.C", ""),
    "a list for a name": ({"weights": {"W": ["a"]}}, "BG022", "checkpoint.weights.W", "{from: name, take"),
    "a rule without its tensor": ({"weights": {"W": {"take": "tensor"}}}, "BG021", "checkpoint.weights.W.from", ""),
    "an unknown key in a rule": (
        {"weights": {"W": {"from": "a", "tak": "tensor"}}},
        "BG020",
        "checkpoint.weights.W.tak",
        "",
    ),
    "too many stars": ({"weights": {"W": "a.*.b.*"}}, "BG312", "checkpoint.weights.W", "each `*`"),
    "no list of patterns": ({"ignore": [3]}, "BG022", "checkpoint.ignore", ""),
    "a broken take": ({"weights": {"W": {"from": "a", "take": "tensor +"}}}, "BG016", "checkpoint.weights.W.take", ""),
    "an unknown parameter": ({"weights": {"w": "a"}}, "BG312", "checkpoint.weights.w", "did you mean `W`?"),
}


@pytest.mark.parametrize("case", SECTIONS)
def test_a_fault_of_the_section_is_found_at_its_place(case: str, tmp_path: Path) -> None:
    section, code, path, help = SECTIONS[case]
    folder_of(tmp_path, {}, W=np.zeros((6, 6)), r=np.zeros(2))
    with pytest.raises(bg.BlockgraphError, match=code) as caught:
        weights.load({**SPEC, "checkpoint": section}, tmp_path)
    errors = [one for one in caught.value.findings if one.severity == "error"]
    assert [(one.code, one.place.spec_path) for one in errors] == [(code, path)]
    assert help in errors[0].help


def test_the_section_is_read_without_any_file() -> None:
    report = Report()
    section = read_mapping(bg.load({**SPEC, "checkpoint": {"weights": {"W": "a"}, "ignore": ["*.bias"]}}), report)
    assert report.findings == []
    assert [rule.tensor for rule in section.rules] == ["a"]
    assert section.ignores("layer.0.bias")
    assert not section.ignores("layer.0.bias2")


def stack(rules: dict[str, Any], shape: list[Any], repeat: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "dims": {"C": 3, "E": 2},
        "blocks": {"one": {"params": {"w": shape}, "equations": "x = x * sum(w, '... -> 1')"}},
        "model": {
            "parts": {"layers": {"kind": "stack", "of": "one", "repeat": repeat}},
            "equations": "y = layers(x)",
        },
        "checkpoint": {"weights": rules, **more},
    }


def test_two_rules_for_one_parameter_are_refused() -> None:
    spec = bg.load(stack({"layers.*.w": "h.*.w", "layers.1.w": "special"}, ["C"]))
    (one,) = findings(spec, bg.check(spec).graph)
    assert (one.code, one.place.spec_path) == ("BG312", "checkpoint.weights.layers.1.w")
    assert one.message == "`layers.*.w` and `layers.1.w` name the same parameter"


def test_names_are_compared_without_a_file_where_the_number_of_layers_is_known() -> None:
    spec = bg.load(stack({"layers.*.v": "h.*.w"}, ["C"]))
    (one,) = findings(spec, bg.check(spec).graph)
    assert one.help == "did you mean `layers.*.w`?"
    open_count = {**spec.data, "dims": {"C": 3, "E": 2, "N": None}}
    open_count["model"] = {
        "parts": {"layers": {"kind": "stack", "of": "one", "repeat": "N"}},
        "equations": "y = layers(x)",
    }
    assert findings(bg.load(open_count), bg.check(open_count).graph) == ()


def rows(count: int, start: int = 0) -> dict[str, Any]:
    return {f"h.{index}.w": np.full(3, float(start + index)) for index in range(count)}


def test_stars_are_paired_from_the_left(tmp_path: Path) -> None:
    found = weights.load(stack({"layers.*.w": "h.*.w"}, ["C"], 11), folder_of(tmp_path, {}, **rows(11))).params
    assert {name: array[0] for name, array in found.items()} == {f"layers.{index}.w": index for index in range(11)}


def test_one_star_more_in_the_tensors_name_stacks_along_a_new_first_axis(tmp_path: Path) -> None:
    arrays = {f"h.{n}.e.{m}.w": np.full(3, 10.0 * n + m) for n in range(2) for m in range(2)}
    found = weights.load(stack({"layers.*.w": "h.*.e.*.w"}, ["E", "C"]), folder_of(tmp_path, {}, **arrays)).params
    assert found["layers.1.w"].tolist() == [[10.0] * 3, [11.0] * 3]


def test_a_gap_in_what_is_stacked_is_missing(tmp_path: Path) -> None:
    arrays = {f"h.{n}.e.{m}.w": np.zeros(3) for n in range(2) for m in (0, 2)}
    with pytest.raises(bg.InputError, match=r"BG301.*2 parameters are missing") as caught:
        weights.load(stack({"layers.*.w": "h.*.e.*.w"}, ["E", "C"]), folder_of(tmp_path, {}, **arrays))
    assert "wants the tensor `h.0.e.1.w`" in caught.value.findings[0].related[0].message


def test_one_star_more_in_the_parameters_name_indexes_the_first_axis(tmp_path: Path) -> None:
    spec = stack({"layers.*.w": "all"}, ["C"])
    path = folder_of(tmp_path, {}, all=np.arange(6.0).reshape(2, 3))
    assert weights.load(spec, path).params["layers.1.w"].tolist() == [3.0, 4.0, 5.0]
    short = folder_of(tmp_path, {}, all=np.arange(3.0).reshape(1, 3))
    with pytest.raises(bg.InputError, match=r"BG306.*`all` has no index 1"):
        weights.load(spec, short)


def test_a_tensor_is_used_or_ignored_or_it_is_unexpected(tmp_path: Path) -> None:
    rules = {"layers.*.w": "h.*.w"}
    path = folder_of(tmp_path, {}, **rows(3), **{"h.0.mask": np.zeros(1), "rope.inv_freq": np.zeros(1)})
    with pytest.raises(bg.InputError, match=r"BG305.*3 tensors are unexpected: h.0.mask, h.2.w, rope.inv_freq"):
        weights.load(stack(rules, ["C"]), path)
    ignored = stack(rules, ["C"], ignore=["h.*.mask", "*.inv_freq", "h.2.*"])
    assert len(weights.load(ignored, path).params) == 2


FUSED = "rearrange(tensor, '(h three d) c -> three (h d) c', three=3, h=H, d=D)"


def fused(take: str) -> dict[str, Any]:
    rule = {"from": "qkv", "take": take}
    return {
        "dims": {"C": 4, "H": 2, "D": "C/H"},
        "block": {"params": {"W": ["C", "C"]}, "equations": "y = x @ W"},
        "checkpoint": {"layout": "out_in", "weights": {"W": rule}},
    }


def test_what_is_taken_is_turned_by_the_layout_after_it_is_taken(tmp_path: Path) -> None:
    qkv = np.arange(48.0).reshape(12, 4)
    found = weights.load(fused(f"{FUSED}[1]"), folder_of(tmp_path, {}, qkv=qkv)).params["W"]
    keys = [qkv[head * 6 + 2 + feature] for head in range(2) for feature in range(2)]  # out: head, feature
    assert found.tolist() == np.array(keys).T.tolist()


TAKES = {
    "a scale": ("tensor[:C] * 2", "BG312", "`multiply` does more"),
    "a repeat": ("repeat(tensor[0], 'c -> r c', r=C)", "BG312", "`repeat` does more"),
    "an unknown name": ("tensr[:C]", "BG025", "unknown name `tensr`"),
    "an unknown function": ("reshap(tensor)", "BG026", "unknown function `reshap`"),
    "a pattern that does not fit": ("rearrange(tensor, '(h x) c -> h x c', h=5)[0]", "BG103", "5 does not divide 12"),
    "another shape": ("tensor[:5]", "BG306", "what is taken from `qkv` has shape (5, 4)"),
}


@pytest.mark.parametrize("case", TAKES)
def test_a_take_that_cannot_be_is_a_finding(case: str, tmp_path: Path) -> None:
    take, code, words = TAKES[case]
    with pytest.raises(bg.InputError, match=code) as caught:
        weights.load(fused(take), folder_of(tmp_path, {}, qkv=np.zeros((12, 4))))
    (one,) = caught.value.findings
    assert words in one.message
    assert one.place.spec_path.startswith("checkpoint.weights.W")


def test_rules_for_weights_without_a_declared_layout_are_a_warning(tmp_path: Path) -> None:
    spec = fused("tensor[:C]")
    del spec["checkpoint"]["layout"]
    (one,) = weights.load(spec, folder_of(tmp_path, {}, qkv=np.zeros((12, 4)))).findings
    assert (one.code, one.severity) == ("BG314", "warning")
