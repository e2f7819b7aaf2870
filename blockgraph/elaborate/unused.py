"""Inputs, values, parameters and parts that are declared and never used: a warning each, told from the text alone."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Place, spec_path
from blockgraph.module import Module, Report
from blockgraph.spec import Spec
from blockgraph.syntax import Call, Equation, Name, Unread, walk


def report_unused(spec: Spec, report: Report) -> None:
    """Report what each module declares and never uses."""
    for module in spec.modules.values():
        if module.is_lost or module.unread:  # what could not be read may use it
            continue
        used = {name for line in module.lines for name in _read(line.equation)}
        hidden = _is_misspelt(module, report)
        for name, decl in module.parts.items():
            if name not in used and decl.kind and not hidden:
                help = "call it, or leave it out"
                report.add(
                    "BG204",
                    f"the part `{name}` is never called",
                    spec.document.key(decl.path),
                    help,
                    severity="warning",
                )
        for param in module.params:
            if param.name not in used and param.dims is not None and not hidden:
                help = "use it, or leave it out"
                report.add(
                    "BG203",
                    f"the parameter `{param.name}` is never used",
                    spec.document.key(param.path),
                    help,
                    severity="warning",
                )
        for what, name, place in () if hidden else _unused_values(module, spec):
            help = "use it, list it under `outputs`, or leave it out"
            report.add("BG203", f"the {what} `{name}` is never used", place, help, severity="warning")


def _is_misspelt(module: Module, report: Report) -> bool:
    """Whether its equations read or call a name that does not exist: it may mean the one that seems to be of no use."""
    start = spec_path(module.path)
    return any(one.code in ("BG025", "BG026") and one.place.spec_path.startswith(start) for one in report.findings)


def _read(equation: Equation) -> Iterator[str]:
    for node in walk(equation.expr):
        if isinstance(node, Name | Call):
            yield node.name


def _unused_values(module: Module, spec: Spec) -> Iterator[tuple[str, str, Place]]:
    """Inputs and targets that no equation reads before they are assigned again, and that are not returned."""
    if any(isinstance(line.equation.expr, Unread) for line in module.lines):
        return
    waiting = {
        one.name: ("input", spec.document.key((*module.path, "inputs", one.name)))
        for one in module.inputs
        if not one.unread
    }
    for line in module.lines:
        for name in _read(line.equation):
            waiting.pop(name, None)
        for target in {one.name: one for one in line.equation.targets}.values():
            if target.name in waiting:
                what, place = waiting[target.name]
                yield what, target.name, place
            waiting[target.name] = ("value", line.locate(target.start, target.end))
    for name, (what, place) in waiting.items():
        if name not in module.outputs:
            yield what, name, place
