"""Safe fixes: findings that name what was meant become edits of the file's text, which keep comments and layout.

A fix is a rename or a sign put in: a misspelt key, kind, option, word or name becomes the nearest one, `4C` becomes
`4*C`, `x += e` becomes `x = x + e`, and `type:` becomes `kind:`. What could be meant in two ways is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, final

from blockgraph.equation import Binary, Compare, Equation, parse_equations
from blockgraph.errors import Finding, Place, Position, SpecError, SpecPath
from blockgraph.records import dataclass
from blockgraph.source import Document, Tree

ROUNDS: Final = 8
_MEANT = re.compile(r"did you mean (?:the part )?`([A-Za-z_][A-Za-z0-9_]*)`\?")
_MISSING_SIGN = re.compile(r"write `(\(?([0-9.]+\*[A-Za-z_][A-Za-z0-9_]*)\)?)`")
_ADDITIVE: Final = frozenset("+-")


@final
@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Characters `start` to `end` of the file's text (from 0) become `new`; `line` is where, for the report."""

    start: int
    end: int
    new: str
    line: int


Judge = Callable[[str], tuple[Document, Sequence[Finding]]]
"""Reads and checks a text; raises SpecError if it is no YAML or JSON."""


def mend(text: str, judge: Judge) -> tuple[str, int]:
    """The text with everything mended that can be, and how many edits that took.

    A fix can bring to light what its fault had hidden, so this goes in rounds; a round that leaves more errors
    than before is not kept.
    """
    document, findings = judge(text)
    count = 0
    for _ in range(ROUNDS):
        edits = fixes(document, findings)
        if not edits:
            break
        mended = apply(document.text, edits)
        try:
            new_document, new_findings = judge(mended)
        except SpecError:
            break
        if _errors(new_findings) > _errors(findings):
            break
        text, document, findings = mended, new_document, new_findings
        count += len(edits)
    return text, count


def _errors(findings: Iterable[Finding]) -> int:
    return sum(finding.severity == "error" for finding in findings)


def fixes(document: Document, findings: Iterable[Finding]) -> tuple[Edit, ...]:
    """The edits that these findings ask for, in file order, none over another."""
    found = (edit for finding in findings if finding.place.path == document.path for edit in _edits(document, finding))
    kept: list[Edit] = []
    for edit in sorted(set(found)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return tuple(kept)


def apply(text: str, edits: Sequence[Edit]) -> str:
    """The text after edits that are in order."""
    parts: list[str] = []
    done = 0
    for edit in edits:
        parts += text[done : edit.start], edit.new
        done = edit.end
    return "".join((*parts, text[done:]))


def _edits(document: Document, finding: Finding) -> Iterator[Edit]:
    if finding.code == "BG012":
        yield from _augmented(document, finding.place)
        return
    start, end = _offsets(document, finding.place)
    while end - start > 1 and document.text[start] in "'\"" and document.text[start] == document.text[end - 1]:
        start, end = start + 1, end - 1
    written = document.text[start:end]
    replacement = _replacement(finding, written)
    if replacement is not None:
        old, new = replacement
        yield Edit(start, start + len(old), new, finding.place.start.line)


def _replacement(finding: Finding, written: str) -> tuple[str, str] | None:
    """What is to be replaced at the beginning of the guilty text, and by what."""
    sign = _MISSING_SIGN.fullmatch(finding.help) if finding.code == "BG011" else None
    if sign and written == sign[2].replace("*", "", 1):
        return written, sign[1]
    if finding.code == "BG021" and written == "type" and finding.help == "write `kind` instead of `type`":
        return written, "kind"
    meant = _MEANT.fullmatch(finding.help)
    name = re.match(r"[\w-]+", written)
    if meant is None or name is None or f"`{name[0]}`" not in finding.message:
        return None
    rest = written[name.end() :]
    return (name[0], meant[1]) if not rest or rest.lstrip().startswith("(") else None


def _augmented(document: Document, place: Place) -> Iterator[Edit]:
    """`+=` becomes `= x +`, and the right side gets brackets where it would be read otherwise without."""
    for path, tree in _texts(document.tree):
        if not tree.start <= place.start < max(tree.end, place.end):
            continue
        for equation in parse_equations(str(tree.value)).equations:
            whole = document.within(path, equation.start, equation.end)
            if whole.start <= place.start < whole.end:
                yield from _written_out(document, place, path, equation)
                return


def _written_out(document: Document, place: Place, path: SpecPath, equation: Equation) -> Iterator[Edit]:
    start, end = _offsets(document, place)
    target, expr = equation.targets[0].name, equation.expr
    if not isinstance(expr, Binary):
        return
    op = document.text[start : end - 1]
    yield Edit(start, end, f"= {target} {op}", place.start.line)
    right = expr.right
    plain = not isinstance(right, Binary | Compare) or (op in _ADDITIVE and right.op not in _ADDITIVE)
    first, last = _offsets(document, document.within(path, right.start, right.end))
    if not plain and not document.text[end:first].strip():
        yield Edit(first, first, "(", place.start.line)
        yield Edit(last, last, ")", place.start.line)


def _texts(tree: Tree) -> Iterator[tuple[SpecPath, Tree]]:
    """All text values with their paths."""
    waiting: list[tuple[SpecPath, Tree]] = [((), tree)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one.value, str):
            yield path, one
        if isinstance(one.children, Mapping):
            waiting.extend(((*path, key), child) for key, child in one.children.items())
        else:
            waiting.extend(((*path, index), child) for index, child in enumerate(one.children))


def _offsets(document: Document, place: Place) -> tuple[int, int]:
    """Where a place begins and ends in the document's text."""
    return _offset(document, place.start), _offset(document, place.end)


def _offset(document: Document, at: Position) -> int:
    breaks = 0
    for line in document.lines[: at.line - 1]:
        breaks += len(line)
        breaks += 2 if document.text.startswith("\r\n", breaks) else 1
    return breaks + at.column - 1
