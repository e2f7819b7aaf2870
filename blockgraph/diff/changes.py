"""What changed, as data: one thing that is added, removed or different, where, and on which layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from blockgraph.records import dataclass

Sign = Literal["+", "-", "~"]
MANY_NAMES = 4


@dataclass(frozen=True, slots=True)
class Change:
    """`text` on the units `names`; `layers` are those of the stack it is true of, none for all of them."""

    sign: Sign
    text: str
    names: tuple[str, ...] = ()
    stack: str = ""
    layers: tuple[int, ...] = ()

    def __str__(self) -> str:
        """`+ per-head RMSNorm on q and k`, `attention: kv_heads H -> 2 on layers 1, 3`."""
        names = ", ".join(self.names[:MANY_NAMES])
        names += f" and {len(self.names) - MANY_NAMES} more" if len(self.names) > MANY_NAMES else ""
        where = f" on layers {layer_list(self.layers)}" if self.layers else ""
        where += f" {'of' if where else 'in'} {self.stack}" if self.stack else ""
        if self.sign != "~":
            return f"{self.sign} {self.text}{f' ({names})' if names else ''}{where}"
        return f"{f'{names}: ' if names else ''}{self.text}{where}"


def merged(changes: Iterable[Change]) -> list[Change]:
    """Changes that differ only in the unit as one, in the order of the first."""
    found: dict[Change, list[str]] = {}
    for change in changes:
        names = found.setdefault(replace(change, names=()), [])
        names += [name for name in change.names if name not in names]
    return [replace(change, names=tuple(names)) for change, names in found.items()]


def over_layers(told: Iterable[tuple[Change, tuple[int, ...]]], total: int) -> list[Change]:
    """Changes with the layers of one stack each is true of; equal ones on several layers as one."""
    found: dict[Change, list[int]] = {}
    for change, layers in told:
        found.setdefault(change, []).extend(layers)
    return [
        replace(change, layers=tuple(sorted(layers)) if len(layers) < total else ()) for change, layers in found.items()
    ]


def layer_list(layers: Sequence[int]) -> str:
    """Numbers of layers, counted from 0 as in parameter names: `1, 3, 5`, `0-11`, `0, 2, ..., 38`."""
    steps = {b - a for a, b in pairwise(layers)}
    if len(layers) > 2 and steps == {1}:
        return f"{layers[0]}-{layers[-1]}"
    if len(layers) > 5 and len(steps) == 1:
        return f"{layers[0]}, {layers[1]}, ..., {layers[-1]}"
    return ", ".join(map(str, layers))
