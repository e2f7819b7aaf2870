"""A stack of layers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from blockgraph.kind import EXPRESSION, Count, Kind, refuse


def _of(value: object) -> object:
    if (isinstance(value, list | dict | str)) and value:
        return value
    raise refuse("a block or a list of blocks", value)


Layers = Annotated[
    Any, BeforeValidator(_of), WithJsonSchema({"anyOf": [EXPRESSION, {"type": "object"}, {"type": "array"}]})
]


class Stack(Kind):
    """x = layer_i(x, ...) for every layer in turn

    A list of blocks cycles; entries with their own `repeat` follow one another instead. Inputs that are also
    outputs of the block are carried from layer to layer; the others are the same for all.
    """

    name = "stack"
    family = "stack"
    title = "Stack"

    of: Layers = Field(description="the block, or a list of blocks that cycles or whose entries have their own repeat")
    repeat: Count = Field(None, description="the number of layers (not of cycles)")
