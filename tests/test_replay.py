"""A kind opened as one before is copied: graph, names, places and findings are those of writing it anew."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from blockgraph import spec as specs
from blockgraph.checking import check
from blockgraph.elaborate import Elaborated, body, elaborate, inlined, layers, parts, replay, stack
from blockgraph.errors import BlockgraphError
from blockgraph.facts import flow, prove
from blockgraph.graph import Graph, Repeat
from blockgraph.lints import bodies, lint
from blockgraph.module import Module
from blockgraph.syntax import walk

ROOT = Path(__file__).parent.parent
FILES = [*sorted((ROOT / "specs").rglob("*.yaml")), *sorted((ROOT / "tests" / "broken").rglob("*.yaml"))]

LAYERS = """
dims: {C: 8, H: 2, N: 3}
blocks:
  a:
    norm: layer_norm
    sublayers: [{kind: attention, heads: H}, {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}]
  b:
    norm: {kind: layer_norm, bias: false}
    sublayers: [{kind: attention, heads: H, share: true}, {kind: feed_forward, hidden: 2*C, activation: relu}]
  c:
    inputs: {x: [B, S, F]}
    parts: {up: {kind: linear, out: 8}, again: {kind: linear, out: 8}}
    equations: |
      y = up(x)
      x = again(y) + y @ again.W + up(x)
model:
  inputs: {x: [B, T, C], z: [B, 1, C]}
  outputs: [x, y]
  parts: {l1: a, l2: a, l3: b, both: {kind: stack, of: [a, b], repeat: N}, c1: c, c2: c,
    m1: {kind: cross_attention, heads: H}, m2: {kind: cross_attention, heads: H}, m3: {kind: cross_attention, heads: H}}
  equations: |
    x = l3(l2(l1(x)))
    x = x + m1(x, x) + m2(x, z)
    y = m3(z, z)
    x = both(x)
    x = c2(c1(x))
"""


BLOCK = """    norm: layer_norm
    sublayers:
      - {kind: attention, heads: H}
      - {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}
"""


def anew(monkeypatch: pytest.MonkeyPatch, spec: specs.Spec) -> Elaborated:
    with monkeypatch.context() as patch:
        patch.setattr(parts, "likeness", lambda *_: None)
        patch.setattr(stack, "likeness_of_layer", lambda *_: None)
        patch.setattr(inlined, "likeness", lambda *_: None)
        return elaborate(spec)


def stacked(*blocks: str) -> str:
    """A stack of blocks written out, equal up to their names unless their texts differ."""
    texts = "".join(f"  b{index}:\n{text}" for index, text in enumerate(blocks))
    names = ", ".join(f"b{index}" for index in range(len(blocks)))
    model = f"{{kind: stack, of: [{names}], repeat: {len(blocks)}}}"
    return f"""dims: {{C: 8, H: 2}}
blocks:
{texts}
model:
  parts: {{layers: {model}, final_norm: layer_norm}}
  equations: |
    x = final_norm(layers(x))
"""


def called(times: int) -> str:
    """As many parts of one block, called one after another."""
    calls = "".join(f"    x = p{index}(x)\n" for index in range(times))
    names = ", ".join(f"p{index}: b" for index in range(times))
    return f"dims: {{C: 8, H: 2}}\nblocks:\n  b:\n{BLOCK}model:\n  parts: {{{names}}}\n  equations: |\n{calls}"


def difference(one: Graph | None, other: Graph | None) -> list[str]:
    """The fields in which two graphs differ, those of the bodies of stacks behind a dot."""
    if one is None or other is None:
        return [] if one is other else ["graph"]
    wrong = [field.name for field in fields(Graph) if getattr(one, field.name) != getattr(other, field.name)]
    if wrong == ["nodes"]:
        for a, b in zip(one.nodes, other.nodes, strict=True):
            if isinstance(a.op, Repeat) and isinstance(b.op, Repeat):
                pairs = zip(a.op.bodies, b.op.bodies, strict=True)
                wrong += [f"{a.op.path}.{name}" for pair in pairs for name in difference(*pair)]
            elif a != b:
                wrong.append(f"{a} is {b}")
    return wrong


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(ROOT).as_posix() for path in FILES])
def test_copies_are_as_if_written_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        spec = specs.load(path)
    except BlockgraphError:
        return
    copied, written = elaborate(spec), anew(monkeypatch, spec)
    assert difference(copied.graph, written.graph) == []
    assert copied.findings == written.findings


CHANGES = ["", "C: 8>C: ", "H: 2>H: 3", "hidden: 4*C>hidden: 4C", "heads: H>hedas: H", "out: 8>out: F"]


@pytest.mark.parametrize("change", [*CHANGES, "[B, 1, C]>[1, 1, C]"])
def test_copies_are_as_if_written_anew_in_a_file_of_many_equal_parts(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _, new = change.partition(">")
    spec = specs.load(LAYERS.replace(old, new) if change else LAYERS)
    copied, written = elaborate(spec), anew(monkeypatch, spec)
    assert difference(copied.graph, written.graph) == []
    assert copied.findings == written.findings


def test_equal_parts_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    real = replay.replay
    monkeypatch.setattr(parts, "replay", lambda *given: copies.append(given[1].path) or real(*given))
    monkeypatch.setattr(inlined, "likeness", lambda *_: None)
    found = elaborate(specs.load(LAYERS))
    assert found.findings == ()
    assert {"l1.norm2", "l2.norm1", "l2.attention", "l2.feed_forward", "l3.norm2", "c2.again"} <= set(copies)
    assert not {"l1.norm1", "l1.attention", "l3.norm1", "l3.attention", "m1", "m2", "m3"} & set(copies)


def test_parts_of_one_block_are_copied_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    real = inlined.copy
    monkeypatch.setattr(inlined, "copy", lambda *given: copies.append(given[1].path) or real(*given))
    found = elaborate(specs.load(LAYERS))
    assert found.findings == ()
    assert copies == ["l2"]  # `c2` is called with another width than `c1`


USES = """
dims: {C: 8, H: 2}
blocks:
  a:
    inputs: {x: [B, T, F], y: [B, T, F]}
    params: {g: [F]}
    parts: {norm: layer_norm, up: {kind: feed_forward, hidden: 16, activation: relu}, idle: layer_norm}
    equations: |
      x = x + up(norm(x))*g
      x = norm(x) + y
  b:
    parts: {one: a, two: a}
    equations: |
      x = one(x, x)
      x = two(x, y=x)
      x = one(x, x)
model:
  parts: {p: a, q: a, r: a, s: {kind: a, share: true}, t: {kind: a, share: true}, u: b, v: b,
    last: {kind: stack, of: [b, a], repeat: 2}}
  equations: |
    z = p(x, x)
    y = q(x, z)
    x = r(y, z) + p(y, x)*q.g + r.g
    x = s(t(x, z), y)
    x = v(u(x)) + q(x, y) + t(x, x)*t.g
    x = x + q.norm
"""


@pytest.mark.parametrize(
    "change",
    ["", " + q.norm>", "r.g>r.h", "r(y, z)>r(y)", "r(y, z)>r(y, z[:, 1:])", "z = p(x, x)>z = p(x, x*p.g)", "16>"],
)
def test_copied_parts_can_be_called_again_and_asked_for_what_they_have(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _, new = change.partition(">")
    spec = specs.load(USES.replace(old, new) if change else USES)
    copied, written = elaborate(spec), anew(monkeypatch, spec)
    assert difference(copied.graph, written.graph) == []
    assert copied.findings == written.findings


def test_what_a_part_inside_a_copied_one_puts_out_is_blamed_on_its_options() -> None:
    block = "parts: {up: {kind: linear, out: 5}}, equations: y = up(x)"
    model = "parts: {p: b, q: b}, equations: ['y = p(x)', 'x = x + q(x)', 'x = x + y']"
    spec = specs.load(f"{{dims: {{C: 8}}, blocks: {{b: {{{block}}}}}, model: {{{model}}}}}")
    wanted = "`out` of linear is 5; leave it out, or write `out: C`"
    assert [(one.code, one.help) for one in elaborate(spec).findings] == [("BG101", wanted)]


WRITTEN = """    parts: {attention: {kind: attention, heads: H}, norm: layer_norm}
    equations: |
      y = attention(norm(x))
      x = x + y
"""
# A norm of a norm and a sublayer without a residual: what lints find in each of them, at its own lines.
DOUBTED = """    parts: {one: layer_norm, two: layer_norm, ff: {kind: feed_forward, hidden: 8, activation: relu}}
    equations: |
      x = ff(two(one(x)))
"""
SLIP = """    parts: {ff: {kind: feed_forward, hidden: 8, activation: relu}}
    equations: x = ff(x) if x else x
"""
WRONG = BLOCK.replace("heads: H", "heads: 3")


@pytest.mark.parametrize(
    "blocks",
    [
        [BLOCK] * 4,
        [BLOCK, WRITTEN, BLOCK, WRITTEN, WRITTEN],
        [DOUBTED] * 3,
        [WRONG, WRONG],
        [BLOCK, WRONG, BLOCK],
        [BLOCK, f"    # a remark\n{BLOCK}", BLOCK.replace("4*C", "2*C")],
        [WRITTEN.replace("layer_norm", "&n layer_norm"), WRITTEN.replace("layer_norm", "*n")],
    ],
)
def test_blocks_that_read_the_same_are_as_if_worked_out_each(
    blocks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = specs.load(stacked(*blocks))
    written = anew(monkeypatch, spec)
    copied = elaborate(spec)
    assert copied.findings == written.findings
    assert (copied.graph is None) == (written.graph is None)
    if copied.graph is not None and written.graph is not None:
        assert lint(copied.graph, spec) == lint(written.graph, spec)
        assert list(bodies(copied.graph)) == list(bodies(written.graph))
        assert prove(copied.graph) == prove(written.graph)
    assert difference(copied.graph, written.graph) == []


PLACED = """    inputs: {x: [B, T, C], ids: {ids: [B, T], below: 4*C}}
    params: {gain: {shape: [C], init: ones}}
    placement: {params: {a: [C]}, equations: x = gain*x + a*f(norm(x))}
    norm: layer_norm
    sublayers: [{kind: attention, heads: H}, {kind: feed_forward, hidden: 4*C, activation: relu}]
"""
SCALED = """    norm: {kind: layer_norm, share: true}
    sublayers:
      - {kind: cross_attention, heads: H, with: {memory: x}, branch_scale: 1/2}
"""


@pytest.mark.parametrize("block", [BLOCK, WRITTEN, PLACED, SCALED, DOUBTED])
def test_blocks_that_read_the_same_are_as_if_read_each(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = stacked(block, f"    # a remark\n{block}", block)
    spec = specs.load(text)
    assert [spec.modules[name].original.name for name in ("b0", "b1", "b2")] == ["b0"] * 3
    monkeypatch.setattr(specs, "reading", lambda *_: None)
    anew = specs.load(text)
    assert (spec.findings, anew.findings) == ((), ())
    for name, module in anew.modules.items():
        assert module.original is module
        assert replace(spec.modules[name], lines=(), like=None) == replace(module, lines=())
        assert located(spec.modules[name]) == located(module)


def located(module: Module) -> list[tuple[object, ...]]:
    """The equations of a module, each with its path and the place of everything in it."""
    return [
        (
            line.equation,
            line.path,
            line.written,
            *(line.locate(node.start, node.end) for node in walk(line.equation.expr)),
        )
        for line in module.lines
    ]


def test_a_block_in_which_something_is_wrong_is_read_each_time() -> None:
    spec = specs.load(stacked(SLIP, SLIP))
    assert [(one.code, one.place.start.line) for one in spec.findings] == [("BG010", 5), ("BG010", 8)]
    assert spec.modules["b1"].original is spec.modules["b1"]


def test_what_a_lint_finds_in_blocks_that_read_the_same_is_told_of_each() -> None:
    lines = stacked(DOUBTED, DOUBTED).splitlines()
    at = [index for index, line in enumerate(lines, start=1) if "ff(two(one(x)))" in line]
    found = [(one.code, one.place.start.line) for one in check("\n".join(lines)).findings]
    assert [one for one in found if one[1] in at] == [(code, line) for line in at for code in ("BG212", "BG210")]


def test_the_nodes_of_a_block_that_reads_the_same_are_made_when_asked_for() -> None:
    checked = check(stacked(BLOCK, BLOCK, BLOCK))
    assert checked.findings == ()
    assert checked.graph is not None
    first, second, third = next(node.op.bodies for node in checked.graph.nodes if isinstance(node.op, Repeat))
    assert (first.original, second.original, third.original) == (first, first, first)
    assert (first.name, second.name, third.name) == ("b0", "b1", "b2")
    assert "nodes" not in third.__dict__
    places = [graph.nodes[-1].place for graph in (first, second, third)]
    lines = [(place.spec_path.partition(".sub")[0], place.start.line) for place in places if place is not None]
    assert lines == [("blocks.b0", 7), ("blocks.b1", 12), ("blocks.b2", 17)]
    assert "nodes" in third.__dict__
    with pytest.raises(AttributeError, match="a graph has no attribute 'edges'"):
        third.edges  # noqa: B018


def test_proofs_follow_blocks_that_read_the_same_once_for_each_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = check(stacked(BLOCK, BLOCK, BLOCK)).graph
    assert graph is not None
    followed = []
    real = flow.follow
    monkeypatch.setattr(flow, "follow", lambda *given: followed.append(given[0].name) or real(*given))
    found = prove(graph)
    alone = ["b0", "b0"]  # positions, then items
    later = ["b0"]  # given all positions, which the first layer has mixed
    assert followed == [*alone, "model", *later, "model"]
    assert list(found.blocks) == ["b0", "b1", "b2"]


@pytest.mark.parametrize("text", [stacked(*[BLOCK] * 4), called(4)])
def test_a_spec_of_many_equal_blocks_still_has_a_limit(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (body, inlined, layers, replay):
        monkeypatch.setattr(module, "MAX_NODES", 100)
    spec = specs.load(text)
    assert [one.code for one in elaborate(spec).findings] == ["BG018"]
    assert elaborate(spec).findings == anew(monkeypatch, spec).findings
