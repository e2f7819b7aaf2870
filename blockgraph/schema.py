"""The border: pydantic models of the file's own keys, and their errors in the user's words.

Only keys and the plain form of values are checked here. A part's options are checked by the model of its
kind alone, once the kind is known, so that one mistake is one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from blockgraph.errors import SpecPath, near
from blockgraph.habits import NO_DROPOUT, is_dropout
from blockgraph.kind import EXPRESSION, Init, RealNumber, Use, refuse
from blockgraph.module import Report
from blockgraph.source import Document
from blockgraph.wording import show_value

M = TypeVar("M", bound=BaseModel)


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise refuse("text", value, "write it in quotes")
    return value


def _truth(value: object) -> object:
    if not isinstance(value, bool):
        raise refuse("true or false", value)
    return value


def _one_of(choices: tuple[str, ...]) -> Callable[[object], object]:
    """What checks a key that is one of a few words."""

    def check(value: object) -> object:
        if value not in choices:
            raise refuse(" or ".join(choices), value, suggestion(str(value), choices))
        return value

    return check


def _mapping(value: object) -> object:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refuse("a mapping", value)
    return value


def _equations(value: object) -> object:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise refuse("equations", value, "write them as a text block after `|`, one a line, or as a list of texts")
    return value


def _list(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise refuse("a list", value, "write `[one, two]`, or each on a line of its own after `- `")
    return value


def _names(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise refuse("a list of names", value)
    return value


def _placement(value: object) -> object:
    if isinstance(value, list | dict | str) and value:
        return value
    raise refuse(
        "a placement", value, "pre, post, sandwich, output, none, a list of input, output, after, or equations"
    )


def _with(value: object) -> object:
    names = value if isinstance(value, list) else [*value, *value.values()] if isinstance(value, dict) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise refuse("a list of names", value, "for example `with: [memory, keep]`")
    return value


Truth = Annotated[Any, BeforeValidator(_truth), WithJsonSchema({"type": "boolean"})]
RESIDUALS = ("stream", "normed", "none")
NORMS = ("shared", "separate")
Residual = Annotated[Any, BeforeValidator(_one_of(RESIDUALS)), WithJsonSchema({"enum": list(RESIDUALS)})]
Norms = Annotated[Any, BeforeValidator(_one_of(NORMS)), WithJsonSchema({"enum": list(NORMS)})]
TextValue = Annotated[Any, BeforeValidator(_text), WithJsonSchema({"type": "string"})]
MappingValue = Annotated[Any, BeforeValidator(_mapping), WithJsonSchema({"type": "object"})]
EquationsValue = Annotated[
    Any, BeforeValidator(_equations), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array"}]})
]
ListValue = Annotated[Any, BeforeValidator(_list), WithJsonSchema({"type": "array", "minItems": 1})]
NamesValue = Annotated[Any, BeforeValidator(_names), WithJsonSchema({"type": "array", "items": {"type": "string"}})]
PlacementValue = Annotated[
    Any, BeforeValidator(_placement), WithJsonSchema({"anyOf": [EXPRESSION, {"type": "array"}, {"type": "object"}]})
]
WithValue = Annotated[Any, BeforeValidator(_with), WithJsonSchema({"anyOf": [{"type": "array"}, {"type": "object"}]})]


class _Keys(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, protected_namespaces=(), defer_build=True
    )


class SpecKeys(_Keys):
    """The keys of a spec file."""

    name: TextValue = Field("", description="the name, free text")
    source: TextValue = Field("", description="where the architecture comes from: authors, year, arXiv number")
    dims: MappingValue = Field({}, description="symbols for sizes: a number, an expression, or empty (any size)")
    constants: MappingValue = Field({}, description="named numbers, words and none, for options and equations")
    block: MappingValue = Field(None, description="a block; short for `blocks: {block: ...}`")
    blocks: MappingValue = Field({}, description="blocks by name; each may be used as a kind")
    model: MappingValue = Field(None, description="the main module")
    checkpoint: MappingValue = Field(None, description="how a checkpoint's names map to this spec's")


class Wiring(_Keys):
    """The keys that say how sublayers are joined; in a block they hold for all, in a sublayer for that one."""

    norm: Use = Field(None, description="the kind of norm that the placement sets")
    placement: PlacementValue = Field(
        None, description="pre, post, sandwich, output, none, a list of input, output, after, or equations in f"
    )
    residual: Residual = Field(
        None, description="what the skip path carries: the raw stream, its normalised copy, or nothing"
    )
    skip_scale: RealNumber = Field(None, description="factor on the skip path")
    branch_scale: RealNumber = Field(None, description="factor on the branch")


class ModuleKeys(Wiring):
    """The keys of a block or a model."""

    inputs: MappingValue = Field(None, description="the arguments in order; default `x: [B, T, C]`")
    outputs: NamesValue = Field(None, description="names of the results; default the target of the last equation")
    params: MappingValue = Field({}, description="parameters of the module itself: a shape, or {shape, init, frozen}")
    parts: MappingValue = Field({}, description="parts by name, each a kind with options")
    equations: EquationsValue = Field(None, description="what is computed, one equation a line")
    sublayers: ListValue = Field(None, description="the short form: sublayers that the placement joins, in order")
    causal: Truth = Field(
        False, description="claims that no position depends on a later one; a false claim is a finding"
    )


class SublayerKeys(Wiring):
    """The keys a sublayer has beside the options of its kind."""

    kind: TextValue = Field(description="a built-in kind or a block of this file")
    name: TextValue = Field(None, description="the part's name; default the kind")
    with_: WithValue = Field([], alias="with", description="further values passed by name")


class GroupKeys(Wiring):
    """The keys of a group of sublayers that read the same stream side by side."""

    parallel: ListValue = Field(description="the sublayers of the group")
    norms: Norms = Field("separate", description="one input norm for all members, or one each")


class InputKeys(_Keys):
    """An input of ids or of booleans."""

    ids: ListValue = Field(None, description="the shape of an input of whole numbers")
    below: Any = Field(None, description="ids are smaller than this dim")
    bool_: ListValue = Field(None, alias="bool", description="the shape of an input of true and false")


class ParamKeys(_Keys):
    """A parameter of a module."""

    shape: Annotated[Any, BeforeValidator(lambda v: v if isinstance(v, list) else _list(v))] = Field(
        description="the shape; [] for a single number"
    )
    init: Init = Field(
        None, description="how it is drawn: a number, zeros, ones, eye, normal(std), uniform(a), xavier(gain)"
    )
    frozen: Truth = Field(False, description="whether it is kept out of training")


class PlacementKeys(_Keys):
    """A placement with parameters and parts of its own."""

    params: MappingValue = Field({}, description="parameters; each sublayer has its own copy")
    parts: MappingValue = Field({}, description="parts; each sublayer has its own copy")
    equations: EquationsValue = Field(description="the wiring, written once for every sublayer f")


# In a fixed order, because they are told.
WIRING_KEYS = ("with", *(name for name in SublayerKeys.model_fields if name != "with_"))


def key_names(model: type[BaseModel]) -> list[str]:
    """The keys of a model as written in a file."""
    return [field.alias or name for name, field in model.model_fields.items()]


def validate(
    model: type[M],
    data: Mapping[str, Any],
    path: SpecPath,
    document: Document,
    report: Report,
    owner: str,
    also: Iterable[str] = (),
) -> M | None:
    """`data` as a `model`, every fault reported once. A bad key counts as absent; None if a needed one is missing.

    An unknown key that is near one which is not there is read as that one, and so is one that the model knows from
    `abroad`; one that is near none may be what is missing. `also` are further keys to guess from.
    """
    read, told = dict(data), set[str]()
    choices = [*key_names(model), *also]
    while True:
        try:
            return model.model_validate(read)
        except ValidationError as error:
            faults = {str(fault["loc"][0]) if fault["loc"] else "": fault for fault in error.errors(include_url=False)}
        missing = {key for key, fault in faults.items() if fault["type"] == "missing"}
        unknown = [key for key, fault in faults.items() if fault["type"] == "extra_forbidden"]
        slips = _slips(unknown, read, model, choices)
        missing -= set(slips.values())
        abroad = {key: meant for key in unknown if (meant := _abroad(model, key, read[key])) and meant[0] not in read}
        stranger = next((key for key in unknown if key not in abroad and _is_strange(key, choices)), None)
        lost = sorted(missing - told)
        for key, fault in faults.items():
            if key == stranger and lost:
                message = f"unknown key `{key}` in {owner}"
                report.add("BG020", message, document.key((*path, key)), _is_it(lost))
            elif key in abroad:
                option, word = abroad[key]
                place = document.key((*path, key))
                report.add("BG020", f"unknown key `{key}` in {owner}", place, f"write `{option}: {word}`")
            elif fault["type"] != "missing" or (key in lost and stranger is None):
                _report(fault, key, choices, (*path, key), document, report, owner)
        if missing:
            return None
        told |= faults.keys()
        renamed = {key: (option, read[key]) for key, option in slips.items()} | abroad
        for key, option in slips.items():
            document.read_as(path, key, option)
        read = {key: value for key, value in read.items() if key not in faults} | dict(renamed.values())


def _is_strange(key: str, choices: Iterable[str]) -> bool:
    """Whether a key is near none, so that it may mean any that is missing."""
    return near(key, choices) is None and not is_dropout(key)


def _abroad(model: type[BaseModel], key: str, value: Any) -> tuple[str, str] | None:
    """The option and its word for what other tools write so."""
    known: Mapping[tuple[str, str], tuple[str, str]] = getattr(model, "abroad", {})
    return known.get((key, str(value).lower()))


def _is_it(lost: list[str]) -> str:
    """Help for an unknown key where one that is needed is missing."""
    names = " and ".join(f"`{name}`" for name in lost)
    return f"{names} {'is' if len(lost) == 1 else 'are'} required and missing: write it as that, or leave this out"


def _slips(
    unknown: Iterable[str], data: Mapping[str, Any], model: type[BaseModel], choices: Iterable[str]
) -> dict[str, str]:
    """Which unknown keys are read as which of the model's own."""
    found: dict[str, str] = {}
    for key in unknown:
        meant = near(key, choices)
        if meant in key_names(model) and meant not in data and meant not in found.values():
            found[key] = meant
    return found


def misread(read: BaseModel, data: Mapping[str, Any]) -> frozenset[str]:
    """The keys that are not in `read` although they seem to be meant: those of a wrong value.

    An unknown key that is near none may have meant any that is absent.
    """
    given = {type(read).model_fields[name].alias or name for name in read.model_fields_set}
    names = key_names(type(read))
    meant = {near(str(key), names) or "" for key in data if key not in given} - given
    return frozenset(names if "" in meant else meant) - given


def _report(
    fault: Any, key: str, choices: list[str], path: SpecPath, document: Document, report: Report, owner: str
) -> None:
    if fault["type"] == "missing":
        cause = (key, document.value(path[:-1]))  # the same for every use of an anchor
        report.add("BG021", f"`{key}` is required for {owner}", document.key(path), f"add `{key}: ...`", cause=cause)
    elif fault["type"] == "extra_forbidden":
        report.add("BG020", f"unknown key `{key}` in {owner}", document.key(path), suggestion(key, choices))
    else:
        context = fault.get("ctx", {})
        message = context.get("message", f"this value does not fit, got {show_value(fault.get('input'))}")
        place = document.value((*path, *context.get("at", ())))
        report.add("BG022", f"`{key}`: {message}", place, context.get("help", ""))


def suggestion(word: str, choices: Iterable[str]) -> str:
    """`did you mean ...?`, or the list of what may stand."""
    if is_dropout(word):
        return NO_DROPOUT
    names = list(choices)
    found = near(word, names)
    return f"did you mean `{found}`?" if found else f"one of {', '.join(names)}"
