"""Every limit of a spec: at it a spec is taken, one beyond it is refused with the limit's own code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.drawing import program as dot_program
from blockgraph.errors import near, sparing
from tests.test_cli import Run, run

__all__ = ["run"]

BLOCK = "block: {equations: y = 2*x}\n"


def of_bytes(count: int) -> str:
    return BLOCK + "#" * (count - len(BLOCK))


def of_values(count: int) -> str:
    """A list of ones; three keys, two lists, two mappings and an equation count too."""
    return json.dumps({"block": {"equations": ["y = 2*x"]}, "source": [1] * (count - 8)})


def of_depth(count: int) -> str:
    return BLOCK + "source: " + "[" * (count - 1) + "]" * (count - 1) + "\n"


def of_equation(length: int) -> str:
    text = "y = x" + " + x" * (length // 4 - 2)
    return f"block:\n  equations:\n    - {text.replace('=', '=' + ' ' * (length - len(text)))}\n"


def of_name(length: int) -> str:
    return f"block:\n  params: {{{'n' * length}: {{shape: []}}}}\n  equations: y = {'n' * length} * x\n"


def of_brackets(depth: int) -> str:
    """Calls in calls, of which the name inside is the last level."""
    return f"block: {{equations: y = {'tanh(' * (depth - 1)}x{')' * (depth - 1)}}}\n"


def of_dim(size: int) -> str:
    return f"dims: {{C: {size}}}\n{BLOCK}"


def of_steps(count: int) -> str:
    """The input, two additions a line, and one more if that is not enough."""
    lines = "    x = x + x + x\n" * ((count - 1) // 2) + "    x = x + x\n" * ((count - 1) % 2)
    return f"block:\n  equations: |\n{lines}"


def of_equations(count: int) -> str:
    return "block:\n  equations: |\n" + "    y = x\n" * count


def of_blocks(depth: int) -> str:
    """Blocks in blocks, the main one counted."""
    inner = "".join(
        f"  b{n}: {{parts: {{p: {f'b{n + 1}' if n < depth - 1 else 'tanh'}}}, equations: x = p(x)}}\n"
        for n in range(1, depth)
    )
    return f"blocks:\n{inner}model: {{parts: {{p: b1}}, equations: x = p(x)}}\n"


def of_experts(count: int) -> str:
    part = f"{{kind: moe, experts: {count}, top_k: 1, expert: linear}}"
    return f"dims: {{C: 4}}\nblock:\n  parts: {{m: {part}}}\n  equations: x = x + m(x)\n"


LIMITS = {
    "bytes of a file": ("BG007", of_bytes, 2**20),
    "keys and values": ("BG007", of_values, 100_000),
    "levels": ("BG007", of_depth, 64),
    "characters of an equation": ("BG014", of_equation, 4096),
    "characters of a name": ("BG013", of_name, 64),
    "brackets in brackets": ("BG015", of_brackets, 100),
    "size of a dim": ("BG022", of_dim, 2**31),
    "steps": ("BG018", of_steps, 50_000),
    "equations of a module": ("BG018", of_equations, 50_000),
    "blocks in blocks": ("BG018", of_blocks, 40),
    "experts": ("BG018", of_experts, 1024),
}


def codes(text: str) -> set[str]:
    try:
        return {one.code for one in bg.check(text).findings}
    except bg.SpecError as error:
        return {one.code for one in error.findings}


@pytest.mark.parametrize("name", LIMITS)
def test_a_spec_at_a_limit_is_taken_and_one_beyond_it_is_refused(name: str) -> None:
    code, text, limit = LIMITS[name]
    assert code not in codes(text(limit))
    assert codes(text(limit + 1)) & {"BG007", "BG013", "BG014", "BG015", "BG018", "BG022"} == {code}


def test_the_limit_of_memory_is_the_flag_s(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(BLOCK)
    needed = bg.compile(tmp_path / "s.yaml").memory(traced=True).total
    assert run("run", tmp_path / "s.yaml", "--max-memory", str(needed))[0] == 0
    code, _, err = run("run", tmp_path / "s.yaml", "--max-memory", str(needed - 1))
    assert (code, "BG904" in err) == (2, True)


def test_the_drawing_program_has_half_a_minute() -> None:
    assert dot_program.SECONDS == 30


def test_a_slip_after_thousands_of_others_is_still_near_outside_of_a_check() -> None:
    assert near("layer_nrom", [f"name{i}" for i in range(60_000)] + ["layer_norm"]) == "layer_norm"
    with sparing(10):
        assert near("layer_nrom", ["layer_norm"]) == "layer_norm"
        assert near("layer_nrom", [f"name{i}" for i in range(10)] + ["layer_norm"]) is None
