"""The JSON Schema of spec files: the committed one is what the code makes, and it fits what `check` accepts."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from blockgraph.cli.commands.new import starter, starters
from blockgraph.jsonschema import json_schema, json_schema_text
from blockgraph.kind import load_kinds
from blockgraph.source import parse, read
from tests.test_cli import Run, run

__all__ = ["run"]

ROOT = Path(__file__).parent.parent
COMMITTED = ROOT / "blockgraph" / "schema.json"
SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
NAMES = [path.relative_to(ROOT).as_posix() for path in SPECS]
README = (ROOT / "README.md").read_text(encoding="utf-8")
VALIDATOR = jsonschema.Draft7Validator(json.loads(COMMITTED.read_text(encoding="utf-8")))

GOOD: dict[str, Any] = {
    "dims": {"C": 64, "H": 4, "F": None, "D": "C/H"},
    "blocks": {
        "mine": {
            "inputs": {"x": ["B", "T", "C"], "tokens": {"ids": ["B", "T"], "below": 9}},
            "params": {"g": {"shape": ["C"], "init": 0.1}},
            "parts": {
                "attention": {"kind": "attention", "heads": "H", "qk_norm": {"kind": "rms_norm", "over": "head"}}
            },
            "equations": "x = x + g*attention(x)",
        },
        "short": {
            "norm": {"kind": "rms_norm", "eps": 1e-5},
            "placement": ["input", "output"],
            "sublayers": [
                "mine",
                {"kind": "mine", "whatever": 3},
                {"kind": "attention", "heads": 4, "placement": "post", "name": "second"},
                {"norms": "shared", "parallel": [{"kind": "feed_forward", "hidden": "4*C", "activation": "silu"}]},
            ],
        },
    },
    "model": {
        "parts": {"layers": {"kind": "stack", "of": [{"kind": "short", "repeat": 2}, {"kind": "mine", "repeat": 1}]}},
        "equations": ["x = layers(x)"],
    },
}


def test_the_committed_schema_is_what_the_code_makes() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == json_schema_text(), (
        "write it anew: python -m blockgraph schema > blockgraph/schema.json"
    )


def test_the_command_prints_the_schema(run: Run) -> None:
    assert run("schema") == (0, json_schema_text(), "")


def test_the_schema_is_a_schema_and_no_list_in_it_names_a_thing_twice() -> None:
    jsonschema.Draft7Validator.check_schema(json_schema())
    waiting: list[Any] = [json_schema()]
    while waiting:
        one = waiting.pop()
        for words in (one.get("enum"), one.get("required")) if isinstance(one, dict) else ():
            assert isinstance(words, list | None | dict)
            assert not isinstance(words, list) or len(set(words)) == len(words)
        waiting.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())


def test_every_reference_leads_somewhere_and_every_definition_is_used() -> None:
    used = set(re.findall(r'"#/definitions/(\w+)"', json_schema_text()))
    assert used == set(json_schema()["definitions"])


@pytest.mark.parametrize("name", sorted(load_kinds()))
def test_each_kind_has_its_options_and_their_meaning_in_the_schema(name: str) -> None:
    kind = load_kinds()[name]
    found = json_schema()["definitions"][f"kind_{name}"]["properties"]
    assert set(found) == {"kind", *kind.model_fields}
    assert {key: found[key].get("description") for key in kind.model_fields} == {
        key: field.description for key, field in kind.model_fields.items()
    }
    assert " ".join((kind.__doc__ or "").split("\n")[0].split()) in found["kind"]["description"]


@pytest.mark.parametrize("path", SPECS, ids=NAMES)
def test_every_spec_fits_the_schema(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read(path).data)] == []


@pytest.mark.parametrize("path", SPECS, ids=NAMES)
def test_the_first_line_of_every_spec_shows_an_editor_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert found is not None
    assert (path.parent / found[1]).resolve() == COMMITTED


@pytest.mark.parametrize("name", starters())
def test_every_starter_fits_the_schema(name: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(parse(starter(name), "<text>").data)] == []


@pytest.mark.parametrize("text", re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))
def test_every_spec_of_the_readme_fits_the_schema(text: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(parse(text, "<text>").data)] == []


def test_a_spec_with_blocks_as_kinds_and_every_form_of_a_value_fits() -> None:
    assert [error.message for error in VALIDATOR.iter_errors(GOOD)] == []


def spoilt(change: Callable[[Any], object]) -> Any:
    data = copy.deepcopy(GOOD)
    change(data)
    return data


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(blok={}),
        lambda data: data.update(name=3),
        lambda data: data["dims"].update(C=1.5),
        lambda data: data["dims"].update(C=0),
        lambda data: data["dims"].update({"4C": 3}),
        lambda data: data["model"].update(part={}),
        lambda data: data["model"]["parts"]["layers"].update(repat=3),
        lambda data: data["model"]["parts"]["layers"].pop("of"),
        lambda data: data["model"]["parts"]["layers"]["of"][0].update(repeat=-1),
        lambda data: data["blocks"]["mine"]["parts"]["attention"].update(headz=3),
        lambda data: data["blocks"]["mine"]["parts"]["attention"].update(heads=-3),
        lambda data: data["blocks"]["mine"]["parts"]["attention"].update(placement="pre"),
        lambda data: data["blocks"]["mine"]["parts"]["attention"].pop("heads"),
        lambda data: data["blocks"]["mine"]["parts"]["attention"]["qk_norm"].update(over="heads"),
        lambda data: data["blocks"]["mine"]["parts"].update(act={"kind": "silu", "slope": 3}),
        lambda data: data["blocks"]["mine"]["parts"].update(act="gelu"),
        lambda data: data["blocks"]["mine"]["params"]["g"].pop("shape"),
        lambda data: data["blocks"]["mine"]["inputs"]["tokens"].update(belo=3),
        lambda data: data["blocks"]["mine"]["inputs"].update(y="B T C"),
        lambda data: data["blocks"]["mine"].update(equations=3),
        lambda data: data["blocks"]["short"].update(placement=["inptu"]),
        lambda data: data["blocks"]["short"]["norm"].update(affin=False),
        lambda data: data["blocks"]["short"]["sublayers"][2].update(resdual="none"),
        lambda data: data["blocks"]["short"]["sublayers"][3].update(norm=3),
        lambda data: data["blocks"]["short"]["sublayers"][3]["parallel"][0].pop("activation"),
        lambda data: data["blocks"]["short"].update(sublayers=[]),
    ],
)
def test_a_planted_fault_does_not_fit(change: Callable[[Any], object]) -> None:
    assert list(VALIDATOR.iter_errors(spoilt(change)))
