"""The `checkpoint:` section of a spec, read and judged without any file: keys, rules and what they name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache
from typing import Annotated, Any, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from blockgraph.dims import DimError
from blockgraph.errors import Finding, SpecPath, near
from blockgraph.graph import Graph
from blockgraph.kind import refuse
from blockgraph.lower import draw_names, unrolled_size
from blockgraph.module import Report
from blockgraph.records import dataclass
from blockgraph.schema import MappingValue, TextValue, validate
from blockgraph.spec import Spec
from blockgraph.weights.take import read_take

KEY = "checkpoint"
MAX_NAMED = 100_000  # steps of a written-out graph whose parameters are still held against the names
LAYOUTS = ("out_in", "in_out")


def _layout(value: object) -> object:
    if value not in LAYOUTS:
        raise refuse("out_in or in_out", value, "out_in: a file stores [out, in] and applies x @ W.T, as PyTorch does")
    return value


def _patterns(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise refuse("a list of tensor names", value, "a `*` in a name stands for any text")
    return names


Layout = Annotated[Any, BeforeValidator(_layout), WithJsonSchema({"enum": list(LAYOUTS)})]
Patterns = Annotated[
    Any, BeforeValidator(_patterns), WithJsonSchema({"type": "array", "items": {"type": "string", "minLength": 1}})
]


class CheckpointKeys(BaseModel):
    """How the names of a checkpoint map to those of the spec."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    config: MappingValue = Field({}, description="dims and constants from keys of config.json, or expressions of them")
    weights: MappingValue = Field(
        {}, description="parameters from tensors: a tensor's name, or {from: name, take: expression in tensor}"
    )
    layout: Layout = Field(None, description="how weights of linear maps are stored: out_in or in_out")
    expect: MappingValue = Field({}, description="keys of config.json and the values that the spec assumes")
    ignore: Patterns = Field([], description="tensors that are left aside; `*` stands for any text")


class RuleKeys(BaseModel):
    """A parameter that is taken out of a tensor."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    from_: TextValue = Field(alias="from", description="the tensor's name; `*` is an index")
    take: TextValue = Field(None, description="an expression in `tensor` that moves elements")


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """One line of `weights`: the parameter's name, the tensor's name, what is taken; `path` is where it stands."""

    parameter: str
    tensor: str
    take: str | None
    path: SpecPath

    @property
    def take_path(self) -> SpecPath:
        """Where the `take` stands."""
        return (*self.path, "take")


@final
@dataclass(frozen=True, slots=True)
class Section:
    """The section in one form."""

    config: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    layout: str | None = None
    expect: Mapping[str, Any] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()

    def ignores(self, name: str) -> bool:
        """Whether a tensor is listed under `ignore`."""
        return any(_any_text(pattern).fullmatch(name) for pattern in self.ignore)


@cache
def _any_text(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)


def read_mapping(spec: Spec, report: Report) -> Section:
    """The `checkpoint:` section; what is wrong is reported and left out. An absent section maps nothing."""
    if not spec.checkpoint:
        return Section()
    keys = validate(CheckpointKeys, spec.checkpoint, (KEY,), spec.document, report, "`checkpoint`")
    if keys is None:
        return Section()
    config = {name: value for name, value in keys.config.items() if _is_config(spec, name, value, report)}
    rules = tuple(rule for name, value in keys.weights.items() if (rule := _rule(spec, name, value, report)))
    return Section(config, rules, keys.layout, keys.expect, tuple(keys.ignore))


def _is_config(spec: Spec, name: str, value: Any, report: Report) -> bool:
    path = (KEY, "config", name)
    choices = [*spec.dims, *spec.constants]
    if name in report.unknown_names or (name not in choices and spec.unread & {"dims", "constants"}):
        return False
    if name not in choices:
        found = near(name, choices)
        help = f"did you mean `{found}`?" if found else f"the file has {', '.join(choices) or 'no dims'}"
        message = f"`{name}` is mapped, but the file has no such dim or constant"
        report.add("BG027", message, spec.document.key(path), help)
        return False
    if not isinstance(value, str) or not value.strip():
        report.wrong_value("a key of config.json", value, spec.document.value(path), what=f"`{name}`")
        return False
    return True


def _rule(spec: Spec, name: str, value: Any, report: Report) -> Rule | None:
    path = (KEY, "weights", name)
    take = None
    if isinstance(value, dict):
        keys = validate(RuleKeys, value, path, spec.document, report, "a rule of `weights`")
        if keys is None:
            return None
        value, take = keys.from_, keys.take
    elif not isinstance(value, str) or not value:
        help = "write its name, or {from: name, take: expression in tensor}"
        report.wrong_value("a tensor's name", value, spec.document.value(path), help, f"`{name}`")
        return None
    if abs(name.count("*") - value.count("*")) > 1:
        help = "each `*` is paired with one, from the left; one more on either side stacks or indexes an axis"
        message = f"`{name}` has {name.count('*')} stars, and `{value}` has {value.count('*')}"
        report.add("BG312", message, spec.document.value(path), help)
        return None
    rule = Rule(name, value, take, path)
    return rule if take is None or _is_take(spec, rule, report) else None


def _is_take(spec: Spec, rule: Rule, report: Report) -> bool:
    assert rule.take is not None
    return read_take(spec, rule.take, rule.take_path, report) is not None


def unmatched(rules: Iterable[Rule], names: Iterable[str], spec: Spec, report: Report) -> None:
    """Report each rule that names no parameter, and each parameter that two rules name."""
    names = list(names)
    starred = dict.fromkeys(re.sub(r"\b\d+\b", "*", name) for name in names)
    first: dict[str, Rule] = {}
    for rule in rules:
        place = spec.document.key(rule.path)
        matched = [name for name in names if index_pattern(rule.parameter).fullmatch(name)]
        if not matched:
            found = near(rule.parameter, (*starred, *names))
            help = f"did you mean `{found}`?" if found else f"the parameters are {', '.join(list(starred)[:6])}"
            report.add("BG312", f"no parameter is called `{rule.parameter}`", place, help)
        other = next((first[name] for name in matched if name in first), None)
        if other is not None:
            message = f"`{other.parameter}` and `{rule.parameter}` name the same parameter"
            report.add("BG312", message, place, "leave one of them out")
        first.update(dict.fromkeys(matched, rule))


@cache
def index_pattern(name: str) -> re.Pattern[str]:
    """A name as an expression in which every `*` is an index."""
    return re.compile("([0-9]+)".join(re.escape(part) for part in name.split("*")))


def findings(spec: Spec, graph: Graph | None, told: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """What is wrong with the section, as far as that can be told without a file.

    Names of parameters are compared where a graph is given and its layer counts have numbers. `told` are the names
    told to stand for nothing already.
    """
    report = Report(unknown_names=set(told))
    section = read_mapping(spec, report)
    if graph is not None and section.rules:
        try:
            if unrolled_size(graph, dict(graph.dims)) > MAX_NAMED:
                return report.in_order
            unmatched(section.rules, dict.fromkeys(draw_names(graph, dict(graph.dims))), spec, report)
        except DimError:
            pass  # a layer count without a number
    return report.in_order


def check_mapping(spec: Spec, names: Iterable[str], report: Report) -> Section:
    """The section, held against the names of the parameters too."""
    mapping = read_mapping(spec, report)
    unmatched(mapping.rules, names, spec, report)
    return mapping
