"""Broken input at random: whatever a file holds, the answer is success or findings, soon and in little memory.

`python -m tests.fuzz 100000` checks that many mutated specs, equations and JSON texts and prints the figures.
"""

from __future__ import annotations

import json
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import yaml

import blockgraph as bg
from blockgraph.errors import BlockgraphError

ROOT = Path(__file__).parent.parent
FOLDERS = (ROOT / "specs", ROOT / "tests" / "broken")
BOUND = 2.0  # seconds of CPU for one text: what is promised
PATIENCE = 10.0  # seconds for one text: far above what it takes, so that a busy machine fails nothing
LIMIT = 256 << 20  # bytes that the process may hold at most
MEMORY = 1 << 30  # bytes of address space for the whole process
LARGEST = 4_000  # characters of a text to begin with
WORDS = (
    "x y h C H T B 0 1 -1 2.5 1e400 99999999999 10**9 C/0 C**C heads layer_norm attention moe stack f layer True none"
    " null {} [] [[[ ]]] : , - * & ! | > ' \" # % @ ** // == < = += ... .T [0] [:T] [...,None] softmax(x) norm( ) ("
    ' rearrange(x,"b,t,c->b,c,t") einsum("a,a->a",x,x) split(x,[1,2]) attend(x,x,x) *a &a !!int << ? \\u0000 \t é'
    " \u202e"
).split(" ")
TOKEN = re.compile(r"\w+|[^\w\s]|\s+")
Change = Callable[[list[str], random.Random], None]


class TooSlow(Exception):
    """One text took longer than it may."""


def seeds() -> list[str]:
    """The texts to begin with: all specs and the corpus of broken files, as far as they are short."""
    files = sorted(path for folder in FOLDERS for path in folder.rglob("*") if path.suffix in (".yaml", ".json"))
    texts = [path.read_text(encoding="utf-8", errors="ignore") for path in files]
    return [text for text in texts if 20 < len(text) < LARGEST]


def _drop(tokens: list[str], rng: random.Random) -> None:
    at = rng.randrange(len(tokens))
    del tokens[at : at + rng.choice((1, 1, 1, 2, 5))]


def _twice(tokens: list[str], rng: random.Random) -> None:
    at = rng.randrange(len(tokens))
    tokens[at:at] = tokens[at : at + rng.choice((1, 2, 8))] * rng.choice((1, 1, 30))


def _other(tokens: list[str], rng: random.Random) -> None:
    tokens[rng.randrange(len(tokens))] = rng.choice(WORDS)


def _insert(tokens: list[str], rng: random.Random) -> None:
    tokens.insert(rng.randrange(len(tokens)), rng.choice(WORDS))


def _swap(tokens: list[str], rng: random.Random) -> None:
    a, b = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[a], tokens[b] = tokens[b], tokens[a]


def _move(tokens: list[str], rng: random.Random) -> None:
    at = rng.randrange(len(tokens))
    piece = tokens[at : at + rng.randint(1, 12)]
    del tokens[at : at + len(piece)]
    to = rng.randrange(len(tokens) + 1)
    tokens[to:to] = piece


def _deeper(tokens: list[str], rng: random.Random) -> None:
    at, depth = rng.randrange(len(tokens)), rng.choice((3, 70, 300))
    left, right = rng.choice((("(", ")"), ("[", "]"), ("tanh(", ")"), ("-", ""), ('{"a":', "}")))
    tokens[at] = left * depth + tokens[at] + right * rng.choice((depth, 0))


CHANGES: tuple[Change, ...] = (_drop, _twice, _other, _other, _other, _insert, _swap, _move, _deeper)


def mutated(text: str, rng: random.Random) -> str:
    """The text with one to four changes, most of them of single words."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if tokens:
            rng.choice(CHANGES)(tokens, rng)
    return "".join(tokens)


def a_spec(texts: list[str], rng: random.Random) -> str:
    """A mutated file."""
    return mutated(rng.choice(texts), rng)


def an_equation(texts: list[str], rng: random.Random) -> str:
    """A block with one mutated equation from some file."""
    lines = [line.strip() for line in rng.choice(texts).split("\n") if re.match(r"\s+\w+ = ", line)]
    line = mutated(rng.choice(lines or ["y = x + tanh(x @ W)"]), rng)
    parts = "{norm: layer_norm, attention: {kind: attention, heads: H}, ff: linear}"
    return f"dims: {{C: 8, H: 2}}\nblock:\n  params: {{W: [C, C]}}\n  parts: {parts}\n  equations: |\n    {line}\n"


def a_json_text(texts: list[str], rng: random.Random) -> str:
    """A file written as JSON, then mutated; some stay as they are, so that a change of the format alone is met too."""
    try:
        data = yaml.load(rng.choice(texts), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        text = json.dumps(data, indent=rng.choice((None, 1)))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError):
        text = '{"block": {"equations": "y = 2*x"}}'
    return mutated(text, rng)


SORTS = {"spec": a_spec, "equation": an_equation, "json": a_json_text}


def outcome(text: str, format: str) -> str:
    """`success`, `findings`, or what went wrong: the name of the exception."""
    try:
        return "success" if bg.check(_loaded(text, format)).ok else "findings"
    except BlockgraphError as error:
        return "findings" if error.findings else "an error without findings"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"


def _loaded(text: str, format: str) -> bg.Spec:
    from blockgraph.source import parse
    from blockgraph.spec import from_document

    return from_document(parse(text, "fuzz", "json" if format == "json" else "yaml"))


def _alarm(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlow(f"longer than {PATIENCE:g} s")


def peak_memory() -> int:
    """The most bytes that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def fuzz(count: int, seed: int = 0) -> tuple[Counter[str], list[str], float]:
    """Check `count` texts: how often what came out, the texts that failed, and the CPU seconds of the slowest."""
    texts, counts, failed, slowest = seeds(), Counter[str](), [], 0.0
    highest = peak_memory()
    signal.signal(signal.SIGALRM, _alarm)
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        sort = rng.choice(tuple(SORTS))
        text = SORTS[sort](texts, rng)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        start = time.process_time()
        found = outcome(text, sort)
        slowest = max(slowest, time.process_time() - start)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if found in ("success", "findings") and peak_memory() > max(LIMIT, highest):
            found = "more memory than it may take"
        highest = max(highest, peak_memory())
        counts[f"{sort}: {found}"] += 1
        if found not in ("success", "findings"):
            failed.append(f"# {number}: {sort}: {found}\n{text}")
    return counts, failed, slowest


def main(count: int) -> int:
    """Fuzz, print the figures and the first failures; 1 if there are any, or a text took too long."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    start = time.process_time()
    counts, failed, slowest = fuzz(count)
    print(f"{count:,} texts, {time.process_time() - start:.0f} s of CPU")
    print(f"slowest: {slowest:.2f} s of CPU; peak memory of the process: {peak_memory() / 2**20:.0f} MiB")
    for name, number in counts.most_common():
        print(f"  {number:8,}  {name}")
    for text in failed[:20]:
        print(text)
    return int(bool(failed) or slowest > BOUND)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
