"""What a run leaves for looking at: every named value, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blockgraph.display import Displayed
from blockgraph.errors import near
from blockgraph.graph import Graph


class Trace(Mapping[str, Any], Displayed):
    """Every named value of one run, by name; `outputs` are the results."""

    def __init__(self, graph: Graph, arrays: Mapping[int, Any]) -> None:
        """Keep the arrays of a run of `graph`."""
        depth = {name: step.depth for step in graph.steps for name in (step.name, step.name.rpartition(".")[0])}
        named = sorted(graph.named.items(), key=lambda one: (one[1], depth[one[0]]))
        self._arrays = {name: arrays[value] for name, value in named if value in arrays}
        self.outputs = {port.name: arrays[port.value] for port in graph.outputs}
        self.graph = graph

    def __repr__(self) -> str:
        """One line, as its graph: the arrays are for its table."""
        return repr(self.graph).replace("<Graph", "<Trace", 1).rpartition(", ")[0] + f", {len(self)} values>"

    def __getitem__(self, name: str) -> Any:
        """The array of a named value. Raises KeyError with the nearest name."""
        if name not in self._arrays:
            found = near(str(name), self._arrays)
            help = f"did you mean `{found}`?" if found else "the names are those of `list(trace)`"
            raise KeyError(f"no value is called `{name}`: {help}")
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        """The names in order of definition."""
        return iter(self._arrays)

    def __len__(self) -> int:
        """The number of names."""
        return len(self._arrays)
