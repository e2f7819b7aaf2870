"""Fuzzing with a fixed seed, and the bombs that people have built: all of them are answered with findings."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from blockgraph.errors import Finding, SpecError
from blockgraph.source import parse
from blockgraph.spec import from_document
from tests import fuzz

ROOT = Path(__file__).parent.parent
TEXTS = 2_000
BLOCK = "block: {equations: y = 2*x}\n"
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
CHECK = (
    LIMITED + "import sys, blockgraph.__main__ as program; sys.exit(program.main(['check', '-', '--format', 'json']))"
)


def test_mutated_texts_give_success_or_findings_in_bounded_time_and_memory() -> None:
    # A process of its own: the limit on memory holds for it alone.
    command = [sys.executable, "-m", "tests.fuzz", str(TEXTS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_texts_are_the_same_in_every_run_and_reach_all_outcomes() -> None:
    texts = fuzz.seeds()
    assert len(texts) > 300
    first, second = fuzz.fuzz(120, seed=1)[0], fuzz.fuzz(120, seed=1)[0]
    assert first == second
    assert {name.partition(": ")[2] for name in first} >= {"success", "findings"}


def test_a_text_that_takes_too_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(_source: object) -> None:
        time.sleep(5)

    monkeypatch.setattr(fuzz, "PATIENCE", 0.01)
    monkeypatch.setattr(fuzz.bg, "check", stuck)
    counts, failed, _ = fuzz.fuzz(30, seed=2)
    assert failed
    assert any("TooSlow" in name for name in counts)


def alias_bomb(levels: int, width: int) -> str:
    """A list of `width` words, and lists of `width` aliases of the list before."""
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join([*lines, BLOCK])


def many_blocks(count: int) -> str:
    """Many blocks, each used by the model."""
    return "blocks:\n" + "".join(f" b{i}: {{equations: x = x}}\n" for i in range(count))


BOMBS: dict[str, tuple[Callable[[], str], str]] = {
    "aliases, 9 to the 9": (lambda: alias_bomb(9, 9), "BG007"),
    "aliases, 10 to the 29": (lambda: alias_bomb(29, 10), "BG007"),
    "an alias of itself": (lambda: "block: &a {parts: *a}\n", "BG007"),
    "an alias of itself as a list": (lambda: "a: &a [*a, *a]\n" + BLOCK, "BG007"),
    "a depth of 100,000 in YAML": (lambda: "a: " + "[" * 100_000 + "]" * 100_000, "BG007"),
    "a depth of 100,000 by indentation of lists": (lambda: "a:\n" + "- " * 100_000 + "x\n", "BG007"),
    "a depth of 100,000 in an equation": (lambda: f"block: {{equations: 'y = {'(' * 100_000}x'}}\n", "BG014"),
    "a million keys": (lambda: "".join(f"k{i}: 1\n" for i in range(1_000_000)), "BG007"),
    "all the keys that the size allows": (lambda: "".join(f"{i:x}a:\n" for i in range(130_000)), "BG007"),
    "an integer of 5,000 digits": (lambda: f"dims: {{C: {'9' * 5000}}}\n{BLOCK}", "BG007"),
    "an integer of 5,000 digits in an expression": (lambda: f"dims: {{C: 2*{'9' * 5000}}}\n{BLOCK}", "BG014"),
    "a million blocks": (lambda: many_blocks(1_000_000), "BG007"),
    "a dim of 10 to the 18": (lambda: f"dims: {{C: {10**18}}}\n{BLOCK}", "BG022"),
    "a power tower in a dim": (lambda: "dims: {C: 9**9**9**9}\n" + BLOCK, "BG401"),
    "a power tower of a dim": (lambda: "dims: {D: 9, C: D**D**D**D}\n" + BLOCK, "BG022"),
    "a power tower in a constant": (lambda: "constants: {a: 9**9**9**9}\nblock: {equations: y = a*x}\n", "BG401"),
    "a power tower in an equation": (lambda: "block: {equations: y = x*9**9**9**9}\n", "BG401"),
}


def refusals(text: str, format: str = "yaml") -> list[Finding]:
    """The findings of a text that must be refused."""
    from blockgraph import check

    try:
        return list(check(from_document(parse(text, "bomb", "json" if format == "json" else "yaml"))).findings)
    except SpecError as error:
        return list(error.findings)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(name: str) -> None:
    build, code = BOMBS[name]
    found = refusals(build())
    assert code in [one.code for one in found], found
    assert all(len(one.message) < 500 for one in found)


def test_a_deep_json_text_is_refused() -> None:
    assert [one.code for one in refusals('{"a": ' * 100_000 + "1" + "}" * 100_000, "json")] == ["BG007"]


def test_a_million_keys_of_json_are_refused() -> None:
    text = "{" + ", ".join(f'"k{i}": 1' for i in range(1_000_000)) + "}"
    assert [one.code for one in refusals(text, "json")] == ["BG007"]


def test_a_million_layers_cost_as_much_as_one() -> None:
    text = "dims: {C: 8}\nblocks: {b: {equations: x = tanh(x)}}\n"
    text += "model: {parts: {s: {kind: stack, of: b, repeat: 1000000}}, equations: x = s(x)}\n"
    assert refusals(text) == []


@pytest.mark.parametrize("option", ["experts", "shared"])
def test_a_billion_experts_are_refused(option: str) -> None:
    # In a process of its own: if they were built, memory would run out.
    moe = {"kind": "moe", "experts": "2", "top_k": "1", "expert": "linear", option: "1000000000"}
    options = ", ".join(f"{key}: {value}" for key, value in moe.items())
    text = f"dims: {{C: 8}}\nblock:\n  norm: layer_norm\n  sublayers: [{{{options}}}]\n"
    command = [sys.executable, "-c", CHECK]
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout[-500:]
    assert '"BG0' in done.stdout
