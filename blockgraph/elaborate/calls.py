"""Calls of library functions: which argument is an operand, which an option, and in what form."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from typing import Any

from blockgraph.elaborate.items import Cut, Fault, describe, known_numbers, real, size
from blockgraph.errors import near
from blockgraph.habits import for_function
from blockgraph.kind import find_kind
from blockgraph.op import Op, Refusal, load_ops, signature_of
from blockgraph.records import dataclass
from blockgraph.syntax import Call, Expr


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a call: where it stands and what it is, a value or a number."""

    expr: Expr
    item: Any


@dataclass(frozen=True, slots=True)
class Bound:
    """A call, sorted out: the op with its options, and the operands in order."""

    op: Op
    operands: tuple[Operand, ...]
    option_exprs: dict[str, Expr]


@cache
def functions() -> dict[str, type[Op]]:
    """The functions of the equation language."""
    return {name: op for name, op in sorted(load_ops().items()) if op.function}


def bind(node: Call, items: tuple[Any, ...]) -> Bound:
    """The op that a call means. Raises Fault."""
    op = functions()[node.name]
    signature = signature_of(op)
    given: dict[str, tuple[Expr, Any]] = {}
    rest: list[Operand] = []
    positions = [name for name in signature.positions if name != signature.variadic]
    for index, (expr, item) in enumerate(zip(node.args, items, strict=False)):
        variadic = signature.variadic is not None and _is_variadic(op, index, item)
        if variadic:
            rest.append(Operand(expr, item))
        elif len(given) < len(positions):
            given[positions[len(given)]] = (expr, item)
        else:
            raise Fault("BG028", f"`{node.name}` takes {_counted(positions)}", expr, usage(op))
    sizes: list[tuple[str, Any]] = []
    for named, item in zip(node.named, items[len(node.args) :], strict=True):
        if named.name in given and not ("sizes" in signature.options and named.name in signature.operands):
            raise Fault("BG028", f"`{named.name}` is given twice", named.place)
        if named.name not in given and named.name in (*signature.options, *signature.operands):
            given[named.name] = (named.value, item)
        elif "sizes" in signature.options:
            sizes.append((named.name, size(item, named.value)))
        else:
            found = near(named.name, (*signature.options, *signature.operands))
            help = f"did you mean `{found}`?" if found else usage(op)
            raise Fault("BG028", f"`{node.name}` has no option `{named.name}`", named.place, help)
    return _bound(node, op, given, rest, sizes)


def _is_variadic(op: type[Op], index: int, item: Any) -> bool:
    """Whether a positional argument belongs to `*xs`: all of them, but for options that come before."""
    before = op.signature.split("*")[0].count(",")
    return index >= before


def _bound(
    node: Call, op: type[Op], given: dict[str, tuple[Expr, Any]], rest: list[Operand], sizes: list[tuple[str, Any]]
) -> Bound:
    operands, present = _operands(node, op, given, rest)
    options: dict[str, Any] = {"sizes": tuple(sizes)} if sizes else {}
    exprs: dict[str, Expr] = {}
    for field in dataclasses.fields(op):
        if field.name in given:
            expr, item = given[field.name]
            options[field.name] = _option(field, item, expr, node.name)
            exprs[field.name] = expr
        elif field.name not in options and _required(field):
            raise Fault("BG028", f"`{node.name}` needs `{field.name}`", node, usage(op))
    if present:
        options["given"] = present
    return Bound(op(**options), operands, exprs)


def _operands(
    node: Call, op: type[Op], given: dict[str, tuple[Expr, Any]], rest: list[Operand]
) -> tuple[tuple[Operand, ...], tuple[str, ...]]:
    """The operands in order, and the names of the optional ones that are there."""
    signature = signature_of(op)
    operands: list[Operand] = []
    present: list[str] = []
    for name in signature.operands:
        optional = name in signature.optional
        if name == signature.variadic:
            operands += rest
        elif name not in given:
            if not optional:
                raise Fault("BG028", f"`{node.name}` needs `{name}`", node, usage(op))
        elif not (optional and given[name][1] is None):
            operands.append(Operand(*given[name]))
            present += [name] if optional else []
    return tuple(operands), tuple(present)


def _required(field: Any) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _option(field: Any, item: Any, expr: Expr, function: str) -> Any:
    """An option in the form its field asks for. Raises Fault."""
    kind = str(field.type)
    if item is None and "None" in kind:
        return None
    if isinstance(item, tuple) and "tuple" in kind:
        return tuple(size(one, expr) for one in item)
    if "Real" in kind and known_numbers([item]):
        return real(item, expr)
    if "Size" in kind and known_numbers([item]):
        return size(item, expr)
    if kind == "bool" and isinstance(item, bool):
        return item
    if kind == "int" and known_numbers([item]):
        number = size(item, expr).as_int()
        if number is not None:
            return number
    if "str" in kind and isinstance(item, str):
        return item
    wanted = (
        "a word in quotes"
        if "str" in kind
        else "True or False"
        if kind == "bool"
        else "a size"
        if "Size" in kind
        else "a number"
    )
    raise Fault("BG028", f"`{field.name}` of `{function}` is {wanted}, not {describe(item)}", expr)


def subscript_items(items: Sequence[Any], exprs: Sequence[Expr]) -> tuple[Any, ...]:
    """The items of a subscript in the form that `index` takes. Raises Fault."""
    found: list[Any] = []
    for item, expr in zip(items, exprs, strict=True):
        if item is None or item is ...:
            found.append(item)
        elif isinstance(item, Cut):
            found.append(
                tuple(None if part is None else size(part, expr) for part in (item.first, item.stop, item.step))
            )
        elif known_numbers([item]):
            found.append(size(item, expr))
        else:
            raise Fault("BG028", f"a subscript takes whole numbers, slices, `...` and None, not {describe(item)}", expr)
    return tuple(found)


def usage(op: type[Op]) -> str:
    """How a function is called: `attend(q, k, v, keep=, mask="full")`."""
    signature = signature_of(op)
    words = []
    for word in op.signature.split(","):
        words.append(word.strip())
    for field in dataclasses.fields(op):
        if field.name not in (*signature.positions, "given", "sizes"):
            words.append(f"{field.name}={_default(field)}")
    if "sizes" in signature.options:
        words.append("axis=size")
    return f"{op.name}({', '.join(words)})"


def _default(field: Any) -> str:
    if field.default is dataclasses.MISSING:
        return "..."
    return f'"{field.default}"' if isinstance(field.default, str) else str(field.default)


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} argument{'s' if len(names) != 1 else ''} by position"


def nearest_function(name: str) -> str:
    """Help for a function that does not exist."""
    if help := for_function(name):
        return help
    if find_kind(name) is not None:
        return f"declare a part of this kind under `parts`, as `{name}: {{kind: {name}}}`"
    found = near(name, functions())
    return f"did you mean `{found}`?" if found else "a part of this name is not declared, and no function has it"


def refusal(bound: Bound) -> Refusal | None:
    """The first option whose value makes no sense."""
    return next(iter(bound.op.refusals()), None)


def operator(symbol: str) -> Op:
    """The op of `+ - * / ** @` and of comparisons."""
    names = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power", "@": "matmul"}
    ops = load_ops()
    return ops[names[symbol]]() if symbol in names else ops["compare"](relation=symbol)  # type: ignore[call-arg]
