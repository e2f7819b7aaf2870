"""A part's options: checked by the model of its kind alone, then read where the dims are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from blockgraph.dims import Dim
from blockgraph.elaborate.env import Env
from blockgraph.elaborate.items import UNKNOWN, Fault, Item, real
from blockgraph.errors import SpecPath, near
from blockgraph.habits import NO_DROPOUT, is_dropout
from blockgraph.kind import Kind, Marker, called_elsewhere, find_kind, load_kinds, markers
from blockgraph.module import PartDecl
from blockgraph.number import Number
from blockgraph.op import OPS
from blockgraph.records import dataclass
from blockgraph.schema import WIRING_KEYS, suggestion, validate
from blockgraph.spec import Spec
from blockgraph.wording import show_value

M = TypeVar("M", bound=BaseModel)
BLOCK_OPTIONS = ("set", "share")
MISSING = object()


@dataclass(frozen=True, slots=True)
class Found:
    """What a kind's name stands for: a built-in kind, an activation, or a block of the file."""

    name: str
    kind: type[Kind] | None = None
    activation: bool = False
    guessed: bool = False


def look_up(decl: PartDecl, env: Env) -> Found | None:
    """The kind of a part; a near miss is reported and read as what was meant, anything else reported and lost."""
    spec = env.spec
    name = decl.kind
    if not name:
        return None
    found = _named(name, spec)
    if found is None and isinstance(env.constants.get(name), str):
        found = _named(str(env.constants[name]), spec)
    if found is not None:
        return found
    choices = [*load_kinds(), *(op for op, one in OPS.items() if one.activation), *_blocks(spec)]
    if spec.unread & {"block", "blocks"}:
        return None  # it may be one of those
    meant = "gelu_erf" if name == "gelu" else called_elsewhere(name) or near(name, choices)
    place = spec.document.value(_kind_path(decl, spec))
    if name == "gelu":
        help = "write `gelu_erf` (the exact form) or `gelu_tanh` (the approximation)"
        env.report.add("BG024", "`gelu` names two different functions", place, help)
    elif name not in env.report.unknown_names:
        help = f"did you mean `{meant}`?" if meant else _kinds_text(spec)
        help = NO_DROPOUT if is_dropout(name) else help
        if name == "none" and decl.path[-1:] == ("norm",):
            help = "to go without norms leave `norm` out and write `placement: none`"
        env.report.add("BG023", f"unknown kind `{name}`", place, help)
        if (
            meant is None or find_kind(meant) is None
        ):  # it may be the block that has a slip in its name, and not every use of it
            env.report.unknown_names.add(name)
    found = _named(meant, spec) if meant else None
    return found and replace(found, guessed=True)


def _kind_path(decl: PartDecl, spec: Spec) -> tuple[str | int, ...]:
    path = (*decl.path, "kind")
    return path if spec.document.has(path) else decl.path


def _blocks(spec: Spec) -> list[str]:
    return [name for name in spec.modules if name != "model"]


def _kinds_text(spec: Spec) -> str:
    blocks = _blocks(spec)
    own = f"; blocks of this file: {', '.join(blocks)}" if blocks else ""
    return f"one of {', '.join(load_kinds())}{own}"


def _named(name: str, spec: Spec) -> Found | None:
    if name in spec.modules and name != "model":
        return Found(name)
    kind = find_kind(name)
    if kind is not None:
        return Found(name, kind)
    op = OPS.get(name)
    return Found(name, activation=True) if op is not None and op.activation else None


def read_options(decl: PartDecl, kind: type[Kind], env: Env) -> Kind | None:
    """The options of a part, checked and evaluated; None if a needed one is missing."""
    also = WIRING_KEYS if "sublayers" in decl.path else ()
    like = (kind.name, repr(decl.options), env.likeness)
    if like in env.memo:
        return env.memo[like]  # type: ignore[no-any-return]
    told = env.report.told
    read = read_group(decl.options, decl.path, kind, env, f"`{kind.name}`", also)
    if read is not None and env.report.told == told:
        env.memo[like] = read
    return read


def read_group(
    options: dict[str, Any], path: SpecPath, model: type[M], env: Env, owner: str, also: Iterable[str] = ()
) -> M | None:
    """A mapping of options, checked by its model and evaluated; None if a needed one is missing or of no use.

    `also` are keys that may stand beside them and are read elsewhere.
    """
    checked = validate(model, options, path, env.spec.document, env.report, owner, also)
    if checked is None:
        return None
    changed: dict[str, Any] = {}
    lost: set[str] = set()
    for name, mark in markers(model).items():
        field, raw = model.model_fields[name], getattr(checked, name)
        if raw is None:
            continue
        given = name in checked.model_fields_set
        value = _read(raw, mark, (*path, name), name, env) if given else MISSING
        lost |= {name} if given and value is MISSING else set()
        if value is MISSING and field.is_required():
            return None
        changed[name] = _default(field.default, mark) if value is MISSING else value
    read = checked.model_copy(update=changed)
    read.__pydantic_fields_set__.intersection_update(
        checked.model_fields_set - lost
    )  # what was given, not what is known
    return read


def _default(raw: Any, mark: Marker) -> Any:
    """A default in the form that its marker asks for."""
    if mark.reads == "real" and raw is not None:
        return Number(raw)
    return Dim(raw) if mark.reads in ("size", "count") and raw is not None else raw


def _read(raw: Any, mark: Marker, path: SpecPath, name: str, env: Env) -> Any:
    if mark.reads == "group":
        assert mark.model is not None
        if raw == "none":
            return None
        group = read_group(raw, path, mark.model, env, f"`{name}`")
        return MISSING if group is None else group
    if mark.reads in ("use", "init") or isinstance(raw, list):  # a list of words, judged by its model
        return raw
    if mark.reads == "word" and raw in mark.choices:
        return raw
    if mark.reads == "word" and isinstance(raw, str) and raw not in env.constants and raw != "none":
        place = env.spec.document.value(path)
        env.report.add("BG022", f"`{name}`: unknown word `{raw}`", place, suggestion(raw, mark.choices))
        return MISSING
    expected = {"size": "positive whole number or a dim", "real": "number"}.get(mark.reads, "")
    item = env.item(raw, path, f"`{name}`: {expected}" if expected else "")
    return MISSING if item is UNKNOWN else _as(item, mark, name, path, env)


def _as(item: Item, mark: Marker, name: str, path: Any, env: Env) -> Any:
    """An evaluated option as what its marker asks for; MISSING after a finding."""
    if item is None and mark.off:
        return None
    if item is None and mark.reads == "flag":
        return False
    readers: dict[str, Callable[[], Any]] = {
        "size": lambda: _size(item, path, env, 1),
        "count": lambda: _size(item, path, env, 0),
        "real": lambda: real(item),
        "flag": lambda: _exactly(item, bool, "true or false"),
        "word": lambda: _one_of(item, mark.choices),
    }
    try:
        found = readers[mark.reads]()
    except Fault as fault:
        env.report.add(fault.code, f"`{name}`: {fault.message}", env.spec.document.value(path), fault.help)
        return MISSING
    return MISSING if found is None else found


def _size(item: Item, path: Any, env: Env, least: int) -> Dim | None:
    found = env.as_size(item, path)
    number = None if found is None else found.number
    if number is not None and number < least:
        raise Fault("BG022", f"positive whole number expected, got {number}")
    return found


def _exactly(item: Item, wanted: type, words: str) -> Any:
    if not isinstance(item, wanted):
        raise Fault("BG022", f"{words} expected, got {show_value(item)}")
    return item


def _one_of(item: Item, choices: tuple[str, ...]) -> str:
    if not isinstance(item, str) or item not in choices:
        raise Fault("BG022", f"{' or '.join(choices)} expected, got {show_value(item)}")
    return item
