"""A kind opened as one before is copied: graph, names, places and findings are those of writing it anew."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from blockgraph import spec as specs
from blockgraph.elaborate import Elaborated, elaborate, parts, replay
from blockgraph.errors import BlockgraphError
from blockgraph.graph import Graph, Repeat

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


def anew(monkeypatch: pytest.MonkeyPatch, spec: specs.Spec) -> Elaborated:
    with monkeypatch.context() as patch:
        patch.setattr(parts, "likeness", lambda *_: None)
        return elaborate(spec)


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
    found = elaborate(specs.load(LAYERS))
    assert found.findings == ()
    assert {"l1.norm2", "l2.norm1", "l2.attention", "l2.feed_forward", "l3.norm2", "c2.again"} <= set(copies)
    assert not {"l1.norm1", "l1.attention", "l3.norm1", "l3.attention", "m1", "m2", "m3"} & set(copies)
