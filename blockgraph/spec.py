"""A spec file, read: its dims, constants and modules in one form, and what was wrong on the way.

Reading goes on after a fault, so that one run shows all of them; only a file that is no YAML or JSON at all
raises here. Shapes are not looked at yet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from blockgraph.alike import reading, shift_between
from blockgraph.display import Displayed
from blockgraph.errors import Finding, Place, SpecError, SpecPath, near
from blockgraph.module import CONTENT, InputDecl, Line, Module, ParamDecl, PartDecl, Report, SizeText
from blockgraph.read_module import Names, read_equations, read_inputs, read_params, read_part, size_text, sizes
from blockgraph.records import dataclass
from blockgraph.schema import ModuleKeys, SpecKeys, Wiring, misread, validate
from blockgraph.shortform import ShortForm
from blockgraph.source import Document, from_data, parse, read
from blockgraph.source.scalars import resolve
from blockgraph.syntax import Name, walk
from blockgraph.wording import is_number_text, show_value

MAIN_MODEL, MAIN_BLOCK = "model", "block"
DEFAULT_INPUT = ["B", "T", "C"]
UNREAD = object()
MAX_DIM = 2**31


@dataclass(frozen=True, slots=True)
class DimDecl:
    """A dim as declared: a number, an expression, or neither (any size)."""

    name: str
    number: int | None
    expr: SizeText | None
    path: SpecPath


@dataclass(frozen=True, repr=False)
class Spec(Displayed):
    """A spec file in one form. `modules` holds the blocks and the model; `main` names the one that is meant.

    `findings` are what was wrong so far; `compile` adds what the shapes show. `unread` are its keys that could not be
    read; a constant that could not is UNREAD.
    """

    name: str
    source: str
    document: Document
    dims: dict[str, DimDecl]
    constants: dict[str, Any]
    modules: dict[str, Module]
    main: str
    checkpoint: Any = None
    findings: tuple[Finding, ...] = ()
    overrides: dict[str, Any] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """One line: the name, and what the file holds."""
        dims = ", ".join(f"{name}: {dim.number}" if dim.number else name for name, dim in self.dims.items())
        return f"<Spec {self.name or self.path}: dims {dims or 'none'}; {', '.join(self.modules)}>"

    @property
    def path(self) -> str:
        """The file as it was named."""
        return self.document.path

    @property
    def data(self) -> Any:
        """The plain data of the file, for writing it out as YAML or JSON."""
        return self.document.data

    def with_values(self, values: Mapping[str, Any]) -> Spec:
        """The spec with dims and constants rebound, as by `--set`. Unknown names become findings."""
        report = Report()
        plain = {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}  # NumPy's
        for name, value in plain.items():
            if name in self.dims or name in self.constants:
                continue
            if self._is_free(name):
                if type(value) is not int or not 0 < value <= MAX_DIM:
                    what = f"`{name}`, which an input's shape leaves free"
                    is_long = isinstance(value, str) and value.isdecimal()  # too long to be read as a number
                    expected = f"a size up to {MAX_DIM}" if is_long or _too_large(value) else "positive whole number"
                    shown = f"a number of {len(str(value)):,} digits" if is_long else show_value(value)
                    help = "leave it out: the arrays of a run tell it; or give a number from 1 on"
                    report.add("BG022", f"{what}: {expected} expected, got {shown}", Place(self.path), help)
            else:
                choices = [*self.dims, *self.constants]
                found = near(name, choices)
                help = f"did you mean `{found}`?" if found else f"the file has {', '.join(choices) or 'no dims'}"
                report.add(
                    "BG027", f"`{name}` is set, but the file has no such dim or constant", Place(self.path), help
                )
        return replace(self, overrides={**self.overrides, **plain}, findings=self.findings + tuple(report.findings))

    def _is_free(self, name: str) -> bool:
        main = self.modules.get(self.main)
        return main is not None and any(
            name == getattr(axis.expr, "name", None) for one in main.inputs for axis in one.dims
        )


def load(source: str | os.PathLike[str] | Mapping[str, Any]) -> Spec:
    """Read a spec from a path, from text (with a line break or a `{`), or from plain data.

    Raises SpecError when it is no YAML or JSON, EnvironmentFailure when the file cannot be opened.
    """
    if isinstance(source, Mapping):
        return from_document(from_data(dict(source)))
    if not isinstance(source, str | os.PathLike):
        message = f"a spec is a path, text or a mapping, not {show_value(source)}"
        raise SpecError([Finding("BG008", message, Place("<data>"), 'for example load("specs/pre_norm.yaml")')])
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return from_document(parse(source, "<text>"))
    return from_document(read(source))


def from_document(document: Document) -> Spec:
    """The spec in a document."""
    return _Loader(document).load()


def setting(text: str) -> Any:
    """The value in `--set NAME=text`: a number, a word, or an expression."""
    try:
        value = resolve(text.strip())
    except ValueError:  # a number too long to be one
        return text.strip()
    return text.strip() if isinstance(value, bool) or value is None else value


class _Loader:
    """Reads one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.report = Report()

    def load(self) -> Spec:
        """Read everything; findings are in the result."""
        data = self.document.data
        keys = validate(SpecKeys, data, (), self.document, self.report, "the file") or SpecKeys.model_validate({})
        shared = Names(self.document, Report())
        named = [name for name in keys.dims if self._declare(shared, name, "dim", ("dims", name))]
        dims = {name: self._dim(name, keys.dims[name]) for name in named}
        named = [name for name in keys.constants if self._declare(shared, name, "constant", ("constants", name))]
        constants = {name: self._constant(name, keys.constants[name]) for name in named}
        modules = self._modules(keys, shared)
        main = self._main(keys, modules)
        return Spec(
            str(keys.name),
            str(keys.source),
            self.document,
            dims,
            constants,
            modules,
            main,
            keys.checkpoint,
            tuple(self.report.findings),
            unread=misread(keys, data) if isinstance(data, dict) else frozenset(),
        )

    def _declare(self, shared: Names, name: str, what: str, path: SpecPath) -> bool:
        shared.report = self.report
        return shared.declare(name, what, path)

    def _dim(self, name: str, value: Any) -> DimDecl:
        path = ("dims", name)
        if value is None:
            return DimDecl(name, None, None, path)
        if isinstance(value, str) and not is_number_text(value):
            expr = size_text(value, path, self.document, self.report)
            return DimDecl(name, None, expr, path)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_DIM:
            return DimDecl(name, value, None, path)
        expected = "positive whole number" if not _too_large(value) else f"a size up to {MAX_DIM}"
        help = "write a whole number, an expression, or nothing for any size"
        self.report.wrong_value(expected, value, self.document.value(path), help, f"dim `{name}`")
        return DimDecl(name, None, None, path)

    def _constant(self, name: str, value: Any) -> Any:
        if isinstance(value, int | float) or value is None or (isinstance(value, str) and not is_number_text(value)):
            return value
        where = self.document.value(("constants", name))
        self.report.wrong_value("number, word or none", value, where, what=f"constant `{name}`")
        return UNREAD

    def _modules(self, keys: SpecKeys, shared: Names) -> dict[str, Module]:
        found: dict[str, tuple[Any, SpecPath]] = {}
        if keys.block is not None:
            found[MAIN_BLOCK] = (keys.block, ("block",))
        for name, value in keys.blocks.items():
            path = ("blocks", name)
            names = Names(self.document, self.report)
            if not names.declare(name, "block", path) and not isinstance(name, str):
                continue  # one that has a bad name only is still there for its uses
            if name in found:
                self.report.add(
                    "BG029", "the block `block` is there twice", self.document.key(path), "rename one of the two"
                )
                continue
            found[name] = (value, path)
        if keys.model is not None:
            found[MAIN_MODEL] = (keys.model, ("model",))
        first: dict[Any, Module] = {}
        return {name: self._read_once(name, value, path, shared, first) for name, (value, path) in found.items()}

    def _read_once(self, name: str, value: Any, path: SpecPath, shared: Names, first: dict[Any, Module]) -> Module:
        """A block; one that reads as one before, in which nothing is wrong, is taken over. `first` are those before."""
        text = reading(self.document, path) if name != MAIN_MODEL else None
        if text in first:
            shift = shift_between(self.document, first[text].path, path)
            return first[text].elsewhere(name, path, shift)
        told = self.report.told
        module = self._module(name, value, path, shared)
        if text is not None and self.report.told == told:
            first[text] = module
        return module

    def _module(self, name: str, value: Any, path: SpecPath, shared: Names) -> Module:
        if not isinstance(value, dict):
            help = "a block has `sublayers`, or `parts` and `equations`"
            self.report.wrong_value("a mapping", value, self.document.value(path), help, f"`{name}`")
            return Module(name, (), (), (), {}, (), path, unread=frozenset(ModuleKeys.model_fields))
        owner = "a block" if name != MAIN_MODEL else "the model"
        keys = validate(ModuleKeys, value, path, self.document, self.report, owner)
        assert keys is not None  # no key of a module is needed
        return _ModuleReader(self, name, keys, path, shared, misread(keys, value)).read()

    def _main(self, keys: SpecKeys, modules: dict[str, Module]) -> str:
        if keys.model is not None or MAIN_BLOCK in modules:
            return MAIN_MODEL if keys.model is not None else MAIN_BLOCK
        if len(modules) == 1:
            return next(iter(modules))
        if not keys.blocks and keys.block is None and not self.report.failed:
            self.report.add(
                "BG031", "the file has no block and no model", self.document.value(()), "add `block:` or `model:`"
            )
        elif len(keys.blocks) > 1 and not self.report.failed:
            help = "add `model:`, or name one of the blocks `block`"
            self.report.add("BG031", "it is not clear which block is meant", self.document.key(("blocks",)), help)
        return ""


class _ModuleReader:
    """Reads one block or model."""

    def __init__(
        self, loader: _Loader, name: str, keys: ModuleKeys, path: SpecPath, shared: Names, unread: frozenset[str]
    ) -> None:
        self.document, self.report = loader.document, loader.report
        self.name, self.keys, self.path = name, keys, path
        self.names = Names(self.document, self.report, dict(shared.known))
        says = keys.sublayers is not None or keys.equations is not None
        self.unread = unread - CONTENT if says else unread

    def read(self) -> Module:
        """The module, as far as it can be read."""
        inputs = self._inputs()
        params = self._params()
        stream = inputs[0].name if inputs else "x"
        if self.keys.sublayers is not None:
            short = ShortForm(self.keys, self.path, stream, self.document, self.report, self.names, self.unread)
            self._refuse_mixture()
            short.write()
            params += tuple(short.params)
            self.unread |= short.unread
            parts, lines, normed = short.parts, short.lines, short.normed
        else:
            parts, lines, normed = self._parts(), self._equations(), self.keys.residual == "normed"
        for line in lines:
            for target in line.equation.targets:
                self._value(target.name, line, target.start, target.end)
        outputs = self._outputs(lines, stream)
        return Module(
            self.name,
            inputs,
            outputs,
            params,
            parts,
            tuple(lines),
            self.path,
            self.keys.causal is True,
            normed,
            self.unread,
        )

    def _inputs(self) -> tuple[InputDecl, ...]:
        path = (*self.path, "inputs")
        if self.keys.inputs is None:
            dims, _ = sizes(DEFAULT_INPUT, path, self.document, self.report)
            lost = self.document.has(path)  # it has no default then, and its names are not known
            inputs: tuple[InputDecl, ...] = () if lost else (InputDecl("x", dims, path=path),)
        else:
            inputs = tuple(read_inputs(self.keys.inputs, path, self.document, self.report))
        for one in inputs:
            self.names.declare(one.name, "input", (*path, one.name))
            for axis in one.dims:
                self._refuse_constants(axis)
        return inputs

    def _refuse_constants(self, axis: SizeText) -> None:
        """A constant is no size: it would fix an axis in silence."""
        for node in walk(axis.expr):
            if isinstance(node, Name) and self.names.known.get(node.name, ("",))[0] == "constant":
                place = self.document.within(axis.path, node.start, node.end)
                message = f"the axis `{node.name}` has the name of a constant, and an axis is a dim or a free symbol"
                help = f"move `{node.name}` to `dims`, or give one of the two another name"
                self.report.add("BG029", message, place, help)

    def _params(self) -> tuple[ParamDecl, ...]:
        params = tuple(read_params(self.keys.params, (*self.path, "params"), self.document, self.report))
        return tuple(one for one in params if self.names.declare(one.name, "parameter", one.path))

    def _parts(self) -> dict[str, PartDecl]:
        parts: dict[str, PartDecl] = {}
        for name, use in self.keys.parts.items():
            path = (*self.path, "parts", name)
            part = read_part(name, use, path, self.document, self.report)
            self.names.declare(name, "part", path)
            if name in self.names.known:
                parts[name] = part
        return parts

    def _equations(self) -> list[Line]:
        for option in Wiring.model_fields if not self.unread & CONTENT else ():
            value = getattr(self.keys, option)
            if value is not None and (option, value) != ("residual", "normed"):  # this says what the equations mean
                where = self.document.key((*self.path, option))
                self.report.add(
                    "BG033", f"`{option}` has no effect without `sublayers`", where, "write it in the equations"
                )
        if self.keys.equations is None:
            help = "add `sublayers:`, or `parts:` and `equations:`"
            if not self.unread & CONTENT:
                self.report.add("BG021", f"`{self.name}` says nothing to compute", self.document.key(self.path), help)
            return []
        lines = read_equations(self.keys.equations, (*self.path, "equations"), self.document, self.report)
        if not lines and not self.report.failed:
            self.report.add(
                "BG021", "there is no equation", self.document.value((*self.path, "equations")), "write `x = ...`"
            )
        return lines

    def _refuse_mixture(self) -> None:
        for option in ("equations", "parts"):
            if getattr(self.keys, option):
                where = self.document.key((*self.path, option))
                help = "write all of the block in one form; `blockgraph explain` shows the sublayers as equations"
                self.report.add("BG033", f"`{option}` cannot stand beside `sublayers`", where, help)

    def _value(self, name: str, line: Line, start: int, end: int) -> None:
        known = self.names.known.get(name)
        if known is None:
            self.names.known[name] = ("value", line.path)
        elif known[0] not in ("value", "input"):
            message = f"`{name}` is already the name of a {known[0]}"
            self.report.add("BG029", message, line.locate(start, end), "choose another name for the value")

    def _outputs(self, lines: list[Line], stream: str) -> tuple[str, ...]:
        if self.keys.outputs is None:
            last = lines[-1].equation.targets if lines else ()
            return tuple(target.name for target in last) if self.keys.sublayers is None else (stream,)
        values = {target.name for line in lines for target in line.equation.targets}
        values |= {name for name, (what, _) in self.names.known.items() if what == "input"}
        values |= set(self.keys.outputs) if self.unread & {*CONTENT, "inputs"} else set()
        for index, name in enumerate(self.keys.outputs):
            if name not in values:
                where = self.document.value((*self.path, "outputs", index))
                found = near(name, values)
                help = f"did you mean `{found}`?" if found else "an output is the target of an equation"
                self.report.add("BG036", f"the output `{name}` is never computed", where, help)
            elif name in self.keys.outputs[:index]:
                where = self.document.value((*self.path, "outputs", index))
                self.report.add("BG029", f"the output `{name}` is listed twice", where, "leave one out")
        return tuple(name for name in dict.fromkeys(self.keys.outputs) if name in values)


def _too_large(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > MAX_DIM


__all__ = ["DimDecl", "ParamDecl", "Spec", "from_document", "load", "setting"]
