"""Values, parameters and parts that are declared and never used: a warning each, told from the text alone."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Place
from blockgraph.module import Line, Module, Report
from blockgraph.spec import Spec
from blockgraph.syntax import Call, Equation, Name, Unread, walk


def report_unused(spec: Spec, report: Report) -> None:
    """Report what each module declares and never uses."""
    for module in spec.modules.values():
        used = {name for line in module.lines for name in _read(line.equation)}
        for name, decl in module.parts.items():
            if name not in used:
                help = "call it, or leave it out"
                report.add(
                    "BG204",
                    f"the part `{name}` is never called",
                    spec.document.key(decl.path),
                    help,
                    severity="warning",
                )
        for param in module.params:
            if param.name not in used:
                help = "use it, or leave it out"
                report.add(
                    "BG203",
                    f"the parameter `{param.name}` is never used",
                    spec.document.key(param.path),
                    help,
                    severity="warning",
                )
        for name, place in _unused_values(module):
            help = "use it, list it under `outputs`, or leave it out"
            report.add("BG203", f"the value `{name}` is never used", place, help, severity="warning")


def _read(equation: Equation) -> Iterator[str]:
    for node in walk(equation.expr):
        if isinstance(node, Name | Call):
            yield node.name


def _unused_values(module: Module) -> Iterator[tuple[str, Place]]:
    """Targets that no later equation reads before they are assigned again, and that are not returned."""
    if any(isinstance(line.equation.expr, Unread) for line in module.lines):
        return
    waiting: dict[str, tuple[Line, int, int]] = {}
    for line in module.lines:
        for name in _read(line.equation):
            waiting.pop(name, None)
        for target in line.equation.targets:
            if target.name in waiting:
                old, start, end = waiting[target.name]
                yield target.name, old.locate(start, end)
            waiting[target.name] = (line, target.start, target.end)
    for name, (line, start, end) in waiting.items():
        if name not in module.outputs:
            yield name, line.locate(start, end)
