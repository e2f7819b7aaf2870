"""The library: load, compile, and a program that samples, runs and traces."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from blockgraph.arrays import bind_inputs, checked_params
from blockgraph.build import Built
from blockgraph.elaborate import elaborate
from blockgraph.errors import Finding, InputError, Place, SpecError, in_file_order
from blockgraph.grad import Tape, record
from blockgraph.graph import Graph
from blockgraph.lazy import np
from blockgraph.lints import lint
from blockgraph.lower import unroll
from blockgraph.ops.leaf import Param
from blockgraph.run import Interpreter
from blockgraph.spec import Spec, load

if TYPE_CHECKING:
    from blockgraph.drawing import Shapes
    from blockgraph.drawing.figure import Figure

DEFAULT_SIZES = {"B": 2}
DEFAULT_SIZE = 8
Source = Spec | Built | str | os.PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True)
class Checked:
    """A spec after checking: its graph (None when there is none to speak of) and all findings in file order."""

    spec: Spec
    graph: Graph | None
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.severity == "error" for finding in self.findings)


def check(source: Source, **values: Any) -> Checked:
    """Check a spec: reading, equations, shapes for all sizes, lints. Raises only if it is no YAML or JSON."""
    with _without_collector():
        spec = _spec(source, values)
        result = elaborate(spec)
        findings = result.findings
        if result.graph is not None:
            findings = in_file_order((*findings, *lint(result.graph)))
        return Checked(spec, result.graph, findings)


def _spec(source: Source, values: Mapping[str, Any]) -> Spec:
    """The spec with values rebound; what is built in Python may take its dims from them."""
    if isinstance(source, Built):
        dims = source.data.get("dims", {})
        return load({**source.data, "dims": {**dims, **values}})
    spec = source if isinstance(source, Spec) else load(source)
    return spec.with_values(values) if values else spec


@contextmanager
def _without_collector() -> Iterator[None]:
    """A graph is many small objects that all stay: the cyclic collector would walk them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def compile(source: Source, **values: Any) -> Program:
    """A program from a spec; `values` rebind dims and constants. Raises SpecError with every finding."""
    checked = check(source, **values)
    if not checked.ok or checked.graph is None:
        raise SpecError(checked.findings)
    return Program(checked.spec, checked.graph, checked.findings)


class Trace(Mapping[str, Any]):
    """Every named value of one run, by name; `outputs` are the results."""

    def __init__(self, graph: Graph, arrays: Mapping[int, Any]) -> None:
        """Keep the arrays of a run of `graph`."""
        self._arrays = {name: arrays[value] for name, value in graph.named.items() if value in arrays}
        self.outputs = {port.name: arrays[port.value] for port in graph.outputs}
        self.graph = graph

    def __getitem__(self, name: str) -> Any:
        """The array of a named value."""
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        """The names in order of definition."""
        return iter(self._arrays)

    def __len__(self) -> int:
        """The number of names."""
        return len(self._arrays)


@dataclass(frozen=True)
class Program:
    """A checked spec that can run.

    `graph` has its stacks folded, `flat` has them written out; both are made of `Node`s with networkx at `.nx`.
    """

    spec: Spec
    graph: Graph
    findings: tuple[Finding, ...] = ()
    _sizes: dict[str, int] = field(default_factory=dict)

    @cached_property
    def flat(self) -> Graph:
        """The graph with every layer written out. Raises InputError if a layer count has no number."""
        needed = {
            symbol for node in self.graph.nodes for symbol in getattr(getattr(node.op, "count", None), "symbols", ())
        }
        self._need(needed, self.graph.dims)
        return unroll(self.graph)

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.flat)

    @cached_property
    def parameters(self) -> dict[str, Param]:
        """The parameters by full name, in the order they are drawn."""
        nodes = self.flat.parameters
        return {name: nodes[name].op for name in self.flat.draws if isinstance(name, str)}  # type: ignore[misc]

    def _need(self, symbols: set[str], numbers: Mapping[str, int]) -> None:
        missing = sorted(symbols - numbers.keys())
        if missing:
            places = {name: self.spec.document.key(("dims", name)) for name in missing}
            raise InputError(
                Finding(
                    "BG038", f"`{name}` has no number", place, f"give it one: `--set {name}=64`, or {name}=64 in Python"
                )
                for name, place in places.items()
            )

    def init(self, seed: Any = 0, dtype: Any = "float64") -> dict[str, Any]:
        """Parameters drawn in order from `default_rng(seed)` (or from a Generator), in float64, then cast."""
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
        numbers = self.graph.dims
        self._need({symbol for op in self.parameters.values() for symbol in op.symbols}, numbers)
        return {name: op.bind(numbers).draw(rng).astype(dtype, copy=False) for name, op in self.parameters.items()}

    def sample(self, seed: Any = 0, dtype: Any = "float64", **sizes: int) -> tuple[Any, dict[str, Any]]:
        """Inputs and parameters, drawn in this order from one generator.

        Floats are standard normal, ids uniform below their bound, booleans all true. B is 2 and every other free symbol
        8 unless given here. One input comes as an array, several as a dict by name.
        """
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
        numbers = self.sizes(**sizes)
        inputs = {}
        for port in self.graph.inputs:
            given = self.graph.types[port.value]
            shape = tuple(int(dim.evaluate(numbers)) for dim in given.shape or ())
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
        unknown = given.keys() - symbols - self.spec.dims.keys()
        if unknown:
            place = Place(self.spec.path)
            raise InputError([Finding("BG027", f"no input has an axis `{name}`", place) for name in sorted(unknown)])
        numbers = {**defaults, **self.graph.dims, **given}
        self._need(symbols, numbers)
        return numbers

    def __call__(self, x: Any, params: Mapping[str, Any]) -> Any:
        """The output for an input array (or a dict of inputs by name); a dict by name if there are several outputs.

        Computes in the dtype of the parameters (of the inputs, if there are none). Raises InputError.
        """
        arrays = self._run(x, params, ())
        results = {port.name: arrays[port.value] for port in self.flat.outputs}
        return next(iter(results.values())) if len(results) == 1 else results

    def trace(self, x: Any, params: Mapping[str, Any]) -> Trace:
        """Every named value of one run, by name. Raises InputError."""
        return Trace(self.flat, self._run(x, params, set(self.flat.named.values())))

    def vjp(self, x: Any, params: Mapping[str, Any]) -> tuple[Any, Callable[[Any], tuple[Any, dict[str, Any]]]]:
        """The output, and a function from its cotangent to the gradients of inputs and parameters.

        Inputs come as they were given: one array, or a dict by name (without ids and booleans, which have no
        gradient). The function may be called any number of times. Raises InputError.
        """
        tape = self.tape(x, params)
        outputs = {port.name: np.asarray(tape.slots[port.value]) for port in self.flat.outputs}
        single = len(outputs) == 1

        def back(dy: Any) -> tuple[Any, dict[str, Any]]:
            given = {next(iter(outputs)): dy} if single else dy
            return self._pull_back(tape, given, isinstance(x, Mapping))

        return (next(iter(outputs.values())) if single else outputs), back

    def tape(self, x: Any, params: Mapping[str, Any]) -> Tape:
        """One run with every value kept, for pulling gradients back and for comparing. Raises InputError."""
        return record(self._interpreter, *self._ready(x, params))

    def _pull_back(self, tape: Tape, dys: Mapping[str, Any], by_name: bool) -> tuple[Any, dict[str, Any]]:
        values = {port.name: port.value for port in self.flat.outputs}
        cotangents = {values[name]: np.asarray(dy) for name, dy in dys.items()}
        inputs = {port.name: port.value for port in self.flat.inputs}
        nodes = {name: node.outputs[0] for name, node in self.flat.parameters.items()}
        grads = tape.pull_back(cotangents, {*inputs.values(), *nodes.values()})
        dx = {name: grads[value] for name, value in inputs.items() if value in grads}
        dparams = {name: grads[nodes[name]] for name in self.parameters}
        return (dx if by_name else next(iter(dx.values()), None)), dparams

    def _run(self, x: Any, params: Mapping[str, Any], keep: Any) -> dict[int, Any]:
        return self._interpreter.run(*self._ready(x, params), keep)

    def _ready(self, x: Any, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, int]]:
        """Inputs, parameters and numbers, checked and in the run's dtype. Raises InputError."""
        dtype = _dtype_of(params, x)
        inputs, numbers = bind_inputs(self.spec, self.graph, x, dtype)
        self._need({s for node in self.flat.nodes for s in node.op.symbols}, numbers)  # type: ignore[union-attr]
        return inputs, checked_params(self.spec, self.parameters, params, numbers, dtype), numbers

    def _repr_svg_(self) -> str:
        """The picture, in a notebook."""
        return str(render(self).pipe("svg", encoding="utf-8"))


class TransformerBlock:
    """A compiled spec with its parameters: `forward` caches what `backward` needs.

    `backward(dy)` returns dx and fills `grads` by parameter name; calling it again gives the same.
    """

    def __init__(self, source: Source | Program, params: Mapping[str, Any]) -> None:
        """Compile the spec, unless it is a program. Raises SpecError."""
        self.program = source if isinstance(source, Program) else compile(source)
        self.params = dict(params)
        self.grads: dict[str, Any] = {}
        self._back: Callable[[Any], tuple[Any, dict[str, Any]]] | None = None

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


def render(*sources: Source | Program, expand: bool = False, shapes: Shapes = "changes") -> Figure:
    """One figure of one or more specs side by side; it shows itself in a notebook.

    `figure.source` is its DOT text, `figure.pipe("png")` a picture. Raises SpecError, EnvironmentFailure.
    """
    from blockgraph.drawing import to_dot
    from blockgraph.drawing.figure import Figure

    programs = [one if isinstance(one, Program) else compile(one) for one in sources]
    captions = [one.spec.source for one in programs]
    return Figure(to_dot([one.graph for one in programs], expand=expand, shapes=shapes, captions=captions))


def _dtype_of(params: Mapping[str, Any], x: Any) -> Any:
    arrays = list(params.values()) or (list(x.values()) if isinstance(x, Mapping) else [x])
    floats = [np.asarray(one).dtype for one in arrays if np.asarray(one).dtype.kind == "f"]
    return np.result_type(*floats) if floats else np.dtype("float64")
