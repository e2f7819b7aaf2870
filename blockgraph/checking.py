"""What `check` does: read a spec, work out its graph, lint it. Nothing that runs, draws or differentiates is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from blockgraph.collector import paused
from blockgraph.display import Displayed
from blockgraph.elaborate import Elaborated, elaborate
from blockgraph.errors import Finding, in_file_order
from blockgraph.graph import Graph
from blockgraph.lints import lint
from blockgraph.records import dataclass
from blockgraph.report import summary
from blockgraph.spec import Spec, load
from blockgraph.suppress import suppressed

if TYPE_CHECKING:
    from blockgraph.build import Built

    Source = Spec | Built | str | os.PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class Checked(Displayed):
    """A spec after checking: its graph (None when there is none to speak of) and all findings in file order."""

    spec: Spec
    graph: Graph | None
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        """One line: the spec, and how many findings it has."""
        return repr(self.spec).replace("<Spec", "<Checked", 1).removesuffix(">") + f"; {summary(self.findings)}>"

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.severity == "error" for finding in self.findings)

    def line(self, path: str, number: int) -> str | None:
        """A line of the spec's file, for showing a finding; None of another file."""
        return self.spec.document.line(number) if path == self.spec.path else None


def check(source: Source, **values: Any) -> Checked:
    """Check a spec: reading, equations, shapes for all sizes, lints. Raises only if it is no YAML or JSON."""
    with paused():
        spec = _spec(source, values)
        result = elaborate(spec)
        findings = in_file_order((*result.findings, *_of_checkpoint(spec, result)))
        failed = any(finding.severity == "error" for finding in findings)
        if result.graph is not None and not any(module.unread for module in spec.modules.values()):
            hints = lint(result.graph, None if failed else spec, result.others, not result.lost)
            findings = in_file_order((*findings, *hints))
        return Checked(spec, result.graph, suppressed(spec.document, findings))


def _of_checkpoint(spec: Spec, result: Elaborated) -> tuple[Finding, ...]:
    """What is wrong with `checkpoint:`; names of parameters are compared where there is no other fault."""
    if not spec.checkpoint:
        return ()
    from blockgraph.weights.mapping import findings

    failed = any(finding.severity == "error" for finding in result.findings)
    return findings(spec, None if failed else result.graph, result.unknown_names)


def _spec(source: Source, values: Mapping[str, Any]) -> Spec:
    """The spec with values rebound; what is built in Python may take its dims from them."""
    if not isinstance(source, Spec | str | os.PathLike | Mapping):
        from blockgraph.build import Built

        if isinstance(source, Built):
            dims = source.data.get("dims", {})
            return load({**source.data, "dims": {**dims, **values}})
    spec = source if isinstance(source, Spec) else load(source)
    return spec.with_values(values) if values else spec
