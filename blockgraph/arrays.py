"""Arrays given to a run, held against what the spec declares before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blockgraph.dims import Dim, show
from blockgraph.errors import Finding, InputError, Place, near
from blockgraph.graph import Condition, Graph, Port
from blockgraph.lazy import np
from blockgraph.ops.leaf import Param
from blockgraph.spec import Spec


def bind_inputs(spec: Spec, graph: Graph, x: Any, dtype: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """The input arrays by name, and the numbers of all symbols with the free ones bound to the arrays' axes.

    Raises InputError: a missing or unknown input, a shape or type that does not fit, an id out of range.
    """
    given = _by_name(spec, graph, x)
    numbers = dict(graph.dims)
    findings: list[Finding] = []
    ready = {}
    for port in graph.inputs:
        array = np.asarray(given[port.name])
        place = _place(spec, port)
        wrong = _wrong_dtype(port, array, graph.types[port.value].dtype, place)
        findings += wrong or _bind_shape(port, array, graph.types[port.value].shape or (), numbers, place)
        if not wrong:
            findings += _ids_in_range(port, array, numbers, place)
            ready[port.name] = array.astype(dtype, copy=False) if graph.types[port.value].dtype == "float" else array
    findings += [_broken(condition, numbers) for condition in graph.conditions if condition.holds(numbers) is False]
    if findings:
        raise InputError(findings)
    return ready, numbers


def _by_name(spec: Spec, graph: Graph, x: Any) -> Mapping[str, Any]:
    names = [port.name for port in graph.inputs]
    if not isinstance(x, Mapping):
        if len(names) != 1:
            message = f"{len(names)} inputs are needed, and one array is given"
            raise InputError([Finding("BG302", message, Place(spec.path), f"give a dict with {', '.join(names)}")])
        return {names[0]: x}
    findings = [
        Finding("BG302", f"the input `{name}` is missing", _place(spec, port))
        for name, port in zip(names, graph.inputs, strict=True)
        if name not in x
    ]
    for name in x:
        if name not in names:
            found = near(str(name), names)
            help = f"did you mean `{found}`?" if found else f"the inputs are {', '.join(names)}"
            findings.append(Finding("BG302", f"there is no input `{name}`", Place(spec.path), help))
    if findings:
        raise InputError(findings)
    return x


def _place(spec: Spec, port: Port) -> Place:
    module = spec.modules[spec.main]
    return spec.document.key((*module.path, "inputs", port.name))


def _wrong_dtype(port: Port, array: Any, wanted: str, place: Place) -> list[Finding]:
    kinds = {"float": "fiu", "int": "iu", "bool": "b"}
    words = {"float": "numbers", "int": "whole numbers", "bool": "true and false"}
    if array.dtype.kind in kinds[wanted]:
        return []
    return [
        Finding(
            "BG302", f"the input `{port.name}` holds {words[wanted]}, and the array is of type {array.dtype}", place
        )
    ]


def _bind_shape(port: Port, array: Any, shape: tuple[Dim, ...], numbers: dict[str, int], place: Place) -> list[Finding]:
    if array.ndim != len(shape):
        message = f"the input `{port.name}` is {show(shape)}, and the array has shape {array.shape}"
        return [Finding("BG302", message, place)]
    for dim, size in zip(shape, array.shape, strict=True):
        missing = dim.symbols - numbers.keys()
        if len(missing) == 1:
            (name,) = missing
            per_one = dim.subs({name: 1, **{s: numbers[s] for s in dim.symbols if s in numbers}}).number
            if per_one and dim == Dim(name) * (dim / Dim(name)) and size / per_one == int(size / per_one):
                numbers[name] = int(size / per_one)
        if not dim.symbols - numbers.keys() and dim.evaluate(numbers) != size:
            expected = f"{dim} = {dim.evaluate(numbers)}" if dim.symbols else str(dim)
            message = f"the input `{port.name}` is {show(shape)} with {expected}, and the array has shape {array.shape}"
            return [Finding("BG302", message, place)]
    return []


def _ids_in_range(port: Port, array: Any, numbers: Mapping[str, int], place: Place) -> list[Finding]:
    if port.below is None or not array.size or port.below.symbols - numbers.keys():
        return []
    below = int(port.below.evaluate(dict(numbers)))
    wrong = np.argwhere((array < 0) | (array >= below))
    if not len(wrong):
        return []
    where = [int(index) for index in wrong[0]]
    value = int(array[tuple(where)])
    message = f"`{port.name}` holds {value} at {where}, and ids run from 0 to {below - 1} ({port.below} = {below})"
    return [Finding("BG303", message, place)]


def _broken(condition: Condition, numbers: Mapping[str, int]) -> Finding:
    names = condition.smaller.symbols | condition.larger.symbols
    known = ", ".join(f"{name} = {numbers[name]}" for name in sorted(names))
    if condition.relation == "at most":
        sides = (condition.smaller, condition.larger)
        small, large = (f"{dim} = {dim.evaluate(dict(numbers))}" if dim.symbols else str(dim) for dim in sides)
        return Finding("BG109", f"{small} exceeds {large}", condition.place, condition.help)
    return Finding("BG103", f"{condition.text} does not hold: {known}", condition.place, condition.help)


def checked_params(
    spec: Spec, wanted: Mapping[str, Param], params: Mapping[str, Any], numbers: Mapping[str, int], dtype: Any
) -> dict[str, Any]:
    """The parameters in the run's dtype. Raises InputError (BG301): missing, unexpected or of the wrong shape."""
    findings: list[Finding] = []
    missing = [name for name in wanted if name not in params]
    extra = [name for name in params if name not in wanted]
    place = Place(spec.path)
    if missing:
        findings.append(Finding("BG301", f"{len(missing)} parameters are missing: {_first(missing)}", place))
    if extra:
        found = near(extra[0], wanted)
        findings.append(
            Finding(
                "BG301",
                f"{len(extra)} parameters are unknown: {_first(extra)}",
                place,
                f"did you mean `{found}`?" if found else "",
            )
        )
    ready = {}
    for name, op in wanted.items():
        if name not in params:
            continue
        array = np.asarray(params[name])
        shape = tuple(int(dim.evaluate(dict(numbers))) for dim in op.dims)
        if array.shape != shape:
            message = f"`{name}` has shape {array.shape} where {show(op.dims)} = {shape} is expected"
            help = "the transposed shape fits" if array.shape == shape[::-1] else ""
            findings.append(Finding("BG301", message, place, help))
        ready[name] = array.astype(dtype, copy=False)
    if findings:
        raise InputError(findings)
    return ready


def _first(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
