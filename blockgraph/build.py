"""Specs built in Python: `Block(sublayers=[Attention(heads="H"), ...])` stands for the same data as a file.

Nothing is checked here. What is built is plain data; it is checked like a file when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blockgraph.kind import load_kinds
from blockgraph.records import dataclass
from blockgraph.schema import SpecKeys


@dataclass(frozen=True)
class Part:
    """A use of a kind with options; `Attention(heads="H")` makes one."""

    kind: str
    options: Mapping[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        """As it would stand in a file."""
        return {"kind": self.kind, **{key: plain(value) for key, value in self.options.items()}}


@dataclass(frozen=True)
class Built:
    """A spec: the data of a file with one main module."""

    data: dict[str, Any]


def Block(**keys: Any) -> Built:
    """A spec whose main module is a block. Keys of a file (name, dims, ...) may stand beside those of a block."""
    return _built("block", keys)


def Model(**keys: Any) -> Built:
    """A spec whose main module is a model."""
    return _built("model", keys)


def _built(main: str, keys: Mapping[str, Any]) -> Built:
    of_file = SpecKeys.model_fields.keys()
    outside = {key: plain(value) for key, value in keys.items() if key in of_file}
    return Built({**outside, main: {key: plain(value) for key, value in keys.items() if key not in of_file}})


def plain(value: Any) -> Any:
    """Parts and modules inside a value as plain data."""
    if isinstance(value, Part):
        return value.data
    if isinstance(value, Built):
        return next(iter(value.data.values()))
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def _maker(name: str, kind: str, doc: str | None) -> Callable[..., Part]:
    def make(**options: Any) -> Part:
        return Part(kind, options)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return make


def constructor(name: str) -> Any:
    """What makes uses of a kind: `Attention` for `attention`, `LayerNorm` for `layer_norm`; None for no kind."""
    for kind, model in load_kinds().items():
        if "".join(word.capitalize() for word in kind.split("_")) == name:
            return _maker(name, kind, model.__doc__)
    return None
