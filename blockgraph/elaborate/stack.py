"""Stacks: each distinct layer is worked out once, whatever the number of layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any

from blockgraph.dims import Dim, show
from blockgraph.elaborate.body import Body
from blockgraph.elaborate.env import Env
from blockgraph.elaborate.frame import Frame
from blockgraph.elaborate.instance import Argument, Instance, ModuleInstance
from blockgraph.elaborate.items import UNKNOWN, Ref
from blockgraph.elaborate.layers import Layered, likeness_of_layer, likeness_of_stack
from blockgraph.elaborate.options import BLOCK_OPTIONS
from blockgraph.elaborate.parts import instantiate
from blockgraph.elaborate.replay import Start
from blockgraph.errors import SpecPath, near
from blockgraph.graph import Graph, GraphBuilder, Port, Repeat, Scope, Segment, distinct
from blockgraph.module import PartDecl
from blockgraph.op import Type
from blockgraph.ops.leaf import Input
from blockgraph.read_module import split_use
from blockgraph.records import dataclass
from blockgraph.schema import misread
from blockgraph.syntax import Call, Expr

USE_KEYS = ("repeat", *BLOCK_OPTIONS)


@dataclass(frozen=True, slots=True)
class Layer:
    """One entry of `of`: a use of a block, and its own number of layers if it has one."""

    decl: PartDecl
    repeat: Dim | None


@dataclass(slots=True)
class StackInstance(Instance):
    """A stack; its node is a `Repeat`.

    `share: true` of its own keeps one set for its layers, and a stack inside a layer still has layers of its own;
    `inherited` is that of a part around it. It is `unsure` of how many layers of what it has after a finding there.
    """

    inherited: bool = False
    layers: list[Layer] | None = None
    node: int | None = None
    signatures: list[tuple[str, ...]] = field(default_factory=list)
    unsure: bool = False

    @property
    def is_lost(self) -> bool:
        """What it stacks is unknown."""
        probe = self._probe()
        return probe is None or probe.is_lost

    @property
    def is_guessed(self) -> bool:
        """So is what it stacks."""
        probe = self._probe()
        return probe is not None and probe.is_guessed

    def input_names(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """The inputs of its blocks."""
        probe = self._probe()
        return probe.input_names() if probe is not None else ((), frozenset())

    def _probe(self) -> Instance | None:
        """An instance of the first layer, asked for its inputs only."""
        layers = self._layers()
        if not layers:
            return None
        body = Body(self.body.session, GraphBuilder(), in_stack=True)
        return instantiate(body, layers[0].decl, "", self._inside)

    def scope(self, key: str) -> Scope:
        """A plate."""
        return Scope(self.path, "stack", self.decl.name, "", "stack", self.calls, self.place)

    @property
    def _inside(self) -> Env:
        """The environment of its layers, where `layer` is theirs."""
        return self.env.in_layer() if self.body.in_stack else self.env

    def _layers(self) -> list[Layer]:
        """The entries of `of`; empty after a finding."""
        if self.layers is None:
            self.layers = list(self._read_layers())
        return self.layers

    def _read_layers(self) -> Iterator[Layer]:
        if self.options is None:
            return
        of: Any = getattr(self.options, "of", None)
        path = (*self.decl.path, "of")
        document, report = self.env.spec.document, self.env.report
        entries = [(one, (*path, i)) for i, one in enumerate(of)] if isinstance(of, list) else [(of, path)]
        for value, where in entries:
            kind, options = split_use(value, where, document, report, "a layer") or ("", {})
            if kind != "stack":
                self._read_repeat(kind, options, where)
            own = "repeat" in options and kind != "stack"  # a stack as a layer keeps its own
            repeat = self._count(options.pop("repeat"), (*where, "repeat")) if own else None
            strange = any(near(key, USE_KEYS) is None for key in options) and kind in self.env.spec.modules
            self.unsure |= not kind or (own and repeat is None) or strange
            yield Layer(PartDecl(self.decl.name, kind, options, where), repeat)

    def _read_repeat(self, kind: str, options: dict[str, Any], where: SpecPath) -> None:
        """A misspelt `repeat` of a layer is told and read as such."""
        slip = next((key for key in options if key not in USE_KEYS and near(key, USE_KEYS) == "repeat"), None)
        if slip is not None and "repeat" not in options:
            document = self.env.spec.document
            message = f"unknown key `{slip}` in a use of `{kind}`"
            self._complain("BG020", message, document.key((*where, slip)), "did you mean `repeat`?")
            document.read_as(where, slip, "repeat")
            options["repeat"] = options.pop(slip)

    def _count(self, raw: Any, path: SpecPath) -> Dim | None:
        item = self.env.item(raw, path)
        return None if item is UNKNOWN else self.env.as_size(item, path)

    def run(self, frame: Frame, node: Expr, args: Mapping[str, Argument], key: str) -> tuple[Ref, ...]:
        """Work out one body per entry and add the stack's node."""
        session = self.body.session
        layers, segments = _folded(self._layers(), self._segments(self._layers()))
        inputs = tuple(ref for ref, _ in args.values())
        if segments is None or any(self.body.type(ref).shape is None for ref in inputs):
            self._bodies(layers, args)
            return (self.body.unknown("stack", *inputs),)
        bodies = self._bodies(layers, args)
        graphs = tuple(body for body in bodies if body is not None)
        if len(graphs) < len(bodies):
            return (self.body.unknown("stack", *inputs),)
        carried = self._carried(frame, node, graphs, tuple(args))
        if carried is None:
            return (self.body.unknown("stack", *inputs),)
        if None in carried and self._is_empty(segments):
            lost = graphs[0].outputs[carried.index(None)].name
            message = f"`{lost}` comes out of no layer: `{self.decl.name}` has 0 layers"
            frame.report("BG035", message, node, "only what is carried passes an empty stack")
            return tuple(self.body.unknown("stack", *inputs) for _ in carried)
        session.repeats[self.decl.name] = sum((segment.count for segment in segments), Dim(0))
        shared = self.decl.options.get("share") is True
        repeat = Repeat(self.path, graphs, segments, carried, shared, self.inherited)
        builder = self.body.builder
        builder.scope, builder.place = key, frame.locate(node)
        types = tuple(
            Type(graphs[0].types[port.value].shape, graphs[0].types[port.value].dtype) for port in graphs[0].outputs
        )
        outputs = builder.append(repeat, (ref.value for ref in inputs), types)
        self.node = builder.nodes[-1].id
        return tuple(Ref(value) for value in outputs)

    def _segments(self, layers: list[Layer]) -> tuple[Segment, ...] | None:
        """Which layer has which body; None after a finding."""
        total = getattr(self.options, "repeat", None)
        own = [layer.repeat for layer in layers]
        place = self.place
        if not layers:
            return None
        if all(repeat is None for repeat in own):
            assert self.options is not None, "there are layers"
            if total is None and (self.unsure or "repeat" in misread(self.options, self.decl.options)):
                return None
            if total is None:
                self._complain("BG021", "`repeat` is required for `stack`", place, "add `repeat: ...`")
                return None
            return (Segment(tuple(range(len(layers))), total),)
        if any(repeat is None for repeat in own) and self.unsure:
            return None
        if any(repeat is None for repeat in own):
            self._complain(
                "BG033", "some layers have their own `repeat` and some have none", place, "give each one, or none"
            )
            return None
        if total is not None:
            help = "leave out the one of the stack"
            self._complain(
                "BG033",
                "`repeat` stands on the stack and on its layers",
                self.env.spec.document.key(self.decl.option("repeat")),
                help,
            )
            return None
        return tuple(Segment((index,), repeat) for index, repeat in enumerate(own) if repeat is not None)

    def _is_empty(self, segments: tuple[Segment, ...]) -> bool:
        total = sum((segment.count for segment in segments), Dim(0))
        numbers = self.body.session.env.numbers
        return not total.symbols - numbers.keys() and total.evaluate(numbers) == 0

    def _complain(self, code: str, message: str, place: Any, help: str) -> None:
        self.env.report.add(code, message, place, help)

    def _bodies(self, layers: list[Layer], args: Mapping[str, Argument]) -> list[Graph | None]:
        """The graphs of the layers over inputs of the stack's types; None for one whose output is unknown."""
        env = self._inside
        inputs = {name: self.body.type(ref) for name, (ref, _) in args.items()}
        around = likeness_of_stack(self.decl.path, env.likeness, inputs)
        return [self._body(layer.decl, args, env, around) for layer in layers]

    def _body(
        self, decl: PartDecl, args: Mapping[str, Argument], env: Env, around: tuple[Any, ...] | None
    ) -> Graph | None:
        session, memo = self.body.session, env.memo
        module = session.spec.modules.get(decl.kind)
        like = likeness_of_layer(module, decl, around)
        if module is not None and like in memo and (copied := memo[like].copy(session, module)) is not None:
            return copied  # type: ignore[no-any-return]
        builder = GraphBuilder(decl.kind)
        body = Body(session, builder, in_stack=True)
        start = Start.of(body)
        path = decl.kind if decl.kind == "stack" else ""  # a stack needs a name before its layers' numbers
        layer = instantiate(body, decl, path, env)
        graph = self._write_body(builder, body, layer, decl, args)
        if module is not None and like is not None and graph is not None:
            kept = Layered.of(graph, session, module, start)
            memo.update({like: kept} if kept is not None else {})
        return graph

    def _write_body(
        self, builder: GraphBuilder, body: Body, layer: Instance, decl: PartDecl, args: Mapping[str, Argument]
    ) -> Graph | None:
        names, _ = layer.input_names()
        ports = []
        values: dict[str, Ref] = {}
        for name, (ref, _) in args.items():
            given = self.body.type(ref)
            builder.place = self.place
            if given.shape is None:
                values[name] = body.unknown(name)
                continue
            (value,) = body.node(Input(name, given.shape, given.dtype))
            values[name] = Ref(value)
            ports.append(Port(name, value))
        outer = Frame(body, "", 0, self.env.name, lambda _: None, (), {decl.name: layer})
        refs = _run_layer(layer, outer, decl, values)
        if not refs or any(body.type(ref).shape is None for ref in refs):
            return None
        outputs = layer.output_names() or names[:1]
        found = tuple(Port(name, ref.value) for name, ref in zip(outputs, refs, strict=True))
        return builder.finish(ports, found, layer.draws())

    def _carried(
        self, frame: Frame, node: Expr, graphs: tuple[Graph, ...], names: tuple[str, ...]
    ) -> tuple[int | None, ...] | None:
        """Which output becomes which input of the next layer; None after a finding."""
        carried: tuple[int | None, ...] | None = None
        for graph in distinct(graphs):
            outputs = tuple(port.name for port in graph.outputs)
            found = tuple(names.index(name) if name in names else None for name in outputs)
            if all(index is None for index in found):
                help = f"call the result `{names[0]}`, as the input"
                frame.report(
                    "BG035",
                    f"nothing is carried from layer to layer: `{graph.name}` returns {', '.join(outputs)}",
                    node,
                    help,
                )
                return None
            if carried is not None and carried != found:
                frame.report(
                    "BG035", "the blocks of the stack return different values", node, "give them the same outputs"
                )
                return None
            carried = found
            for port, index in zip(graph.outputs, found, strict=True):
                if index is not None and not self._stackable(frame, node, graph, port, graph.inputs[index]):
                    return None
        return carried

    def _stackable(self, frame: Frame, node: Expr, graph: Graph, out: Port, into: Port) -> bool:
        """Whether a layer's output may be the next layer's input."""
        before, after = graph.types[into.value], graph.types[out.value]
        if before.shape == after.shape and before.dtype == after.dtype:
            return True
        shapes = f"`{into.name}` goes in as {show(before.shape)} and comes out as {show(after.shape)}"
        message = f"`{graph.name}` cannot be stacked: {shapes}"
        frame.report("BG110", message, node, "a stacked block returns the shape it was given")
        return False

    def output_names(self) -> tuple[str, ...]:
        """Those of its blocks."""
        probe = self._probe()
        return probe.output_names() if probe is not None else ()

    def draws(self) -> Iterator[str | int]:
        """The stack's node, which draws layer by layer."""
        if self.node is not None:
            yield self.node


def _folded(
    layers: list[Layer], segments: tuple[Segment, ...] | None
) -> tuple[list[Layer], tuple[Segment, ...] | None]:
    """Equal uses as one body, and runs of one body as one segment: `[b, b, c]` is b twice, then c."""
    if segments is None:
        return layers, None
    places: dict[tuple[str, str], int] = {}
    index = [places.setdefault((layer.decl.kind, repr(layer.decl.options)), len(places)) for layer in layers]
    distinct = [layers[index.index(place)] for place in range(len(places))]
    found: list[Segment] = []
    for segment in segments:
        bodies = tuple(index[body] for body in segment.bodies)
        runs = _runs(bodies, segment.count)
        for run in runs:
            if found and len(run.bodies) == 1 and found[-1].bodies == run.bodies:
                run = Segment(run.bodies, found.pop().count + run.count)
            found.append(run)
    return distinct, tuple(found)


def _runs(bodies: tuple[int, ...], count: Dim) -> list[Segment]:
    """The segments of a list that cycles: one if all its bodies are the same, a run each if it goes round once."""
    if len(set(bodies)) == 1:
        return [Segment(bodies[:1], count)]
    if len(bodies) == count and any(a == b for a, b in pairwise(bodies)):
        return [Segment((body,), Dim(1)) for body in bodies]
    return [Segment(bodies, count)]


def _run_layer(layer: Instance, outer: Frame, decl: PartDecl, values: dict[str, Ref]) -> tuple[Ref, ...]:
    """Call the layer by itself, its names standing at the top of the body."""
    call = Call(0, 0, decl.name, ())
    args = {name: (ref, call) for name, ref in values.items()}
    outer.place = layer.place
    if isinstance(layer, ModuleInstance):
        layer.calls += 1
        return layer.run(outer, call, args, "")
    return layer.run(outer, call, args, outer.body.open_scope("", decl.kind, layer.scope))
