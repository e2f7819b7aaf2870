"""Weights of a model: checkpoints read into a spec's parameters and written in a checkpoint's names.

A spec's `checkpoint:` section is data: which dims come from config.json, which tensor makes which parameter. One rule
serves import, export, and gradients in the checkpoint's names. Without a section names are blockgraph's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from blockgraph.elaborate import elaborate
from blockgraph.errors import EnvironmentFailure, Finding, InputError, Place, SpecError, in_file_order
from blockgraph.graph import Graph, Repeat
from blockgraph.lazy import np
from blockgraph.lower import unroll
from blockgraph.module import Report
from blockgraph.spec import Spec
from blockgraph.spec import load as load_spec
from blockgraph.weights import ties
from blockgraph.weights.config import ConfigReader
from blockgraph.weights.export import to_tensors
from blockgraph.weights.files import Checkpoint, open_checkpoint, read_config
from blockgraph.weights.judge import Judgement, Misshape
from blockgraph.weights.mapping import KEY, Section, check_mapping, read_mapping
from blockgraph.weights.pairing import Source, drawn, linear_weights, sources
from blockgraph.weights.safetensors import ENDING, write
from blockgraph.weights.take import Takes
from blockgraph.wording import show_value

__all__ = ["Loaded", "export", "load", "open_checkpoint", "save", "spec_of", "to_checkpoint"]

Path = str | os.PathLike[str]


class Compiled(Protocol):
    """A program: a spec and its graph."""

    @property
    def spec(self) -> Spec:
        """The spec."""

    @property
    def graph(self) -> Graph:
        """Its graph, stacks folded."""


class Loaded(NamedTuple):
    """A spec with the checkpoint's sizes, its parameters by full name, and warnings and notes."""

    spec: Spec
    params: dict[str, Any]
    findings: tuple[Finding, ...]


def load(source: Any, path: Path, *, dtype: Any = None, partial: bool = False) -> Loaded:
    """The parameters of a spec (or a program) from a folder with config.json and .safetensors, or from one file.

    First config.json gives the dims, then the spec is worked out, then every tensor is held against it, and only
    then data is read. Arrays have the file's dtype (bfloat16 becomes float32), or `dtype`; without a change they are
    views of the file, which cannot be written to. `partial` loads what is there and says in a note how much.

    Raises SpecError (what is wrong with the spec or its `checkpoint:`), EnvironmentFailure (BG901), InputError:
    BG301 missing, BG305 unexpected, BG306 shape, BG307 tie, BG308 config, BG310 damaged, BG311 dtype.
    """
    report = Report()
    spec = _spec(source)
    checkpoint = open_checkpoint(_named(path))
    section = Section() if checkpoint.own else read_mapping(spec, report)
    spec = _configured(spec, section, checkpoint.config, checkpoint.config_path, report)
    flat = _flat(spec, _graph_of(spec))
    section = section if checkpoint.own else check_mapping(spec, drawn(flat), report)
    if report.failed:
        raise SpecError(report.in_order)
    found = _Reading(spec, section, flat, checkpoint, report, partial).read()
    params = {key: _cast(array, dtype) for key, array in found.items()}
    return Loaded(spec, params, report.in_order)


def spec_of(source: Any, path: Path) -> tuple[Spec, tuple[Finding, ...]]:
    """The spec with the sizes that the config.json of a folder gives by `checkpoint: config:`, and notes.

    A note says where a value is the spec's own. Raises SpecError, InputError (BG308), EnvironmentFailure.
    """
    report = Report()
    spec = _spec(source)
    section = read_mapping(spec, report)
    spec = _configured(spec, section, *read_config(os.fspath(path)), report)
    return spec, report.in_order


def _named(path: object) -> str:
    """A path as text. Raises InputError for what names no file."""
    if not isinstance(path, str | os.PathLike):
        message = f"a file is named by a path, not by {show_value(path)}"
        raise InputError([Finding("BG301", message, Place(""), 'for example "weights.safetensors"')])
    return os.fspath(path)


def _spec(source: Any) -> Spec:
    found = getattr(source, "spec", source)
    return found if isinstance(found, Spec) else load_spec(found)


def _configured(spec: Spec, section: Section, config: Mapping[str, Any] | None, file: str, report: Report) -> Spec:
    """The spec with the config's values. Raises SpecError for a faulty section, InputError for what does not agree."""
    if report.failed:
        raise SpecError(report.in_order)
    if config is None:
        if section.config or section.expect:
            message = f"there is no {file}: the sizes of this spec are used"
            report.add("BG309", message, spec.document.key((KEY,)), severity="note")
        return spec
    spec = ConfigReader(spec, section, config, file, report).applied()
    if report.failed:
        raise InputError(report.in_order)
    return spec


def _graph_of(spec: Spec) -> Graph:
    result = elaborate(spec)
    if result.graph is None or any(one.severity == "error" for one in result.findings):
        raise SpecError(result.findings)
    return result.graph


def _flat(spec: Spec, graph: Graph) -> Graph:
    """Every layer written out. Raises InputError (BG038) for a size without a number."""
    needed = {s for node in graph.nodes if isinstance(node.op, Repeat) for s in node.op.count.symbols}
    _need(spec, needed, graph.dims)
    flat = unroll(graph)
    _need(spec, {s for op in drawn(flat).values() for s in op.symbols}, flat.dims)
    return flat


def _need(spec: Spec, symbols: set[str], numbers: Mapping[str, int]) -> None:
    missing = sorted(symbols - numbers.keys())
    if missing:
        help = "give it one with `--set`, or map it under `checkpoint: config:`"
        raise InputError(
            Finding("BG038", f"`{name}` has no number", spec.document.key(("dims", name)), help) for name in missing
        )


class _Reading:
    """One checkpoint read into one flat graph."""

    def __init__(
        self, spec: Spec, section: Section, flat: Graph, checkpoint: Checkpoint, report: Report, partial: bool
    ) -> None:
        self.spec, self.report, self.partial = spec, report, partial
        self.section, self.flat, self.checkpoint = section, flat, checkpoint
        self.takes = Takes(spec, report)
        self.sources = sources(section, flat, checkpoint.tensors.keys())
        self.judge = Judgement(spec, section, flat, checkpoint, self.sources, drawn(flat))

    def read(self) -> dict[str, Any]:
        """The parameters. Raises InputError with all findings."""
        findings = self.judge.compare_names()
        there = [one for one in self.sources.values() if one not in self.judge.missing]
        if self.partial:
            self._tell(len(there))
            findings = []
        self._warn_of_layout(there)
        wrong = [one for source in there if (one := self._misshape(source))]
        findings += self.judge.compare_shapes(wrong)
        if findings or self.report.failed:
            raise InputError(in_file_order([*self.report.findings, *findings]))
        return {source.parameter: self._array(source) for source in there}

    def _tell(self, count: int) -> None:
        message = f"{count} of {len(self.sources)} parameters loaded"
        if self.judge.unexpected:
            message += f"; {len(self.judge.unexpected)} tensors of the file not used"
        self.report.add("BG313", message, Place(self.checkpoint.path), severity="note")

    def _warn_of_layout(self, there: list[Source]) -> None:
        linear = linear_weights(self.flat)
        mapped = [one for one in there if one.rule and one.parameter in linear]
        if self.section.layout is None and mapped:
            message = f"the layout of `{mapped[0].tensors[0]}` is not declared, and is taken as [in, out]"
            place = self.spec.document.key((KEY,))
            help = "add `layout: in_out`, or `layout: out_in` where x @ W.T is meant"
            self.report.add("BG314", message, place, help, severity="warning")

    def _misshape(self, source: Source) -> Misshape | None:
        """What is wrong with the shape; a `take` that does not fit has its own finding."""
        expected = source.stored(self.judge.shape(source.parameter))
        raw = source.raw_shape(self.checkpoint.shapes)
        if raw is None:
            self._cannot_join(source)
            return None
        if source.rule is None or source.take is None:
            return Misshape(source, raw, expected) if raw != expected else None
        take = self.takes.get(source.take, source.rule.take_path, raw)
        return Misshape(source, take.shape, expected) if take is not None and take.shape != expected else None

    def _cannot_join(self, source: Source) -> None:
        assert source.rule is not None
        what = f"`{source.pattern}` cannot be stacked: its tensors have different shapes"
        if source.index is not None:
            what = f"`{source.pattern}` has no index {source.index} in its first axis, for `{source.parameter}`"
        self.report.add("BG306", what, self.spec.document.key(source.rule.path))

    def _array(self, source: Source) -> Any:
        take = None
        if source.rule is not None and source.take is not None:
            raw = source.raw_shape(self.checkpoint.shapes)
            assert raw is not None
            take = self.takes.get(source.take, source.rule.take_path, raw)
        return source.forward(source.raw(self._tensor), take)

    def _tensor(self, name: str) -> Any:
        tensor = self.checkpoint.tensors[name]
        array = tensor.read()
        if array.dtype.kind == "b":
            help = "a parameter holds numbers; list it under `ignore` if it is a mask"
            message = f"the tensor `{name}` is stored as {tensor.dtype}, and parameters are floats"
            raise InputError([Finding("BG311", message, Place(tensor.file), help)])
        return array if array.dtype.kind == "f" else array.astype(np.float64)


def _cast(array: Any, dtype: Any) -> Any:
    return array if dtype is None else array.astype(dtype, copy=False)


def save(program: Compiled, params: Mapping[str, Any], path: Path) -> None:
    """Write parameters as one .safetensors file in blockgraph's own names; reloading gives the same bits.

    An array with several uses (a tied output, `share: true`) is written once, and the file says as what it is used.
    Raises InputError (BG301) for parameters that are not the program's, EnvironmentFailure (BG903), also for a name
    that does not end in .safetensors: reading goes by the ending.
    """
    flat = _flat(program.spec, program.graph)
    ready = _checked(program.spec, flat, params)
    file = _named(path)
    if not file.endswith(ENDING):
        message = f"cannot write {file}: weights are written in one form, in a file that ends in {ENDING}"
        help = f"name it {os.path.splitext(file)[0]}{ENDING}"
        raise EnvironmentFailure([Finding("BG903", message, Place(file), help)])
    write(file, ready, ties.notes(program.graph, flat))


def to_checkpoint(program: Compiled, arrays: Mapping[str, Any], like: Path | None = None) -> dict[str, Any]:
    """Parameters, or gradients of them, under the names and in the shapes of the spec's checkpoint.

    Each rule is read backwards by its adjoint: several parameters of one tensor add up. The shape of a fused tensor
    comes from the checkpoint `like`, or from its parts where they fill it. Raises InputError, SpecError.
    """
    flat = _flat(program.spec, program.graph)
    ready = _checked(program.spec, flat, arrays)
    report = Report()
    section = check_mapping(program.spec, drawn(flat), report)
    shapes = open_checkpoint(os.fspath(like)).shapes if like is not None else None
    found = to_tensors(program.spec, section, flat, ready, shapes, report)
    if report.failed:
        raise SpecError(report.in_order)
    return found


def export(program: Compiled, params: Mapping[str, Any], folder: Path, like: Path | None = None) -> str:
    """Write parameters in the checkpoint's names as `model.safetensors` in a folder; returns the file's path.

    Raises as `to_checkpoint`, and EnvironmentFailure (BG903).
    """
    tensors = to_checkpoint(program, params, like)
    path = os.path.join(os.fspath(folder), "model.safetensors")
    write(path, tensors, {"format": "pt"})
    return path


def _checked(spec: Spec, flat: Graph, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays in drawing order. Raises InputError (BG301)."""
    if not isinstance(arrays, Mapping):
        message = f"the parameters are a dict of arrays by name, not {show_value(arrays)}"
        raise InputError([Finding("BG301", message, Place(spec.path), "for example `program.init(0)`")])
    wanted = drawn(flat)
    wrong = [f"`{name}` is missing" for name in wanted if name not in arrays]
    wrong += [f"`{name}` is unknown" for name in arrays if name not in wanted]
    ready = {name: np.asarray(arrays[name]) for name in wanted if name in arrays}
    for name, array in ready.items():
        shape = tuple(int(dim.evaluate(flat.dims)) for dim in wanted[name].dims)
        if array.shape != shape:
            wrong.append(f"`{name}` has shape {array.shape}, and {shape} is expected")
    if wrong:
        message = f"the parameters do not fit: {'; '.join(wrong[:3])}" + (" ..." if len(wrong) > 3 else "")
        raise InputError([Finding("BG301", message, Place(spec.path))])
    return ready
