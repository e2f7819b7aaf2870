"""Memory as estimated from shapes, against what NumPy really takes and against numbers worked out by hand."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.cost.memory import memory
from blockgraph.dims import DimError
from tests.bench import estimates
from tests.test_cost import GPT2, MIXTRAL, graph_of

SPECS = Path(__file__).parent.parent / "specs"
LONG = {"B": 1, "T": 8192}


def test_the_weights_of_a_mixture_take_their_bytes() -> None:
    assert memory(graph_of(MIXTRAL), LONG, "float32").parameters == 186_811_170_816


def test_the_scores_are_the_largest_tensor_and_told_with_their_node() -> None:
    report = memory(graph_of(MIXTRAL), LONG, "float32")
    assert (report.largest.bytes, report.largest.name) == (8_589_934_592, "layers.*.attention: scores of attend")
    assert (report.largest.held, report.largest_held.held) == (False, True)
    assert report.largest.place is not None


def test_twice_the_length_takes_four_times_the_scores() -> None:
    sizes = [memory(graph_of(MIXTRAL), {"B": 1, "T": time}).largest.bytes for time in (8192, 16384)]
    assert sizes[1] == 4 * sizes[0]


def test_scores_that_the_spec_spells_out_are_really_held() -> None:
    text = """
dims: {C: 64, H: 32}
block:
  parts: {q: {kind: linear, out: C}, k: {kind: linear, out: C}}
  equations: |
    s = einsum("b h t d, b h s d -> b h t s", heads(q(x), H), heads(k(x), H))
    y = merge(einsum("b h t s, b h s d -> b h t d", softmax(s), heads(x, H)))
"""
    report = memory(graph_of(text), LONG, "float32")
    assert (report.largest.bytes, report.largest.held) == (8_589_934_592, True)
    assert report.total > 2 * 8_589_934_592


@pytest.mark.parametrize(
    "name", ["pre_norm", "custom_mixer", "layouts/hyper_connections", "models/bart", "models/gemma2"]
)
def test_a_run_takes_the_memory_that_was_told_before_it(name: str) -> None:
    program, sizes = estimates.sized(bg.compile(SPECS / f"{name}.yaml"), least=25e6)
    found = list(estimates.measured(program, sizes))
    assert [way for way, _, _ in found] == ["plan", "plan, traced", "interpreter", "interpreter, traced"]
    outside = [(way, told, most) for way, told, most in found if not estimates.within(told, most)]
    assert not outside


@pytest.mark.parametrize(("told", "most", "good"), [(10, 10, True), (15, 10, True), (9, 10, False), (16, 10, False)])
def test_an_estimate_is_good_from_the_peak_to_half_as_much_again(told: int, most: int, good: bool) -> None:
    assert estimates.within(told, most) is good


def test_telling_the_memory_of_a_run_allocates_none_of_it() -> None:
    program = bg.compile(SPECS / "pre_norm.yaml", C=1024)
    program.memory(B=1, T=2)
    gc.collect()
    tracemalloc.start()
    told = program.memory("float32", B=8, T=512)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told.values > 60e6
    assert most < 10e6


def test_more_layers_take_more_memory_only_where_their_values_are_kept() -> None:
    graph = graph_of(GPT2)
    few, many = (replace(graph, dims={**graph.dims, "N": layers}) for layers in (2, 1000))
    sizes = {"B": 1, "T": 64}
    assert memory(few, sizes).values == memory(many, sizes).values
    assert memory(many, sizes, traced=True).values > 400 * memory(few, sizes, traced=True).values / 10


def test_memory_without_a_number_for_a_size_is_refused() -> None:
    with pytest.raises(DimError, match=r"as the size [BT] is not known"):
        memory(graph_of(GPT2), {})


MEASURE = """
import sys, time, tracemalloc
tracemalloc.start()
from blockgraph.__main__ import main
from blockgraph.cli import main as run
code = run(["summary", sys.argv[1], "--batch", "1", "--time", "8192", "--format", "json"])
print(tracemalloc.get_traced_memory()[1], "numpy" in sys.modules, code, file=sys.stderr)
"""


def test_a_large_model_is_summed_up_without_an_array(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text(MIXTRAL, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=False)
    peak, numpy, code = done.stderr.split()
    assert (numpy, code) == ("False", "0")
    assert int(peak) < 100_000_000
    assert "46702792704" in done.stdout
