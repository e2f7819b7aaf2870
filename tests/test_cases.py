"""Faults that users of other tools met in public, each with the answer owed; numbers are computed from definitions."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.dims import show


def spec(text: str) -> bg.Spec:
    return bg.load(textwrap.dedent(text).strip() + "\n")


def one_finding(text: str) -> bg.Finding:
    findings = bg.check(spec(text)).findings
    assert len(findings) == 1, findings
    return findings[0]


NORM = """
    dims: {C: 4}
    block:
      norm: {kind: layer_norm, eps: 1e-5}
      placement: %s
      sublayers: [identity]
    blocks:
      identity:
        equations: |
          y = 1*x
"""
ROW = np.array([[[1.0, 0.0, 0.0, 0.0]]])


@pytest.mark.parametrize(
    ("written", "value"), [("1e-5", 0.00001), ("1E-5", 0.00001), ("1e5", 100000.0), ("1.0e5", 100000.0)]
)
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_scientific_notation_is_a_number(written: str, value: float, form: str) -> None:
    yaml = f"dims: {{C: 4}}\nblock:\n  parts: {{n: {{kind: rms_norm, eps: {written}}}}}\n  equations: |\n    x = n(x)\n"
    block = f'{{"parts": {{"n": {{"kind": "rms_norm", "eps": {written}}}}}, "equations": ["x = n(x)"]}}'
    json = f'{{"dims": {{"C": 4}}, "block": {block}}}'
    graph = bg.compile(yaml if form == "yaml" else json).graph
    (norm,) = [node for node in graph.nodes if node.op.name == "rms_norm"]
    assert norm.op.eps.value == value  # type: ignore[union-attr]


def test_equation_text_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "block:\n  equations: |\n    x = x + __import__('os').system('touch hacked')\n"
    with pytest.raises(bg.SpecError, match="BG013"):
        bg.compile(text)
    with pytest.raises(bg.SpecError, match="BG004"):
        bg.load("block: !!python/object/apply:os.system ['touch hacked']\n")
    assert list(tmp_path.iterdir()) == []


def test_a_comment_behind_an_unquoted_equation_is_as_if_absent() -> None:
    commented = "dims: {C: 4}\nblock:\n  parts: {f: linear}\n  equations:\n    - x = x + f(x) # residual\n"
    plain = commented.replace(" # residual", "")
    assert [n.op for n in bg.compile(commented).graph.nodes] == [n.op for n in bg.compile(plain).graph.nodes]


@pytest.mark.parametrize(("line", "column"), [("@x", 7), ("*x", 7)])
def test_signs_of_yaml_at_the_start_of_an_equation_ask_for_quotes(line: str, column: int) -> None:
    with pytest.raises(bg.SpecError, match="quote") as caught:
        bg.load(f"block:\n  equations:\n    - {line}\n")
    (finding,) = caught.value.findings
    assert (finding.place.start.line, finding.place.start.column) == (3, column)


def test_a_width_that_heads_do_not_divide_names_both_numbers_and_the_swap() -> None:
    finding = one_finding("""
        dims: {C: 1600, H: 48, N: 25}
        blocks:
          b: {norm: layer_norm, sublayers: [{kind: attention, heads: H}]}
        model:
          parts: {layers: {kind: stack, of: b, repeat: N}, final_norm: layer_norm}
          equations: |
            x = final_norm(layers(x))
    """)
    assert "1600 / 48 leaves 16" in finding.message
    assert "40 and 50" in finding.help
    assert "N = 25 does divide it: were layers and heads swapped?" in finding.help


def test_grouped_heads_that_divide_are_accepted() -> None:
    program = bg.compile(
        spec("""
        dims: {C: 5120}
        block: {norm: layer_norm, sublayers: [{kind: attention, heads: 40, kv_heads: 8}]}
    """)
    )
    shapes = {name: show(op.bind(program.graph.dims).dims) for name, op in program.parameters.items()}
    assert shapes["attention.Wk"] == "(5120, 1024)"


def test_a_product_that_does_not_fit_shows_both_operands_and_where_they_were_born() -> None:
    finding = one_finding("""
        dims: {C: 768}
        block:
          params: {up: [C, 4*C], down: [3*C, C]}
          equations: |
            h = x @ up
            x = x + h @ down
    """)
    assert "4*C = 3072 against 3*C = 2304" in finding.message
    assert "(3*C, C)" in finding.label
    assert "line 3" in finding.label
    (left,) = finding.related
    assert "h is (B, T, 4*C)" in left.message
    assert "line 5" in left.message


def test_an_explicit_gate_of_width_one_is_accepted() -> None:
    graph = bg.compile(
        spec("""
        dims: {C: 8}
        block:
          parts: {g: {kind: linear, out: 1}, f: linear}
          equations: |
            x = x + g(x) * f(x)
    """)
    ).graph
    assert show(graph.types[graph.outputs[0].value].shape) == "(B, T, C)"


def test_symbols_stay_free_whatever_sizes_were_run() -> None:
    text = "dims: {C: 8, H: 2}\nblock: {norm: layer_norm, sublayers: [{kind: attention, heads: H}]}"
    program = bg.compile(spec(text))
    before = [show(one.shape) for one in program.graph.types]
    params = program.init(0)
    for batch, time in ((1, 1), (3, 7)):
        assert program(np.ones((batch, time, 8)), params).shape == (batch, time, 8)
    assert [show(one.shape) for one in program.graph.types] == before


def test_shapes_are_told_in_the_users_own_symbols() -> None:
    graph = bg.compile(
        spec("""
        dims: {C: 8, P: 3}
        block:
          inputs: {a: [T, 1], b: [1, C], c: [T, 2], d: [T, 3], e: [P, C], f: [T, C]}
          outputs: [ab, cd, ef]
          equations: |
            ab = a * b
            cd = concat(c, d)
            ef = concat(e, f, axes="[t] c")
    """)
    ).graph
    assert [show(graph.types[port.value].shape) for port in graph.outputs] == ["(T, C)", "(T, 5)", "(P + T, C)"]


def test_layer_norm_divides_by_n_and_keeps_eps_inside_the_root() -> None:
    program = bg.compile("dims: {C: 4}\nblock:\n  parts: {n: layer_norm}\n  equations: |\n    x = n(x)\n")
    x = np.array([[[1.0, 0.0, 0.0, 0.0], [50.0, 10.0, -3.0, 7.0]]])
    y = program(x, program.init(0))
    np.testing.assert_allclose(y[0, 0], [1.7320046, -0.5773349, -0.5773349, -0.5773349], atol=1e-6)
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("placement", "first", "second"), [("pre", 2.7320046, -0.5773349), ("post", 1.7320393, -0.5773464)]
)
def test_the_residual_carries_the_raw_stream(placement: str, first: float, second: float) -> None:
    program = bg.compile(spec(NORM % placement))
    y = program(ROW, program.init(0))
    np.testing.assert_allclose(y[0, 0, :2], [first, second], atol=1e-6)


def test_equations_that_carry_the_normalised_copy_compile_as_written_with_a_warning() -> None:
    text = "dims: {C: 4}\nblock:\n  parts: {ln: layer_norm}\n  equations: |\n    h = ln(x)\n    x = h + 1*h\n"
    program = bg.compile(text)
    np.testing.assert_allclose(program(ROW, program.init(0))[0, 0, :2], [3.4640092, -1.1546697], atol=1e-6)
    (warning,) = program.findings
    assert (warning.code, warning.severity) == ("BG201", "warning")
    assert warning.message == "the skip path carries the output of ln, not its input"


def test_one_norm_feeds_queries_keys_and_values() -> None:
    graph = bg.compile("dims: {C: 8}\nblock: {norm: layer_norm, sublayers: [{kind: attention, heads: 2}]}\n").graph
    norms = [node for node in graph.nodes if node.op.name == "layer_norm"]
    assert len(norms) == 1
    assert graph.nx.out_degree(norms[0].id) == 3


def test_a_part_called_twice_is_two_calls_of_one_parameter_set() -> None:
    text = """
        dims: {C: 8}
        block:
          parts: {n1: layer_norm, n2: layer_norm, ff: {kind: feed_forward, hidden: 16, activation: relu}}
          equations: |
            x = x + ff(n1(x))
            x = x + ff(n2(x))
    """
    program = bg.compile(spec(text))
    assert [key for key in program.graph.scopes if key.startswith("ff")] == ["ff", "ff#2"]
    assert sum(name.startswith("ff.") for name in program.parameters) == 4
    assert sum(node.op.name == "relu" for node in program.graph.nodes) == 2


def test_deep_graphs_need_no_deep_recursion() -> None:
    assert sys.getrecursionlimit() <= 1000
    equations = "\n".join("    x = x + f(x)" for _ in range(5000))
    block = f"block:\n  parts: {{f: {{kind: linear, init: zeros}}}}\n  equations: |\n{equations}\n"
    program = bg.compile(f"dims: {{C: 4}}\n{block}")
    x, params = program.sample(0)
    assert np.array_equal(program(x, params), x)
    assert program.graph.nx.number_of_nodes() == 10_002


def test_a_stack_of_400_blocks_runs() -> None:
    text = """
        dims: {C: 4, N: 400}
        blocks: {b: {norm: layer_norm, sublayers: [{kind: linear, init: zeros}]}}
        model:
          parts: {layers: {kind: stack, of: b, repeat: N}, n: layer_norm}
          equations: |
            x = n(layers(x))
    """
    program = bg.compile(spec(text))
    x, params = program.sample(0)
    assert len(params) == 400 * 3 + 2
    np.testing.assert_allclose(program(x, params).std(axis=-1), 1, rtol=1e-3)


POSITIONS = """
    dims: {C: 8, V: 50257, max_len: 512}
    model:
      inputs: {tokens: {ids: [B, T], below: V}}
      parts:
        embed: {kind: embedding, size: V, width: C}
        positions: {kind: learned_positions, length: max_len, width: C}
      equations: |
        x = embed(tokens) + positions(tokens)
"""


def test_a_position_table_bounds_the_length_and_does_not_fix_it() -> None:
    checked = bg.check(spec(POSITIONS))
    assert checked.graph is not None
    assert [condition.text for condition in checked.graph.conditions] == ["T <= max_len"]
    program = bg.compile(spec(POSITIONS))
    params = program.init(0)
    for time in (1, 512):
        assert program(np.zeros((1, time), dtype=int), params).shape == (1, time, 8)


def test_a_sequence_longer_than_the_position_table_is_told_at_the_tables_length() -> None:
    program = bg.compile(spec(POSITIONS))
    with pytest.raises(bg.InputError, match="T = 513 exceeds max_len = 512") as caught:
        program(np.zeros((1, 513), dtype=int), program.init(0))
    (finding,) = caught.value.findings
    assert (finding.code, finding.place.start.line, finding.place.spec_path) == (
        "BG109",
        6,
        "model.parts.positions.length",
    )


def test_an_id_beyond_its_table_is_told_with_its_place_and_the_valid_range() -> None:
    program = bg.compile(spec(POSITIONS))
    tokens = np.zeros((2, 4), dtype=int)
    tokens[1, 2] = 50257
    with pytest.raises(bg.InputError, match=r"holds 50257 at \[1, 2\], and ids run from 0 to 50256"):
        program(tokens, program.init(0))


@pytest.mark.parametrize(("equation", "norms"), [("cross(n1(x), memory)", 1), ("cross(n1(x), n2(memory))", 2)])
def test_cross_attention_reads_queries_from_the_norm_and_keys_from_the_memory(equation: str, norms: int) -> None:
    graph = bg.compile(
        spec(f"""
        dims: {{C: 8, H: 2}}
        block:
          inputs: {{x: [B, T, C], memory: [B, S, C]}}
          parts:
            n1: layer_norm
            {"n2: layer_norm" if norms == 2 else "# the memory as it is"}
            cross: {{kind: cross_attention, heads: H}}
          equations: |
            x = x + {equation}
    """)
    ).graph
    found = [node for node in graph.nodes if node.op.name == "layer_norm"]
    assert len(found) == norms
    memory = next(port.value for port in graph.inputs if port.name == "memory")
    makers = {"query": found[0].outputs[0], "key": memory if norms == 1 else found[1].outputs[0]}
    makers["value"] = makers["key"]
    for name, source in makers.items():
        heads = graph.producers[graph.named[f"cross.{name}"]]
        product = graph.producers[heads.inputs[0]]
        assert product.inputs[0] == source


def test_the_first_value_that_is_not_finite_is_named_with_its_parameter() -> None:
    text = """
        dims: {C: 8, N: 48}
        blocks:
          block: {norm: layer_norm, sublayers: [{kind: feed_forward, name: ffn, hidden: 16, activation: relu}]}
        model:
          parts: {layers: {kind: stack, of: block, repeat: N}, final_norm: layer_norm}
          equations: |
            x = final_norm(layers(x))
    """
    from blockgraph.cli.numeric import numeric_findings

    program = bg.compile(spec(text))
    x, params = program.sample(0)
    params["layers.5.ffn.W2"][3, 1] = np.inf
    with np.errstate(all="ignore"):
        trace = program.trace(x, params)
    (finding,) = numeric_findings(trace, params)
    assert (finding.code, finding.severity) == ("BG402", "error")
    assert finding.message.startswith("`layers.5.ffn` holds infinity")
    assert finding.help == "the parameter layers.5.ffn.W2 is not finite itself"
