"""Gradients by a plan: one graph that goes forward and back, run in two goes with the loss in between."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from blockgraph.adjoint import Adjoint, adjoint
from blockgraph.graph import Graph
from blockgraph.lazy import np
from blockgraph.peephole import recognise
from blockgraph.plan.planner import Planner, Ready
from blockgraph.plan.workspace import Workspace
from blockgraph.records import dataclass


@dataclass(slots=True)
class Differentiator:
    """Runs one unrolled graph forward and back; the gradients of the `wanted` values are found."""

    graph: Graph
    wanted: frozenset[int]
    made: Adjoint = field(init=False)
    planner: Planner = field(init=False)

    def __post_init__(self) -> None:
        """Make the graph that goes both ways."""
        self.made = adjoint(recognise(self.graph, keep=self.wanted), self.wanted)
        self.planner = Planner(self.made.graph)

    def run(
        self,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        numbers: Mapping[str, int],
        threads: int | None,
        often: bool,
    ) -> Passage:
        """Go forward. `often` says that it may go back more than once."""
        late = self.made.cotangents.values()
        kept = set(self.made.gradients.values())
        request = self.planner.request(inputs, params, numbers, kept, threads, late, often)
        ready = self.planner.ready(request)
        space = ready.space()
        passage = Passage(self, ready, space)
        with np.errstate(all="ignore"):  # what is not finite shows in the numbers
            passage.values = space.begin(inputs, ready.ordered(params))
        weakref.finalize(passage, ready.give_back, space).atexit = False
        return passage


@dataclass(eq=False)
class Passage:
    """One run forward. `values` are the outputs by value; its memory is used again when it is forgotten."""

    by: Differentiator
    ready: Ready
    space: Workspace
    values: dict[int, Any] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def back(self, cotangents: Mapping[int, Any]) -> dict[int, Any]:
        """The gradients of the wanted values, by value, for cotangents of outputs; each an array of its own.

        A value that no output depends on has an array of zeros.
        """
        steps, made = self.ready.plan.steps, self.by.made
        late = {}
        for value, name in made.cotangents.items():
            given = cotangents.get(value)
            late[name] = np.zeros(steps.shapes[value], steps.dtype) if given is None else np.ascontiguousarray(given)
        with self._lock, np.errstate(all="ignore"):
            found = self.space.proceed(late)
        result: dict[int, Any] = {}
        seen = {id(array) for array in late.values()}
        for value in self.by.wanted:
            if value in made.gradients:
                array = found[made.gradients[value]]
                owner = id(array if array.base is None else array.base)
                result[value] = array.copy() if owner in seen else array
                seen.add(owner)
            elif steps.dtypes[value].kind == "f":
                result[value] = np.zeros(steps.shapes[value], steps.dtypes[value])
        return result
