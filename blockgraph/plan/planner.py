"""Plans and workspaces of one program: made when first asked for, kept for the last few forms of call."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from operator import is_
from typing import Any

from blockgraph.graph import Graph
from blockgraph.lazy import np
from blockgraph.plan.compiled import Plan, Request, plan_of
from blockgraph.plan.kernels import load_kernels
from blockgraph.plan.workspace import Workspace
from blockgraph.records import dataclass

THREADS = "BLOCKGRAPH_THREADS"
MAX_PLANS = 8
MAX_IDLE = 2
MAX_THREADS = 64
"""More than that would only wait for one another: each pair of threads has doors of its own."""


@dataclass(slots=True)
class Ready:
    """A plan and its idle workspaces. Several threads may run it at once: each has a workspace of its own."""

    plan: Plan
    idle: list[Workspace] = field(default_factory=list)

    def ordered(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        """The parameters in the order of the graph."""
        return tuple(params[name] for name in self.plan.steps.params.values())

    def run(self, inputs: Mapping[str, Any], params: Sequence[Any], own: bool = True) -> dict[int, Any]:
        """The kept values, for parameters in the order of the graph; none lies in memory that is used again.

        If they shall be `own`, none is one of the arrays given or looks at it.
        """
        space = self.space()
        with np.errstate(all="ignore"):  # what is not finite shows in the numbers
            found = space.begin(inputs, params, own)
        self.give_back(space)
        return found

    def space(self) -> Workspace:
        """A workspace that nobody else has."""
        try:
            return self.idle.pop()
        except IndexError:
            return Workspace(self.plan)

    def give_back(self, space: Workspace) -> None:
        """Keep a workspace for the next run."""
        space.end()
        if len(self.idle) < MAX_IDLE:
            self.idle.append(space)


@dataclass(slots=True)
class Planner:
    """The plans of one unrolled graph."""

    graph: Graph
    _plans: OrderedDict[Request, Ready] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.Lock)

    def request(
        self,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        numbers: Mapping[str, int],
        keep: Iterable[int] = (),
        threads: int | None = None,
        late: Iterable[str] = (),
        often: bool = False,
    ) -> Request:
        """What a plan for these arrays is asked to do; the parameters are of one dtype.

        `late` names the further inputs, of floats, that come when the rest has run, `often` that they come repeatedly.
        """
        named = (*inputs.items(), *params.items())
        dtypes = {array.dtype for array in params.values()} or {
            array.dtype for array in inputs.values() if array.dtype.kind == "f"
        }
        dtype, late = next(iter(dtypes), np.dtype("float64")), tuple(late)
        given = {name: array.dtype for name, array in inputs.items()} | dict.fromkeys(late, dtype)
        loose = frozenset(name for name, array in named if not array.flags.c_contiguous)
        found = self.foreseen(given, dtype, numbers, keep, threads)
        return replace(found, loose=loose, late=frozenset(late), often=often)

    def foreseen(
        self,
        inputs: Mapping[str, Any],
        dtype: Any,
        numbers: Mapping[str, int],
        keep: Iterable[int] = (),
        threads: int | None = None,
    ) -> Request:
        """The same before there are arrays, which will lie row after row: `inputs` are their dtypes by name."""
        return Request(
            tuple(sorted(numbers.items())),
            dtype,
            tuple(inputs.items()),
            frozenset(),
            frozenset((*(port.value for port in self.graph.outputs), *keep)),
            thread_count(threads),
        )

    def ready(self, request: Request) -> Ready:
        """The plan for a request, made now if it is new."""
        with self._lock:
            found = self._plans.get(request)
            if found is not None:
                self._plans.move_to_end(request)
                return found
        load_kernels()
        made = Ready(plan_of(self.graph, request))
        with self._lock:
            found = self._plans.setdefault(request, made)
            while len(self._plans) > MAX_PLANS:
                self._plans.popitem(last=False)
        return found


@dataclass(frozen=True, slots=True)
class Form:
    """What is known of an input before its numbers are read; ids are below `below`."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    contiguous: bool
    below: int | None

    def fits(self, array: Any) -> bool:
        """Whether another array is of the same form, and its ids in range."""
        if type(array) is not np.ndarray or array.shape != self.shape or array.dtype != self.dtype:
            return False
        if array.flags.c_contiguous != self.contiguous:
            return False
        return self.below is None or not array.size or (0 <= array.min() and array.max() < self.below)


@dataclass(frozen=True, slots=True)
class Entry:
    """A call that was checked: another with the same parameters and inputs of the same form needs no checks.

    Parameters are told by identity; their numbers may have changed.
    """

    names: tuple[str, ...]
    arrays: tuple[Any, ...]
    forms: tuple[Form, ...]
    ready: Ready
    ordered: tuple[Any, ...]

    @classmethod
    def of(
        cls,
        ready: Ready,
        params: Mapping[str, Any],
        given: Mapping[str, Any],
        x: Any,
        inputs: Mapping[str, Any],
        bounds: Mapping[str, int | None],
    ) -> Entry | None:
        """A call that was checked; None if arrays had to be converted, which must be done again each time."""
        named = x if isinstance(x, Mapping) else dict.fromkeys(inputs, x)
        same = all(given[name] is params[name] for name in given) and all(
            inputs[name] is named[name] for name in inputs
        )
        if type(params) is not dict or not same:
            return None
        forms = tuple(
            Form(name, array.shape, array.dtype, array.flags.c_contiguous, bounds[name])
            for name, array in inputs.items()
        )
        return cls(tuple(params), tuple(params.values()), forms, ready, ready.ordered(given))

    def fits(self, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
        """Whether a call is like the one that was checked."""
        if type(params) is not dict or len(params) != len(self.names) or len(inputs) != len(self.forms):
            return False
        for form in self.forms:
            if form.name not in inputs or not form.fits(inputs[form.name]):
                return False
        return tuple(params) == self.names and all(map(is_, params.values(), self.arrays))


def thread_count(threads: int | None = None) -> int:
    """How many threads a run may use: as asked for, else by BLOCKGRAPH_THREADS, else as many as there are cores."""
    if threads is None:
        told = os.environ.get(THREADS, "")
        threads = int(told) if len(told) < 10 and told.isascii() and told.isdigit() and int(told) else _cores()
    return min(max(1, threads), MAX_THREADS)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
