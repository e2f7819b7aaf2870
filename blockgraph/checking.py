"""What `check` does: read a spec, work out its graph, lint it. Nothing that runs, draws or differentiates is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from blockgraph.collector import paused
from blockgraph.display import Displayed
from blockgraph.elaborate import Elaborated, elaborate
from blockgraph.errors import Finding, in_file_order, sparing
from blockgraph.graph import Graph
from blockgraph.lints import lint
from blockgraph.records import dataclass
from blockgraph.report import summary
from blockgraph.spec import Spec, load
from blockgraph.suppress import suppressed

if TYPE_CHECKING:
    from blockgraph.build import Built
    from blockgraph.facts import Proofs

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
    with paused(), sparing():
        spec = _spec(source, values)
        result = elaborate(spec)
        findings = in_file_order((*result.findings, *_of_checkpoint(spec, result)))
        failed = any(finding.severity == "error" for finding in findings)
        if result.graph is not None and not any(module.unread for module in spec.modules.values()):
            hints = lint(result.graph, None if failed else spec, result.others, not result.lost)
            findings = in_file_order((*findings, *hints))
        return Checked(spec, result.graph, suppressed(spec.document, findings))


def proofs(checked: Checked) -> Proofs:
    """What is proved of a spec without errors: of the main module, and of each further block of the file by itself."""
    from blockgraph.facts import prove

    assert checked.graph is not None, "what has errors has no proofs"
    found, spec = prove(checked.graph), checked.spec
    blocks = dict(found.blocks)
    for name in spec.modules:
        if name != spec.main and name not in blocks:
            graph = elaborate(replace(spec, main=name)).graph
            blocks |= {} if graph is None else {name: replace(prove(graph), blocks={})}
    return replace(found, blocks=blocks)


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
