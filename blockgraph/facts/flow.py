"""The reach of every value of a graph, stacks included: a body is followed until what it carries changes no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from blockgraph.dims import Dim
from blockgraph.facts.interval import at_most
from blockgraph.facts.reach import NOTHING, Access, Reach, joined, merged, through
from blockgraph.graph import Graph, Node, Repeat, Segment
from blockgraph.op import Op
from blockgraph.records import dataclass

State = tuple[Reach, ...]
MAX_BODIES = 1_000  # followed exactly
MAX_CYCLES = 8  # of a stack before what still grows is taken to have no bound


@dataclass(slots=True)
class Memo:
    """What was found of graphs by what they were given, with one set of numbers; `met` are those of one question."""

    known: dict[tuple[int, State], State] = field(default_factory=dict)
    met: set[tuple[int, State]] = field(default_factory=set)

    def next(self) -> Memo:
        """The same for another question."""
        return Memo(self.known)


def follow(
    graph: Graph, given: Mapping[int, Reach], numbers: Mapping[str, int], memo: Memo | None = None
) -> dict[int, Reach]:
    """The reach of every value of a graph; `given` is that of its inputs, those not listed read nothing."""
    memo = Memo() if memo is None else memo
    found: dict[int, Reach] = dict(given)
    for node in graph.nodes:
        if node.outputs[0] in found:
            continue
        operands = tuple([found.get(value, NOTHING) for value in node.inputs])
        outputs = _through(graph, node, operands, numbers, memo)
        found.update(zip(node.outputs, outputs, strict=True))
    return found


def reached(graph: Graph, given: State, numbers: Mapping[str, int], memo: Memo) -> State:
    """The reach of each output of a graph whose inputs have these; one that was given the same is not followed again.

    Graphs that are equal up to places count as one.
    """
    key = (id(graph.original), given)
    if key not in memo.known:
        inputs = {port.value: reach for port, reach in zip(graph.inputs, given, strict=True)}
        reaches = follow(graph.original, inputs, numbers, memo)
        memo.known[key] = tuple(reaches.get(port.value, NOTHING) for port in graph.outputs)
    memo.met.add(key)
    return memo.known[key]


def _through(graph: Graph, node: Node, operands: State, numbers: Mapping[str, int], memo: Memo) -> State:
    if isinstance(node.op, Repeat):
        return Layers(node.op, operands, numbers, memo).outputs
    if node.op.__class__.zeros is Op.zeros and all(one is NOTHING for one in operands):
        return (NOTHING,) * len(node.outputs)
    types = tuple(graph.types[value] for value in node.inputs)
    return through(node.op, types, tuple(graph.types[value] for value in node.outputs), operands)


@dataclass(slots=True)
class Layers:
    """A stack followed layer by layer; `visited` are the bodies with what they were given, each once, in order."""

    stack: Repeat
    inputs: State
    numbers: Mapping[str, int]
    memo: Memo = field(default_factory=Memo)
    visited: dict[tuple[int, State], State] = field(default_factory=dict)
    outputs: State = ()

    def __post_init__(self) -> None:
        state = tuple(Reach(one.accesses, gated=one.gated) for one in self.inputs)
        self.outputs = tuple(NOTHING if index is None else state[index] for index in self.stack.carried)
        for segment in self.stack.segments:
            state = self._segment(segment, state)

    def _layer(self, body: int, state: State) -> State:
        """The outputs of one layer."""
        found = self.visited[body, state] = reached(self.stack.bodies[body], state, self.numbers, self.memo)
        return found

    def _next(self, body: int, state: State) -> State:
        """The inputs of the layer after this one."""
        self.outputs = self._layer(body, state)
        following = list(state)
        for index, reach in zip(self.stack.carried, self.outputs, strict=True):
            if index is not None:
                following[index] = reach
        return tuple(following)

    def _segment(self, segment: Segment, state: State) -> State:
        count = _count(segment.count, self.numbers)
        if count is None:
            return self._any_number(segment, state)
        cycle = len(segment.bodies)
        exact = MAX_CYCLES if len(self.memo.met) < MAX_BODIES else 0  # stacks in stacks would multiply
        for _ in range(min(exact, count // cycle)):
            before = state
            state = self._run(segment.bodies, state)
            count -= cycle
            if state == before:
                count %= cycle
        if count >= cycle:
            state = self._settled(segment.bodies, state)
        return self._run(segment.bodies[: count % cycle], state)

    def _run(self, bodies: Sequence[int], state: State) -> State:
        for body in bodies:
            state = self._next(body, state)
        return state

    def _settled(self, bodies: Sequence[int], state: State) -> State:
        """What holds after any number of cycles from here on: what still grows has no bound."""
        while True:
            after = self._run(bodies, state)
            wider = tuple(_widened(old, joined((old, new))) for old, new in zip(state, after, strict=True))
            if wider == state:
                return state
            state = wider

    def _any_number(self, segment: Segment, state: State) -> State:
        """As many layers as the count may be, at least one if it is a size."""
        states, outputs = ([], []) if at_most(1, segment.count) else ([state], [self.outputs])
        for body in segment.bodies:
            state = self._next(body, state)
            states.append(state)
            outputs.append(self.outputs)
        state = self._settled(segment.bodies, state)
        for body in segment.bodies:
            state = self._next(body, state)
            states.append(state)
            outputs.append(self.outputs)
        self.outputs = _all_of(outputs)
        return _all_of(states)


def _all_of(states: Sequence[State]) -> State:
    return tuple(joined(column) for column in zip(*states, strict=True))


def _count(count: Dim, numbers: Mapping[str, int]) -> int | None:
    return None if count.symbols - numbers.keys() else int(count.evaluate(dict(numbers)))


def _widened(old: Reach, new: Reach) -> Reach:
    """The new reach with every bound that moved given up."""
    before = {(one.axes, one.sure): one for one in old.accesses}
    found: list[Access] = []
    for one in new.accesses:
        known = before.get((one.axes, one.sure))
        if known is None or known == one:
            found.append(one)
        else:
            found.append(_without_moving_bounds(known, one))
    return Reach(merged(found), gated=new.gated)


def _without_moving_bounds(old: Access, new: Access) -> Access:
    kept, sure = [], new.sure
    for (axis, a), (_, b) in zip(old.intervals, new.intervals, strict=True):
        low = b.low if a.low == b.low else None
        high = b.high if a.high == b.high else None
        sure = sure and (high == b.high or a.reads_later)
        wider = type(b)(low, high)
        kept += [] if wider.is_everything else [(axis, wider)]
    return Access(tuple(kept), sure)
