"""Arrays given to a run, held against what the spec declares before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from blockgraph.bounds import exceeded, remedy
from blockgraph.dims import Dim, Shape, show
from blockgraph.errors import Finding, InputError, Place, near
from blockgraph.graph import Condition, Graph, Port
from blockgraph.lazy import UNMASK, masked, np
from blockgraph.ops.leaf import Param
from blockgraph.solve import causes, open_symbol, solve
from blockgraph.spec import MAX_DIM, Spec
from blockgraph.wording import show_value


def bind_inputs(spec: Spec, graph: Graph, x: Any, dtype: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """The input arrays by name, and the numbers of all symbols with the free ones bound to the arrays' axes.

    Raises InputError: a missing or unknown input, a shape or type that does not fit, an id out of range.
    """
    given = {name: _array(spec, graph, name, one) for name, one in _by_name(spec, graph, x).items()}
    numbers = numbers_told(graph, {port.value: given[port.name] for port in graph.inputs})
    findings: list[Finding] = []
    ready = {}
    for port in graph.inputs:
        array, place = given[port.name], _place(spec, port)
        wrong = _wrong_dtype(port, array, graph.types[port.value].dtype, place)
        findings += wrong or _misfit(port, array, graph.types[port.value].shape or (), numbers, place)
        if not wrong:
            findings += _ids_in_range(port, array, numbers, place)
            ready[port.name] = array.astype(dtype, copy=False) if graph.types[port.value].dtype == "float" else array
    findings += broken_bounds(graph.conditions, numbers)
    if findings:
        raise InputError(findings)
    return ready, numbers


def _array(spec: Spec, graph: Graph, name: str, value: Any) -> Any:
    """What is given for an input as an array. Raises InputError."""
    array = _numeric(value)
    if array is None or masked(value):
        (port,) = (port for port in graph.inputs if port.name == name)
        message = f"the input `{name}` is no array of numbers"
        help = "give every row the same length, and numbers only"
        if masked(value):
            message, help = f"the input `{name}` is a masked array, and a run knows no masked numbers", UNMASK
        raise InputError([Finding("BG302", message, _place(spec, port), help)])
    return array


def _numeric(value: Any) -> Any:
    """The value as an array of numbers or booleans; None if it is none."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return None
    return array if array.dtype.kind in "fiub" else None


def numbers_told(graph: Graph, arrays: Mapping[int, Any]) -> dict[str, int]:
    """The numbers of all symbols that the axes of arrays tell, whatever their order; the arrays by value."""
    numbers = dict(graph.dims)
    axes: list[tuple[Dim, int]] = []
    for value, array in arrays.items():
        axes += zip(graph.types[value].shape or (), array.shape, strict=False)
    told = True
    while told:
        told = False
        for dim, size in axes:
            symbol = open_symbol(dim, numbers)
            number = None if symbol is None else solve(dim, symbol, size, numbers)
            if symbol is not None and number is not None:
                numbers[symbol], told = number, True
    return numbers


def own_array(result: Any, x: Any, params: Mapping[str, Any]) -> Any:
    """A result that shares no memory with what was given: a copy where it is one of the arrays or a view of it."""
    given = [*(x.values() if isinstance(x, Mapping) else [x]), *params.values()]
    if result.flags.owndata:
        return result.copy() if any(one is result for one in given) else result
    shared = any(isinstance(one, np.ndarray) and np.may_share_memory(result, one) for one in given)
    return result.copy() if shared else result


def refuse_sizes(spec: Spec, graph: Graph, given: Mapping[str, Any], numbers: Mapping[str, int]) -> None:
    """Refuse sizes for a sample that are none, that compiling has set, or that no input has. Raises InputError."""
    axes = [dim for port in graph.inputs for dim in graph.types[port.value].shape or ()]
    place, findings = Place(spec.path), []
    for name, value in given.items():
        fixed = graph.dims.get(name)
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
            findings.append(Finding("BG022", f"`{name}`: whole number expected, got {show_value(value)}", place))
        elif value > MAX_DIM:
            findings.append(Finding("BG022", f"`{name}`: a size up to {MAX_DIM} expected, got {value}", place))
        elif fixed is not None and fixed != value:
            help = f"a dim gets its number when the spec is compiled: `compile(spec, {name}={value})`"
            findings.append(Finding("BG027", f"`{name}` is {fixed} in this program, not {value}", place, help))
        elif fixed is None and not any(name in dim.symbols for dim in axes):
            findings.append(Finding("BG027", f"no input has an axis `{name}`", place))
    if not findings:
        broken = (dim for dim in axes if dim.symbols <= numbers.keys() and dim.evaluate(numbers) < 0)
        findings = [Finding("BG022", f"an axis is {dim} = {dim.evaluate(numbers)}", place) for dim in broken]
    if findings:
        raise InputError(findings)


def refuse_count(spec: Spec, name: str, value: object) -> None:
    """Refuse an argument that is to be a whole number from 1 on, or None. Raises InputError."""
    if value is None or (hasattr(value, "__index__") and not isinstance(value, bool) and int(value) > 0):
        return
    message = f"`{name}`: whole number from 1 on expected, got {show_value(value)}"
    raise InputError([Finding("BG022", message, Place(spec.path), "or leave it out")])


def refuse_no_params(spec: Spec, params: object) -> None:
    """Refuse parameters that are no mapping. Raises InputError."""
    if not isinstance(params, Mapping):
        message = f"the parameters are a dict of arrays by name, not {show_value(params)}"
        help = "for example `program.init(0)`, and {} where there are none"
        raise InputError([Finding("BG301", message, Place(spec.path), help)])


def _by_name(spec: Spec, graph: Graph, x: Any) -> Mapping[str, Any]:
    names = [port.name for port in graph.inputs]
    listed = ", ".join(names)
    if not isinstance(x, Mapping):
        if len(names) != 1:
            message = f"{len(names) or 'no'} inputs are needed, and one array is given"
            help = f"give a dict with {listed}" if names else "give an empty dict"
            raise InputError([Finding("BG302", message, Place(spec.path), help)])
        return {names[0]: x}
    findings = [
        Finding("BG302", f"the input `{name}` is missing", _place(spec, port), f"give a dict with {listed}")
        for name, port in zip(names, graph.inputs, strict=True)
        if name not in x
    ]
    for name in x:
        if name not in names:
            found = near(str(name), names)
            known = f"the inputs are {listed}" if names else "it has no inputs: give an empty dict"
            help = f"did you mean `{found}`?" if found else known
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
    message = f"the input `{port.name}` holds {words[wanted]}, and the array is of type {array.dtype}"
    return [Finding("BG302", message, place, f"if that is what its numbers mean, give `array.astype({wanted})`")]


def _misfit(port: Port, array: Any, shape: tuple[Dim, ...], numbers: dict[str, int], place: Place) -> list[Finding]:
    """A finding if an array has not the shape of its input."""
    if array.ndim != len(shape):
        message = f"the input `{port.name}` is {show(shape)}, and the array has shape {array.shape}"
        return [Finding("BG302", message, place, f"give an array with {_axes(shape)}")]
    for dim, size in zip(shape, array.shape, strict=True):
        symbol = open_symbol(dim, numbers)
        if symbol is not None:
            message = (
                f"the input `{port.name}` is {show(shape)}, and the array's shape {array.shape} fits no `{symbol}`"
            )
            help = f"one axis is {dim}: give it a size that a whole {symbol} makes"
            return [Finding("BG302", message, place, help)]
        if dim.symbols <= numbers.keys() and dim.evaluate(numbers) != size:
            expected = f"{dim} = {dim.evaluate(numbers)}" if dim.symbols else str(dim)
            message = f"the input `{port.name}` is {show(shape)} with {expected}, and the array has shape {array.shape}"
            fitting = (Dim(one.evaluate(numbers)) if one.symbols <= numbers.keys() else one for one in shape)
            return [Finding("BG302", message, place, f"give an array of shape {show(tuple(fitting))}")]
    return []


def _axes(shape: Shape) -> str:
    """`3 axes: B, T and C`; what a 0-dimensional array is, in words."""
    if not shape:
        return "no axes: one number"
    *rest, last = map(str, shape)
    return f"{len(shape)} axes: {', '.join(rest)} and {last}" if rest else f"1 axis: {last}"


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
    help = f"give ids from 0 to {below - 1}"
    if value >= below and port.below.symbols:
        help += f", or raise {port.below} to {int(array.max()) + 1}"
    return [Finding("BG303", message, place, help)]


def broken_bounds(conditions: Iterable[Condition], numbers: Mapping[str, int]) -> list[Finding]:
    """A finding for each condition that does not hold for these numbers."""
    known = dict(numbers)
    return [_broken(condition, known) for condition in conditions if condition.holds(known) is False]


def _broken(condition: Condition, numbers: Mapping[str, int]) -> Finding:
    help = remedy(condition, numbers)
    if condition.relation == "at most":
        return Finding("BG109", exceeded(condition, numbers), condition.place, help)
    known = ", ".join(f"{name} = {numbers[name]}" for name in sorted(condition.symbols))
    return Finding("BG103", f"{condition.text} does not hold: {known}", condition.place, help)


def checked_params(
    spec: Spec, wanted: Mapping[str, Param], params: Mapping[str, Any], numbers: Mapping[str, int], dtype: Any
) -> dict[str, Any]:
    """The parameters in the run's dtype, which is that of all of them.

    Raises InputError (BG301): missing, unexpected, no floats, of several dtypes, or of the wrong shape.
    """
    findings: list[Finding] = []
    place = Place(spec.path)
    missing = [name for name in wanted if name not in params]
    extra = [name for name in params if name not in wanted]
    if missing:
        message = f"{len(missing)} parameters are missing: {_first(missing)}"
        findings.append(Finding("BG301", message, place, "`program.init(0)` draws all of them, as a dict by name"))
    if extra:
        found = near(str(extra[0]), wanted)
        findings.append(
            Finding(
                "BG301",
                f"{len(extra)} parameters are unknown: {_first(extra)}",
                place,
                f"did you mean `{found}`?" if found else "",
            )
        )
    ready: dict[str, Any] = {}
    wrong: dict[tuple[str, str], list[str]] = {}
    for name in wanted:
        if name not in params:
            continue
        array = _numeric(params[name])
        reason = _no_parameter(params[name], array, dtype)
        if reason is None:
            ready[name] = array
        else:
            wrong.setdefault(reason, []).append(name)
    for (what, help), names in wrong.items():
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        findings.append(Finding("BG301", f"`{names[0]}` {what}{more}", place, help))
    findings += _of_several_types(spec, ready)
    ready = {name: array.astype(dtype, copy=False) for name, array in ready.items()}
    findings += _misshapen(spec, wanted, ready, numbers)
    if findings:
        raise InputError(findings)
    return ready


def _no_parameter(value: Any, array: Any, dtype: Any) -> tuple[str, str] | None:
    """What an array is that cannot be a parameter, and what to give instead."""
    if array is None:
        return "is no array of numbers", "give an array of floats"
    if masked(value):
        return "is a masked array, and a run knows no masked numbers", UNMASK
    if array.dtype.kind != "f":
        help = f'if that is what its numbers mean, give `array.astype("{dtype.name}")`'
        return f"is of type {array.dtype}, and parameters are floats", help
    return None


def _of_several_types(spec: Spec, arrays: Mapping[str, Any]) -> Iterator[Finding]:
    """One float64 among many float32 would make all the run float64, in twice the time."""
    types: dict[Any, list[str]] = {}
    for name, array in arrays.items():
        types.setdefault(array.dtype, []).append(name)
    if len(types) > 1:
        fewest_first = sorted(types.items(), key=lambda one: len(one[1]))
        told = ", ".join(f"{dtype}: {_first(names)}" for dtype, names in fewest_first)
        most = fewest_first[-1][0]
        help = f'give all of them one type, as in `{{name: array.astype("{most}") for name, array in params.items()}}`'
        yield Finding("BG301", f"the parameters are of several types ({told})", Place(spec.path), help)


def _misshapen(
    spec: Spec, wanted: Mapping[str, Param], arrays: Mapping[str, Any], numbers: Mapping[str, int]
) -> Iterator[Finding]:
    """One finding for each dim that has another number in the arrays, and one for each other wrong shape."""
    shapes = {name: tuple(int(dim.evaluate(dict(numbers))) for dim in wanted[name].dims) for name in arrays}
    wrong = {name: (wanted[name].dims, array.shape) for name, array in arrays.items() if array.shape != shapes[name]}
    if not wrong:
        return
    right = {s for name in arrays.keys() - wrong.keys() for dim in wanted[name].dims for s in dim.symbols}
    found = causes({name: one for name, one in wrong.items() if one[1] != shapes[name][::-1]}, right, numbers)
    told = {
        name: f"`{name}` has shape {shape} where {show(dims)} = {shapes[name]} is expected"
        for name, (dims, shape) in wrong.items()
    }
    for (symbol, number), names in found.items():
        message = f"`{symbol}` is {numbers[symbol]} in the spec and {number} in the parameters: {told[names[0]]}"
        message += f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        help = f"if these are the right parameters: `compile(spec, {symbol}={number})`"
        yield Finding("BG301", message, Place(spec.path), help)
    for name, (_, shape) in wrong.items():
        if not any(name in names for names in found.values()):
            help = "the transposed shape fits" if shape == shapes[name][::-1] else ""
            yield Finding("BG301", told[name], Place(spec.path), help)


def _first(names: list[str]) -> str:
    return ", ".join(map(str, names[:3])) + (", ..." if len(names) > 3 else "")
