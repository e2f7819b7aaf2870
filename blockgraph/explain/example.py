"""A small spec that uses one kind, for the reader to start from; made from the kind's own declaration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blockgraph.elaborate import elaborate
from blockgraph.kind import FIRST_WIDTH, Kind, Marker, markers
from blockgraph.source.write import WIDTH, to_yaml
from blockgraph.spec import load

STREAM = ["B", "T", FIRST_WIDTH]
NUMBERS = {FIRST_WIDTH: 64, "H": 4, "E": 8, "K": 4}
"""Numbers that fit each other: heads divide the width, fewer experts are chosen than there are."""

LARGE = 128
USES = {"activation": "gelu_tanh", "expert": "linear", "of": "layer_block"}


def needed_options(kind: type[Kind]) -> dict[str, Any]:
    """A value for each option that must be given, sizes by the kind's own letter: `{heads: H}`."""
    letters = letters_by_option(kind)
    found: dict[str, Any] = {}
    for name, mark in markers(kind).items():
        if kind.model_fields[name].is_required():
            found[name] = _value(name, mark, letters)
    return found


def letters_by_option(kind: type[Kind]) -> dict[str, str]:
    """The letter that stands for each size: `{heads: H}`."""
    return {text.partition("=")[0].strip(): letter for letter, text in kind.sizes.items()}


def _value(name: str, mark: Marker, letters: dict[str, str]) -> Any:
    if mark.reads in ("size", "count"):
        return letters.get(name, "N")
    if mark.reads == "use":
        return USES.get(name, "layer_norm")
    return mark.choices[0] if mark.choices else 1


def example_of(kind: type[Kind], width: int = WIDTH) -> str:
    """A whole spec with one part of this kind, the first that has no findings."""
    if kind.equations is Kind.equations:
        return to_yaml(_stack_example(kind), width)
    examples = [to_yaml(one, width) for one in _examples(kind)]
    return next((text for text in examples if not elaborate(load(text)).findings), examples[0])


def _examples(kind: type[Kind]) -> Iterator[dict[str, Any]]:
    """The kind over numbers, then over ids; over ids alone if it looks at no width."""
    options = needed_options(kind)
    dims = {FIRST_WIDTH: NUMBERS[FIRST_WIDTH]}
    dims |= {value: NUMBERS.get(value, LARGE) for value in options.values() if str(value) in kind.sizes}
    needed = [name for name in kind.inputs if name not in kind.optional]
    dims |= {axis: NUMBERS[FIRST_WIDTH] for axis in sorted(kind.widths) if axis not in dims}
    parts = {kind.name: {"kind": kind.name, **options}}
    body = {"parts": parts, "equations": f"y = {kind.name}({', '.join(needed)})\n"}
    inputs = {name: _axes(kind.inputs[name]) for name in needed}
    if kind.widths:
        yield {"dims": dims, "block": body if inputs == {"x": STREAM} else {"inputs": inputs, **body}}
    names = ["tokens"] if len(needed) == 1 else needed
    ids = {name: {"ids": STREAM[:2], "below": "V"} for name in names}
    body = {**body, "equations": f"y = {kind.name}({', '.join(names)})\n"}
    yield {"dims": {"V": LARGE, **_used(dims, options)}, "block": {"inputs": ids, **body}}


def _used(dims: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The dims that the options name."""
    return {name: number for name, number in dims.items() if name in options.values()}


def _axes(text: str) -> list[str]:
    """The axes of an input as a block declares them: `[B, S, M]` for `... S M`."""
    own = text.replace("...", "").split()
    return [*STREAM[: 3 - len(own)], *own] if len(own) < 3 else own


def _stack_example(kind: type[Kind]) -> dict[str, Any]:
    mixer = {"norm": "layer_norm", "placement": "pre", "sublayers": ["linear"]}
    layers = {"kind": kind.name, "of": "layer_block", "repeat": "N"}
    model = {"parts": {"layers": layers}, "equations": "x = layers(x)\n"}
    return {"dims": {FIRST_WIDTH: 64, "N": 6}, "blocks": {"layer_block": mixer}, "model": model}
