"""The fingerprint is equal exactly for equal structures: a table of what changes it, a property of what does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import blockgraph as bg
from blockgraph.diff import canonical, diff, fingerprint
from blockgraph.graph import Graph
from tests.renaming import renamed, written_out

ROOT = Path(__file__).parent.parent
SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
IDS = [path.relative_to(ROOT / "specs").with_suffix("").as_posix() for path in SPECS]

BLOCK = """
name: one
dims: {C: 64, H: 4, G: 2}
constants: {eps: 1e-5}
block:
  norm: {kind: layer_norm, eps: eps}
  placement: pre
  sublayers:
    - {kind: attention, heads: H, mask: causal, window: 8, rotary: {style: half}}
    - {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}
"""
OPEN = """
dims: {C: 64, H: 4, F: 4*C}
block:
  params:
    a: {shape: [C], init: ones}
  parts:
    up: {kind: linear, out: F}
    norm: layer_norm
    down: {kind: linear, out: C}
    other: {kind: linear, out: C}
  equations: |
    h = norm(x)
    y = mean(h, "b t c -> b 1 c")
    z = down(gelu_erf(up(h)))
    x = x + a*z + other(y)
"""
STACK = """
dims: {C: 64, H: 4, N: 6, V: 100}
blocks:
  layer_one:
    sublayers: [{kind: attention, heads: H, name: att}, {kind: feed_forward, hidden: 2*C, activation: relu}]
    norm: rms_norm
  layer_two:
    sublayers: [{kind: attention, heads: H, mask: causal}]
    norm: rms_norm
model:
  inputs: {tokens: {ids: [B, T], below: V}}
  parts:
    embed: {kind: embedding, size: V, width: C}
    layers: {kind: stack, of: [layer_one, layer_two], repeat: N}
    head: {kind: linear, out: V}
  equations: |
    x = layers(embed(tokens))
    logits = head(x)
"""


def graph(source: Any) -> Graph:
    checked = bg.check(source)
    assert checked.ok, checked.findings
    assert checked.graph is not None
    return checked.graph


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


@pytest.mark.parametrize("path", SPECS, ids=IDS)
def test_renaming_everything_keeps_the_fingerprint(path: Path) -> None:
    long = written_out(str(path))
    other = renamed(long)
    own = graph(str(path))
    assert canonical(graph(other)) == canonical(own)
    assert not set(re.findall(r"\w+", json.dumps(list(other.get("dims", {}))))) & set(long.get("dims", {}))
    found = diff(own, graph(other))
    assert (found.same, str(found)) == (True, "same architecture")


@pytest.mark.parametrize("path", SPECS, ids=IDS)
def test_short_form_long_form_yaml_and_json_have_one_fingerprint(path: Path) -> None:
    own = fingerprint(graph(str(path)))
    long = written_out(str(path))
    assert fingerprint(graph(long)) == own
    assert fingerprint(graph(json.dumps(long))) == own
    assert fingerprint(graph(json.dumps(bg.load(str(path)).data))) == own


def test_only_copies_among_the_specs_have_the_same_fingerprint() -> None:
    seen: dict[str, list[str]] = {}
    for path, name in zip(SPECS, IDS, strict=True):
        seen.setdefault(fingerprint(graph(str(path))), []).append(name)
    assert [names for names in seen.values() if len(names) > 1] == [
        ["deepnorm", "layouts/deepnorm"],
        ["layerscale", "layouts/layerscale"],
    ]


BLOCK_CHANGES = [
    ("kind: layer_norm", "kind: rms_norm"),
    ("eps: 1e-5", "eps: 1e-6"),
    ("placement: pre", "placement: post"),
    ("placement: pre", "placement: sandwich"),
    ("placement: pre", "placement: pre\n  residual: normed"),
    ("placement: pre", "placement: pre\n  residual: none"),
    ("placement: pre", "placement: pre\n  skip_scale: 0.5"),
    ("placement: pre", "placement: pre\n  branch_scale: 0.5"),
    ("heads: H,", "heads: 4,"),
    ("heads: H,", "heads: H, kv_heads: G,"),
    ("heads: H,", "heads: H, kv_heads: 2,"),
    ("heads: H,", "heads: H, head_dim: 16,"),
    ("heads: H,", "heads: H, bias: true,"),
    ("heads: H,", "heads: H, bias: [q],"),
    ("heads: H,", "heads: H, scale: 0.125,"),
    ("heads: H,", "heads: H, softcap: 50,"),
    ("heads: H,", "heads: H, sinks: true,"),
    ("heads: H,", "heads: H, qk_norm: {kind: rms_norm, over: head},"),
    ("heads: H,", "heads: H, qk_norm: {kind: rms_norm, over: each_head},"),
    ("heads: H,", "heads: H, qk_norm: {kind: rms_norm, over: width},"),
    ("window: 8", "window: 16"),
    (", window: 8", ""),
    ("mask: causal", "mask: full"),
    ("style: half", "style: pairs"),
    ("style: half", "style: half, theta: 500000"),
    ("style: half", "style: half, width: 8"),
    (", rotary: {style: half}", ""),
    ("hidden: 4*C", "hidden: 3*C"),
    ("hidden: 4*C", "hidden: 256"),
    ("gelu_tanh", "gelu_erf"),
    ("activation: gelu_tanh", "activation: gelu_tanh, bias: false"),
    ("kind: feed_forward", "kind: gated_feed_forward"),
]
OPEN_CHANGES = [
    ("a*z", "z"),
    ("a*z", "2*a*z"),
    ("other(y)", "other(h)"),
    ("other(y)", "down(gelu_erf(up(y)))"),
    ("up(h)", "up(x)"),
    ('mean(h, "b t c -> b 1 c")', 'sum(h, "b t c -> b 1 c")'),
    ('mean(h, "b t c -> b 1 c")', 'mean(h, "b t c -> b t 1")*h'),
    ("x + a*z", "x - a*z"),
    ("x = x + a*z", "x = h + a*z"),
    ("shape: [C]", "shape: [1]"),
    ("shape: [C], init: ones", "shape: [C], frozen: true"),
]
STACK_CHANGES = [
    ("N: 6", "N: 7"),
    ("of: [layer_one, layer_two]", "of: [layer_two, layer_one]"),
    ("of: [layer_one, layer_two]", "of: layer_one"),
    ("of: [layer_one, layer_two]", "of: [{kind: layer_one, repeat: 3}, {kind: layer_two, repeat: 3}]"),
    ("repeat: N}", "repeat: N, share: true}"),
    ("heads: H, name: att", "heads: H, share: true"),
    ("logits = head(x)", "logits = x @ embed.table.T"),
    ("layers(embed(tokens))", "layers(layers(embed(tokens)))"),
]
CHANGES = [
    *((BLOCK, *one) for one in BLOCK_CHANGES),
    *((OPEN, *one) for one in OPEN_CHANGES),
    *((STACK, *one) for one in STACK_CHANGES),
]


def edited(text: str, old: str, new: str) -> str:
    text = changed(text, old, new)
    if "repeat: 3}" in new:
        return changed(text, ", repeat: N}", "}")
    return changed(text, "    head: {kind: linear, out: V}\n", "") if "table.T" in new else text


@pytest.mark.parametrize(("text", "old", "new"), CHANGES, ids=[f"{old} to {new}" for _, old, new in CHANGES])
def test_every_single_change_of_the_structure_is_seen_and_told(text: str, old: str, new: str) -> None:
    before, after = graph(text), graph(edited(text, old, new))
    assert fingerprint(before) != fingerprint(after)
    for one, other in ((before, after), (after, before)):
        found = diff(one, other)
        assert found.changes
        assert not found.same_architecture
        assert "the wiring differs" not in str(found)


def test_no_two_of_the_changes_give_the_same_fingerprint() -> None:
    found = [fingerprint(graph(edited(*one))) for one in CHANGES]
    assert len({*found, *map(fingerprint, map(graph, (BLOCK, OPEN, STACK)))}) == len(CHANGES) + 3


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (BLOCK, "name: one", "name: two"),
        (BLOCK, "C: 64", "C: 128"),
        (BLOCK, "C: 64, H: 4", "C: , H: "),
        (BLOCK, "{C: 64, H: 4, G: 2}", "{G: 2, H: 4, C: 64, unused: 3}"),
        (BLOCK, "constants: {eps: 1e-5}", "constants: {eps: 0.00001}"),
        (BLOCK, "heads: H,", "heads: G,"),
        (BLOCK, "heads: H,", "heads: H, init: zeros,"),
        (BLOCK, "heads: H,", "heads: H, kv_heads: H, head_dim: C/H, name: other,"),
        (BLOCK, "heads: H,", "heads: H, scale: (C/H)**-0.5,"),
        (OPEN, "b t c -> b 1 c", "batch time width  ->  batch 1 width"),
        (OPEN, "x = x + a*z + other(y)", "w = other(y)\n    x = w + (z*a + x)"),
        (OPEN, '    y = mean(h, "b t c -> b 1 c")\n    z = down(gelu_erf(up(h)))\n',
         '    z = down(gelu_erf(up(h)))\n    y = mean(h, "b t c -> b 1 c")\n'),
        (OPEN, "out: F", "out: 2*(C + C)"),
        (OPEN, "init: ones", "init: 0"),
        (STACK, "of: [layer_one, layer_two]", "of: [layer_one, layer_two, layer_one, layer_two]"),
        (STACK, "repeat: N", "repeat: 6"),
        (STACK, "name: att", "name: another"),
    ],
)  # fmt: skip
def test_what_is_no_structure_keeps_the_fingerprint(text: str, old: str, new: str) -> None:
    assert canonical(graph(changed(text, old, new))) == canonical(graph(text))


def test_a_number_of_layers_that_is_also_used_elsewhere_stays_tied_to_its_dim() -> None:
    text = changed(STACK, "norm: rms_norm\n  layer_two", "norm: rms_norm\n    branch_scale: (2*N)**-0.5\n  layer_two")
    other = changed(changed(text, "N: 6", "N: 6, M: 6"), "(2*N)", "(2*M)")
    assert fingerprint(graph(text)) != fingerprint(graph(other))


def test_exchangeable_dims_may_change_places() -> None:
    text = (
        'dims: {P: 4, Q: 4}\nblock:\n  inputs: {x: [B, "P*Q"]}\n  equations: y = rearrange(x, "b (p q) -> b q p", p=P)'
    )
    other = (
        'dims: {Q: 4, P: 4}\nblock:\n  inputs: {x: [B, "Q*P"]}\n  equations: y = rearrange(x, "b (p q) -> b q p", p=Q)'
    )
    assert fingerprint(graph(text)) == fingerprint(graph(other))
    assert fingerprint(graph(text)) != fingerprint(graph(text.replace("b q p", "b p q")))


def test_the_fingerprint_does_not_depend_on_the_hash_seed() -> None:
    code = "import sys, blockgraph as bg\nfrom blockgraph.diff import fingerprint\n"
    code += "print([fingerprint(bg.check(p).graph) for p in sys.argv[1:]])"
    paths = [str(path) for path in SPECS[:12]]
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, *paths],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "4242")
    ]
    assert runs[0] == runs[1] == runs[2]
    assert json.loads(runs[0].replace("'", '"')) == [fingerprint(graph(path)) for path in paths]


def test_a_fingerprint_is_64_hex_digits_and_stays_what_it_was() -> None:
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(graph(BLOCK)))
    lines = canonical(graph("dims: {C: 8}\nblock: {equations: y = 2*x}"))
    assert lines == [
        "i0 input dims=(1*s0^1, 1*s1^1, 1*s2^1)",
        "n0 constant  value=2",
        "n1 multiply i0 n0.0",
        "return n1.0",
    ]


def test_long_chains_and_deep_stacks_need_no_recursion_and_little_time() -> None:
    lines = "\n".join(["    x = x + 1"] * 1500)
    one = graph(f"block:\n  equations: |\n{lines}\n")
    assert len(canonical(one)) == 3002
    assert diff(one, graph(f"block:\n  equations: |\n{lines}\n    x = 2*x\n")).changes
