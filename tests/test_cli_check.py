"""`check`: what it prints for a person and for a program, its exit codes, and how parameters are counted."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.cost.parameters import count_parameters, number_of_parameters
from blockgraph.dims import Dim
from tests.test_cli import ROOT, SPEC, STACK, Run, run

__all__ = ["run"]

FREE = """\
name: free
dims: {C: , H: }
block:
  norm: layer_norm
  placement: pre
  sublayers:
    - {kind: attention, heads: H}
    - {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}
"""
# The branch of the only sublayer has another width than the stream.
BAD = """\
dims: {C: 64}
block:
  parts: {ff: {kind: linear, out: 3*C}}
  equations: |
    x = x + ff(x)
"""
WARNED = """\
dims: {C: 64}
block:
  parts: {norm: layer_norm, ff: {kind: linear}}
  equations: |
    h = norm(x)
    x = h + ff(h)
"""
NESTED = """\
dims: {C: 8, H: 2, F: 16, N: 5}
blocks:
  a:
    norm: layer_norm
    placement: pre
    sublayers: [{kind: attention, heads: H, share: true}, {kind: feed_forward, hidden: F, activation: relu}]
  b: {norm: rms_norm, placement: pre, sublayers: [{kind: feed_forward, hidden: F, activation: relu}]}
  c:
    parts: {inner: {kind: stack, of: [a, {kind: a, set: {F: 32}}], repeat: 3}}
    equations: x = inner(x)
model:
  parts:
    cycle: {kind: stack, of: [a, b, {kind: a, set: {F: 32}}], repeat: N}
    deep: {kind: stack, of: [{kind: c, repeat: 2}, {kind: b, repeat: N - 1}]}
    shared: {kind: stack, of: [a, b], repeat: 7, share: true}
    table: {kind: linear}
  equations: |
    x = deep(cycle(x))
    x = shared(shared(x))
    x = table(table(x))
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return tmp_path / "spec.yaml"


def test_a_good_spec_is_summed_up_on_standard_output(run: Run) -> None:
    code, out, err = run("check", SPEC)
    assert (code, err) == (0, "")
    # 2 norms of 2*64; attention 4*64*64; feed-forward 64*256 + 256 + 256*64 + 64
    assert out == (
        f"{SPEC}: ok\n  x (B, T, C) -> x (B, T, C)\n  parameters: 49,728\n  holds: H divides C (C = 64, H = 4)\n"
        "  proved: batch items independent, stackable\n  refuted: causal, each position by itself\n"
        "  residual highway: clean, additions only\n"
    )


def test_sizes_that_are_free_leave_a_formula_and_conditions(run: Run, spec: Path) -> None:
    spec.write_text(FREE)
    _, out, _ = run("check", spec)
    assert "\n  parameters: 12*C**2 + 9*C\n  needs: H divides C\n" in out
    _, out, _ = run("check", spec, "--format", "json")
    (entry,) = json.loads(out)["specs"]
    assert (entry["parameters"], entry["conditions"]) == (None, ["H divides C"])


def test_findings_go_to_the_error_stream_and_their_number_to_the_summary(run: Run, spec: Path) -> None:
    spec.write_text(BAD)
    code, out, err = run("check", spec)
    assert (code, out) == (1, f"{spec}: 1 error\n")
    assert err.startswith(f"BG101 {spec}:5:")
    assert "\n    5 |     x = x + ff(x)\n" in err


def test_warnings_alone_exit_with_0(run: Run, spec: Path) -> None:
    spec.write_text(WARNED)
    code, out, err = run("check", spec)
    assert (code, out.splitlines()[0]) == (0, f"{spec}: ok, 1 warning")
    assert err.startswith("warning BG201 ")


def test_one_line_per_finding_is_what_an_editor_reads_from_standard_output(run: Run, spec: Path) -> None:
    spec.write_text(BAD)
    code, out, err = run("check", spec, "--format", "concise")
    assert (code, err) == (1, "")
    assert out == f"{spec}:5:13: BG101 the branch does not fit the stream it is added to\n"


MANY = "dims: {C: 8}\nblock:\n  parts:\n" + "".join(f"    p{n}: layer_norm\n" for n in range(150))


@pytest.mark.parametrize("form", ["full", "concise"])
def test_of_very_many_findings_a_person_reads_the_foremost_and_how_many_more(
    form: str, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(MANY + "  equations: y = x @ x\n")
    code, out, err = run("check", path, "--format", form)
    told = out if form == "concise" else err
    assert (code, told.count("BG204"), told.count("BG102")) == (1, 99, 1)
    assert err.endswith("and 51 more: `check --all` tells all of them\n")
    code, out, err = run("check", path, "--format", form, "--all")
    assert (code, (out + err).count("BG204"), "more: " in err) == (1, 150, False)
    path.write_text(MANY + "  equations: y = 2*x\n")
    assert run("check", path, "--format", form)[0] == 0


def test_programs_get_every_finding(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(MANY + "  equations: y = 2*x\n")
    assert len(json.loads(run("check", path, "--format", "json")[1])["specs"][0]["findings"]) == 150
    assert len(json.loads(run("check", path, "--format", "sarif")[1])["runs"][0]["results"]) == 150
    assert len(run("check", path, "--format", "github")[1].splitlines()) == 150
    path.write_text(MANY + "  equations: y = x @ x\n")
    with pytest.raises(bg.SpecError, match=r"and 51 more: `.findings` has them all\Z") as caught:
        bg.compile(path)
    assert len(caught.value.findings) == 151


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ([BAD], 1),
        ([""], 1),
        ([None], 2),
        ([FREE, BAD], 1),
        ([FREE, None], 2),
        ([None, BAD], 2),
        (["a: ["], 1),
        ([FREE], 0),
    ],
)
@pytest.mark.parametrize("form", ["full", "concise", "json"])
def test_the_exit_code_is_the_highest_of_all_files(
    run: Run, tmp_path: Path, texts: list[str | None], code: int, form: str
) -> None:
    paths = [tmp_path / f"{index}.yaml" for index in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        if text is not None:
            path.write_text(text)
    found, out, err = run("check", *paths, "--format", form)
    assert found == code
    assert bool(err) == (form == "full" and code > 0)
    if form == "json":
        document = json.loads(out)
        assert document["ok"] == (code == 0)
        assert [entry["path"] for entry in document["specs"]] == [str(path) for path in paths]


def test_json_has_the_keys_that_were_promised(run: Run, spec: Path) -> None:
    spec.write_text(BAD)
    _, out, err = run("check", spec, SPEC, "--format", "json")
    document = json.loads(out)
    bad, good = document["specs"]
    assert (err, document["ok"], set(document)) == ("", False, {"ok", "specs"})
    assert good == {
        "path": SPEC,
        "findings": [],
        "inputs": {"x": "(B, T, C)"},
        "outputs": {"x": "(B, T, C)"},
        "conditions": ["H divides C"],
        "parameters": 49728,
        "proofs": {
            "causal": "refuted",  # attention's mask is full
            "batch_independent": "proved",
            "positionwise": "refuted",
            "stackable": "proved",
            "highway": {"clean": True, "on_path": []},
            "dead_parameters": [],
        },
    }
    (finding,) = bad["findings"]
    assert {"code", "severity", "message", "help", "path", "range", "spec_path", "related"} <= set(finding)
    assert finding["range"] == {"start": {"line": 5, "column": 13}, "end": {"line": 5, "column": 18}}
    assert (finding["spec_path"], bad["parameters"]) == ("block.equations", None)


def test_a_file_that_is_missing_is_told_once_and_the_others_are_checked(run: Run, tmp_path: Path) -> None:
    code, out, err = run("check", tmp_path / "no.yaml", SPEC)
    assert code == 2
    assert out.startswith(f"{tmp_path / 'no.yaml'}: 1 error\n{SPEC}: ok\n")
    assert err.startswith(f"BG901 {tmp_path / 'no.yaml'}:1:1  cannot open ")


def test_the_line_of_a_file_that_cannot_be_read_is_shown_too(run: Run, spec: Path) -> None:
    spec.write_text("name: a\nblock: [1, 2\n")
    code, _, err = run("check", spec)
    assert code == 1
    assert "    2 | block: [1, 2\n" in err


@pytest.mark.parametrize("content", [b"\xff\xfea\x00", b"name: \xff\xff", b"\x00\x01\x02", b"a: [" * 9, b"{" * 5000])
def test_bytes_that_are_no_spec_are_findings(run: Run, spec: Path, content: bytes) -> None:
    spec.write_bytes(content)
    code, _, err = run("check", spec)
    assert code == 1
    assert "BG0" in err
    assert "BG900" not in err


def test_standard_input_is_named_in_findings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    code, out, err = run("check", "-")
    assert (code, out) == (1, "<stdin>: 1 error\n")
    assert err.startswith("BG101 <stdin>:5:13 ")
    assert "    5 |     x = x + ff(x)\n" in err


def test_a_name_that_no_file_has_cannot_be_set(run: Run) -> None:
    code, _, err = run("check", SPEC, "--set", "D=3")
    assert code == 1
    assert "BG027" in err


def test_a_name_of_a_file_may_hold_anything(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "{a: 1}\x1b[2J.yaml"
    path.write_text(FREE)
    code, out, _ = run("check", path)
    assert code == 0
    assert "{a: 1}\\x1b[2J.yaml: ok\n" in out


def test_what_is_told_does_not_depend_on_the_hash_seed(spec: Path) -> None:
    """A key that is near none lists all that may stand there."""
    text = "dims: {C: 8}\nblock:\n  norm: rms_norm\n  sublayers: [{kind: attention, heads: 2, dropout: 0.1}]\n"
    spec.write_text(text)
    told = {
        subprocess.run(
            [sys.executable, "-m", "blockgraph", "check", str(spec)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stderr
        for seed in ("0", "1", "2", "3")
    }
    assert len(told) == 1
    assert "unknown key `dropout`" in told.pop()


def test_check_loads_no_numpy() -> None:
    code = (
        "import sys; from blockgraph.__main__ import main; code = main(sys.argv[1:]);"
        "print(code, sorted({'numpy', 'networkx', 'rich', 'graphviz', 'torch', 'onnx'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", STACK], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout.splitlines()[-1]) == ("", "0 []")


# Counting parameters


def counted(program: bg.Program) -> int:
    """The same with every layer written out."""
    sizes = [[int(dim.evaluate(program.graph.dims)) for dim in op.dims] for op in program.parameters.values()]
    return sum(map(math.prod, sizes))


@pytest.mark.parametrize("path", sorted((ROOT / "specs").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_count_of_the_folded_graph_is_that_of_the_arrays(path: Path) -> None:
    program = bg.compile(path)
    assert number_of_parameters(program.graph) == sum(array.size for array in program.init(0).values())


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5, 6, 7])
def test_cycles_segments_and_shared_parts_are_counted_as_they_are_drawn(layers: int) -> None:
    program = bg.compile(NESTED, N=layers)
    assert number_of_parameters(program.graph) == counted(program)


def test_ten_thousand_layers_cost_no_more_than_one() -> None:
    graph = bg.compile(Path(STACK), N=10_000).graph
    assert number_of_parameters(graph) == 10_000 * 49_728


def test_a_number_of_layers_without_a_number_stays_in_the_formula() -> None:
    model = "model: {parts: {layers: {kind: stack, of: block, repeat: N}}, equations: x = layers(x)}\n"
    text = FREE.replace("H: }", "H: , N: }") + model
    graph = bg.check(text).graph
    assert graph is not None
    C, N = Dim("C"), Dim("N")
    assert count_parameters(graph) == N * (12 * C * C + 9 * C)


def test_bodies_that_take_turns_without_a_number_of_layers_have_no_count() -> None:
    graph = bg.check(NESTED.replace("N: 5", "N: ")).graph
    assert graph is not None
    assert count_parameters(graph) is None


def test_a_block_that_is_called_without_a_stack_has_its_own_proofs(run: Run, tmp_path: Path) -> None:
    text = "dims: {C: 8, H: 2}\nblocks:\n"
    for name, mask, placement in (("first", "causal", "pre"), ("second", "full", "post")):
        text += f"  {name}:\n    norm: layer_norm\n    placement: {placement}\n"
        text += f"    sublayers: [{{kind: attention, heads: H, mask: {mask}}}]\n"
    (tmp_path / "s.yaml").write_text(text + "model: {parts: {a: first, b: second}, equations: y = b(a(x))}\n")
    code, out, _ = run("check", tmp_path / "s.yaml", "--format", "json")
    blocks = json.loads(out)["specs"][0]["proofs"]["blocks"]
    assert code == 0
    assert {name: (one["causal"], one["highway"]) for name, one in blocks.items()} == {
        "first": ("proved", {"clean": True, "on_path": []}),
        "second": ("refuted", {"clean": False, "on_path": ["norm1"]}),
    }
