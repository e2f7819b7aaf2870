"""One entry of `sublayers`, read: the name and kind of its part, its wiring options and what it is passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blockgraph.errors import SpecPath, near
from blockgraph.kind import find_kind
from blockgraph.module import PartDecl, Report
from blockgraph.read_module import Names, is_name, split_use
from blockgraph.records import dataclass
from blockgraph.schema import WIRING_KEYS, SublayerKeys, key_names, misread, validate
from blockgraph.source import Document


@dataclass(frozen=True, slots=True)
class Sublayer:
    """A sublayer: its part, its number in the block, its own wiring, and the values it is passed by input.

    `whole` says that all of its wiring could be read.
    """

    part: str
    number: int
    keys: SublayerKeys
    passed: Mapping[str, str]
    decl: PartDecl
    path: SpecPath
    whole: bool = True


def read_sublayer(
    entry: Any, path: SpecPath, number: int, names: Names, document: Document, report: Report
) -> Sublayer | None:
    """The sublayer that an entry says, under a name of its own; None after a finding."""
    use = split_use(entry, path, document, report, "a sublayer")
    if use is None:
        return None
    kind, options = use
    options = _wiring_mended(kind, options, path, document, report)
    wiring = {"kind": kind, **{key: value for key, value in options.items() if key in WIRING_KEYS}}
    keys = validate(SublayerKeys, wiring, path, document, report, f"`{kind}`")
    if keys is None:
        return None
    name = keys.name if keys.name is not None else _fresh(kind, names)
    where = (*path, "name") if keys.name is not None else path
    if not names.declare(name, "sublayer", where):
        return None
    rest = {key: value for key, value in options.items() if key not in WIRING_KEYS}
    passed, whole = _passed(keys.with_, (*path, "with"), document, report)
    strange = _is_strange(kind, rest) or "with" in misread(keys, wiring)
    whole = whole and not misread(keys, wiring) and not strange
    return Sublayer(name, number, keys, passed, PartDecl(name, kind, rest, path, guessed=strange), path, whole)


def _own_keys(kind: str) -> list[str]:
    """The options of a built-in kind."""
    model = find_kind(kind)
    return [] if model is None else key_names(model)


def _is_strange(kind: str, options: dict[str, Any]) -> bool:
    """Whether an option is near nothing that may stand there, so that it may be meant as anything."""
    choices = (*_own_keys(kind), *WIRING_KEYS)
    return find_kind(kind) is not None and any(near(key, choices) is None for key in options)


def _wiring_mended(
    kind: str, options: dict[str, Any], path: SpecPath, document: Document, report: Report
) -> dict[str, Any]:
    """The options with each wiring key that is misspelt, and that is none of the kind's own, read as what it means."""
    own = _own_keys(kind)
    if not own:
        return options
    read: dict[str, Any] = {}
    for key, value in options.items():
        meant = key if key in WIRING_KEYS or near(key, own) else near(key, WIRING_KEYS)
        if meant is None or meant == key or meant in options:
            read[key] = value
            continue
        report.add("BG020", f"unknown key `{key}` in `{kind}`", document.key((*path, key)), f"did you mean `{meant}`?")
        document.read_as(path, key, meant)
        read[meant] = value
    return read


def _passed(given: Any, path: SpecPath, document: Document, report: Report) -> tuple[dict[str, str], bool]:
    """The values that `with` passes, by input, and whether these are all; what is no name is reported and left out."""
    pairs = given.items() if isinstance(given, dict) else [(name, name) for name in given]
    found: dict[str, str] = {}
    for index, (name, value) in enumerate(pairs):
        wrong = next((one for one in (name, value) if not is_name(one)), None)
        if wrong is None:
            found[name] = value
            continue
        place = document.value((*path, name if isinstance(given, dict) else index))
        report.add("BG013", f"`{wrong}` is no name", place, "`with` lists values by name, as in [memory, keep]")
    return found, len(found) == len(pairs)


def _fresh(kind: str, names: Names) -> str:
    """The kind's name, with a number from the second of its kind on."""
    number = 1
    while (name := kind if number == 1 else f"{kind}{number}") in names.known:
        number += 1
    return name
