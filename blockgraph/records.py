"""Dataclasses that are quick to define: a process that checks one file defines some 150 of them and ends.

`dataclasses.dataclass` writes, parses and compiles up to six methods for each class, which was a third of the time of a
short `check`. Here only `__init__` is compiled; the other methods are made without text. Everything else is as there:
`dataclasses.fields`, `replace` and `is_dataclass`, type checkers, pickle and subclasses see an ordinary dataclass.
What is rarer than frozen, slots, repr and eq is left to the standard library.
"""

from __future__ import annotations

import abc
import dataclasses
from inspect import get_annotations
from operator import attrgetter
from typing import TYPE_CHECKING, Any


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Plain:
    """What a dataclass knows of itself is taken from these two, for it has no public constructor."""

    field: Any = None


@dataclasses.dataclass(init=False, repr=False, eq=False, frozen=True)
class _Frozen:
    field: Any = None


_MISSING = object()
_TEMPLATES: Any = {False: _Plain, True: _Frozen}


def _define(cls: Any, frozen: bool, slots: bool, repr: bool, eq: bool) -> Any:
    """`cls` as a dataclass; with `slots` it is a new class of the same name."""
    own = _own_fields(cls)
    fields = {
        name: one for base in cls.__mro__[:0:-1] for name, one in getattr(base, "__dataclass_fields__", {}).items()
    }
    if own is None or any(not one.init or one.kw_only for one in fields.values()):
        return dataclasses.dataclass(frozen=frozen, slots=slots, repr=repr, eq=eq)(cls)
    fields.update(own)
    for name, one in own.items():
        if one.default is not dataclasses.MISSING:
            setattr(cls, name, one.default)
        elif name in cls.__dict__:
            delattr(cls, name)
    made = _slotted(cls, fields, own) if slots else cls
    made.__dataclass_fields__ = fields
    made.__dataclass_params__ = _TEMPLATES[frozen].__dataclass_params__
    made.__match_args__ = tuple(fields)  # type: ignore[misc]
    _add(made, "__init__", _init(made, fields, frozen))
    if repr:
        _add(made, "__repr__", _repr)
    if eq:
        _compare(made, [name for name, one in fields.items() if one.compare], frozen)
    if frozen:
        _freeze(made, frozenset(fields))
    return abc.update_abstractmethods(made)


def _own_fields(cls: Any) -> dict[str, Any] | None:
    """The fields that a class adds, in order; None if one of them is of a kind that is left to the standard library."""
    found = {}
    for name, text in get_annotations(cls).items():
        if not isinstance(text, str) or "InitVar" in text or "KW_ONLY" in text:
            return None
        if text.startswith("ClassVar"):
            continue
        default = cls.__dict__.get(name, dataclasses.MISSING)
        one: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
        if not one.init or one.kw_only is True or one.hash is not None or type(one.default) in (list, dict, set):
            return None
        one.name, one.type, one.kw_only = name, text, False
        one._field_type = _TEMPLATES[False].__dataclass_fields__["field"]._field_type
        found[name] = one
    return found


def _slotted(cls: Any, fields: dict[str, Any], own: dict[str, Any]) -> Any:
    """The class once more with slots for its fields, which only a new class can have."""
    taken = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    body = {name: value for name, value in cls.__dict__.items() if name not in (*own, "__dict__", "__weakref__")}
    body["__slots__"] = tuple(name for name in fields if name not in taken)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _add(cls: Any, name: str, method: Any) -> None:
    """Give the class a method unless it has written its own."""
    if name not in cls.__dict__:
        method.__qualname__ = f"{cls.__qualname__}.{name}" if method is not _repr else method.__qualname__
        setattr(cls, name, method)


def _init(cls: Any, fields: dict[str, Any], frozen: bool) -> Any:
    """`__init__`; that of a frozen class goes around its own `__setattr__`."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": _MISSING}
    head, body = [], []
    for name, one in fields.items():
        value = name
        if one.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = one.default_factory
            head.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        elif one.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = one.default
            head.append(f"{name}=_default_{name}")
        else:
            head.append(name)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(['self', *head])}):\n " + "\n ".join(body or ["pass"]), known)
    return known["__init__"]


def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name, one in self.__dataclass_fields__.items() if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compare(cls: Any, names: list[str], frozen: bool) -> None:
    """Equality with objects of the same class, and the hash of what cannot change."""
    key: Any = attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, name) for name in names)

    def __eq__(self: Any, other: Any) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(key(self))

    has_hash = cls.__dict__.get("__hash__") is not None
    _add(cls, "__eq__", __eq__)
    if not has_hash:
        cls.__hash__ = __hash__ if frozen else None


def _freeze(cls: Any, names: frozenset[str]) -> None:
    """Refuse to set and to delete; copies and pickles go around that."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    _add(cls, "__setattr__", __setattr__)
    _add(cls, "__delattr__", __delattr__)
    if "__slots__" in cls.__dict__:
        _add(cls, "__getstate__", _state)
        _add(cls, "__setstate__", _restore)


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, repr=True, eq=True, **more):
        """As `dataclasses.dataclass`."""
        if more:
            return dataclasses.dataclass(cls, frozen=frozen, slots=slots, repr=repr, eq=eq, **more)
        return _define(cls, frozen, slots, repr, eq) if cls else lambda one: _define(one, frozen, slots, repr, eq)


__all__ = ["dataclass"]
