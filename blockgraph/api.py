"""The library: load, compile, and a program that samples, runs and traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from blockgraph.arrays import bind_inputs, checked_params, own_array, refuse_count, refuse_no_params, refuse_sizes
from blockgraph.checking import check
from blockgraph.cost.memory import MemoryReport, memory
from blockgraph.dims import Shape
from blockgraph.display import Displayed
from blockgraph.errors import EnvironmentFailure, Finding, InputError, Place, SpecError
from blockgraph.grad import Ends, Gradients, Tape, descend, layer_names, record
from blockgraph.graph import Graph
from blockgraph.lazy import np
from blockgraph.losses import cotangents, loss_of
from blockgraph.lower import unroll, unrolled_size
from blockgraph.ops.leaf import Param
from blockgraph.plan.foretell import WORKING, bytes_of
from blockgraph.plan.gradients import Differentiator
from blockgraph.plan.planner import Entry, Planner
from blockgraph.records import dataclass
from blockgraph.room import refuse_arrays, used_up, within_memory
from blockgraph.run import Interpreter
from blockgraph.spec import Spec
from blockgraph.trace import Trace

if TYPE_CHECKING:
    from blockgraph.checking import Source
    from blockgraph.decode.decoder import Decoder
    from blockgraph.decode.derive import Schedule

DEFAULT_SIZES = {"B": 2}
DEFAULT_SIZE = 8
MAX_UNROLLED = 1_000_000


def compile(source: Source, *, plan: bool = True, threads: int | None = None, **values: Any) -> Program:
    """A program from a spec; `values` rebind dims and constants. Raises SpecError with every finding.

    It runs by an execution plan for the sizes of each call, or without `plan` op by op, by the plain interpreter. A
    plan uses up to `threads` threads (default: the environment's BLOCKGRAPH_THREADS, else all cores); the same number
    of threads gives the same bits.
    """
    checked = check(source, **values)
    if not checked.ok or checked.graph is None:
        raise SpecError(checked.findings)
    refuse_count(checked.spec, "threads", threads)
    return Program(checked.spec, checked.graph, checked.findings, plan, threads)


@dataclass(frozen=True, repr=False)
class Program(Displayed):
    """A checked spec that can run.

    `graph` has its stacks folded, `flat` has them written out; both are made of `Node`s with networkx at `.nx`.
    """

    spec: Spec
    graph: Graph
    findings: tuple[Finding, ...] = ()
    plan: bool = True
    threads: int | None = None
    _entries: dict[str, Entry] = field(default_factory=dict, init=False, compare=False)

    def __repr__(self) -> str:
        """One line, as its graph."""
        return repr(self.graph).replace("<Graph", "<Program", 1)

    @cached_property
    def flat(self) -> Graph:
        """The graph with every layer written out. Raises InputError if a layer count has no number or is too large."""
        needed = {
            symbol for node in self.graph.nodes for symbol in getattr(getattr(node.op, "count", None), "symbols", ())
        }
        self._need(needed, self.graph.dims)
        size = unrolled_size(self.graph, self.graph.dims)
        if size > MAX_UNROLLED:
            message = f"with every layer written out there are {size:,} steps, and at most {MAX_UNROLLED:,} can be run"
            raise InputError([Finding("BG018", message, Place(self.spec.path), "set smaller layer counts")])
        return unroll(self.graph)

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.flat)

    @cached_property
    def _planner(self) -> Planner:
        return Planner(self.flat)

    @cached_property
    def parameters(self) -> dict[str, Param]:
        """The parameters by full name, in the order they are drawn."""
        nodes = self.flat.parameters
        return {name: nodes[name].op for name in self.flat.draws if isinstance(name, str)}  # type: ignore[misc]

    def _need(self, symbols: Iterable[str], numbers: Mapping[str, int]) -> None:
        missing = sorted({*symbols} - numbers.keys())
        if missing:
            places = {name: self.spec.document.key(("dims", name)) for name in missing}
            raise InputError(
                Finding(
                    "BG038", f"`{name}` has no number", place, f"give it one: `--set {name}=64`, or {name}=64 in Python"
                )
                for name, place in places.items()
            )

    def _generator(self, seed: Any) -> Any:
        """The generator itself, or `default_rng(seed)`. Raises InputError for what is no seed."""
        if isinstance(seed, np.random.Generator):
            return seed
        try:
            return np.random.default_rng(seed)
        except (TypeError, ValueError):
            message = f"a seed is a whole number from 0 on or a numpy Generator, not {seed!r}"
            raise InputError([Finding("BG302", message, Place(self.spec.path), "for example 0")]) from None

    @within_memory
    def init(self, seed: Any = 0, dtype: Any = "float64") -> dict[str, Any]:
        """Parameters drawn in order from `default_rng(seed)` (or from a Generator), in float64, then cast.

        Raises InputError for a dim without a number, EnvironmentFailure (BG904) for more than the memory holds.
        """
        rng = self._generator(seed)
        numbers = self.graph.dims
        self._need({symbol for op in self.parameters.values() for symbol in op.symbols}, numbers)
        shapes = ((name, _numbered(op.dims, numbers)) for name, op in self.parameters.items())
        refuse_arrays(self.spec.path, shapes, np.dtype(dtype).itemsize)
        return {name: op.bind(numbers).draw(rng).astype(dtype, copy=False) for name, op in self.parameters.items()}

    @within_memory
    def sample(self, seed: Any = 0, dtype: Any = "float64", **sizes: int) -> tuple[Any, dict[str, Any]]:
        """Inputs and parameters, drawn in this order from one generator.

        Floats are standard normal, ids uniform below their bound, booleans all true. B is 2 and every other free symbol
        8 unless given here. One input comes as an array, several as a dict by name. Raises as `init`.
        """
        rng = self._generator(seed)
        numbers = self.sizes(**sizes)
        inputs = {}
        shapes = {port.name: _numbered(self.graph.types[port.value].shape or (), numbers) for port in self.graph.inputs}
        refuse_arrays(self.spec.path, shapes.items(), np.dtype(dtype).itemsize)
        for port in self.graph.inputs:
            given, shape = self.graph.types[port.value], shapes[port.name]
            if given.dtype == "float":
                inputs[port.name] = rng.standard_normal(shape).astype(dtype, copy=False)
            elif given.dtype == "int":
                assert port.below is not None
                inputs[port.name] = rng.integers(0, int(port.below.evaluate(numbers)), shape)
            else:
                inputs[port.name] = np.ones(shape, dtype=bool)
        params = self.init(rng, dtype)
        return (next(iter(inputs.values())) if len(inputs) == 1 else inputs), params

    def sizes(self, **given: int) -> dict[str, int]:
        """The numbers of all symbols, defaults for the free ones. Raises InputError for a dim without a number."""
        symbols = {
            s for port in self.graph.inputs for dim in self.graph.types[port.value].shape or () for s in dim.symbols
        }
        free = symbols - self.spec.dims.keys()
        defaults = {name: DEFAULT_SIZES.get(name, DEFAULT_SIZE) for name in sorted(free)}
        numbers = {**defaults, **self.graph.dims, **given}
        refuse_sizes(self.spec, self.graph, given, numbers)
        self._need(symbols, numbers)
        return numbers

    def memory(self, dtype: Any = "float64", *, traced: bool = False, **sizes: int) -> MemoryReport:
        """The bytes that a run takes, told before it: `total`, of `parameters`, of `inputs`, of `values`.

        Nothing of that size is allocated. Sizes as in `sample`; `traced` keeps every named value. Raises InputError.
        """
        numbers, dtype = self.sizes(**sizes), np.dtype(dtype)
        self._need(self.flat.symbols, numbers)
        report = memory(self.graph, numbers, dtype.name, traced)
        if not self.plan:
            return report
        keep = self.flat.named.values() if traced else ()
        given = {port.name: _form(self.graph.types[port.value].dtype, dtype) for port in self.graph.inputs}
        ready = self._planner.ready(self._planner.foreseen(given, dtype, numbers, keep, self.threads))
        return replace(report, values=bytes_of(ready.plan), working=WORKING)

    def __call__(self, x: Any, params: Mapping[str, Any]) -> Any:
        """The output for an input array (or a dict of inputs by name); a dict by name if there are several outputs.

        Computes in the dtype of the parameters (of the inputs, if there are none). Raises InputError.
        """
        try:
            arrays = self._run(x, params)
        except MemoryError:
            raise EnvironmentFailure([used_up(self.spec.path)]) from None
        outputs = self.flat.outputs
        return arrays[outputs[0].value] if len(outputs) == 1 else {port.name: arrays[port.value] for port in outputs}

    @within_memory
    def trace(self, x: Any, params: Mapping[str, Any]) -> Trace:
        """Every named value of one run, by name. Raises InputError."""
        return Trace(self.flat, self._run(x, params, traced=True))

    @within_memory
    def vjp(self, x: Any, params: Mapping[str, Any], named: bool = False) -> tuple[Any, Callable[[Any], Gradients]]:
        """The output, and a function from its cotangent to the gradients: `dx, dparams = back(dy)`.

        Inputs come as they were given: one array, or a dict by name (without ids and booleans, which have no
        gradient). With `named`, `back(dy).dvalues` has the gradient of every named value, that of `attention.query` as
        `attention.dquery`. The function may be called any number of times. Raises InputError.
        """
        ends = Ends(self.flat, isinstance(x, Mapping), named)
        values, pull = self._forward(x, params, ends)
        outputs = {name: own_array(one, x, params) for name, one in ends.outputs(values).items()}

        def back(dy: Any) -> Gradients:
            return ends.gradients(pull(ends.by_value(cotangents(outputs, dy))))

        return (next(iter(outputs.values())) if len(outputs) == 1 else outputs), back

    @within_memory
    def grad(
        self,
        x: Any,
        params: Mapping[str, Any],
        loss: Any = "sum",
        *,
        named: bool = False,
        recompute: Literal["layers"] | None = None,
    ) -> Gradients:
        """The gradients of a loss in one go: `dx, dparams = program.grad(x, params, loss)`, with `.loss` beside them.

        `loss` is "sum", a cotangent, or a loss such as `CrossEntropy(targets)`. Activations are freed as soon as they
        were used; `recompute="layers"` keeps only what goes from layer to layer of the stacks, and runs each layer
        twice. `named` as in `vjp`. Raises InputError.
        """
        if recompute not in (None, "layers"):
            help = 'write recompute="layers", or leave it out'
            raise InputError([Finding("BG302", f"`{recompute}` cannot be recomputed", Place(self.spec.path), help)])
        ends = Ends(self.flat, isinstance(x, Mapping), named)
        layers = None if recompute is None else layer_names(self.graph)
        if self.plan and layers is None:
            values, pull = self._forward(x, params, ends, often=False)
            with np.errstate(all="ignore"):
                value, dys = loss_of(loss)(ends.outputs(values))
            return ends.gradients(pull(ends.by_value(dys)), value)
        with np.errstate(all="ignore"):
            return descend(self._interpreter, self._ready(x, params), ends, loss_of(loss), layers)

    def _forward(
        self, x: Any, params: Mapping[str, Any], ends: Ends, often: bool = True
    ) -> tuple[Mapping[int, Any], Callable[[Mapping[int, Any]], dict[int, Any]]]:
        """The outputs of a run by value, and the way back from their cotangents to the gradients that are wanted."""
        if not self.plan:
            tape = self.tape(x, params)
            return tape.slots, lambda dys: tape.pull_back(dys, ends.wanted)
        if ends.named not in self._differentiators:
            self._differentiators[ends.named] = Differentiator(self.flat, ends.wanted)
        passage = self._differentiators[ends.named].run(*self._ready(x, params), self.threads, often)
        return passage.values, passage.back

    @cached_property
    def _differentiators(self) -> dict[bool, Differentiator]:
        return {}

    @within_memory
    def tape(self, x: Any, params: Mapping[str, Any]) -> Tape:
        """One run with every value kept, for pulling gradients back and for comparing. Raises InputError."""
        with np.errstate(all="ignore"):
            return record(self._interpreter, *self._ready(x, params))

    def decoder(
        self, params: Mapping[str, Any], context: Mapping[str, Any] | None = None, *, length: int | None = None
    ) -> Decoder:
        """The program step by step: `decoder.step(tokens)` gives the outputs of the new positions alone.

        What the positions so far left behind is kept, derived from the graph: keys, values, whatever later positions
        read. `context` holds the inputs without an axis of time (an encoder's ids, a mask over them), by name; what
        depends on them alone is computed once. Room is made for `length` positions at the first step, for more as
        they come. Raises InputError: BG405 the spec is not proved to be causal, BG301, BG302; BG022 and
        BG109 a `length` that is none, or beyond the bounds of the spec.
        """
        from blockgraph.decode.decoder import Decoder

        schedule, context = self.schedule, {} if context is None else context
        refuse_count(self.spec, "length", length)
        refuse_no_params(self.spec, params)
        self._need({symbol for op in self.parameters.values() for symbol in op.symbols}, self.graph.dims)
        dtype = _dtype_of(params, context)
        ready = checked_params(self.spec, self.parameters, params, self.graph.dims, dtype)
        made = Decoder(self.spec, self.graph, schedule, ready, context, dtype, length)
        made.refuse_length(length or 0)
        return made

    @cached_property
    def schedule(self) -> Schedule:
        """What a step of the decoder computes and keeps. Raises InputError (BG405)."""
        from blockgraph.decode.decoder import scheduled

        return scheduled(self.spec, self.graph, self.flat)

    def _run(self, x: Any, params: Mapping[str, Any], traced: bool = False) -> dict[int, Any]:
        """The arrays of the outputs, which are new; of all named values as they are, if they are to be traced."""
        keep = self.flat.named.values() if traced else ()
        if not self.plan:
            found = self._interpreter.run(*self._ready(x, params), keep)
            return found if traced else {value: own_array(array, x, params) for value, array in found.items()}
        entry = None if traced else self._entries.get("last")
        if entry is not None:
            named = {self.graph.inputs[0].name: x} if type(x) is np.ndarray else x
            if isinstance(named, dict) and entry.fits(named, params):
                return entry.ready.run(named, entry.ordered)
        inputs, given, numbers = self._ready(x, params)
        ready = self._planner.ready(self._planner.request(inputs, given, numbers, keep, self.threads))
        if not traced and (entry := Entry.of(ready, params, given, x, inputs, self._bounds(numbers))) is not None:
            self._entries["last"] = entry
        return ready.run(inputs, ready.ordered(given), own=not traced)

    def _bounds(self, numbers: Mapping[str, int]) -> dict[str, int | None]:
        """What the ids of each input are below."""
        ports = self.graph.inputs
        return {port.name: None if port.below is None else int(port.below.evaluate(dict(numbers))) for port in ports}

    def _ready(self, x: Any, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, int]]:
        """Inputs, parameters and numbers, checked and in the run's dtype. Raises InputError."""
        refuse_no_params(self.spec, params)
        dtype = _dtype_of(params, x)
        inputs, numbers = bind_inputs(self.spec, self.graph, x, dtype)
        self._need(self.flat.symbols, numbers)
        return inputs, checked_params(self.spec, self.parameters, params, numbers, dtype), numbers


class TransformerBlock:
    """A compiled spec with its parameters: `forward` caches what `backward` needs.

    `backward(dy)` returns dx and fills `grads` by parameter name; calling it again gives the same.
    """

    def __init__(self, source: Source | Program, params: Mapping[str, Any]) -> None:
        """Compile the spec, unless it is a program. Raises SpecError."""
        self.program = source if isinstance(source, Program) else compile(source)
        self.params = dict(params or {})
        self.grads: dict[str, Any] = {}
        self._back: Callable[[Any], Gradients] | None = None

    def __repr__(self) -> str:
        """One line, as its graph."""
        return repr(self.program).replace("<Program", "<TransformerBlock", 1)

    def forward(self, x: Any) -> Any:
        """The output; everything it was computed from is kept for `backward`."""
        y, self._back = self.program.vjp(x, self.params)
        return y

    __call__ = forward

    def backward(self, dy: Any) -> Any:
        """The gradient of the input for the cotangent `dy`. Raises InputError before the first forward."""
        if self._back is None:
            place = Place(self.program.spec.path)
            raise InputError([Finding("BG402", "backward needs a forward before it", place, "call the block first")])
        dx, self.grads = self._back(dy)
        return dx


def _numbered(shape: Shape, numbers: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(dim.evaluate(numbers)) for dim in shape)


def _form(kind: str, dtype: Any) -> Any:
    """The dtype in which an input comes."""
    return {"float": dtype, "int": np.dtype("int64"), "bool": np.dtype(bool)}[kind]


def _dtype_of(params: Mapping[str, Any], x: Any) -> Any:
    arrays = list(params.values()) or (list(x.values()) if isinstance(x, Mapping) else [x])
    floats = [one.dtype for one in arrays if hasattr(one, "dtype") and one.dtype.kind == "f"]
    return np.result_type(*floats) if floats else np.dtype("float64")
