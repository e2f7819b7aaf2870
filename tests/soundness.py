"""Soundness by specs made at random: what checks clean runs with the promised shapes, what is broken is reported.

`python -m tests.soundness 2000` runs that many clean ones, half as many broken ones, and a quarter as many proofs that
are held against the interpreter; it prints the figures.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import blockgraph as bg
from blockgraph.errors import Finding
from blockgraph.facts import prove
from tests.made import FAULTS, Made, sizes, spec

BINDINGS = 3


@dataclass
class Figures:
    """What was counted, and what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def complain(self, made: str, what: str) -> None:
        """Note a failure with the spec that shows it."""
        self.wrong.append(f"{what}\n{made}")


def clean(count: int, seed: int = 0) -> Figures:
    """Specs that fit: each is found clean, and at three bindings every array has the promised shape."""
    figures = Figures()
    for number in range(count):
        rng = random.Random(f"clean {seed} {number}")
        made = spec(rng)
        checked = bg.check(made.text)
        if not checked.ok:
            figures.complain(made.text, str(checked.findings))
            continue
        figures.counts["specs that check clean"] += 1
        promised = bg.compile(made.text).flat
        for _ in range(BINDINGS):
            fault = bound(made, promised, rng, figures)
            if fault:
                figures.complain(made.text, fault)
    return figures


def bound(made: Made, promised: bg.Graph, rng: random.Random, figures: Figures) -> str:
    """Run with random sizes and hold every named array against the symbolic shape; what is off, or nothing."""
    numbers = sizes(rng)
    program = bg.compile(made.text, plan=False, **numbers)
    free = {"B": rng.randint(1, 3), "T": rng.randint(1, 6)}
    numbers = {**numbers, **free, "E": numbers["C"] // 2}
    inputs, params = program.sample(rng.randrange(10**6), **free)
    trace = program.trace(inputs, params)
    figures.counts["bindings"] += 1
    for name, array in trace.items():
        shape = promised.types[promised.named[name]].shape
        assert shape is not None
        figures.counts["arrays compared"] += 1
        if array.shape != tuple(dim.evaluate(numbers) for dim in shape):
            return f"{name} is {array.shape}, promised ({', '.join(map(str, shape))}) with {numbers}"
    result = next(iter(trace.outputs.values()))
    fits = result.shape == (free["B"], free["T"], numbers["C"])
    return "" if fits else f"the result is {result.shape} with {numbers}"


def planted(count: int, seed: int = 0) -> Figures:
    """Specs with one fault planted: reported by `check`, and on the line that was changed."""
    figures = Figures()
    number = 0
    while figures.counts["faults planted"] < count:
        number += 1
        rng = random.Random(f"planted {seed} {number}")
        made = spec(rng)
        kinds = sorted({fault[0] for fault in made.faults}, key=FAULTS.index)
        if not kinds:
            continue
        kind = rng.choice(kinds)
        fault = rng.choice([one for one in made.faults if one[0] == kind])
        _plant(made, fault, figures)
    return figures


def _plant(made: Made, fault: tuple[str, int, str], figures: Figures) -> None:
    kind, line, _ = fault
    text = made.broken(fault)
    old = {(finding.code, finding.message) for finding in bg.check(made.text).findings}
    new = [finding for finding in bg.check(text).findings if (finding.code, finding.message) not in old]
    # A dim that only the changed line used is unused now: true, and no report of the fault.
    new = [finding for finding in new if finding.code != "BG221"]
    figures.counts["faults planted"] += 1
    figures.counts[f"planted: {kind}"] += 1
    if not new:
        figures.complain(text, f"{kind} in line {line} is not reported")
        return
    figures.counts["reported"] += 1
    figures.counts["with one finding"] += len(new) == 1
    figures.counts["caret on the changed line"] += any(one.place.start.line == line for one in new)
    if any(line in _lines(one) for one in new):
        figures.counts["changed line named"] += 1
    else:
        figures.counts[f"elsewhere: {kind} {new[0].code}"] += 1


def _lines(finding: Finding) -> set[int]:
    """The lines that a finding names: where the caret stands, and where the operands were born."""
    places = [finding.place, *(one.place for one in finding.related if one.place is not None)]
    words = " ".join((finding.message, finding.label, *(one.message for one in finding.related)))
    return {place.start.line for place in places} | {int(line) for line in re.findall(r"\bline (\d+)", words)}


def proofs(count: int, seed: int = 0) -> Figures:
    """Proofs held against the interpreter: the last token is changed, and gradients are pulled back."""
    figures = Figures()
    for number in range(count):
        made = spec(random.Random(f"proofs {seed} {number}"))
        program = bg.compile(made.text)
        found = prove(program.graph)
        x, params = program.sample(number, B=1, T=6)
        stir = np.random.default_rng(number)
        params = {name: array + 0.3 * stir.standard_normal(array.shape) for name, array in params.items()}
        _hold_causality(program, x, params, found.causal, figures, made)
        _hold_dead(program, x, params, found.dead_parameters, figures, made)
    return figures


def _hold_causality(program: bg.Program, x: Any, params: Any, verdict: str, figures: Figures, made: Made) -> None:
    changed = x.copy()
    changed[:, -1] = np.random.default_rng(7).standard_normal(changed[:, -1].shape)
    before, after = program(x, params)[:, :-1], program(changed, params)[:, :-1]
    same = bool(np.allclose(before, after, rtol=0, atol=1e-12))
    figures.counts[f"causal: {verdict}"] += 1
    if same != (verdict == "proved") and verdict != "not proved":
        figures.complain(made.text, f"causal is {verdict}, and earlier outputs are {'the same' if same else 'others'}")


def _hold_dead(
    program: bg.Program, x: Any, params: Mapping[str, Any], dead: tuple[str, ...], figures: Figures, made: Made
) -> None:
    y, back = program.vjp(x, params)
    _, gradients = back(np.random.default_rng(3).standard_normal(y.shape))
    for name, gradient in gradients.items():
        told = name in dead or _in_every_layer(name) in dead
        figures.counts["dead parameters" if told else "living parameters"] += 1
        if told == bool(gradient.any()):
            figures.complain(made.text, f"{name} is told {'dead' if told else 'alive'}, its gradient says otherwise")


def _in_every_layer(name: str) -> str:
    """`layers.3.w` as it is called when it is dead in all layers: `layers.*.w`."""
    return ".".join("*" if step.isdigit() else step for step in name.split("."))


def told(title: str, figures: Figures) -> None:
    """Print what was counted."""
    print(title)
    for name, number in sorted(figures.counts.items()):
        print(f"  {name:40} {number:8,}")
    print(f"  {'wrong':40} {len(figures.wrong):8,}")
    for one in figures.wrong[:3]:
        print(one)


def main(count: int) -> int:
    """Everything; 1 if anything is wrong."""
    found = {
        "Specs that fit": clean(count),
        "Faults planted": planted(count // 2),
        "Proofs against the interpreter": proofs(count // 4),
    }
    for title, figures in found.items():
        told(title, figures)
    return int(any(figures.wrong for figures in found.values()))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
