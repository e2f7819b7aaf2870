"""Built-in kinds opened as parts, and the choice of what a declared part is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any

from blockgraph.dims import Dim, show
from blockgraph.elaborate.body import Body, join
from blockgraph.elaborate.env import Env
from blockgraph.elaborate.frame import Frame
from blockgraph.elaborate.init import RANDOM, Init
from blockgraph.elaborate.instance import ActivationInstance, Argument, Instance, ModuleInstance, ParamSpec, symbol_of
from blockgraph.elaborate.items import Fault, Item, Ref, evaluate, fold, real
from blockgraph.elaborate.options import BLOCK_OPTIONS, look_up, read_options
from blockgraph.elaborate.replay import Start, likeness, record, replay
from blockgraph.equation import parse_equations, parse_expression
from blockgraph.errors import Place
from blockgraph.graph import Scope
from blockgraph.kind import Kind, Own
from blockgraph.module import Line, PartDecl
from blockgraph.op import Need
from blockgraph.read_module import read_part
from blockgraph.records import dataclass
from blockgraph.schema import misread, suggestion
from blockgraph.syntax import Expr


@dataclass(slots=True)
class KindInstance(Instance):
    """A built-in kind. `letters` are its sizes and numbers once the first call has fixed the widths."""

    kind: type[Kind] = Kind
    letters: dict[str, Item] = field(default_factory=dict)
    widths: dict[str, Dim] = field(default_factory=dict)
    opened: bool = False

    @property
    def is_open(self) -> bool:
        """No finding about its options or its first call stood in the way."""
        return self.opened

    def input_names(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """The kind's inputs."""
        return tuple(self.kind.inputs), frozenset(self.kind.optional)

    def scope(self, key: str) -> Scope:
        """A box in the kind's colour."""
        options = self.options
        title = options.heading() if options else self.kind.title
        detail = options.detail() if options else ""
        return Scope(self.path, self.kind.name, title, detail, self.kind.family, self.calls, self.place)

    def run(self, frame: Frame, node: Expr, args: Mapping[str, Argument], key: str) -> tuple[Ref, ...]:
        """Open the kind at its first call, then run its equations; or copy what another call wrote."""
        place, given, start = frame.locate(node), self.options, Start.of(self.body)
        like = likeness(self, args)
        if like in self.env.memo:
            copied = replay(self.env.memo[like], self, args, key, place, frame.depth + 1)
            if copied is not None:
                return (copied,)
        refs = self._write(frame, args, key, place)
        if like is not None and given is not None:
            written = record(self, given, args, key, place, start, refs[0])
            if written is not None:
                self.env.memo[like] = written
        return refs

    def _write(self, frame: Frame, args: Mapping[str, Argument], key: str, place: Place) -> tuple[Ref, ...]:
        axes = self._axes(frame, args)
        if not self.opened and self.options is not None:
            self._open(axes or {}, place)
        if axes is None or not self.opened:
            return (self.body.unknown(self.decl.kind, *(ref for ref, _ in args.values())),)
        if not self._same_widths(frame, args):
            return (self.body.unknown(self.decl.kind),)
        letters = {**axes, **self.letters}
        self._bounds(letters)
        assert self.options is not None
        text = self.options.equations(frozenset(args))
        lines = _lines_of(text)
        values = {name: ref for name, (ref, _) in args.items()}
        inner = Frame(
            self.body,
            key,
            frame.depth + 1,
            symbol_of(letters),
            self.own_param,
            tuple(self.params),
            self.parts,
            values,
            place,
            options_at=self.decl.path,
        )
        inner.run(lines)
        if misread(self.options, self.decl.options) & {
            text.partition("=")[0].strip() for text in self.kind.sizes.values()
        }:
            return (self.body.unknown(self.decl.kind),)  # it may have another width
        return (inner.values[lines[-1].equation.targets[0].name],)

    def _axes(self, frame: Frame, args: Mapping[str, Argument]) -> dict[str, Item] | None:
        """What the letters of the input axes stand for in this call; None if a shape is unknown or too short."""
        letters: dict[str, Item] = {}
        for name, (ref, expr) in args.items():
            shape = self.body.type(ref).shape
            if shape is None:
                return None
            axes = [axis for axis in self.kind.inputs[name].split() if axis != "..."]
            if len(shape) < len(axes):
                message = f"`{name}` of `{self.decl.name}` needs at least {len(axes)} axes and has {show(shape)}"
                frame.report("BG105", message, expr)
                return None
            for axis, dim in zip(reversed(axes), reversed(shape), strict=False):
                letters.setdefault(axis, dim)
        return letters

    def _same_widths(self, frame: Frame, args: Mapping[str, Argument]) -> bool:
        """Every call has the widths of the first."""
        for name, (ref, expr) in args.items():
            shape = self.body.type(ref).shape
            if not shape or self.kind.inputs[name].split()[-1] not in self.kind.widths:
                continue
            width = self.widths.setdefault(name, shape[-1])
            if width != shape[-1]:
                message = f"`{self.decl.name}` had width {width} at its first call, and here it is {shape[-1]}"
                frame.report("BG111", message, expr, "declare a second part for the other width")
                return False
        return True

    def _open(self, axes: Mapping[str, Item], place: Place) -> None:
        """Work out sizes, numbers and parameters. Stays closed after a finding, or while a width is unknown.

        Options are judged as far as they can be without the widths.
        """
        assert self.options is not None
        self.letters = {axis: dim for axis, dim in axes.items() if axis in self.kind.widths}
        self._sizes()
        self.options = self.options.settle(self._numbers())
        sound = not self._refusals() and self._conditions(place)
        if not sound or not self.kind.widths <= self.letters.keys():
            return
        for own in self.options.params():
            self.params[own.name] = self._param(own)
        for name, use in self.options.parts().items():
            path = (*self.decl.path, self.options.option_of(name))
            called = name.replace(".", "_")
            decl = read_part(called, use, path, self.env.spec.document, self.env.report)
            inner = join(self.path, name)
            self.parts[called] = instantiate(self.body, decl, inner, self.env, inner=True, share=self.share)
        self.opened = True

    def _sizes(self) -> None:
        """The letters of sizes and numbers: the options given, else their defaults."""
        for table, convert in ((self.kind.sizes, None), (self.kind.numbers, real)):
            for letter, text in table.items():
                option, _, default = (part.strip() for part in text.partition("="))
                item = _option(self.options, option)
                try:
                    if item is None and default:
                        item = self._local(default)
                    if item is not None:
                        self.letters[letter] = item if convert is None else convert(item)
                except Fault:
                    continue  # a letter of an unknown width

    def _local(self, text: str) -> Item:
        if text in self.letters:
            return self.letters[text]
        look = symbol_of(self.letters)
        item: Item = evaluate(_expression(text), lambda node, items: fold(node, items, look))
        return item

    def _conditions(self, place: Place) -> bool:
        """Note the sizes that must be whole; false if one is a number that is not."""
        assert self.options is not None
        document, conditions = self.env.spec.document, self.body.session.conditions
        whole = True
        for option, text, noun in self.options.whole():
            try:
                dim = self._local(text)
            except Fault:
                continue  # a letter of an unknown width
            path = self.decl.option(option)
            if isinstance(dim, Dim):
                conditions.whole(dim, document.value(path) if document.has(path) else place, noun)
                whole &= dim.number is None or dim.number.denominator == 1
        return whole

    def _bounds(self, letters: Mapping[str, Item]) -> None:
        """Note what must not exceed what in this call."""
        assert self.options is not None
        for option, smaller, larger in self.options.bounds():
            small, large = letters.get(smaller), letters.get(larger)
            if isinstance(small, Dim) and isinstance(large, Dim):
                place = self.env.spec.document.value(self.decl.option(option))
                self.body.session.conditions.need(Need(small, large), place)

    def _numbers(self) -> dict[str, int]:
        """The sizes that are known, by letter; one that is not whole is told elsewhere."""
        numbers = self.env.numbers
        found = {
            letter: item.evaluate({s: numbers[s] for s in item.symbols})
            for letter, item in self.letters.items()
            if isinstance(item, Dim) and not item.symbols - numbers.keys()
        }
        return {letter: int(number) for letter, number in found.items() if number == int(number)}

    def _refusals(self) -> bool:
        """Report options that contradict each other; whether there were any."""
        assert self.options is not None
        found = list(self.options.refusals(self._numbers()))
        for refusal in found:
            if refusal.code == "BG038" and self._is_told(_option(self.options, refusal.option)):
                continue
            place = self.env.spec.document.value(self.decl.option(refusal.option))
            self.env.report.add(refusal.code, refusal.message, place, refusal.help)
        return bool(found)

    def _is_told(self, size: Item) -> bool:
        """Whether a size has no number because of dims whose own fault was told."""
        unknown = size.symbols - self.env.numbers.keys() if isinstance(size, Dim) else frozenset()
        return bool(unknown) and all(self.env.lost_its_number(symbol) for symbol in unknown)

    def _param(self, own: Own) -> ParamSpec:
        dims = []
        for text in own.dims.split(", ") if own.dims else ():
            dim = self._local(text)
            assert isinstance(dim, Dim)
            dims.append(dim)
        look = symbol_of(self.letters)
        default = Init.of(own.init, look)
        return ParamSpec(own.name, tuple(dims), self._chosen_init(own, default), place=self.place)

    def _chosen_init(self, own: Own, default: Init) -> Init:
        """The part's `init:` for this parameter: by name, or for all weights that are drawn at random."""
        raw = self.options.init if self.options is not None else None
        if raw is None:
            return default
        if isinstance(raw, dict):
            raw, path = raw.get(own.name), (*self.decl.path, "init", own.name)
        else:
            path = (*self.decl.path, "init")
            only_fixed = not any(Init.of(one.init, symbol_of(self.letters)).name in RANDOM for one in self._owns())
            raw = raw if default.name in RANDOM or only_fixed else None
        return default if raw is None else Init.read(raw, own.init, self.env, path)

    def _owns(self) -> tuple[Own, ...]:
        return tuple(self.options.params()) if self.options is not None else ()


def _option(options: Kind | None, name: str) -> Any:
    """An option by name; `rotary.theta` is one inside a mapping, None where that is not there."""
    found: Any = options
    for step in name.split("."):
        found = getattr(found, step) if found is not None else None
    return found


@cache
def _lines_of(text: str) -> tuple[Line, ...]:
    """A kind's equations, read once for each distinct text."""
    return tuple(Line(one, _nowhere, ()) for one in parse_equations(text).equations)


@cache
def _expression(text: str) -> Expr:
    """An expression of a kind's own letters."""
    expr, _ = parse_expression(text)
    assert expr is not None
    return expr


def _nowhere(start: int, end: int) -> Place:
    raise AssertionError("a kind's equations have no place of their own")


def instantiate(body: Body, decl: PartDecl, path: str, env: Env, inner: bool = False, share: bool = False) -> Instance:
    """The part that a declaration means. An unknown kind is reported and gives unknown values."""
    from blockgraph.elaborate.stack import StackInstance

    found = look_up(decl, env)
    if found is None:
        return LostInstance(body, decl, path, env, inner)
    decl = replace(decl, kind=found.name, guessed=decl.guessed or found.guessed)
    inherited, share = share, share or decl.options.get("share") is True
    if found.activation:
        return ActivationInstance(body, decl, path, env, inner, share)
    if found.kind is None:
        return block_instance(body, decl, path, env, share)
    if found.guessed and any(
        field.is_required() and name not in decl.options for name, field in found.kind.model_fields.items()
    ):
        return LostInstance(body, decl, path, env, inner)
    options = read_options(decl, found.kind, env)
    _check_init(decl, options, env)
    if found.name == "stack":
        return StackInstance(body, decl, path, env, inner, share, options=options, inherited=inherited)
    return KindInstance(body, decl, path, env, inner, share, options=options, kind=found.kind)


def _check_init(decl: PartDecl, options: Kind | None, env: Env) -> None:
    """Report an `init` of a parameter that is not there, or of a part that has none of its own."""
    if options is None or options.init is None:
        return
    names = [own.name for own in options.params()]
    if not names:
        _refuse_init(
            decl, env, f"`{decl.kind}`, which has no parameters of its own", "write it on the kinds used inside"
        )
    for name in options.init if isinstance(options.init, dict) and names else ():
        if name not in names:
            place = env.spec.document.key((*decl.path, "init", name))
            env.report.add("BG020", f"`{decl.kind}` has no parameter `{name}`", place, suggestion(str(name), names))


def _refuse_init(decl: PartDecl, env: Env, owner: str, help: str) -> None:
    env.report.add("BG033", f"`init` has no effect on {owner}", env.spec.document.key(decl.option("init")), help)


def block_instance(body: Body, decl: PartDecl, path: str, env: Env, share: bool = False) -> ModuleInstance:
    """A use of a block of the file, with its `set:` applied."""
    from blockgraph.elaborate.uses import settings

    session = body.session
    module = session.spec.modules[decl.kind]
    for option, value in decl.options.items():
        if option == "init":
            _refuse_init(decl, env, "a use of a block", "write it on the parts and parameters of the block")
        elif option == "share" and not isinstance(value, bool):
            env.report.wrong_value("true or false", value, env.spec.document.value(decl.option(option)), what="`share`")
        elif option not in BLOCK_OPTIONS:
            place = env.spec.document.key((*decl.path, option))
            env.report.add(
                "BG020",
                f"unknown key `{option}` in a use of `{decl.kind}`",
                place,
                suggestion(option, ("kind", *BLOCK_OPTIONS)),
            )
    own = settings(decl, env, body.in_stack)
    return ModuleInstance(body, decl, path, own, share=share, module=module)


@dataclass(slots=True)
class LostInstance(Instance):
    """A part whose kind is unknown; its calls give unknown values in silence."""

    def input_names(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """Anything."""
        return (), frozenset()

    def scope(self, key: str) -> Scope:
        """A grey box."""
        return Scope(self.path, self.decl.kind, self.decl.kind, "unknown kind", "other", self.calls, self.place)

    @property
    def is_lost(self) -> bool:
        """It is."""
        return True

    def run(self, frame: Frame, node: Expr, args: Mapping[str, Argument], key: str) -> tuple[Ref, ...]:
        """Nothing is known."""
        return (self.body.unknown(self.decl.kind),)

    def parameter(self, name: str, node: object) -> Ref:
        """Unknown too."""
        return self.body.unknown(name)
