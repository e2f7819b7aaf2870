"""A spec written out: placement and sublayers as parts and equations, every default in force as a comment.

The text is a spec that loads to the same graph, and it explains itself: explaining it again changes nothing.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from blockgraph.explain.defaults import defaults_of, parameters_of
from blockgraph.explain.opened import Opened, OpenedSpec, open_spec
from blockgraph.facts import Proofs, told
from blockgraph.graph import Condition
from blockgraph.module import InputDecl, Module, ParamDecl, PartDecl, SizeText
from blockgraph.source.write import to_yaml
from blockgraph.spec import MAIN_BLOCK, MAIN_MODEL, Spec
from blockgraph.syntax import unparse

WIDTH = 80  # what every terminal has, so that the text is the same everywhere
COMMENT_COLUMN = 48
HEAD = (
    "The spec written out. A comment under a part tells the defaults in force and the parameters in the order they are"
    " drawn; one behind or below an equation the shape of its result. `share: false` holds wherever nothing is said."
)
UNBROKEN = "\xa0"
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
GAPS = re.compile(rf"({QUOTED.pattern})|\s+")


def expansion(spec: Spec, proofs: Proofs | None = None) -> str:
    """The text of a spec that has no errors, written out in full, with what is proved of it as comments."""
    opened = open_spec(spec)
    data = _head(spec)
    lines = [*_comment(HEAD, 0), *(to_yaml(data, WIDTH).splitlines() if data else ()), *_conditions(opened)]
    lines += _proved(proofs) if proofs is not None else ()
    blocks = {name: one for name, one in opened.modules.items() if name != MAIN_MODEL}
    if list(opened.modules) == [MAIN_BLOCK]:
        lines += ["block:", *_module(spec, blocks[MAIN_BLOCK], 2)]
    elif blocks:
        lines.append("blocks:")
        for name, one in blocks.items():
            lines += [f"  {name}:", *_module(spec, one, 4)]
    if MAIN_MODEL in opened.modules:
        lines += ["model:", *_module(spec, opened.modules[MAIN_MODEL], 2)]
    if spec.checkpoint:
        lines += to_yaml({"checkpoint": spec.checkpoint}, WIDTH).splitlines()
    return "\n".join(lines) + "\n"


def _head(spec: Spec) -> dict[str, Any]:
    """Name, source, dims and constants, those that were set from outside with their new value."""
    head: dict[str, Any] = {"name": spec.name, "source": spec.source}
    head = {key: text for key, text in head.items() if text}
    dims = {name: _plain(one.expr) if one.expr else one.number for name, one in spec.dims.items()}
    for key, table in (("dims", dims), ("constants", spec.constants)):
        if table:
            head[key] = {name: spec.overrides.get(name, value) for name, value in table.items()}
    return head


def _conditions(opened: OpenedSpec) -> Iterator[str]:
    if opened.conditions:
        yield "# What must hold:"
    for one in opened.conditions:
        yield f"#   {one.text}{_with_numbers(one, opened)}"


def _proved(proofs: Proofs) -> Iterator[str]:
    """What is proved of the main module, and of each block in its stacks."""
    for name, one in {"": proofs, **proofs.blocks}.items():
        yield f"# Proofs about `{name}`:" if name else "# Proofs:"
        for line in told(one):
            yield f"#   {line}"


def _with_numbers(condition: Condition, opened: OpenedSpec) -> str:
    symbols = sorted(condition.smaller.symbols | condition.larger.symbols)
    known = [f"{name} = {opened.numbers[name]}" for name in symbols if name in opened.numbers]
    return f" ({', '.join(known)})" if known else ""


def _module(spec: Spec, opened: Opened, indent: int) -> Iterator[str]:
    module = opened.module
    yield from _fragment({"inputs": {one.name: _input(one) for one in module.inputs}}, indent)
    yield from _fragment({"outputs": list(module.outputs)}, indent)
    if module.residual_normed:
        yield from _fragment({"residual": "normed"}, indent)
    if module.causal:
        yield from _fragment({"causal": True}, indent)
    if module.params:
        yield " " * indent + "params:"
        for param in module.params:
            yield from _param(param, indent + 2)
    if module.parts:
        yield " " * indent + "parts:"
        for name, decl in module.parts.items():
            yield from _part(name, decl, opened, indent + 2)
    yield " " * indent + "equations: |"
    yield from _equations(opened, indent + 2)


def _fragment(data: dict[str, Any], indent: int) -> Iterator[str]:
    """Plain data as YAML, moved to the right."""
    for line in to_yaml(data, WIDTH - indent).splitlines():
        yield " " * indent + line if line else line


def _input(one: InputDecl) -> Any:
    dims = [_plain(dim) for dim in one.dims]
    if one.dtype == "int":
        return {"ids": dims, "below": _plain(one.below)} if one.below else {"ids": dims}
    return {"bool": dims} if one.dtype == "bool" else dims


def _plain(size: SizeText) -> int | str:
    """A size as a number, or as the text of its expression."""
    text = unparse(size.expr)
    return int(text) if text.isdigit() else text


def _param(param: ParamDecl, indent: int) -> Iterator[str]:
    shape = [_plain(dim) for dim in param.dims or ()]
    given: dict[str, Any] = {"shape": shape}
    defaults = []
    if param.init is None:
        defaults.append("init: normal(0.02)")
    else:
        given["init"] = param.init
    if param.frozen:
        given["frozen"] = True
    else:
        defaults.append("frozen: false")
    yield from _fragment({param.name: given}, indent)
    yield from _comment(_listed("defaults", defaults), indent + 2)


def _part(name: str, decl: PartDecl, opened: Opened, indent: int) -> Iterator[str]:
    yield from _fragment({name: {"kind": decl.kind, **decl.options}}, indent)
    part = opened.parts.get(name)
    if part is None:
        return
    yield from _comment(_listed("defaults", defaults_of(part)), indent + 2)
    yield from _comment(_listed("parameters", parameters_of(part)), indent + 2)


def _listed(title: str, items: Iterable[str]) -> str:
    """`title: a, b`, its items in one piece each; nothing for no items."""
    text = ", ".join(item.replace(" ", UNBROKEN) for item in items)
    return f"{title}: {text}" if text else ""


def _comment(text: str, indent: int) -> Iterator[str]:
    """A comment, wrapped; nothing for no text."""
    lead = " " * indent + "# "
    more = lead + "  " if indent else lead
    # What a spec holds must not end the comment.
    plain = re.sub(r"\s*[\r\n]\s*", " ", text)
    for line in textwrap.wrap(
        plain, WIDTH, initial_indent=lead, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    ):
        yield line.replace(UNBROKEN, " ")


def _equations(opened: Opened, indent: int) -> Iterator[str]:
    module = opened.module
    texts = list(_texts(module))
    longest = max((len(text) for text in texts if len(text) <= COMMENT_COLUMN), default=0)
    for text, shapes in zip(texts, opened.shapes(), strict=True):
        *first, last = wrapped(text, WIDTH - indent)
        yield from (" " * indent + line for line in first)
        beside = indent + max(len(last), longest) + len(f"  # {shapes}") <= WIDTH
        yield " " * indent + (f"{last.ljust(longest)}  # {shapes}" if shapes and beside else last)
        if shapes and not beside:
            yield from _comment(shapes.replace(" ", UNBROKEN).replace(f",{UNBROKEN}(", ", ("), indent + 4)


def _texts(module: Module) -> Iterator[str]:
    """Each equation in one line, its words one blank apart."""
    for line in module.lines:
        yield GAPS.sub(lambda match: match[1] or " ", line.equation.text)


def wrapped(text: str, width: int) -> list[str]:
    """An equation in lines that are not too long, broken at blanks inside brackets only, where it may go on."""
    breaks = _breaks(text)
    lines = []
    start, lead = 0, ""
    while breaks and len(lead) + len(text) - start > width:
        fitting = [at for at in breaks if at - start <= width - len(lead)]
        at = fitting[-1] if fitting else breaks[0]
        lines.append(lead + text[start:at])
        start, lead = at + 1, "    "
        breaks = [later for later in breaks if later > at]
    return [*lines, lead + text[start:]]


def _breaks(text: str) -> list[int]:
    """The blanks inside brackets and outside quotes."""
    blank = QUOTED.sub(lambda match: "_" * len(match[0]), text)
    found, depth = [], 0
    for at, character in enumerate(blank):
        depth += (character in "([") - (character in ")]")
        if character == " " and depth > 0:
            found.append(at)
    return found
