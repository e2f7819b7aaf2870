"""The contract of a kind: the options a part may have, and the parameters and equations they stand for.

A kind is a module in small: its parameters and equations are written in the equation language with local
letters (`C` is the width of the input). Defining a subclass with a name registers it. pydantic checks keys and
the plain form of values here; expressions in them are evaluated later, where the dims are known.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from blockgraph.dims import Dim
from blockgraph.lazy import modules_in
from blockgraph.op import Refusal
from blockgraph.records import dataclass
from blockgraph.wording import is_number_text, wrong_value

KINDS: dict[str, type[Kind]] = {}
FIRST_WIDTH = "C"


def refuse(expected: str, value: object, help: str = "", at: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """The error for a value of the wrong form; `at` leads to it inside what is being checked."""
    message, help = wrong_value(expected, value, help)
    return PydanticCustomError("BG022", "{message}", {"message": message, "help": help, "at": at})


def _size(value: object) -> object:
    if isinstance(value, Dim):
        return value  # set by a kind for a part inside it
    if isinstance(value, str) and not is_number_text(value) and value.strip():
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise refuse("positive whole number", value, "write a whole number, a dim, or an expression such as 4*C")
    return value


def _size_or_none(value: object) -> object:
    if value is None:
        raise refuse("positive whole number or none", value, "write `none` to switch it off, or leave it out")
    return _size(value)


def _count(value: object) -> object:
    return 0 if value == 0 and type(value) is int else _size(value)


def _real(value: object) -> object:
    if isinstance(value, str) and not is_number_text(value) and value.strip():
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise refuse("number", value)
    return value


def _flag(value: object) -> object:
    if not isinstance(value, bool) and not (isinstance(value, str) and value.isidentifier()):
        raise refuse("true or false", value)
    return value


def _word(value: object) -> object:
    if not isinstance(value, str):
        raise refuse("a word", value)
    return value


def _use(value: object) -> object:
    if isinstance(value, dict | str) and value:
        return value
    raise refuse("a kind", value, "write its name, or a mapping such as {kind: linear, out: C}")


def _init(value: object) -> object:
    if isinstance(value, dict):
        return {name: _init(one) for name, one in value.items()}
    if isinstance(value, str) and not is_number_text(value) and value.strip():
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise refuse("a number or an init such as normal(0.02)", value)
    return value


@dataclass(frozen=True, slots=True)
class Marker:
    """How the text of an option is read once the dims are known."""

    reads: Literal["size", "count", "real", "flag", "word", "use", "init", "group"]
    choices: tuple[str, ...] = ()
    off: bool = False
    model: type[BaseModel] | None = None


EXPRESSION = {"type": "string", "minLength": 1}


SIZE_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "integer", "minimum": 1}, EXPRESSION]}
COUNT_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "integer", "minimum": 0}, EXPRESSION]}
REAL_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "number"}, EXPRESSION]}
USE_SCHEMA: dict[str, Any] = {"anyOf": [EXPRESSION, {"type": "object"}]}
INIT_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "number"}, EXPRESSION, {"type": "object"}]}

Size = Annotated[Any, BeforeValidator(_size), Marker("size"), WithJsonSchema(SIZE_SCHEMA)]
SizeOrNone = Annotated[Any, BeforeValidator(_size_or_none), Marker("size", off=True), WithJsonSchema(SIZE_SCHEMA)]
Count = Annotated[Any, BeforeValidator(_count), Marker("count"), WithJsonSchema(COUNT_SCHEMA)]
RealNumber = Annotated[Any, BeforeValidator(_real), Marker("real"), WithJsonSchema(REAL_SCHEMA)]
RealOrNone = Annotated[Any, BeforeValidator(_real), Marker("real", off=True), WithJsonSchema(REAL_SCHEMA)]
Flag = Annotated[Any, BeforeValidator(_flag), Marker("flag"), WithJsonSchema({"type": "boolean"})]
Use = Annotated[Any, BeforeValidator(_use), Marker("use"), WithJsonSchema(USE_SCHEMA)]
Init = Annotated[Any, BeforeValidator(_init), Marker("init"), WithJsonSchema(INIT_SCHEMA)]


def word(*choices: str, off: bool = False) -> Any:
    """The type of an option that is one of a few words."""
    schema = {"anyOf": [{"enum": list(choices)}, EXPRESSION]}
    return Annotated[Any, BeforeValidator(_word), Marker("word", choices, off), WithJsonSchema(schema)]


def _group(model: type[BaseModel]) -> Callable[[object], object]:
    """What checks an option that is a mapping with keys of its own."""

    def check(value: object) -> object:
        if isinstance(value, dict) or value == "none":
            return value
        keys = ", ".join(f"{key}: ..." for key in model.model_fields)
        raise refuse("a mapping", value, f"write `{{{keys}}}`, or some of these; `none` switches it off")

    return check


@dataclass(frozen=True, slots=True)
class _GroupSchema:
    """The JSON Schema of a group, made only when one is asked for: making it loads and builds a good deal."""

    model: type[BaseModel]

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        return {"anyOf": [{"const": "none"}, self.model.model_json_schema()]}


def group(model: type[BaseModel]) -> Any:
    """The type of an option that is a mapping with keys of its own; `none` switches it off."""
    return Annotated[Any, BeforeValidator(_group(model)), Marker("group", model=model), _GroupSchema(model)]


@dataclass(frozen=True, slots=True)
class Own:
    """A parameter that a kind brings: its dims in the kind's letters and its default init."""

    name: str
    dims: str
    init: str = "normal(0.02)"


class Kind(BaseModel):
    """The options of one kind. Subclasses add fields and say what they stand for.

    Class facts, all in local letters: `inputs` gives each input's axes, `widths` those letters that the first call
    fixes, `optional` inputs may be left out, `sizes` maps a letter to `option = default`, `numbers`
    does so for real numbers. `family` colours the box. `elsewhere` are names that others use for it, for hints, and
    `abroad` says by which option and word one says what others say by another key and value. `mistaken` is what to
    do where the result of `{part}` does not fit: that it was called with something else than it reads.
    After `resolved`, the fields hold dims, numbers and words instead of text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), defer_build=True)

    name: ClassVar[str] = ""
    family: ClassVar[str] = "other"
    title: ClassVar[str] = ""
    elsewhere: ClassVar[tuple[str, ...]] = ()
    abroad: ClassVar[Mapping[tuple[str, str], tuple[str, str]]] = {}
    mistaken: ClassVar[str] = ""
    inputs: ClassVar[Mapping[str, str]] = {"x": f"... {FIRST_WIDTH}"}
    widths: ClassVar[frozenset[str]] = frozenset({FIRST_WIDTH})
    optional: ClassVar[tuple[str, ...]] = ()
    sizes: ClassVar[Mapping[str, str]] = {}
    numbers: ClassVar[Mapping[str, str]] = {}

    share: bool = Field(False, description="one set of parameters for all layers of a stack and all uses")
    init: Init = Field(None, description="how parameters are drawn: one init for all, or a mapping by parameter")

    @classmethod
    def __pydantic_init_subclass__(cls, **facts: Any) -> None:
        """Register a kind that has a name."""
        if cls.__dict__.get("name"):
            KINDS[cls.name] = cls

    def params(self) -> Iterator[Own]:
        """The parameters in the order they are drawn."""
        yield from ()

    def parts(self) -> dict[str, Any]:
        """Parts used inside, by name, as they would stand in a spec."""
        return {}

    def settle(self, numbers: Mapping[str, int]) -> Self:
        """The options with what must be a plain number made one; `numbers` as in `refusals`."""
        return self

    def option_of(self, part: str) -> str:
        """The option that a part inside comes from."""
        return part

    def equations(self, given: frozenset[str]) -> str:
        """What the kind computes; `given` are the optional inputs of this use."""
        raise AssertionError(f"{self.name} states no equations")

    def whole(self) -> Iterator[tuple[str, str, str]]:
        """Sizes that must be whole: the option to blame, the size, and what the divisor counts."""
        yield from ()

    def bounds(self) -> Iterator[tuple[str, str, str]]:
        """What must not exceed what in a call: the option to blame, the smaller size and the larger."""
        yield from ()

    def refusals(self, numbers: Mapping[str, int]) -> Iterator[Refusal]:
        """Options that contradict each other; `numbers` holds the sizes, by letter, that are known."""
        yield from ()

    def heading(self) -> str:
        """What a drawing calls it."""
        return self.title or self.name

    def detail(self) -> str:
        """The small second line in a drawing."""
        return ""


PACKAGE = "blockgraph.kinds"


@cache
def load_kinds() -> Mapping[str, type[Kind]]:
    """All kinds by name, sorted, after importing every module of `blockgraph.kinds`."""
    for module in modules_in(PACKAGE):
        importlib.import_module(f"{PACKAGE}.{module}")
    return dict(sorted(KINDS.items()))


def find_kind(name: str) -> type[Kind] | None:
    """A kind by name, or None; its file has its name, and the files of other kinds stay unread."""
    if name not in KINDS and name in _files():
        importlib.import_module(f"{PACKAGE}.{name}")
    return KINDS.get(name)


def called_elsewhere(name: str) -> str | None:
    """The kind that others call by this name."""
    plain = name.casefold().replace("-", "").replace("_", "")
    for kind, model in load_kinds().items():
        if plain in (one.replace("_", "") for one in model.elsewhere):
            return kind
    return None


@cache
def _files() -> frozenset[str]:
    return frozenset(modules_in(PACKAGE))


def markers(kind: type[BaseModel]) -> dict[str, Marker]:
    """How each option of a kind is read."""
    return {
        name: mark for name, field in kind.model_fields.items() for mark in field.metadata if isinstance(mark, Marker)
    }
