"""Findings as a SARIF 2.1.0 log, the form in which code hosts take them and show them beside the lines.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, 2020.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote

from blockgraph.errors import Finding, Place, Related
from blockgraph.explain.code_pages import head_of, page

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_sarif(findings: Iterable[Finding], version: str) -> dict[str, Any]:
    """One log with one run; columns count characters."""
    found = list(findings)
    rules = sorted({finding.code for finding in found})
    driver = {"name": "blockgraph", "version": version, "rules": [_rule(code) for code in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not any(finding.is_environment for finding in found)}],
        "results": [_result(finding, rules) for finding in found],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    """What the code's page says of it."""
    head, text = head_of(code), page(code)
    return {
        "id": code,
        "name": head.name,
        "shortDescription": {"text": head.meaning},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": head.severity},
    }


def _result(finding: Finding, rules: Sequence[str]) -> dict[str, Any]:
    parts = (finding.message, finding.label, f"help: {finding.help}" if finding.help else "")
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rules.index(finding.code),
        "level": finding.severity,
        "message": {"text": "\n".join(filter(None, parts))},
    }
    if finding.place.path:
        result["locations"] = [_location(finding.place)]
    related = [_related(index, one) for index, one in enumerate(finding.related) if one.place and one.place.path]
    return {**result, "relatedLocations": related} if related else result


def _related(index: int, one: Related) -> dict[str, Any]:
    assert one.place is not None
    return {"id": index, "message": {"text": one.message}, **_location(one.place)}


def _location(place: Place) -> dict[str, Any]:
    uri = quote(place.path.replace("\\", "/"), safe="/")
    region = {
        "startLine": place.start.line,
        "startColumn": place.start.column,
        "endLine": place.end.line,
        "endColumn": place.end.column,
    }
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
