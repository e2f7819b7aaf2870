"""An op's expansion written back as equations, so that what is inside a composite function can be read.

It is for reading: symbols such as T and D are the axes of the operands as listed with it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from itertools import product
from typing import Any

from blockgraph.dims import Dim, DimError, Shape, show
from blockgraph.elaborate.frame import SYMBOLS
from blockgraph.equation import parse_expression
from blockgraph.number import Number, NumberError
from blockgraph.op import Misfit, Op, Signature, Type, signature_of
from blockgraph.pattern import PatternError
from blockgraph.syntax import (
    Binary,
    Bool,
    Call,
    Compare,
    EllipsisLit,
    Expr,
    List,
    Name,
    Named,
    NoneLit,
    Slice,
    Subscript,
    Text,
    Unary,
    unparse,
)

INLINE = 40
AXES = ("B", "H", "T", "D")
SHAPES: tuple[Shape, ...] = tuple(
    tuple(Dim(axis) for axis in axes) for axes in (AXES, AXES[-1:], ("B", "T", "C"), ("C",))
)


class _Recorder:
    """The builder that `expand` writes to; it keeps ops and types, and makes no graph."""

    def __init__(self) -> None:
        self.types: list[Type] = []
        self.steps: list[tuple[Op, tuple[int, ...], tuple[int, ...]]] = []

    def __call__(self, op: Op, *values: int) -> int:
        return self.all(op, *values)[0]

    def all(self, op: Op, *values: int) -> tuple[int, ...]:
        first = len(self.types)
        self.types += op.infer(*(self.types[value] for value in values))
        outputs = tuple(range(first, len(self.types)))
        self.steps.append((op, values, outputs))
        return outputs

    def type(self, value: int) -> Type:
        return self.types[value]


class _Unwritable(Exception):
    """The expansion has a step that no equation says."""


def expansion_of(op: type[Op], options: dict[str, Any]) -> tuple[str, list[str]] | None:
    """The operands' shapes and the equations of an op's expansion; None for a primitive or what cannot be written."""
    signature = signature_of(op)
    needed = tuple(name for name in signature.operands if name not in signature.optional)
    for optional in (signature.optional, ()):
        more = {"given": optional} if optional else {}
        names = (*needed, *optional)
        for shapes in product(SHAPES, repeat=min(len(names), 4)):
            if len(names) <= 4 and (found := _try(op(**options, **more), names, shapes)) is not None:
                return found
    return None


def _try(op: Op, names: tuple[str, ...], shapes: tuple[Shape, ...]) -> tuple[str, list[str]] | None:
    recorder = _Recorder()
    recorder.types = [Type(shape, bare=len(shape) == 1) for shape in shapes]
    try:
        op.infer(*recorder.types)
        result = op.expand(recorder, *range(len(names)))
        if result is None:
            return None
        told = ", ".join(f"{name} {show(shape)}" for name, shape in zip(names, shapes, strict=True))
        return told, _lines(recorder, names, result)
    except (Misfit, PatternError, DimError, NumberError, _Unwritable):
        return None


def _lines(recorder: _Recorder, names: tuple[str, ...], result: int) -> list[str]:
    """The equations; a value that is used once and short is written where it is used."""
    uses = Counter(value for _, values, _ in recorder.steps for value in values)
    known: dict[int, Expr] = {index: Name(0, 0, name) for index, name in enumerate(names)}
    lines = []
    fresh = (f"h{number}" for number in range(1, 1000))
    for op, values, outputs in recorder.steps:
        expr = _written(op, [known[value] for value in values])
        if len(outputs) == 1 and outputs[0] != result and (uses[outputs[0]] == 1 or op.name == "constant"):
            if op.name == "constant" or len(unparse(expr)) <= INLINE:
                known[outputs[0]] = expr
                continue
        targets = ["y" if output == result else next(fresh) for output in outputs]
        known.update((output, Name(0, 0, target)) for output, target in zip(outputs, targets, strict=True))
        lines.append(f"{', '.join(targets)} = {unparse(expr)}")
    return lines


def _written(op: Op, operands: list[Expr]) -> Expr:
    """One step as an expression. Raises _Unwritable."""
    if op.name == "constant":
        return _value(op.value)  # type: ignore[attr-defined]
    if op.name == "negate":
        return Unary(0, 0, "-", operands[0])
    if op.name == "index":
        return Subscript(0, 0, operands[0], tuple(_item(item) for item in op.items))  # type: ignore[attr-defined]
    if op.name == "compare":
        return Compare(0, 0, op.relation, operands[0], operands[1], 0)  # type: ignore[attr-defined]
    if op.name in SYMBOLS:
        return Binary(0, 0, SYMBOLS[op.name], operands[0], operands[1], 0)
    if not op.function:
        raise _Unwritable
    return _call(op, operands, signature_of(type(op)))


def _call(op: Op, operands: list[Expr], signature: Signature) -> Expr:
    waiting = list(operands)
    args: list[Expr] = []
    for name in signature.positions:
        if name == signature.variadic:
            args += waiting
            waiting = []
        elif name in signature.operands:
            args += [waiting.pop(0)] if waiting else []
        else:
            args.append(_value(getattr(op, name)))
    named = [Named(name, _value(size), 0, 0) for name, size in getattr(op, "sizes", ())]
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        if field.name not in (*signature.positions, "given", "sizes") and value != field.default:
            named.append(Named(field.name, _value(value), 0, 0))
    return Call(0, 0, op.name, tuple(args), tuple(named))


def _value(value: Any) -> Expr:
    if isinstance(value, bool):
        return Bool(0, 0, value)
    if value is None:
        return NoneLit(0, 0)
    if isinstance(value, str):
        return Text(0, 0, value)
    if isinstance(value, tuple):
        return List(0, 0, tuple(_value(item) for item in value))
    if isinstance(value, Dim | Number | int | float):
        expr, refusals = parse_expression(str(value))
        if expr is not None and not refusals:
            return expr
    raise _Unwritable


def _item(item: Any) -> Expr:
    if item is ...:
        return EllipsisLit(0, 0)
    if isinstance(item, tuple):
        return Slice(0, 0, *(None if part is None else _value(part) for part in item))
    return _value(item)
