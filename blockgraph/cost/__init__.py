"""What a graph costs, read off its symbolic shapes: nothing is allocated and no stack is written out."""

from __future__ import annotations

from blockgraph.cost.memory import WIDTHS, MemoryReport, Tensor, memory
from blockgraph.cost.parameters import Shared, count_parameters, number, number_of_parameters, shared_parameters
from blockgraph.cost.report import Costs, Row, costs
from blockgraph.cost.tally import Cache, Counting, Tally, Weights

__all__ = [
    "WIDTHS",
    "Cache",
    "Costs",
    "Counting",
    "MemoryReport",
    "Row",
    "Shared",
    "Tally",
    "Tensor",
    "Weights",
    "costs",
    "count_parameters",
    "memory",
    "number",
    "number_of_parameters",
    "shared_parameters",
]
