"""The rows of the table: what is computed, by whom, and how our figure may stand to theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OWN = "blockgraph"
FLOOR, TORCH, RUNTIME = "floor", "torch eager", "ONNX Runtime"
GIVEN, MULTIPLIED = "lesson as given", "lesson, x*x*x"
ONE_LAYER = {FLOOR: "floor.floor", TORCH: "eager.gpt", RUNTIME: "runtime.run"}
OFF = "blockgraph, plan off"
ALL = {**ONE_LAYER, GIVEN: "lesson.given", MULTIPLIED: "lesson.multiplied", OWN: "own.plan", OFF: "own.interpreter"}
LEARNING = {FLOOR: "floor.floor", TORCH: "eager.gpt", OWN: "own.plan"}


@dataclass(frozen=True)
class Bound:
    """Our figure divided by theirs is to be at most so much; the goal is what would be better still."""

    against: str
    most: float
    goal: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table and what it is measured with: seconds of a turn, or bytes at the peak."""

    words: str
    case: str
    contenders: dict[str, str]
    bounds: tuple[Bound, ...]
    measure: Literal["turn", "peak"] = "turn"


ROWS = {
    "1x128": Row(
        "one block forward, 1x128", "1x128", ALL, (Bound(FLOOR, 1.25), Bound(TORCH, 0.6), Bound(RUNTIME, 1.2))
    ),
    "8x128": Row(
        "one block forward, 8x128", "8x128", ALL, (Bound(FLOOR, 1.25), Bound(TORCH, 0.6), Bound(RUNTIME, 1.2))
    ),
    "1x1024": Row(
        "one block forward, 1x1024 causal",
        "1x1024",
        ALL,
        (
            Bound(FLOOR, 1.25, 1.15),
            Bound(TORCH, 0.6),
            Bound(RUNTIME, 1.0),
            Bound(GIVEN, 0.2),
            Bound(MULTIPLIED, 0.5),
        ),
    ),
    "1x128-both": Row("one block forward + backward, 1x128", "1x128-both", LEARNING, (Bound(FLOOR, 1.2),)),
    "1x1024-both": Row(
        "one block forward + backward, 1x1024 causal", "1x1024-both", LEARNING, (Bound(FLOOR, 1.25, 1.15),)
    ),
    "gpt2": Row(
        "GPT-2, 12 layers with head, 1x256, forward", "gpt2", {**ONE_LAYER, OWN: "own.plan"}, (Bound(FLOOR, 1.2),)
    ),
    "gpt2-both": Row(
        "GPT-2, 12 layers with head, 1x256, forward + backward", "gpt2-both", LEARNING, (Bound(FLOOR, 1.15),)
    ),
    "llama": Row(
        "one Llama 3.2 1B layer forward, 1x1024",
        "llama",
        {FLOOR: "floor.floor", TORCH: "eager.llama", OWN: "own.plan"},
        (Bound(TORCH, 0.6),),
    ),
    "token": Row(
        "one token of GPT-2 at context 256",
        "token",
        {FLOOR: "floor.token", TORCH: "eager.token", OWN: "own.decoder"},
        (Bound(FLOOR, 1.3), Bound(TORCH, 0.45)),
    ),
    "spelled-1x128": Row(
        "one block in primitive ops, 1x128",
        "spelled-1x128",
        {"built-in kinds": "own.plan", OWN: "own.spelled"},
        (Bound("built-in kinds", 1.05),),
    ),
    "spelled-1x1024": Row(
        "one block in primitive ops, 1x1024 causal",
        "spelled-1x1024",
        {"built-in kinds": "own.plan", OWN: "own.spelled"},
        (Bound("built-in kinds", 1.05),),
    ),
    "lesson": Row(
        "lesson-sized block (C 64, H 4, T 6), program called again",
        "lesson",
        {name: maker for name, maker in ALL.items() if name != FLOOR},
        (Bound(MULTIPLIED, 0.6),),
    ),
    "peak": Row(
        "peak memory beyond parameters, one block forward, 1x1024 causal",
        "1x1024",
        {TORCH: "eager.gpt", MULTIPLIED: "lesson.multiplied", OWN: "own.plan"},
        (Bound(TORCH, 0.7),),
        "peak",
    ),
    "peak-both": Row(
        "peak memory beyond parameters, forward + backward, 1x1024 causal",
        "1x1024-both",
        {TORCH: "eager.gpt", OWN: "own.plan"},
        (Bound(TORCH, 1.0),),
        "peak",
    ),
    "check": Row(
        "check of 96 written-out blocks in process, loaded",
        "check",
        {"onnx shape inference": "checking.onnx", OWN: "checking.own", "blockgraph, from text": "checking.text"},
        (Bound("onnx shape inference", 1.0),),
    ),
    "repeat": Row(
        "check of a 10,000-fold repeat in process",
        "check",
        {"one block": "checking.one", OWN: "checking.deep"},
        (Bound("one block", 1.05),),
    ),
}
