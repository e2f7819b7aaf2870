"""Bounds between sizes in words: what exceeds what, and which numbers would do.

Compiling and a run tell them alike: the one knows the numbers of dims, the other those of arrays too.
"""

from __future__ import annotations

from collections.abc import Mapping

from blockgraph.dims import Dim
from blockgraph.graph import Condition

__all__ = ["exceeded", "remedy", "valued"]


def valued(dim: Dim, numbers: Mapping[str, int]) -> str:
    """A dim with its number where that says more: `4*C = 3072`."""
    text = str(dim)
    if not dim.symbols or dim.symbols - numbers.keys():
        return text
    value = dim.evaluate({symbol: numbers[symbol] for symbol in dim.symbols})
    return f"{text} = {value}"


def exceeded(condition: Condition, numbers: Mapping[str, int]) -> str:
    """A bound that does not hold: `T = 513 exceeds L = 512`."""
    return f"{valued(condition.smaller, numbers)} exceeds {valued(condition.larger, numbers)}"


def remedy(condition: Condition, numbers: Mapping[str, int]) -> str:
    """Which numbers would do: `keep T to at most 512, or raise L to 513`."""
    small, large = condition.smaller, condition.larger
    if not condition.symbols <= numbers.keys():
        return f"no sizes can do: write it so that {condition.text}"
    if condition.relation == "divides":
        return f"choose sizes with which {small} divides {large}"
    most, least = large.evaluate(numbers), small.evaluate(numbers)
    ways = [f"keep {small} to at most {most}"] if small.symbols and most > 0 else []
    ways += [f"raise {large} to {least}"] if large.symbols else []
    return ", or ".join(ways)
