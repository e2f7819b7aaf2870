"""Inputs, values, parameters and parts that are declared and never used: a warning each, told from the text alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from blockgraph.errors import Place, spec_path
from blockgraph.module import Module, Report
from blockgraph.records import dataclass
from blockgraph.spec import Spec
from blockgraph.syntax import Call, Equation, Name, Unread, walk


@dataclass(frozen=True, slots=True)
class Unused:
    """Something that is declared and never used: what it is, where, and what to do."""

    code: str
    message: str
    place: Place
    help: str


def report_unused(spec: Spec, report: Report) -> None:
    """Report what each module declares and never uses."""
    found: dict[str, bool] = {}
    for module in spec.modules.values():
        if module.is_lost or module.unread or not found.get(module.original.name, True):
            continue  # what could not be read may use it; one that reads the same has nothing of no use
        unused = list(_unused(module, spec))
        found[module.name] = bool(unused)
        if unused and not _is_among(("BG025", "BG026"), module, report):
            lacking = _is_among(("BG028",), module, report)
            for one in unused:
                if lacking and one.code == "BG203":
                    continue  # a call lacks a value: it may be this one
                report.add(one.code, one.message, one.place, one.help, severity="warning")


def _unused(module: Module, spec: Spec) -> Iterator[Unused]:
    reads = [frozenset(_read(line.equation)) for line in module.lines]
    used = frozenset().union(*reads)
    for name, decl in module.parts.items():
        if name not in used and decl.kind:
            place = spec.document.key(decl.path)
            yield Unused("BG204", f"the part `{name}` is never called", place, "call it, or leave it out")
    for param in module.params:
        if param.name not in used and param.dims is not None:
            place = spec.document.key(param.path)
            yield Unused("BG203", f"the parameter `{param.name}` is never used", place, "use it, or leave it out")
    for what, name, place in _unused_values(module, spec, reads):
        help = "use it, list it under `outputs`, or leave it out"
        yield Unused("BG203", f"the {what} `{name}` is never used", place, help)


def _is_among(codes: tuple[str, ...], module: Module, report: Report) -> bool:
    """Whether a name that does not exist is read or called in it: it may mean the one that seems to be of no use."""
    start = spec_path(module.path)
    return any(one.code in codes and one.place.spec_path.startswith(start) for one in report.findings)


def _read(equation: Equation) -> Iterator[str]:
    for node in walk(equation.expr):
        if isinstance(node, Name | Call):
            yield node.name


def _unused_values(module: Module, spec: Spec, reads: list[frozenset[str]]) -> Iterator[tuple[str, str, Place]]:
    """Inputs and targets that no equation reads before they are assigned again, and that are not returned."""
    if any(isinstance(line.equation.expr, Unread) for line in module.lines):
        return
    waiting: dict[str, tuple[str, Callable[[], Place]]] = {
        one.name: ("input", partial(spec.document.key, (*module.path, "inputs", one.name)))
        for one in module.inputs
        if not one.unread
    }
    for line, names in zip(module.lines, reads, strict=True):
        for name in names:
            waiting.pop(name, None)
        for target in {one.name: one for one in line.equation.targets}.values():
            if target.name in waiting:
                what, place = waiting[target.name]
                yield what, target.name, place()
            waiting[target.name] = ("value", partial(line.locate, target.start, target.end))
    for name, (what, place) in waiting.items():
        if name not in module.outputs:
            yield what, name, place()
