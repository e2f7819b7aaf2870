"""A part of a module, called once or more: a kind, an activation or a block, with its own parameters.

The first call opens it and fixes its input widths; each call runs its equations again over the same parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from blockgraph.dims import Dim, show
from blockgraph.elaborate.body import MAX_NESTING, Body, TooDeep, join, report_circle
from blockgraph.elaborate.env import Env
from blockgraph.elaborate.init import Init
from blockgraph.elaborate.items import Fault, Item, Ref
from blockgraph.errors import Place, Related, near
from blockgraph.graph import Scope
from blockgraph.kind import Kind
from blockgraph.module import Module, PartDecl
from blockgraph.op import OPS
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass
from blockgraph.syntax import Attr, Call, Expr, Name

if TYPE_CHECKING:
    from blockgraph.elaborate.frame import Frame

Argument = tuple[Ref, Expr]
NORMED_SKIP = "BG201"  # the lint that `residual: normed` overrules


@dataclass(slots=True)
class ParamSpec:
    """A parameter before its node is there."""

    name: str
    dims: tuple[Dim, ...] | None
    init: Init
    frozen: bool = False
    place: Place | None = None


@dataclass(slots=True)
class Instance(ABC):
    """A part in one body. `path` is the prefix of its parameters' names, `env` that of the module around it."""

    body: Body
    decl: PartDecl
    path: str
    env: Env
    inner: bool = False
    share: bool = False
    calls: int = 0
    options: Kind | None = None
    params: dict[str, ParamSpec] = field(default_factory=dict)
    values: dict[str, Ref] = field(default_factory=dict)
    parts: dict[str, Instance] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """Where the part is declared."""
        return self.body.session.spec.document.key(self.decl.path)

    @property
    def is_lost(self) -> bool:
        """Whether what it takes is unknown, so that any call of it is right."""
        return False

    @property
    def is_guessed(self) -> bool:
        """Whether its kind is only a guess, so that a call that does not fit it may fit what was meant."""
        return self.decl.guessed

    @property
    def is_open(self) -> bool:
        """Whether its parameters are known, after a call."""
        return not self.is_lost

    @abstractmethod
    def input_names(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """The names of the inputs in order, and those that may be left out."""

    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs; none for a part whose result has no name."""
        return ()

    @abstractmethod
    def run(self, frame: Frame, node: Expr, args: Mapping[str, Argument], key: str) -> tuple[Ref, ...]:
        """One call with its arguments sorted out, in the scope `key`."""

    @abstractmethod
    def scope(self, key: str) -> Scope:
        """How the call is told and drawn."""

    def call(
        self, frame: Frame, node: Call, positional: Sequence[Argument], named: Mapping[str, Argument]
    ) -> tuple[Ref, ...]:
        """One call; what is wrong is reported and gives unknown values."""
        self.calls += 1
        self.body.count()
        args = None if self.is_lost else self._arguments(frame, node, positional, named)
        name = self.decl.name
        key = self.body.open_scope(frame.key, name, self.scope)
        self.body.instances.setdefault(key, self)
        if args is None:
            return (self.body.unknown(name),)
        refs = self.run(frame, node, args, key)
        place = frame.locate(node)
        for index, ref in enumerate(refs):
            step = key if len(refs) == 1 else f"{key}:{index + 1}"
            if not self.inner:
                self.body.step(step, ref, _call_text(frame, node), self.decl.kind, frame.depth, place)
        return refs

    def _arguments(
        self, frame: Frame, node: Call, positional: Sequence[Argument], named: Mapping[str, Argument]
    ) -> dict[str, Argument] | None:
        names, optional = self.input_names()
        title = f"`{self.decl.name}`"
        if self.is_guessed and not (
            len(positional) <= len(names) and {*names} - optional <= {*names[: len(positional)], *named} <= {*names}
        ):
            return None
        if len(positional) > len(names):
            help = f"it takes {', '.join(names)}"
            frame.report(
                "BG028", f"{title} takes {len(names)} inputs, not {len(positional)}", positional[len(names)][1], help
            )
            return None
        args = dict(zip(names, positional, strict=False))
        places = {one.name: one.place for one in node.named}
        for name, argument in named.items():
            if name not in names:
                found = near(name, names)
                help = f"did you mean `{found}`?" if found else f"it takes {', '.join(names)}"
                frame.report("BG028", f"{title} has no input `{name}`", places[name], help)
                return None
            if name in args:
                frame.report("BG028", f"`{name}` of {title} is given twice", places[name])
                return None
            args[name] = argument
        missing = [name for name in names if name not in args and name not in optional]
        if missing:
            help = self._passing(frame, missing[0]) or f"it takes {', '.join(names)}"
            frame.report("BG028", f"{title} needs the input `{missing[0]}`", node, help)
            return None
        return args

    def _passing(self, frame: Frame, name: str) -> str:
        """How a sublayer is passed an input; nothing for what an equation calls."""
        if "sublayers" not in self.decl.path:
            return ""
        declared = "" if name in frame.values else f"declare `{name}` under `inputs` of the block, and "
        return f"{declared}pass it by name: `with: [{name}]`"

    def parameter(self, name: str, node: Attr) -> Ref:
        """`part.param` in an equation. Raises Fault."""
        if self.calls == 0:
            help = "its width comes from its first call"
            raise Fault("BG028", f"`{self.decl.name}` must be called before its parameters are used", node, help)
        if name not in self.params and not self.is_open:
            return self.body.unknown(name)
        if name not in self.params:
            found = near(name, self.params)
            help = f"did you mean `{found}`?" if found else f"it has {', '.join(self.params) or 'none'}"
            raise Fault("BG025", f"`{self.decl.name}` has no parameter `{name}`", node, help)
        return self.own_param(name) or self.body.unknown(name)

    def own_param(self, name: str) -> Ref | None:
        """The value of one of the part's own parameters; its node is made at first use."""
        if name in self.values or name not in self.params:
            return self.values.get(name)
        spec = self.params[name]
        if spec.dims is None:
            ref = self.body.unknown(name)
        else:
            path = join(self.path, name)
            if spec.init.name == "eye" and len(spec.dims) < 2:
                self._refuse_eye(spec)
            op = Param(path, spec.dims, spec.init.name, spec.init.amount, spec.frozen, self.share)
            builder = self.body.builder
            kept = builder.place
            builder.place = spec.place
            ref = Ref(self.body.node(op)[0])
            builder.place = kept
        self.values[name] = ref
        return ref

    def _refuse_eye(self, spec: ParamSpec) -> None:
        message = f"`eye` is a matrix, and `{spec.name}` has the shape {show(spec.dims)}"
        self.body.session.add("BG022", message, spec.place or self.place, "write `ones`, or give it two axes")

    def draws(self) -> Iterator[str | int]:
        """What is drawn at init, in order: own parameters, then parts as listed."""
        yield from (join(self.path, name) for name in self.params if name in self.values)
        for part in self.parts.values():
            yield from part.draws()


def _call_text(frame: Frame, node: Call) -> str:
    assert frame.line is not None
    equation = frame.line.equation
    return equation.text[node.start - equation.start : node.end - equation.start]


@dataclass(slots=True)
class ActivationInstance(Instance):
    """A function in the place of a part."""

    def input_names(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """One input."""
        return ("x",), frozenset()

    def scope(self, key: str) -> Scope:
        """Its own box, when it stands by itself."""
        return Scope(self.path, self.decl.kind, self.decl.kind, "", "activation", self.calls, self.place)

    def call(
        self, frame: Frame, node: Call, positional: Sequence[Argument], named: Mapping[str, Argument]
    ) -> tuple[Ref, ...]:
        """One node; inside a kind it has no scope of its own."""
        if not self.inner:
            return Instance.call(self, frame, node, positional, named)
        args = self._arguments(frame, node, positional, named)
        return (self.body.unknown(),) if args is None else self.run(frame, node, args, frame.key)

    def run(self, frame: Frame, node: Expr, args: Mapping[str, Argument], key: str) -> tuple[Ref, ...]:
        """Apply the function."""
        if self.decl.options:
            option = next(iter(self.decl.options))
            place = self.env.spec.document.key((*self.decl.path, option))
            self.env.report.add("BG020", f"unknown key `{option}` in `{self.decl.kind}`", place, "it has no options")
        builder = self.body.builder
        builder.scope, builder.place = key, frame.locate(node)
        return (Ref(self.body.node(OPS[self.decl.kind](), args["x"][0].value)[0]),)


@dataclass(slots=True)
class ModuleInstance(Instance):
    """A block of the file, or the main module."""

    module: Module | None = None

    @property
    def is_lost(self) -> bool:
        """Its inputs could not be read."""
        return self.module is not None and "inputs" in self.module.unread

    def input_names(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """The block's inputs; all are needed."""
        assert self.module is not None
        return tuple(one.name for one in self.module.inputs), frozenset()

    def output_names(self) -> tuple[str, ...]:
        """The block's outputs."""
        assert self.module is not None
        return self.module.outputs

    def scope(self, key: str) -> Scope:
        """A plate with the block's name."""
        return Scope(self.path, self.decl.kind, self.decl.kind, "", "block", self.calls, self.place)

    def run(self, frame: Frame, node: Expr, args: Mapping[str, Argument], key: str) -> tuple[Ref, ...]:
        """Run the block's equations over the arguments; or copy what another part of the same block wrote."""
        from blockgraph.elaborate.inlined import copy, likeness, record
        from blockgraph.elaborate.replay import Start

        assert self.module is not None
        session = self.body.session
        if len(session.open_blocks) >= MAX_NESTING:
            raise TooDeep(frame.locate(node))
        if self.module.is_lost:
            return (self.body.unknown(self.decl.kind),)
        if self.module.name in session.open_blocks:
            report_circle(self.module.name, frame.locate(node), session.report)
            return tuple(self.body.unknown() for _ in self.module.outputs)
        like, start = likeness(self, args), Start.of(self.body)
        if like in self.env.memo and (copied := copy(self.env.memo[like], self, args, key, frame.depth)) is not None:
            return copied
        env = None if self._lacks(args) else self._bound(frame, args)
        if env is None:
            return tuple(self.body.unknown() for _ in self.module.outputs)
        session.called.add(self.module.name)
        session.open_blocks.append(self.module.name)
        refs = self.run_module({name: ref for name, (ref, _) in args.items()}, env, key, frame.depth + 1)
        session.open_blocks.pop()
        if "outputs" in self.module.unread:
            return (self.body.unknown(),)
        if like is not None and (written := record(self, args, key, frame.depth, start, refs)) is not None:
            self.env.memo[like] = written
        return refs

    def _lacks(self, args: Mapping[str, Argument]) -> bool:
        """Whether an argument is unknown: then the block is worked out by itself, as it is declared."""
        return any(self.body.type(ref).shape is None for ref, _ in args.values())

    def _bound(self, frame: Frame, args: Mapping[str, Argument]) -> Env | None:
        """The environment with the block's free symbols bound to the arguments' axes; None after a finding."""
        assert self.module is not None
        env = replace(self.env, free={}, lenient=self.env.lenient or self.module.hides_names)
        for one in self.module.inputs:
            ref, expr = args[one.name]
            given = self.body.type(ref)
            if given.shape is None or one.unread:
                continue
            shape: list[Dim] = []
            for axis, actual in zip(one.dims, given.shape, strict=False):
                _bind_free(env, axis.expr, actual)
                shape.append(env.size(axis) or actual)
            if len(one.dims) != len(given.shape) or tuple(shape) != given.shape or one.dtype != given.dtype:
                self._report_input(frame, one.name, tuple(shape), expr, ref, one.dtype)
                return None
        return env

    def _report_input(self, frame: Frame, name: str, wanted: tuple[Dim, ...], expr: Expr, ref: Ref, dtype: str) -> None:
        given = self.body.type(ref)
        if dtype != given.dtype:
            words = {"float": "numbers", "int": "ids", "bool": "true and false"}
            frame.report(
                "BG107", f"`{name}` of `{self.decl.name}` takes {words[dtype]}, not {words[given.dtype]}", expr
            )
            return
        label = f"{show(given.shape)}, where {self.decl.kind} declares {show(wanted)}"
        declared = Related(
            f"`{name}` is declared here", self.env.spec.document.key((*_path(self.module), "inputs", name))
        )
        message, help = f"`{name}` of `{self.decl.name}` does not fit", ""
        if not self.env.spec.document.has((*_path(self.module), "inputs")):
            help = f"this is the default; for any width declare `inputs: {{x: [B, T, F]}}` in `{self.decl.kind}`"
        frame.report("BG104", message, expr, help, label=label, related=(declared,))

    def run_module(self, values: dict[str, Ref], env: Env, key: str, depth: int) -> tuple[Ref, ...]:
        """Run the equations; the values of the outputs."""
        from blockgraph.elaborate.frame import Frame
        from blockgraph.elaborate.parts import instantiate

        assert self.module is not None
        if self.module.residual_normed:
            self.body.builder.waived.add(NORMED_SKIP)
        if not self.parts and not self.params:
            self._open(env)
            for name, decl in self.module.parts.items():
                self.parts[name] = instantiate(self.body, decl, join(self.path, name), env, share=self.share)
        for part in self.parts.values():
            part.env = replace(part.env, free=env.free)
        self.body.builder.scope = key
        names = tuple(self.params)
        unread = self.module.unread
        frame = Frame(self.body, key, depth, env.name, self.own_param, names, self.parts, dict(values), unread=unread)
        frame.run(self.module.lines)
        return tuple(frame.values.get(name) or self.body.unknown(name) for name in self.module.outputs)

    def _open(self, env: Env) -> None:
        assert self.module is not None
        for decl in self.module.params:
            dims = [None] if decl.dims is None else [env.size(axis) for axis in decl.dims]
            found = None if any(dim is None for dim in dims) else tuple(dim for dim in dims if dim is not None)
            place = env.spec.document.key(decl.path)
            init = Init.read(decl.init, "normal(0.02)", env, (*decl.path, "init"))
            self.params[decl.name] = ParamSpec(decl.name, found, init, decl.frozen, place)


def _path(module: Module | None) -> tuple[str | int, ...]:
    return module.path if module is not None else ()


def _bind_free(env: Env, expr: Expr, actual: Dim) -> None:
    """A symbol that nothing else gives a meaning is bound to the axis it names."""
    if isinstance(expr, Name) and not env.knows(expr.name):
        env.free[expr.name] = actual


def symbol_of(letters: Mapping[str, Item]) -> Any:
    """The lookup of a kind's local letters."""

    def look(node: Name) -> Item:
        if node.name in letters:
            return letters[node.name]
        raise Fault("BG027", f"unknown name `{node.name}`", node)

    return look
