"""Graphs written by hand for the drawing tests, and the tests of what they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blockgraph.dims import Dim
from blockgraph.drawing import to_dot
from blockgraph.graph import Graph, GraphBuilder, Port, Repeat, Scope, Segment
from blockgraph.number import Number
from blockgraph.op import OPS, load_ops
from blockgraph.ops.arithmetic import Add, Multiply
from blockgraph.ops.einsum import Einsum
from blockgraph.ops.leaf import Constant, Input, Param

B, T, S, C, V = (Dim(name) for name in "BTSCV")
STREAM = (B, T, C)
FAMILIES = {
    "norm": ("norm", "LayerNorm", ""),
    "attention": ("attention", "Multi-Head Attention", "4 heads · d = 16"),
    "feed_forward": ("feed_forward", "Feed Forward", "64 → 256 → 64 · GELU"),
    "cross_attention": ("attention", "Cross-Attention", "4 heads · d = 16"),
    "embedding": ("embedding", "Embedding", "V × C"),
    "positions": ("embedding", "Learned Positions", "1024 × C"),
}


class Writing:
    """A graph being written: parts are one product with a weight inside a scope of their own."""

    def __init__(self, name: str, **inputs: tuple[Dim, ...]) -> None:
        load_ops()
        self.g = GraphBuilder(name)
        self.given = {key: self.g(Input(key, dims)) for key, dims in (inputs or {"x": STREAM}).items()}

    def part(
        self, path: str, *values: int, calls: int = 1, call: int = 1, title: str = "", out: tuple[Dim, ...] = STREAM
    ) -> int:
        """One call of a part; its family is its name without a number."""
        family, usual, detail = FAMILIES[path.rpartition(".")[2].rstrip("0123456789")]
        key = path if call == 1 else f"{path}#{call}"
        self.g.scopes[key] = Scope(path, family, title or usual, detail, family, calls)
        self.g.scope = key
        weight = self.g(Param(f"{path}.W", (C, C)))
        result = self.g(Einsum("b t c, c d -> b t d"), values[0], weight)
        for other in values[1:]:
            mixed = self.g(Einsum("b t c, b s c -> b t s"), result, other)
            result = self.g(Einsum("b t s, b s c -> b t c"), mixed, other)
        self.g.scope = ""
        return result

    def add(self, *values: int) -> int:
        """The sum from left to right."""
        total = values[0]
        for value in values[1:]:
            total = self.g(Add(), total, value)
        return total

    def times(self, left: int, right: int) -> int:
        """The product."""
        return self.g(Multiply(), left, right)

    def param(self, path: str, *dims: Dim) -> int:
        """A parameter of the module itself."""
        return self.g(Param(path, dims))

    def stack(
        self, path: str, bodies: Sequence[Graph], segments: Sequence[tuple[tuple[int, ...], Dim | int]], *values: int
    ) -> int:
        """A stack of blocks whose first input is carried."""
        self.g.scopes[path] = Scope(path, "stack", path, "", "stack")
        self.g.scope = path
        parts = tuple(Segment(cycle, Dim(count)) for cycle, count in segments)
        (result,) = self.g.append(Repeat(path, tuple(bodies), parts, (0,)), values, [self.g.types[values[0]]])
        self.g.scope = ""
        return result

    def finish(self, *outputs: int, names: Sequence[str] = ("x",), **dims: int) -> Graph:
        """The graph."""
        inputs = [Port(name, value) for name, value in self.given.items()]
        return self.g.finish(inputs, [Port(n, v) for n, v in zip(names, outputs, strict=True)], dims=dims)


def pre_norm(name: str = "pre_norm") -> Graph:
    """x + attention(norm(x)), then x + feed_forward(norm(x))."""
    w = Writing(name)
    x = w.given["x"]
    x = w.add(x, w.part("attention", w.part("norm1", x)))
    return w.finish(w.add(x, w.part("feed_forward", w.part("norm2", x))))


def post_norm(name: str = "post_norm") -> Graph:
    """norm(x + attention(x)), then norm(x + feed_forward(x))."""
    w = Writing(name)
    x = w.given["x"]
    x = w.part("norm1", w.add(x, w.part("attention", x)))
    return w.finish(w.part("norm2", w.add(x, w.part("feed_forward", x))))


def parallel(name: str = "parallel") -> Graph:
    """x + attention(norm(x)) + feed_forward(norm(x)), each with its own norm."""
    w = Writing(name)
    x = w.given["x"]
    return w.finish(w.add(x, w.part("attention", w.part("norm1", x)), w.part("feed_forward", w.part("norm2", x))))


def shared_norm(name: str = "parallel, shared norm") -> Graph:
    """h = norm(x); x + attention(h) + feed_forward(h)."""
    w = Writing(name)
    x, h = w.given["x"], w.part("norm", w.given["x"])
    return w.finish(w.add(x, w.part("attention", h), w.part("feed_forward", h)))


def deepnorm(name: str = "deepnorm") -> Graph:
    """norm(a*x + attention(x)), then norm(a*x + feed_forward(x))."""
    w = Writing(name)
    x = w.given["x"]
    for n, kind in enumerate(("attention", "feed_forward"), start=1):
        a = w.g(Constant(Number("a")))
        x = w.part(f"norm{n}", w.add(w.times(a, x), w.part(kind, x)))
    return w.finish(x)


def rezero(name: str = "rezero") -> Graph:
    """x + a*f(x) with a learned scalar a for each sublayer."""
    w = Writing(name)
    x = w.given["x"]
    for n, kind in enumerate(("attention", "feed_forward"), start=1):
        x = w.add(x, w.times(w.param(f"a{n}"), w.part(kind, x)))
    return w.finish(x)


def shared_call(name: str = "one feed-forward, two calls") -> Graph:
    """One feed-forward called at two places."""
    w = Writing(name)
    x = w.given["x"]
    x = w.add(x, w.part("feed_forward", w.part("norm1", x), calls=2))
    return w.finish(w.add(x, w.part("feed_forward", w.part("norm2", x), calls=2, call=2)))


def mixer(name: str = "mixer") -> Graph:
    """A block with parameters of its own and products by pattern, and two outputs of one value."""
    w = Writing(name)
    x = w.given["x"]
    read, write = w.param("U", C, V), w.param("O", V, C)
    u = w.g(Einsum("b t c, c r -> b t r"), x, read)
    v = w.g(OPS["sigmoid"](), w.g(Einsum("b t c, c r -> b t r"), x, read))
    return w.finish(w.add(x, w.g(Einsum("b t r, r c -> b t c"), w.times(u, v), write)))


def decoder(name: str = "decoder block") -> Graph:
    """Self-attention, cross-attention over a memory, feed-forward."""
    w = Writing(name, x=STREAM, memory=(B, S, C))
    x, memory = w.given.values()
    x = w.add(x, w.part("attention", w.part("norm1", x)))
    x = w.add(x, w.part("cross_attention", w.part("norm2", x), memory))
    return w.finish(w.add(x, w.part("feed_forward", w.part("norm3", x))))


def model(
    bodies: Sequence[Graph], segments: Sequence[tuple[tuple[int, ...], Dim | int]], name: str = "model", **dims: int
) -> Graph:
    """Embedding, a stack, a final norm, a projection onto the vocabulary."""
    w = Writing(name, tokens=STREAM)
    x = w.add(w.part("embedding", w.given["tokens"]), w.part("positions", w.given["tokens"]))
    x = w.part("norm", w.stack("layers", bodies, segments, x), title="Final Norm")
    table = w.param("embedding.table", V, C)
    return w.finish(w.g(Einsum("b t c, v c -> b t v"), x, table), names=["logits"], **dims)


def seq2seq(name: str = "encoder and decoder") -> Graph:
    """Two stacks, the second reading what the first made."""
    w = Writing(name, source=(B, S, C), target=STREAM)
    source, target = w.given.values()
    memory = w.part("norm1", w.stack("encoder", [pre_norm("encoder_block")], [((0,), 6)], source), title="Encoder Norm")
    x = w.part(
        "norm2", w.stack("decoder", [decoder("decoder_block")], [((0,), 6)], target, memory), title="Decoder Norm"
    )
    return w.finish(x)


def hyper(name: str = "hyper-connections") -> Graph:
    """Four streams: read one, write to all, mix all."""
    m = Dim("M")
    w = Writing(name, X=(B, T, m, C))
    x = w.given["X"]
    for n, kind in enumerate(("attention", "feed_forward"), start=1):
        read = w.g(Einsum("m, b t m c -> b t c"), w.param(f"read{n}", m), x)
        y = w.part(kind, w.part(f"norm{n}", read))
        mixed = w.g(Einsum("m n, b t n c -> b t m c"), w.param(f"mix{n}", m, m), x)
        x = w.add(mixed, w.g(Einsum("m, b t c -> b t m c"), w.param(f"write{n}", m), y))
    return w.finish(x, names=["X"])


def two_streams(name: str = "two streams") -> Graph:
    """x = norm(x + u) and d = d + u, for attention and feed-forward."""
    w = Writing(name, x=STREAM, d=STREAM)
    x, d = w.given.values()
    for n, kind in enumerate(("attention", "feed_forward"), start=1):
        u = w.part(kind, x)
        x = w.part(f"norm{n}", w.add(x, u))
        d = w.add(d, u)
    return w.finish(x, d, names=["x", "d"])


def opened(name: str = "opened attention") -> Graph:
    """Queries, keys and values in the equations, the values an output as well."""
    w = Writing(name)
    x = w.given["x"]
    h = w.part("norm", x)
    q, k, v = (w.g(Einsum("b t c, c d -> b t d"), h, w.param(key, C, C)) for key in ("Wq", "Wk", "Wv"))
    y = w.g(Einsum("b t c, b s c, b s d -> b t d"), q, k, v)
    return w.finish(w.add(x, w.g(Einsum("b t c, c d -> b t d"), y, w.param("Wo", C, C))), v, names=["x", "v"])


def gated(name: str = "highway gate") -> Graph:
    """x*(1 - g) + g*f(x), where g = sigmoid(norm(x)), and 0.5 of it."""
    w = Writing(name)
    x = w.given["x"]
    g = w.g(OPS["sigmoid"](), w.part("norm", x))
    keep = w.g(OPS["subtract"](), w.g(Constant(1)), g)
    return w.finish(w.add(w.times(x, keep), w.times(g, w.part("attention", x))))


def three_branches(name: str = "three branches") -> Graph:
    """x + f1(n1(x)) + f2(n2(x)) + f3(n3(x)), then a norm and a dense residual around everything."""
    w = Writing(name)
    x = w.given["x"]
    y = w.add(
        x,
        *(
            w.part(kind, w.part(f"norm{n}", x))
            for n, kind in enumerate(("attention", "feed_forward1", "feed_forward2"))
        ),
    )
    z = w.add(y, w.part("feed_forward3", w.part("norm4", y)))
    return w.finish(w.add(w.part("norm5", z), x))


def nested(name: str = "stacks in a stack") -> Graph:
    """A stack of blocks that hold a stack."""
    w = Writing("group")
    x = w.stack("inner", [pre_norm("block")], [((0,), 5)], w.given["x"])
    group = w.finish(w.part("norm", x))
    return model([group], [((0,), 4)], name)


def with_block(name: str = "block in a block") -> Graph:
    """A block of the file used as a sublayer: its nodes are inlined under its path."""
    w = Writing(name)
    x = w.given["x"]
    h = w.part("norm", x)
    w.g.scopes["mixer"] = Scope("mixer", "mixer", "mixer", "", "block")
    w.g.scope = "mixer"
    a = w.g(Einsum("b t c, c d -> b t d"), h, w.param("mixer.U", C, C))
    b = w.g(OPS["silu"](), w.g(Einsum("b t c, c d -> b t d"), h, w.param("mixer.W", C, C)))
    y = w.times(a, b)
    w.g.scope = ""
    x = w.add(x, y)
    return w.finish(w.add(x, w.part("feed_forward", w.part("norm2", x))))


def folded(count: int = 96, name: str = "model") -> Graph:
    """A model of equal blocks."""
    return model([pre_norm("block")], [((0,), count)], name)


def odd_one(name: str = "40 blocks, an odd one, 55 blocks") -> Graph:
    """A stack of 96 blocks of which one is different."""
    return model([pre_norm("block"), post_norm("odd")], [((0,), 40), ((1,), 1), ((0,), 55)], name)


def cycle(count: int = 24, name: str = "a cycle of three") -> Graph:
    """A stack that cycles through three blocks, two of them equal."""
    return model([pre_norm("local"), parallel("global")], [((0, 0, 1), count)], name)


BLOCKS = (pre_norm, post_norm, parallel, shared_norm, deepnorm, rezero, shared_call, mixer, decoder)
RARE = (hyper, two_streams, opened, gated, three_branches, with_block)
MODELS = (folded, odd_one, cycle, nested, seq2seq)
SAMPLES: dict[str, Callable[[], Graph]] = {made.__name__: made for made in (*BLOCKS, *RARE, *MODELS)}

Spot = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """An edge of a drawing: its ends, the corners of its line, its class."""

    start: str
    end: str
    spots: tuple[Spot, ...]
    css: str

    @property
    def stretches(self) -> list[tuple[Spot, Spot]]:
        """The straight stretches of the line."""
        return list(zip(self.spots, self.spots[1:], strict=False))


class Drawing:
    """A DOT text of ours read back: nodes (x, y, width, height), lines, plates (left, bottom, right, top)."""

    def __init__(self, dot: str) -> None:
        self.nodes: dict[str, tuple[float, float, float, float]] = {}
        self.css: dict[str, str] = {}
        self.text: dict[str, str] = {}
        pattern = r'^ *(n\d+) \[pos="([-\d.]+),([-\d.]+)", width=([\d.]+), height=([\d.]+)(.*)\];$'
        for found in re.finditer(pattern, dot, re.M):
            x, y, wide, high = (float(number) for number in found.groups()[1:5])
            self.nodes[found[1]] = (x, y, wide * 72, high * 72)
            css = re.search(r'class="([^"]*)"', found[6])
            self.css[found[1]] = css[1] if css else ""
            self.text[found[1]] = " ".join(re.findall(r">([^<>]+)<", found[6]))
        edges = re.finditer(r'^ *(n\d+) -> (n\d+) \[pos="e,([^"]*)"(.*)\];$', dot, re.M)
        self.lines = [self.line(found) for found in edges]
        boxes = re.findall(r'class="plate(?: stack)?".*?bb="([^"]*)"', dot)
        self.plates = [tuple(float(number) for number in box.split(",")) for box in boxes]

    def line(self, found: re.Match[str]) -> Line:
        """One edge; its curve is straight, so that every third point is a corner."""
        spots = [tuple(float(number) for number in spot.split(",")) for spot in found[3].split()]
        css = re.search(r'class="([^"]*)"', found[4])
        return Line(found[1], found[2], (*spots[1::3], spots[0]), css[1] if css else "flow")  # type: ignore[arg-type]

    def into(self, node: str) -> list[Line]:
        """The lines that end in a node."""
        return [line for line in self.lines if line.end == node]


def drawn(*graphs: Graph, **options: object) -> Drawing:
    """The drawing of some graphs."""
    return Drawing(to_dot(graphs, **options))  # type: ignore[arg-type]


def test_the_sample_stacks_have_the_number_of_layers_they_are_named_for() -> None:
    (stack,) = (node.op for node in odd_one().nodes if isinstance(node.op, Repeat))
    assert list(stack.layers({})) == [0] * 40 + [1] + [0] * 55
