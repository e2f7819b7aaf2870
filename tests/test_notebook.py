"""What specs, programs and traces look like in a notebook, with a Graphviz program and without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.drawing import find_dot, program
from tests.test_cli import ROOT
from tests.test_render_faults import ADD, STACK

SPECS = ROOT / "specs"
GPT2 = SPECS / "models" / "gpt2.yaml"
SVG, TEXT = "image/svg+xml", "text/plain"
drawing = pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")


def bundle(shown: Any, **asked: Any) -> dict[str, str]:
    found: dict[str, str] = shown._repr_mimebundle_(**asked)
    return found


def rows(text: str) -> list[list[str]]:
    """The cells of the table in a text."""
    lines = text.splitlines()
    rule = next(n for n, line in enumerate(lines) if set(line) == {"─"})
    body = lines[rule + 1 : lines.index("", rule) if "" in lines[rule:] else None]
    return [re.split(r"  +", line) for line in body]


def traced(**values: int) -> bg.Trace:
    made = bg.compile(SPECS / "pre_norm_stack.yaml", C=16, **values)
    return made.trace(*made.sample(0, B=1, T=4))


@drawing
@pytest.mark.parametrize("make", [bg.load, bg.check, bg.compile])
def test_a_spec_and_its_program_show_a_picture_and_a_table(make: Any) -> None:
    found = bundle(make(GPT2))
    assert set(found) == {SVG, TEXT}
    assert found[SVG].startswith("<?xml")
    assert "× 12" in found[SVG]
    assert make(GPT2)._repr_svg_() == found[SVG]


@pytest.mark.parametrize("make", [bg.load, bg.compile])
def test_without_a_program_the_table_says_why_there_is_no_picture(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("BLOCKGRAPH_DOT", raising=False)
    monkeypatch.setattr(program, "_pure", lambda: None)
    found = bundle(make(GPT2))
    assert set(found) == {TEXT}
    assert found[TEXT].endswith("no picture: Graphviz program not found\n")
    assert make(GPT2)._repr_svg_() is None


def test_a_program_that_fails_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\necho '\x1b[31mno' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("BLOCKGRAPH_DOT", str(broken))
    last = bundle(bg.load(GPT2))[TEXT].splitlines()[-1]
    assert last == r"no picture: the Graphviz program made no SVG: \x1b[31mno (exit code 3)"


def test_a_spec_tells_name_source_sizes_parts_and_findings() -> None:
    text = bundle(bg.load(GPT2).with_values({"C": 96}), include={TEXT})[TEXT]
    assert text.startswith("gpt2\nRadford et al. 2019,")
    assert "dims: C: 96, H: 12, F: 4*C, N: 12, V: 50257, L: 1024\nconstants: eps: 1e-5\n" in text
    assert ["block", "attention", "attention", "heads: H, mask: causal, bias: true"] in rows(text)
    assert ["model", "layers", "stack", "of: block, repeat: N"] in rows(text)
    assert text.endswith("no findings\n")


@pytest.mark.parametrize(("faulty", "code"), [(ADD, "BG101"), (STACK, "BG111")])
def test_a_spec_with_findings_shows_them_and_is_drawn_all_the_same(faulty: str, code: str) -> None:
    for shown in (bg.load(faulty), bg.check(faulty)):
        found = bundle(shown)
        assert f"\n{code} <text>:" in found[TEXT]
        assert "  help: " in found[TEXT]
        assert find_dot() is None or "guilty" in found[SVG]


def test_a_spec_of_which_nothing_is_understood_still_shows_its_findings() -> None:
    found = bundle(bg.load({"dims": {"C": "-"}}))
    assert set(found) == {TEXT}
    assert "BG" in found[TEXT]


@pytest.mark.parametrize(
    ("name", "total", "active"), [("gpt2", "124,439,808", ""), ("mixtral", "46,702,792,704", "12,879,925,248")]
)
def test_a_program_tells_its_parameters_and_their_number(name: str, total: str, active: str) -> None:
    made = bg.compile(SPECS / "models" / f"{name}.yaml")
    text = bundle(made, include=[TEXT])[TEXT]
    assert text.endswith(f"\nparameters: {total}\n" + (f"active: {active}\n" if active else ""))
    assert {row[0] for row in rows(text)} == {re.sub(r"^layers\.\d+", "layers.*", path) for path in made.parameters}


def test_the_numbers_of_a_program_add_up_to_its_total() -> None:
    table = rows(bundle(bg.compile(GPT2))[TEXT])
    counts = [int(row[3].replace(",", "")) * int(row[4] if len(row) > 4 else 1) for row in table]
    assert sum(counts) == 124_439_808
    for row in table:
        sizes = [int(size) for size in re.findall(r"\d+", row[2])]
        assert np.prod(sizes) == int(row[3].replace(",", ""))


def test_a_program_with_more_layers_than_can_be_written_out_is_shown() -> None:
    text = bundle(bg.compile(GPT2, N=10_000_000), include={TEXT})[TEXT]
    assert ["layers.*.attention.Wq", "(C, C)", "(768, 768)", "589,824", "10,000,000"] in rows(text)


def test_a_program_without_numbers_is_counted_in_symbols() -> None:
    text = bundle(
        bg.compile({"dims": {"C": None}, "block": {"parts": {"map": "linear"}, "equations": ["y = map(x)"]}})
    )[TEXT]
    assert rows(text) == [["map.W", "(C, C)", "C**2"]]
    assert text.endswith("parameters: C**2\n")


def test_a_trace_tells_the_shape_and_the_rms_of_every_value() -> None:
    trace = traced(N=2)
    table = rows(bundle(trace)[TEXT])
    assert [row[0] for row in table] == list(trace)
    for name, _, sizes, told in table:
        assert sizes == str(trace[name].shape)
        assert float(told) == pytest.approx(np.sqrt(np.mean(np.square(trace[name]))), abs=5e-5)


@drawing
def test_the_picture_of_a_trace_tells_the_rms_of_what_each_part_and_each_plus_put_out() -> None:
    trace = traced(N=2)
    svg = bundle(trace)[SVG]
    made = ("norm1", "attention", "x.2", "norm2", "feed_forward", "x.3")
    named = [f"layers.{n}.{part}" for n in range(2) for part in made]
    told = [f"{np.sqrt(np.mean(np.square(trace[name]))):.4f}" for name in named]
    assert sorted(re.findall(r">RMS ([\d.]+)<", svg)) == sorted(told)


def test_a_trace_that_is_too_long_to_be_looked_at_has_no_picture() -> None:
    assert set(bundle(traced(N=60))) == {TEXT}


def test_a_long_trace_shows_its_first_and_its_last_values() -> None:
    trace = traced(N=6)
    table = rows(bundle(trace)[TEXT])
    names = list(trace)
    assert len(names) > 60
    assert [row[0] for row in table] == [*names[:30], f"... {len(names) - 60} more", *names[-30:]]


def test_nothing_shown_is_longer_than_a_line_in_repr() -> None:
    made = bg.compile(GPT2)
    shown = [bg.load(GPT2), bg.check(ADD), made, traced(N=2)]
    assert [repr(one) for one in shown] == [
        "<Spec gpt2: dims C: 768, H: 12, F, N: 12, V: 50257, L: 1024; block, model>",
        "<Checked <text>: dims C: 64, H: 4; block; 1 error>",
        "<Program gpt2: tokens (B, T) -> logits (B, T, V), 13 nodes>",
        "<Trace pre_norm_stack: x (B, T, C) -> x (B, T, C), 32 values>",
    ]


def test_hostile_text_steers_no_terminal_and_no_page() -> None:
    name = "\u202e<script>alert(1)</script>\u200b\nsecond"
    found = bundle(bg.load({"name": name, "block": {"equations": ["y = tanh(x)"]}}))
    assert found[TEXT].splitlines()[0] == r"\u202e<script>alert(1)</script>\u200b\nsecond"
    assert "<script" not in found.get(SVG, "")


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [({"include": {TEXT}}, {TEXT}), ({"exclude": {SVG}}, {TEXT}), ({"include": {"text/html"}}, set())],
)
def test_what_is_not_wanted_is_not_made(asked: Any, kinds: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKGRAPH_DOT", "/no/such/program")
    found = bundle(bg.load(GPT2), **asked)
    assert set(found) == kinds
    assert "no picture" not in found.get(TEXT, "")


@drawing
@pytest.mark.parametrize("make", [bg.load, bg.check, bg.compile])
def test_ipython_finds_both(make: Any) -> None:
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    found, _ = formatters.DisplayFormatter().format(make(GPT2))
    assert set(found) == {SVG, TEXT}
    assert found[TEXT] == bundle(make(GPT2))[TEXT]
