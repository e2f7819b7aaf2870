"""The contract of an op: everything one op knows about itself, declared in one class in one file.

Defining a subclass of `Op` with a name registers it; the name is also the function of the equation
language. An op states its shape rule, which positions move, its role on a residual path, which
operands carry no gradient, its forward and backward, its cost, its label and, if it is composite, its
expansion into simpler ops. Everything else (check, proofs, run, grad, cost, drawing) reads these.
"""

from __future__ import annotations

import dataclasses
import importlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, Self

from blockgraph.dims import Dim, Shape
from blockgraph.lazy import modules_in
from blockgraph.number import Number
from blockgraph.pattern import Pattern, PatternMisfit, axis_text
from blockgraph.records import dataclass

DType = Literal["float", "int", "bool"]
Role = Literal["source", "add", "scale", "norm", "move", "other"]
Real = Number | float | int
Size = Dim | int
OPS: dict[str, type[Op]] = {}


@dataclass(frozen=True, slots=True)
class Type:
    """What is known of a value before anything runs.

    `shape` is None after a finding: the unknown shape fits everything. `bare` marks a value made of
    parameters and numbers alone; such a value may broadcast under `+` and `-`. `below` bounds ids, where it is known.
    """

    shape: Shape | None
    dtype: DType = "float"
    bare: bool = False
    below: Dim | None = None


class Misfit(Exception):
    """Operands do not fit an op. `message` may hold `{}` for the dims and shapes in `parts`.

    They stay symbolic here; whoever reports the misfit prints them with their numbers where known.
    `sides` says per operand (by index) what to print beside it. `blame` is the guilty operand, if one is.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *parts: Dim | Shape | str | int | None,
        help: str = "",
        help_parts: tuple[Dim | Shape | str | int, ...] = (),
        blame: int | None = None,
    ) -> None:
        self.code, self.message, self.parts = code, message, parts
        self.help, self.help_parts, self.blame = help, help_parts, blame
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An option whose value makes no sense (`softcap: 0`): the option, what is wrong, what to write."""

    option: str
    message: str
    help: str = ""
    code: str = "BG022"


@dataclass(frozen=True, slots=True)
class Move:
    """Operand `operand` is read at positions output + [low, high] along axis `letter` (None: no bound).

    The output's position is that of the same letter, or of the letter `to`: under a causal mask a row of scores is
    read at keys up to the row's own number.
    """

    operand: int
    letter: str
    low: Dim | int | None
    high: Dim | int | None
    to: str = ""


@dataclass(frozen=True, slots=True)
class Zero:
    """The outputs are 0 unless position of axis `letter` - position of axis `to` is in [low, high] (None: no bound)."""

    letter: str
    to: str
    low: Dim | int | None
    high: Dim | int | None


@dataclass(frozen=True, slots=True)
class Count:
    """The outputs depend on the number of a position along axis `letter`, the first of which bears `first`.

    With `to` only its distance from positions along that axis counts.
    """

    letter: str
    first: Dim | int = 0
    to: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """What must hold for the numbers beside whole sizes: `smaller` divides `larger`, or is at most it."""

    smaller: Dim
    larger: Dim
    relation: Literal["divides", "at most"] = "at most"


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs of one forward: `products` in matrix products (a multiply-add counts two), `elementwise` the rest."""

    products: Dim = Dim(0)
    elementwise: Dim = Dim(0)


class Builder(Protocol):
    """What `expand` writes with. A value is an integer handle."""

    def __call__(self, op: Op, *values: int) -> int:
        """Add a node with one output and return that output."""

    def all(self, op: Op, *values: int) -> tuple[int, ...]:
        """Add a node and return all its outputs."""

    def type(self, value: int) -> Type:
        """The type of a value."""


@dataclass(frozen=True)
class Op:
    """One operation. Subclasses are frozen dataclasses whose fields are the options of the function.

    One without options of its own is a dataclass through its base: the decorator would make it the same methods again.

    Class facts: `signature` names what a call takes by position, operands and options mixed, such as
    `"x, pattern"`, `"pattern, *xs"` or `"q, k, v, keep=, score_bias="`: `*xs` takes any number of operands,
    a trailing `=` marks an optional operand. Options not named there are given by keyword. The
    optional operands present are listed in the field `given`, in the order of the node's inputs.

    `role` is what the op does to a residual stream; `cuts` are operands (by index) without gradient,
    `shape_only` those of which only the shape is read, so that nothing flows from them.
    `operand_dtypes`: what each operand must hold ("any": whatever), floats past its end; `optional_dtypes` by name.
    `factors` are operands (by index, or "all") of which every term of the output has one element as a factor: where
    that is 0, so is the term. `chooses`: elements of the output may have nothing of an operand, by place or by value.
    `activation` ops may stand where a kind of activation is asked for; `function` ops may be called by name.
    `opens`: a drawing of every op shows the expansion, because its steps are what people mean by the op.
    `Source:` in the docstring names paper and equation.
    """

    name: ClassVar[str] = ""
    signature: ClassVar[str] = "x"
    role: ClassVar[Role] = "other"
    cuts: ClassVar[tuple[int, ...]] = ()
    shape_only: ClassVar[tuple[int, ...]] = ()
    shape: ClassVar[Pattern | None] = None
    operand_dtypes: ClassVar[tuple[DType | Literal["any"], ...]] = ()
    optional_dtypes: ClassVar[Mapping[str, DType]] = {}
    factors: ClassVar[tuple[int, ...] | Literal["all"]] = ()
    chooses: ClassVar[bool] = False
    activation: ClassVar[bool] = False
    function: ClassVar[bool] = True
    opens: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "", role: Role | None = None, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        if role is not None:
            cls.role = role
        if name:
            cls.name = name
            OPS[name] = cls

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Which axes of each operand are which axes of each output, by letter, for operands of these types."""
        assert self.shape is not None, f"{self.name} states no shape pattern"
        return self.shape

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The types of the outputs. Raises `Misfit` when the operands do not fit."""
        self.check_dtypes(types)
        pattern = self.pattern(types)
        dtype, bare = self.result_dtype(types), all(t.bare for t in types)
        if any(t.shape is None for t in types):
            return tuple(Type(None, dtype, bare) for _ in pattern.outputs)
        try:
            shapes = pattern.outputs_for(tuple(t.shape for t in types if t.shape is not None), self.sizes_by_letter())
        except PatternMisfit as misfit:
            raise self.misfit(misfit) from None
        return tuple(Type(shape, dtype, bare) for shape in shapes)

    def check_dtypes(self, types: tuple[Type, ...]) -> None:
        """Raises Misfit (BG107) when an operand holds ids or booleans where floats are needed, and so on.

        Of an unknown value the dtype is unknown too.
        """
        for index, given in enumerate(types):
            wanted = self.operand_dtypes[index] if index < len(self.operand_dtypes) else "float"
            if given.shape is not None and wanted not in ("any", given.dtype):
                words = {"float": "numbers", "int": "ids", "bool": "true and false"}
                raise Misfit(
                    "BG107", f"`{self.name}` takes {words[wanted]} here, not {words[given.dtype]}", blame=index
                )

    def misfit(self, misfit: PatternMisfit) -> Misfit:
        """A misfit with the shape pattern, in the words of this op."""
        operand = self.operand_name(misfit.operand)
        if misfit.found is None or misfit.expected is None:
            return Misfit("BG105", f"`{operand}` of `{self.name}` {misfit.message}", blame=misfit.operand)
        axis = axis_text(misfit.axis or "")
        message = f"axis `{axis}` of `{operand}` is {{}} where `{self.name}` needs {{}}"
        return Misfit("BG104", message, misfit.found, misfit.expected, blame=misfit.operand)

    def operand_name(self, index: int) -> str:
        """The name of an operand, for messages."""
        signature = signature_of(type(self))
        names = [name for name in signature.operands if name not in signature.optional and name != signature.variadic]
        names += list(getattr(self, "given", ()))
        return names[index] if index < len(names) else f"operand {index + 1}"

    def sizes_by_letter(self) -> Mapping[str, Dim]:
        """Sizes of pattern letters that the operands cannot tell (`h` of `heads`)."""
        return {}

    def result_dtype(self, types: tuple[Type, ...]) -> DType:
        """The dtype of the outputs."""
        return "float"

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Where an axis kept by the pattern is nevertheless read at other positions."""
        return ()

    def zeros(self, types: tuple[Type, ...]) -> tuple[Zero, ...]:
        """Where the outputs are 0 whatever the operands hold."""
        return ()

    def counts(self, types: tuple[Type, ...]) -> tuple[Count, ...]:
        """Where the outputs depend on the number of a position, beyond what `moves` and `zeros` say."""
        return ()

    def needs(self, types: tuple[Type, ...]) -> Iterator[Need]:
        """Bounds on sizes that the types of the outputs do not show, such as the length of a table that is sliced."""
        yield from ()

    def refusals(self) -> Iterator[Refusal]:
        """Options whose values, where they are known numbers, make no sense."""
        yield from ()

    @abstractmethod
    def forward(self, *arrays: Any) -> Any:
        """The output array, or a tuple of them. Never writes into its operands."""

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """The gradient of each operand, None where it has none; `dy` and `y` are tuples for several outputs."""
        raise AssertionError(f"{self.name} has no backward")

    def side(self, y: Any, *arrays: Any) -> Any:
        """For an op with kinks or jumps: which side of them each element is on, as an array; None if it has none."""
        return None

    def expand(self, g: Builder, *values: int) -> int | None:
        """The same in simpler ops, or None for a primitive."""
        return None

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """FLOPs of one forward; by default one per element of the output."""
        return Cost(elementwise=volume(outs[0].shape))

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """Elements that `forward` holds at most beside operands and outputs, where they are as many as those; or 0."""
        return Dim(0)

    def label(self) -> str:
        """Short text for a drawing."""
        return self.name

    def bind(self, values: Mapping[str, int | float]) -> Self:
        """The op with every symbolic option replaced by its number."""
        changed = {}
        for field in dataclasses.fields(self):
            old = getattr(self, field.name)
            new = bound(old, values)
            if new is not old:
                changed[field.name] = new
        return dataclasses.replace(self, **changed) if changed else self

    def substitute(self, values: Mapping[str, Number]) -> Self:
        """The op with some symbols of its number options replaced, for `layer` when a stack is unrolled."""
        changed = {}
        for field in dataclasses.fields(self):
            old = getattr(self, field.name)
            if isinstance(old, Number) and old.symbols & values.keys():
                changed[field.name] = old.subs(values)
        return dataclasses.replace(self, **changed) if changed else self

    @property
    def symbols(self) -> frozenset[str]:
        """Symbols that stand in the options."""
        return symbols_in(getattr(self, field.name) for field in dataclasses.fields(self))


def bound(value: Any, values: Mapping[str, int | float]) -> Any:
    """`value` with dims and numbers evaluated, also inside tuples and ops; the same object when nothing changed."""
    if isinstance(value, Op):
        return value.bind(values)
    if isinstance(value, Dim):
        return int(value.evaluate({s: int(values[s]) for s in value.symbols}))
    if isinstance(value, Number):
        return value.evaluate(values)
    if isinstance(value, tuple):
        new = tuple(bound(item, values) for item in value)
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    return value


def whole(size: Size) -> int:
    """The number of a size option that has been bound."""
    if type(size) is int:
        return size
    number = Dim(size).as_int()
    assert number is not None, f"{size} is not bound to a whole number"
    return number


def real(value: Real) -> float:
    """The number of an option that has been bound."""
    return float(value.evaluate({}) if isinstance(value, Number) else value)


def symbols_in(values: Iterable[Any]) -> frozenset[str]:
    """All symbols in dims and numbers, also inside tuples and ops."""
    found: set[str] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, Dim | Number | Op):
            found |= value.symbols
        elif isinstance(value, tuple):
            stack.extend(value)
    return frozenset(found)


def volume(shape: Shape | None) -> Dim:
    """The number of elements of a shape."""
    total = Dim(1)
    for dim in shape or ():
        total = total * dim
    return total


@dataclass(frozen=True, slots=True)
class Signature:
    """How an op is called: what may stand by position, which of that are operands, which are optional."""

    positions: tuple[str, ...]
    operands: tuple[str, ...]
    optional: tuple[str, ...]
    variadic: str | None
    options: tuple[str, ...]


def signature_of(op: type[Op]) -> Signature:
    """The parsed `signature` of an op class."""
    found = _SIGNATURES.get(op.name)
    if found is None:
        found = _SIGNATURES[op.name] = _signature(op)
    return found


def _signature(op: type[Op]) -> Signature:
    options = tuple(field.name for field in dataclasses.fields(op) if field.name != "given")
    positions = tuple(word.strip() for word in op.signature.split(",") if word.strip())
    variadic = next((word[1:] for word in positions if word.startswith("*")), None)
    optional = tuple(word[:-1] for word in positions if word.endswith("="))
    names = tuple(word.strip("*=") for word in positions)
    operands = tuple(name for name in names if name not in options)
    return Signature(names, operands, optional, variadic, options)


_SIGNATURES: dict[str, Signature] = {}


@cache
def load_ops() -> Mapping[str, type[Op]]:
    """All ops by name, after importing every module of `blockgraph.ops`."""
    for module in modules_in("blockgraph.ops"):
        importlib.import_module(f"blockgraph.ops.{module}")
    return OPS
