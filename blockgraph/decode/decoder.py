"""A model step by step: what it has read so far is kept, and each step brings new positions and gives their outputs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from blockgraph.arrays import bind_inputs, broken_bounds, own_array, refuse_count
from blockgraph.decode.bind import Bound, bind, longest
from blockgraph.decode.derive import Schedule, derive
from blockgraph.decode.opened import opened
from blockgraph.decode.refuse import refuse_context, refuse_graph, refuse_outputs, refuse_timed_inputs
from blockgraph.decode.timing import timing
from blockgraph.decode.views import Clock
from blockgraph.errors import Finding, InputError, Place
from blockgraph.graph import Graph, Port
from blockgraph.lazy import np
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass
from blockgraph.wording import show_value


def scheduled(spec: Any, graph: Graph, flat: Graph) -> Schedule:
    """What a step computes and keeps. Raises InputError (BG405) with the proof if the graph has no steps."""
    time = refuse_graph(spec, graph)
    refuse_timed_inputs(spec, flat, time)
    found = timing(opened(flat, time), time)
    refuse_outputs(spec, found)
    return derive(found)


@dataclass(frozen=True, slots=True)
class Ids:
    """What ids must be to be taken as they are; whatever is not is looked at closely, and told."""

    value: int
    rows: int
    below: int

    def take(self, x: Any) -> bool:
        """Whether an array fits."""
        fits = isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim == 2 and x.shape[0] == self.rows
        return bool(fits and x.size and x.min() >= 0 and x.max() < self.below)


class Decoder:
    """`step(tokens)` gives the outputs of any number of new positions; `length` is how many there were so far.

    The first step of a prompt is a step like any other. Not for several threads at once.
    """

    def __init__(
        self,
        spec: Any,
        graph: Graph,
        schedule: Schedule,
        params: Mapping[str, Any],
        context: Mapping[str, Any],
        dtype: Any,
        room: int | None = None,
    ) -> None:
        """`context` holds the inputs without an axis of time; `room` positions are made room for at the first step.

        Raises InputError (BG302): what the context lacks or does not fit.
        """
        self.spec, self.graph, self.dtype, self.room = spec, graph, dtype, room
        self.schedule, self.time = schedule, schedule.timing.time
        self.ports = tuple(port for port in graph.inputs if self._in_time(port))
        self.numbers = dict(graph.dims)
        self.length = 0
        self._known = {
            node.outputs[0]: params[node.op.path] for node in self._graph.nodes if isinstance(node.op, Param)
        }
        self._bound: Bound | None = None
        self._values = {port.name: port.value for port in self._graph.inputs}
        self._allowed = 0  # so many positions are known to be within all bounds
        self._ids: Ids | None = None
        self._take_context(context)

    @property
    def _graph(self) -> Graph:
        return self.schedule.graph

    def _in_time(self, port: Port) -> bool:
        return self.time in (self.graph.types[port.value].shape or ())

    def _take_context(self, context: Mapping[str, Any]) -> None:
        ports = tuple(port for port in self.graph.inputs if not self._in_time(port))
        refuse_context(self.spec, self.graph, self.ports, context)
        if not ports:
            return
        given, numbers = bind_inputs(self.spec, self._only(ports), context, self.dtype)
        self.numbers.update(numbers)
        self._refuse_bounds({})
        self._known.update({self._values[name]: array for name, array in given.items()})

    def _only(self, ports: tuple[Port, ...]) -> Graph:
        """The graph with some of its inputs, and what is known of the sizes."""
        return replace(self.graph, inputs=ports, conditions=(), dims=self.numbers)

    def __repr__(self) -> str:
        """One line: how far it is and what it keeps."""
        return f"<Decoder {self.graph.name}: {self.length} positions, {self.bytes:,} bytes kept>"

    @property
    def bytes(self) -> int:
        """The memory of what is kept from step to step, room included."""
        return 0 if self._bound is None else sum(rows.bytes for rows in self._bound.rows.values())

    @property
    def kept(self) -> dict[int, int]:
        """How many rows of each value that is kept, by value, later steps may read."""
        pasts = {one.source.value: one.past for one in self.schedule.kept}
        return {value: Clock(self.length, 0).rows(past) for value, past in pasts.items()}

    def _read(self, x: Any) -> tuple[dict[int, Any], dict[str, int], int]:
        """The arrays by value, the numbers of all symbols but time, and the number of new positions.

        Raises InputError: BG302, BG303.
        """
        if self._bound is not None and self._ids is not None and self._ids.take(x):
            return {self._ids.value: x}, self.numbers, x.shape[1]
        given, numbers = bind_inputs(self.spec, self._only(self.ports), x, self.dtype)
        new = numbers.pop(str(self.time))
        return {self._values[name]: array for name, array in given.items()}, numbers, new

    def _only_ids(self) -> Ids | None:
        """The input, if it is the only one, of ids (B, T)."""
        (port,) = self.ports if len(self.ports) == 1 else (None,)
        given = None if port is None else self.graph.types[port.value]
        if port is None or given is None or given.dtype != "int" or port.below is None or len(given.shape or ()) != 2:
            return None
        rows, time = given.shape or ()
        if time != self.time or (rows.symbols | port.below.symbols) - self.numbers.keys():
            return None
        return Ids(self._values[port.name], int(rows.evaluate(self.numbers)), int(port.below.evaluate(self.numbers)))

    def refuse_length(self, total: int) -> None:
        """Raises InputError (BG109) if the spec has bounds, such as a table of positions, that `total` is beyond."""
        self._refuse_bounds({str(self.time): total})

    @property
    def left(self) -> int:
        """How many positions more the bounds of the spec allow."""
        return longest(self.graph.conditions, str(self.time), self.numbers, self.length, sys.maxsize) - self.length

    def _refuse_bounds(self, numbers: Mapping[str, int]) -> None:
        findings = broken_bounds(self.graph.conditions, {**self.numbers, **numbers})
        if findings:
            raise InputError(findings)

    def step(self, x: Any) -> Any:
        """The outputs of the new positions, in order: an array, or a dict by name if there are several.

        `x` is the array of the input that has an axis of time, or a dict by name where there are several. Raises
        InputError: BG302, BG303 what does not fit, BG109 beyond the bounds of the spec. Then nothing has happened.
        """
        outputs = self._step(x, True)
        ports = zip(self.graph.outputs, self._graph.outputs, outputs, strict=True)
        named = {port.name: self._own(own.value, y, x) for port, own, y in ports}
        return next(iter(named.values())) if len(named) == 1 else named

    def _own(self, value: int, y: Any, x: Any) -> Any:
        """An output that shares no memory with what was given or is kept."""
        return own_array(y, x, {}) if value in self.schedule.timing.given else np.array(y)

    def generate(
        self,
        prompt: Any,
        count: int = 32,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        seed: int = 0,
        stop: Iterable[int] = (),
    ) -> Iterator[Any]:
        """At most `count` arrays of new ids (B,), one after the other, for a prompt of ids (B, T).

        The best ids if `temperature` is 0, else drawn from softmax(scores / temperature), with `top_k` among k ids.
        A row ends with an id of `stop`, and repeats it until all rows have ended. Raises InputError: BG405 the spec has
        no scores over ids, BG109 more positions than it allows, BG302, BG303, BG022 what does not fit.
        """
        from blockgraph.decode.sampling import Choice, generate

        refuse_count(self.spec, "count", count)
        refuse_count(self.spec, "top_k", top_k)
        if not isinstance(stop, Iterable):
            message = f"`stop`: ids expected, got {show_value(stop)}"
            raise InputError([Finding("BG022", message, Place(self.spec.path), f"write [{show_value(stop)}]")])
        return generate(self, prompt, count, Choice(temperature, top_k, seed, tuple(stop)))

    def feed(self, x: Any) -> None:
        """A step whose outputs are not wanted: only what later steps need is computed."""
        self._step(x, False)

    def _step(self, x: Any, wanted: bool) -> list[Any]:
        given, numbers, new = self._read(x)
        clock = Clock(self.length, new)
        if not clock.new:
            message = "a step brings one position at least, and none is given"
            raise InputError([Finding("BG302", message, Place(self.spec.path))])
        if clock.total > self._allowed:
            self._refuse_bounds({**numbers, str(self.time): clock.total})
            self._allowed = longest(self.graph.conditions, str(self.time), numbers, clock.total, 2 * clock.total)
        with np.errstate(all="ignore"):
            if self._bound is None:
                self.numbers = numbers
                self._bound = bind(self.schedule, self._known, numbers, self.dtype, self.room)
                self._ids = self._only_ids()
            outputs = self._bound.step(given, clock, wanted)
        self.length = clock.total
        if clock.new > 1:
            self._bound.settle(Clock(self.length, 0))
        return outputs
