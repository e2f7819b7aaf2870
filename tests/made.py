"""Specs made at random: each fits by construction, and each knows single-line changes after which it cannot fit.

A spec is a block of steps, each of which takes the stream (B, T, C) to a stream of the same shape; half of them stand
in a stack. What a step promises is told here by hand, from the shapes on paper, and not from what the program says.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

FAULTS = ("width", "heads", "axis", "swapped", "residual")
HEADER = 'name: made\nsource: "made at random"\n'
ACTIVATIONS = ("relu", "silu", "gelu_tanh", "gelu_erf")
LETTERS = "abcdefghijklmnopqrstuvw"


@dataclass(frozen=True)
class Fault:
    """A change of one line: which line (section and number in the step), and what it becomes."""

    kind: str
    section: str
    index: int
    line: str


@dataclass
class Step:
    """Some parts, parameters and equations; the equations lead from `x` to the next `x`."""

    parts: list[str] = field(default_factory=list)
    params: list[str] = field(default_factory=list)
    equations: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def fault(self, kind: str, section: str, index: int, old: str, new: str) -> Step:
        """The step with one more way to break it: `old` in that line becomes `new`."""
        line = getattr(self, section)[index]
        assert line.count(old) == 1, (line, old)
        self.faults.append(Fault(kind, section, index, line.replace(old, new)))
        return self


@dataclass(frozen=True)
class Made:
    """A spec as text, its numbers, and its faults as (kind, line number from 1, the line after the change)."""

    text: str
    sizes: dict[str, int]
    faults: tuple[tuple[str, int, str], ...]

    def broken(self, fault: tuple[str, int, str]) -> str:
        """The text with one fault in it."""
        lines = self.text.split("\n")
        lines[fault[1] - 1] = fault[2]
        return "\n".join(lines)


def sizes(rng: random.Random) -> dict[str, int]:
    """Numbers for the dims: H and G divide what they must, and no two widths that matter are equal."""
    groups = rng.choice((1, 2))
    heads = groups * rng.choice((1, 2, 3))
    head_dim = 2 * rng.randint(1, 3)
    return {"C": heads * head_dim * 2, "H": heads, "G": groups, "M": rng.choice((5, 7, 11))}


def spec(rng: random.Random) -> Made:
    """A spec that fits."""
    steps = [rng.choice(STEPS)(LETTERS[index], rng) for index in range(rng.randint(1, 4))]
    numbers = sizes(rng)
    lines = HEADER.rstrip("\n").split("\n")
    lines += [f"dims: {{{', '.join(f'{name}: {size}' for name, size in numbers.items())}, E: C/2}}", "block:"]
    faults: list[tuple[str, int, str]] = []
    for section in ("params", "parts", "equations"):
        if not any(getattr(step, section) for step in steps):
            continue
        lines.append(f"  {section}:{' |' if section == 'equations' else ''}")
        for step in steps:
            at = len(lines) + 1
            lines += [f"    {line}" for line in getattr(step, section)]
            faults += [(one.kind, at + one.index, f"    {one.line}") for one in step.faults if one.section == section]
    if rng.random() < 0.5:
        lines += ["model:", "  parts:", f"    layers: {{kind: stack, of: block, repeat: {rng.randint(1, 3)}}}"]
        lines += ["    closing: rms_norm", "  equations: x = closing(layers(x))"]
    return Made("\n".join([*lines, ""]), numbers, tuple(faults))


def _linear(k: str, rng: random.Random) -> Step:
    step = Step([f"map_{k}: {{kind: linear, out: M}}", f"back_{k}: {{kind: linear, out: C}}"])
    step.equations = [f"h_{k} = tanh(map_{k}(x))", f"x = x + back_{k}(h_{k})"]
    step.fault("width", "parts", 1, "out: C", "out: M")
    return step.fault("residual", "equations", 1, f"x + back_{k}", f"h_{k} + back_{k}")


def _weights(k: str, rng: random.Random) -> Step:
    step = Step(params=[f"U_{k}: [C, M]", f"V_{k}: [M, C]"])
    step.equations = [f"h_{k} = x @ U_{k}", f"x = x + silu(h_{k}) @ V_{k}"]
    step.fault("width", "params", 0, "[C, M]", "[M, M]").fault("width", "params", 1, "[M, C]", "[E, C]")
    step.fault("swapped", "equations", 0, f"x @ U_{k}", f"U_{k} @ x")
    step.fault("swapped", "equations", 1, f"silu(h_{k}) @ V_{k}", f"V_{k} @ silu(h_{k})")
    return step.fault("residual", "equations", 1, "= x +", f"= h_{k} +")


def _attention(k: str, rng: random.Random) -> Step:
    options = rng.choice(("", ", mask: causal", ", kv_heads: G", ", bias: true", ", mask: causal, alibi: true"))
    step = Step([f"norm_{k}: layer_norm", f"attend_{k}: {{kind: attention, heads: H{options}}}"])
    step.equations = [f"x = x + attend_{k}(norm_{k}(x))"]
    step.fault("heads", "parts", 1, "heads: H", "heads: 5*M")
    return step.fault("width", "parts", 1, "heads: H", "heads: H, out: M")


def _feed_forward(k: str, rng: random.Random) -> Step:
    kind = rng.choice(("feed_forward", "gated_feed_forward"))
    step = Step([f"norm_{k}: rms_norm"])
    step.parts.append(f"feed_{k}: {{kind: {kind}, hidden: 3*M, activation: {rng.choice(ACTIVATIONS)}}}")
    step.equations = [f"n_{k} = norm_{k}(x)", f"x = x + feed_{k}(n_{k})"]
    step.fault("width", "parts", 1, "hidden: 3*M", "hidden: 3*M, out: 2*C")
    if k != LETTERS[0]:  # behind another sum this would be post-norm, and right
        return step
    return step.fault("residual", "equations", 1, "= x +", f"= n_{k} +")


def _by_hand(k: str, rng: random.Random) -> Step:
    mask = rng.choice(("", ', mask="causal"', ', mask="causal", window=2'))
    step = Step(params=[f"Q_{k}: [C, C]", f"K_{k}: [C, C]"])
    step.equations = [f"q_{k} = heads(x @ Q_{k}, H)", f"k_{k} = heads(x @ K_{k}, H)"]
    step.equations.append(f"x = x + merge(attend(q_{k}, k_{k}, heads(x, H){mask}))")
    step.fault("heads", "equations", 0, ", H)", ", 5*M)").fault("heads", "equations", 2, "heads(x, H)", "heads(x, 5*M)")
    step.fault("swapped", "equations", 0, f"x @ Q_{k}", f"Q_{k} @ x")
    return step.fault("residual", "equations", 2, "x + merge", f"q_{k} + merge")


def _scores(k: str, rng: random.Random) -> Step:
    mask = rng.choice(("", ', mask="causal"'))
    step = Step(equations=[f's_{k} = softmax(0.02*einsum("b t c, b s c -> b t s", tanh(x), tanh(x)){mask})'])
    step.equations.append(f'x = x + einsum("b t s, b s c -> b t c", s_{k}, x)')
    step.fault("axis", "equations", 0, "b s c ->", "b c s ->")
    step.fault("axis", "equations", 1, "-> b t c", "-> b c t")
    return step.fault("swapped", "equations", 1, f"s_{k}, x)", f"x, s_{k})")


def _cut(k: str, rng: random.Random) -> Step:
    step = Step(equations=[f'h_{k} = rearrange(x, "b t (h d) -> b h t d", h=H)'])
    step.equations.append(f'x = x + rearrange(tanh(h_{k}), "b h t d -> b t (h d)")')
    step.fault("axis", "equations", 1, "-> b t (h d)", "-> b h (t d)")
    step.fault("axis", "equations", 0, "b t (h d) ->", "b (h d) ->").fault("heads", "equations", 0, "h=H", "h=5*M")
    return step.fault("residual", "equations", 1, "= x +", f"= h_{k} +")


def _mean(k: str, rng: random.Random) -> Step:
    over = rng.choice(("b t 1", "b 1 c"))
    step = Step(equations=[f'x = x - mean(x, "b t c -> {over}")'])
    step.fault("axis", "equations", 0, f"-> {over}", "-> b t")
    return step.fault("axis", "equations", 0, "b t c ->", "t c ->")


def _shift(k: str, rng: random.Random) -> Step:
    return Step(equations=[f"x = x + shift(x, {rng.choice((1, 1, 2, -1))})"])


def _running(k: str, rng: random.Random) -> Step:
    step = Step(equations=['x = x + 0.1*cumsum(x, "b [t] c")'])
    return step.fault("axis", "equations", 0, "b [t] c", "b [t]")


def _halves(k: str, rng: random.Random) -> Step:
    step = Step(equations=[f"a_{k}, b_{k} = split(x, [E, E])", f"x = x + concat(b_{k}, a_{k})"])
    step.fault("width", "equations", 0, "[E, E]", "[E, C]").fault("residual", "equations", 1, "= x +", f"= a_{k} +")
    return step.fault("axis", "equations", 1, f"b_{k}, a_{k}", f'b_{k}, rearrange(a_{k}, "b t c -> b c t")')


def _sliced(k: str, rng: random.Random) -> Step:
    step = Step(equations=[f"h_{k} = x[..., :E]", f"x = x + concat(h_{k}, x[..., E:])"])
    step.fault("width", "equations", 0, ":E]", ":M]" if rng.random() < 0.5 else ":C + 1]")
    return step.fault("residual", "equations", 1, "= x +", f"= h_{k} +")


def _gate(k: str, rng: random.Random) -> Step:
    step = Step(params=[f"gain_{k}: [C]"], equations=[f"x = x*gain_{k} + sigmoid(x)"])
    step.fault("width", "params", 0, "[C]", "[M]")
    return step.fault("axis", "equations", 0, f"x*gain_{k}", f"x*gain_{k}[..., None]")


def _chosen(k: str, rng: random.Random) -> Step:
    step = Step(equations=["x = where(x > 0, x, 0.5*x)"])
    return step.fault("swapped", "equations", 0, "where(x > 0, x,", "where(x, x > 0,")


def _dead(k: str, rng: random.Random) -> Step:
    line = rng.choice((f"x*stop_gradient(w_{k})", f"x + 0*w_{k}", f"where(x*w_{k} > 0, x, 2*x)"))
    return Step(params=[f"w_{k}: [C]"], equations=[f"x = {line}"]).fault("width", "params", 0, "[C]", "[M]")


STEPS: tuple[Callable[[str, random.Random], Step], ...] = (
    _linear, _weights, _attention, _feed_forward, _by_hand, _scores, _cut, _mean, _shift, _running, _halves, _sliced,
    _gate, _chosen, _dead,
)  # fmt: skip
