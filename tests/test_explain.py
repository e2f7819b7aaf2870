"""`explain SPEC`: the expansion loads to the same graph, explains itself, and shows every default."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from blockgraph.checking import check
from blockgraph.elaborate import elaborate
from blockgraph.explain import expansion, explain_spec, main_text
from blockgraph.explain.written_out import wrapped
from blockgraph.same import first_difference, same_graph
from blockgraph.spec import Spec, load

SPECS = sorted((Path(__file__).parent.parent / "specs").glob("*.yaml"))
FF = "{kind: feed_forward, hidden: 4*C, activation: silu}"

SAMPLES = {
    "a placement of equations with its own parameters, parts and norm": f"""
dims: {{C: 64, H: 4}}
block:
  norm: {{kind: rms_norm, eps: 1e-5}}
  placement:
    params: {{a: {{shape: [C], init: ones}}, b: []}}
    parts: {{gate: {{kind: linear, bias: true}}}}
    equations: |
      h = norm(x)  # the copy
      x = x + a*f(h) * sigmoid(gate(x)) + b
  sublayers: [{{kind: attention, heads: H}}, {FF}]
""",
    "a shared norm, a parallel group and scales": f"""
dims: {{C: 64, H: 4}}
constants: {{half: 1/2}}
block:
  norm: {{kind: layer_norm, share: true}}
  sublayers:
    - parallel: [{{kind: attention, heads: H}}, {FF}]
      norms: shared
    - {{kind: linear, placement: post, skip_scale: 2 + half, branch_scale: half, norm: rms_norm}}
    - {{kind: linear, placement: [input, after], residual: normed}}
    - {{kind: linear, residual: none, name: head}}
""",
    "two streams of ids and booleans, values passed on, several outputs": """
dims: {C: 64, H: 4, V: 100, D: C/H}
blocks:
  encoder:
    inputs: {x: [B, S, C], keep: {bool: [B, S]}}
    norm: layer_norm
    sublayers: [{kind: attention, heads: H, with: [keep]}]
model:
  inputs: {tokens: {ids: [B, T], below: V}, keep: {bool: [B, T]}}
  outputs: [x, q]
  params: {table: {shape: [V, C], init: normal(1/sqrt(C)), frozen: true}}
  parts: {encoder: encoder, to_q: {kind: linear, out: H*D}}
  equations: |
    x = encoder(lookup(table, tokens), keep)
    q = rearrange(
        to_q(x),   # into heads
        "b t (h d) -> b h t d", h=H)
""",
    "a stack of segments with `set` and the number of the layer": """
dims: {C: 64, H: 4, N: 3, W: none_given}
constants: {window: none, depth: none}
blocks:
  plain:
    norm: rms_norm
    sublayers: [{kind: attention, heads: H, mask: causal, window: window, scale: 1/sqrt(layer)}]
  narrow:
    norm: rms_norm
    sublayers: [{kind: linear, branch_scale: 1/sqrt(2*layer)}]
model:
  parts:
    layers: {kind: stack, of: [{kind: plain, set: {window: 4}, repeat: N}, {kind: narrow, repeat: 2}]}
    more: {kind: stack, of: [plain, narrow], repeat: 2*N + 1, share: true}
  equations: x = more(layers(x))
""".replace(", W: none_given", ""),
    "dims of any size, a causal claim, parameters of a part": """
dims: {C: , H: , K: 3}
block:
  causal: true
  parts:
    attention: {kind: attention, heads: H, mask: causal, bias: [q, k], init: {Wo: xavier(1)}}
    narrow: {kind: linear, out: C/K}
  equations: |
    x = x + attention(x)
    y = narrow(x) @ narrow.W.T
""",
    "a checkpoint and a source that needs quotes": """
name: "a: b"
source: "line one\\nline two # no comment"
dims: {C: 8}
block:
  params: {W: [C, C]}
  equations: y = x @ W
checkpoint: {config: {C: hidden_size}, layout: out_in, weights: {W: w.weight}}
""",
    "an equation too long for one line": """
dims: {C: 64}
block:
  params: {first_weight_of_many: [C, C], second_weight_of_many: [C, C]}
  equations: |
    y = einsum("b t c, c d, d e -> b t e", tanh(x * x + x), first_weight_of_many, second_weight_of_many) + tanh(x * x)
""",
}


def graph_of(spec: Spec):
    result = elaborate(spec)
    assert [one.message for one in result.findings if one.severity == "error"] == []
    assert result.graph is not None
    return result.graph


@pytest.mark.parametrize("text", [*SPECS, *SAMPLES.values()], ids=[*(path.stem for path in SPECS), *SAMPLES])
def test_the_expansion_loads_to_the_same_graph_and_explains_itself(text: Path | str) -> None:
    spec = load(text)
    written = expansion(spec)
    again = load(written)
    assert first_difference(graph_of(spec), graph_of(again)) is None
    assert expansion(again) == written
    assert (spec.name, spec.source, spec.checkpoint) == (again.name, again.source, again.checkpoint)


UNBREAKABLE = re.compile(r' *[\w.*-]+: (\S+|".*"|source: .*)|source: .*|    .*".*')
"""A name and its value, text in quotes, and the free text of a source."""


@pytest.mark.parametrize("text", [*SPECS, *SAMPLES.values()], ids=[*(path.stem for path in SPECS), *SAMPLES])
def test_the_expansion_has_no_short_form_left_and_no_line_too_long(text: Path | str) -> None:
    written = expansion(load(text))
    keys = {line.strip().partition(":")[0] for line in written.splitlines()}
    assert not keys & {"sublayers", "placement", "norm"}
    long = [line for line in written.splitlines() if len(line) > 80]
    assert [line for line in long if not UNBREAKABLE.fullmatch(line)] == []


def test_the_whole_text_of_a_pre_norm_block() -> None:
    text = f"""
name: pre_norm
dims: {{C: 64, H: 4}}
block:
  norm: layer_norm
  placement: pre
  sublayers: [{{kind: attention, heads: H}}, {FF}]
"""
    assert (
        expansion(load(text)).partition("nothing is said.\n")[2]
        == """\
name: pre_norm
dims: {C: 64, H: 4}
# What must hold:
#   H divides C (C = 64, H = 4)
block:
  inputs: {x: [B, T, C]}
  outputs: [x]
  parts:
    norm1: {kind: layer_norm}
      # defaults: eps: 1e-5, bias: true, affine: true
      # parameters: gamma (C,) ones, beta (C,) zeros
    attention: {kind: attention, heads: H}
      # defaults: kv_heads: H, head_dim: C/H, value_dim: C/H, out: C,
      #   scale: (C/H)**-0.5, softcap: none, sinks: false, bias: false,
      #   qk_norm: none, mask: full, window: none, rotary: none, alibi: false
      # parameters: Wq (C, C) normal(0.02), Wk (C, C) normal(0.02),
      #   Wv (C, C) normal(0.02), Wo (C, C) normal(0.02)
    norm2: {kind: layer_norm}
      # defaults: eps: 1e-5, bias: true, affine: true
      # parameters: gamma (C,) ones, beta (C,) zeros
    feed_forward: {kind: feed_forward, hidden: 4*C, activation: silu}
      # defaults: out: C, bias: true
      # parameters: W1 (C, 4*C) normal(0.02), b1 (4*C,) zeros,
      #   W2 (4*C, C) normal(0.02), b2 (C,) zeros
  equations: |
    x = x + attention(norm1(x))     # (B, T, C)
    x = x + feed_forward(norm2(x))  # (B, T, C)
"""
    )


def test_what_a_mapping_leaves_out_and_what_is_inside_a_kind_is_told() -> None:
    text = """
dims: {C: 64, H: 4}
block:
  norm: rms_norm
  sublayers:
    - {kind: attention, heads: H, rotary: {style: half}, qk_norm: {kind: rms_norm}}
    - {kind: moe, experts: 8, top_k: 2, expert: {kind: linear}}
"""
    told = " ".join(line.strip(" #") for line in expansion(load(text)).splitlines())
    assert "rotary.theta: 10000, rotary.width: C/H" in told
    assert "qk_norm.over: head" in told
    assert "q_norm.eps: 1e-6" in told
    assert "q_norm.gamma (C/H,)" in told
    assert "router.W (C, 8) normal(0.02), experts.*.W (C, C) normal(0.02)" in told
    assert "experts.1." not in told


def test_shapes_are_told_for_ids_booleans_and_several_results() -> None:
    text = """
block:
  outputs: [a, b, seen]
  equations: |
    a, b = top_k(x, 2)
    seen = a > 0
"""
    lines = expansion(load(text)).splitlines()
    assert lines[-2:] == [
        "    a, b = top_k(x, 2)  # (B, T, 2), (B, T, 2) ids",
        "    seen = a > 0        # (B, T, 2) true or false",
    ]


def test_an_init_that_depends_on_the_layer_is_told() -> None:
    text = """
blocks:
  mix:
    parts: {map: {kind: linear, init: normal(1/layer)}}
    equations: x = x + map(x)
model:
  parts: {layers: {kind: stack, of: mix, repeat: 2}}
  equations: x = layers(x)
"""
    assert "# parameters: W (C, C) normal(1/layer)\n" in expansion(load(text))


def test_a_claim_of_causality_is_kept() -> None:
    assert "  causal: true\n" in expansion(load("block: {causal: true, equations: y = x + x}\n"))


def test_conditions_stay_without_numbers_where_none_are_given() -> None:
    text = "dims: {H: }\nblock:\n  parts: {attention: {kind: attention, heads: H}}\n  equations: y = attention(x)\n"
    assert "# What must hold:\n#   H divides C\n" in expansion(load(text))


def test_values_set_from_outside_stand_in_the_expansion(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("dims: {C: 64}\nconstants: {gain: 2}\nblock: {equations: y = gain*x}\n", encoding="utf-8")
    text, findings = main_text(str(path), {"C": 32, "gain": 3})
    assert findings == ()
    assert "dims: {C: 32}\nconstants: {gain: 3}\n" in text


def test_a_spec_with_errors_gives_its_findings_and_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("block: {equations: x = x + z}\n", encoding="utf-8")
    text, findings = main_text(str(path), {})
    assert (text, [one.code for one in findings]) == ("", ["BG025"])


def test_a_spec_with_warnings_gives_both(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("block:\n  parts: {norm: layer_norm}\n  equations: y = tanh(x)\n", encoding="utf-8")
    text, findings = main_text(str(path), {})
    assert [one.code for one in findings] == ["BG204"]
    assert "norm: {kind: layer_norm}" in text


def test_standard_input_and_json_are_read_as_specs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text('{"block": {"equations": "y = x + x"}}', encoding="utf-8")
    written, _ = main_text(str(path), {})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(written.encode("utf-8"))))
    assert main_text("-", {}) == (written, ())


def test_a_missing_file_is_a_finding_of_the_environment() -> None:
    text, findings = main_text("no_such_file.yaml", {})
    assert (text, [one.code for one in findings]) == ("", ["BG901"])


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("y = a + b", 5, ["y = a + b"]),
        ("y = f(a, b) + g(c, d) + e", 20, ["y = f(a, b) + g(c,", "    d) + e"]),
        ("y = f(a, b) + g(c, d) + e", 12, ["y = f(a,", "    b) + g(c,", "    d) + e"]),
        ('y = sum(x, "b t c -> b t 1")', 14, ["y = sum(x,", '    "b t c -> b t 1")']),
        ("y = f(a, b)", 11, ["y = f(a, b)"]),
    ],
)
def test_a_long_equation_breaks_inside_brackets_only(text: str, width: int, lines: list[str]) -> None:
    assert wrapped(text, width) == lines


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("y = x + x", "y = x * x"),
        ("y = x + tanh(x)", "y = tanh(x) + x"),
        ("z = x + x", "y = x + x"),
        ("h = x + x\ny = h", "y = x + x"),
    ],
)
def test_graphs_that_differ_are_not_the_same(one: str, other: str) -> None:
    left, right = (graph_of(load({"block": {"equations": text}})) for text in (one, other))
    assert same_graph(left, left)
    assert not same_graph(left, right)


def test_a_difference_inside_a_stack_is_seen() -> None:
    def stack(equation: str):
        parts = {"layers": {"kind": "stack", "of": "inner", "repeat": 3}}
        model = {"parts": parts, "equations": "x = layers(x)"}
        return graph_of(load({"blocks": {"inner": {"equations": equation}}, "model": model}))

    assert first_difference(stack("x = x + x"), stack("x = x - x")) is not None
    assert first_difference(stack("x = x + x"), stack("x = x  +  x")) is None


def test_a_normed_skip_path_that_is_meant_stays_so_when_written_out() -> None:
    spec = load("dims: {C: 8}\nblock: {norm: layer_norm, residual: normed, sublayers: [linear]}\n")
    written = load(expansion(spec))
    assert graph_of(written).waived == graph_of(spec).waived == {"BG201"}
    assert check(written).findings == ()


def test_a_file_whose_name_begins_with_a_brace_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("{a}.yaml").write_text("dims: {C: 8}\nblock: {equations: y = 2*x}\n", encoding="utf-8")
    text, found = explain_spec("{a}.yaml", {})
    assert found == ()
    assert "y = 2*x" in text
