"""The JSON Schema of a spec file, for editors: completion of kinds and keys, hover texts, red lines as one types.

It is made from the pydantic models of the file's keys and from the kinds, so a new kind or option is in it by
itself. It says less than `check`: a kind that is no built-in one may be a block of the file, and may have any options.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from blockgraph.kind import COUNT_SCHEMA, EXPRESSION, SIZE_SCHEMA, Kind, Marker, load_kinds, markers
from blockgraph.kinds.attending import OVER
from blockgraph.kinds.stack import Stack
from blockgraph.op import Op, load_ops
from blockgraph.placement import NAMED, PLACES
from blockgraph.schema import (
    GroupKeys,
    InputKeys,
    ModuleKeys,
    ParamKeys,
    PlacementKeys,
    SpecKeys,
    SublayerKeys,
)
from blockgraph.weights.mapping import CheckpointKeys, RuleKeys

Schema = dict[str, Any]

# Draft 7 is what the language servers of editors know best.
DIALECT: Final = "http://json-schema.org/draft-07/schema#"
NAME: Final = "^[A-Za-z_][A-Za-z0-9_]*$"


def json_schema() -> Schema:
    """The whole schema, draft 7, as plain data."""
    return {
        "$schema": DIALECT,
        **_keys(SpecKeys),
        "definitions": {
            **_kind_definitions(),
            **{f"use{_suffix(context)}": _use(context) for context in CONTEXTS},
            "module": _keys(ModuleKeys),
            "sublayer": {
                "if": {"type": "object", "required": ["parallel"]},
                "then": _keys(GroupKeys),
                "else": _ref("use_sublayer"),
            },
            "input": {"anyOf": [_keys(InputKeys), _shape()]},
            "param": {"anyOf": [_keys(ParamKeys), _shape()]},
            "placement": _placement(),
            "checkpoint": _keys(CheckpointKeys),
            "rule": {"anyOf": [_keys(RuleKeys), EXPRESSION]},
        },
    }


def json_schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=True) + "\n"


# Keys of the file


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _shape() -> Schema:
    return {"type": "array", "items": SIZE_SCHEMA}


def _mapping_of(value: Schema, empty: bool = False) -> Schema:
    return {
        "type": ["object", "null"] if empty else "object",
        "propertyNames": {"pattern": NAME},
        "additionalProperties": value,
    }


def _keys(model: type[BaseModel]) -> Schema:
    """A mapping with the keys of a model and no others."""
    return {
        "type": "object",
        "properties": _properties(model),
        **_required(model),
        "additionalProperties": False,
    }


def _required(model: type[BaseModel]) -> Schema:
    needed = [field.alias or name for name, field in model.model_fields.items() if field.is_required()]
    return {"required": needed} if needed else {}


def _properties(model: type[BaseModel]) -> dict[str, Schema]:
    """The schema of each key: what pydantic makes, and what stands inside, which is read later than pydantic does."""
    made = model.model_json_schema(by_alias=True)["properties"]
    marks = markers(model)
    inside = {} if issubclass(model, Kind) else _inside()
    found = {}
    for name, field in model.model_fields.items():
        key = field.alias or name
        plain = inside.get(key) or _marked(model, name, marks.get(name)) or made[key]
        plain = {word: value for word, value in plain.items() if word not in ("title", "default", "description")}
        found[key] = _told(plain, field.description, field.default)
    return found


def _marked(model: type[BaseModel], name: str, mark: Marker | None) -> Schema | None:
    """The schema of an option that takes a kind, a flag or a mapping; None if pydantic's says all."""
    if model is Stack and name == "of":
        return {"anyOf": [_ref("use_layer"), {"type": "array", "minItems": 1, "items": _ref("use_layer")}]}
    if mark is None or mark.reads not in ("use", "flag", "group"):
        return None
    if mark.reads == "flag":
        return {"anyOf": [{"type": "boolean"}, EXPRESSION]}
    if mark.model is not None:
        return {"anyOf": [_keys(mark.model), {"const": "none"}]}
    return _ref("use_over" if name == "qk_norm" else "use")


def _told(schema: Schema, description: str | None, default: Any) -> Schema:
    """A schema with its description and default; beside a `$ref` they would not be read."""
    if "$ref" in schema:
        schema = {"allOf": [schema]}
    told = {"description": description, **schema} if description else schema
    return {**told, "default": default} if isinstance(default, bool | int | float | str) and default != "" else told


@cache
def _inside() -> dict[str, Schema]:
    """What stands inside a key of the file whose model says no more than `a mapping` or `a list`."""
    sizes = {"anyOf": [{"type": "null"}, *SIZE_SCHEMA["anyOf"]]}
    names = {"type": "array", "items": {"type": "string", "pattern": NAME}}
    return {
        "dims": _mapping_of(sizes, empty=True),
        "constants": _mapping_of({"type": ["number", "string", "boolean", "null"]}, empty=True),
        "block": _ref("module"),
        "blocks": _mapping_of(_ref("module"), empty=True),
        "model": _ref("module"),
        "checkpoint": _ref("checkpoint"),
        "inputs": _mapping_of(_ref("input"), empty=True),
        "outputs": {"anyOf": [EXPRESSION, names]},
        "params": _mapping_of(_ref("param"), empty=True),
        "parts": _mapping_of(_ref("use"), empty=True),
        "equations": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "sublayers": {"type": "array", "minItems": 1, "items": _ref("sublayer")},
        "parallel": {"type": "array", "minItems": 1, "items": _ref("use_sublayer")},
        "placement": _ref("placement"),
        "ids": _shape(),
        "bool": _shape(),
        "shape": _shape(),
        "below": SIZE_SCHEMA,
        "weights": {"type": "object", "additionalProperties": _ref("rule")},
        "ignore": {"anyOf": [EXPRESSION, {"type": "array", "items": EXPRESSION}]},
    }


def _placement() -> Schema:
    names = {"enum": list(NAMED)}
    return {"anyOf": [names, {"type": "array", "items": {"enum": list(PLACES)}}, _keys(PlacementKeys), EXPRESSION]}


# Kinds


# Where a kind is used: as a part or an option, in `sublayers`, in a stack's `of`, in `qk_norm`.
CONTEXTS: Final = ("", "sublayer", "layer", "over")


@cache
def _beside(context: str) -> dict[str, Schema]:
    """What a kind may be told beside its own options."""
    over = "what is normalised: each head, each head with parameters of its own, or all of them together"
    tables: dict[str, dict[str, Schema]] = {
        "sublayer": {key: one for key, one in _properties(SublayerKeys).items() if key != "kind"},
        "layer": {"repeat": {"description": "how many layers this entry stands for", **COUNT_SCHEMA}},
        "over": {"over": {"description": over, "enum": list(OVER)}},
    }
    return tables.get(context, {})


def _suffix(context: str) -> str:
    return f"_{context}" if context else ""


def _kind_definitions() -> dict[str, Schema]:
    """The names of all kinds, and for each kind its options."""
    kinds = sorted(load_kinds().items())
    names = [_named(name, of) for name, of in (*kinds, *_activations())]
    # `gelu` alone names two functions.
    own = {"description": "a block of this file", **EXPRESSION, "not": {"const": "gelu"}}
    return {"kind": {"anyOf": [*names, own]}, **{f"kind_{name}": _options(name, kind) for name, kind in kinds}}


def _activations() -> list[tuple[str, type[Op]]]:
    return [(name, op) for name, op in sorted(load_ops().items()) if op.activation]


def _named(name: str, of: type) -> Schema:
    return {"const": name, "description": _doc(of)}


def _options(name: str, kind: type[Kind]) -> Schema:
    return {
        "title": name,
        "properties": {"kind": _named(name, kind), **_properties(kind)},
        **_required(kind),
    }


def _use(context: str) -> Schema:
    """A use of a kind: its name, or a mapping with its options."""
    beside = _beside(context)
    kinds = sorted(load_kinds().items())
    rules = [_rule(name, {"const": name}, list(_properties(kind) | beside), f"kind_{name}") for name, kind in kinds]
    functions = "|".join(name for name, _ in _activations())
    rules.append(_rule("an activation", {"pattern": f"^({functions})$"}, list(beside)))
    kind = {"description": "a built-in kind or a block of this file", "allOf": [_ref("kind")]}
    mapping = {"type": "object", "properties": {"kind": kind, **beside}, "required": ["kind"], "allOf": rules}
    return {"anyOf": [_ref("kind"), mapping]}


def _rule(what: str, is_kind: Schema, keys: Sequence[str], options: str = "") -> Schema:
    """If it is this kind, then its keys are those and no others.

    `errorMessage` is what a language server shows; to a validator the word means nothing.
    """
    told = f"no option of {what}; it has {', '.join(keys)}" if keys else f"{what} has no options"
    only = {"propertyNames": {"enum": ["kind", *keys], "errorMessage": told}}
    then = {"allOf": [_ref(options)], **only} if options else only
    return {"if": {"properties": {"kind": is_kind}, "required": ["kind"]}, "then": then}


def _doc(of: type) -> str:
    """The docstring with one line for each paragraph; its source stands apart."""
    text = inspect.cleandoc(of.__dict__.get("__doc__") or "").replace("\nSource:", "\n\nSource:")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
