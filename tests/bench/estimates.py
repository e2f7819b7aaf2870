"""The memory that a run is foretold to need, against the most that is really alive: for every spec in specs/.

Both are bytes beside parameters and inputs; what is alive is what tracemalloc counts, and every spec is measured in a
process of its own. The widths of large models are made smaller by one factor and their stacks shallower, then the
batch is made larger until tens of megabytes are used, so that what Python itself needs does not count.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import blockgraph as bg
from blockgraph.cost.memory import memory
from blockgraph.cost.parameters import number_of_parameters
from blockgraph.errors import BlockgraphError
from blockgraph.graph import Repeat
from blockgraph.resize import with_depth

ROOT = Path(__file__).parent.parent.parent
SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
PARAMETERS, VALUES = 20_000_000, 40e6
"""At most so many parameters, and at least so many bytes of values."""
WIDE, NARROW, LAYERS, DEEP, LENGTH = 64, 32, 3, 13, 512
LEAST, MOST = 1.0, 1.5
"""The estimate divided by the peak."""


def main(words: Sequence[str] = ()) -> None:
    """Print the estimate, the peak and their ratio for the specs named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench estimates", description=__doc__)
    parser.add_argument("specs", nargs="*", type=Path, metavar="SPEC")
    options = parser.parse_args(words)
    outside = 0
    for path in options.specs or SPECS:
        command = [sys.executable, "-c", "import sys; from tests.bench import estimates; estimates.tell(sys.argv[1])"]
        done = subprocess.run([*command, str(path)], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
        print(f"{path.stem}: {done.stdout.splitlines()[0]}")
        for line in done.stdout.splitlines()[1:]:
            way, estimate, most = json.loads(line)
            outside += not within(estimate, most)
            told = "" if within(estimate, most) else "  outside"
            print(
                f"    {way:20} {estimate / 1e6:7.1f} MB told, {most / 1e6:7.1f} MB: {estimate / most:.2f}{told}",
                flush=True,
            )
    print(f"{outside} outside of {LEAST} to {MOST}")


def within(estimate: int, most: int) -> bool:
    """Whether a run takes no more than was told, and not much less."""
    return LEAST <= estimate / most <= MOST


def tell(path: str) -> None:
    """Print the sizes, then what is measured of one spec, a line of JSON for each way to run it."""
    program, sizes = sized(bg.compile(path))
    dims = {name: dim for name, dim in program.graph.dims.items() if dim != program.spec.dims}
    print(", ".join(f"{name} {size}" for name, size in {**dims, **sizes}.items()))
    for found in measured(program, sizes):
        print(json.dumps(found))


def measured(program: bg.Program, sizes: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """Each way to run it, the bytes foretold and those alive at most beside parameters and inputs."""
    x, params = program.sample(0, dtype="float32", **sizes)
    small = program.sample(0, dtype="float32", **dict.fromkeys(sizes, 1))
    for plan, traced in product((True, False), (False, True)):
        fresh = replace(program, plan=plan)
        run: Callable[..., Any] = fresh.trace if traced else fresh.__call__
        run(*small)  # the graph is written out, modules are loaded
        told = fresh.memory("float32", traced=traced, **sizes)
        way = f"{'plan' if plan else 'interpreter'}{', traced' if traced else ''}"
        yield way, told.total - told.parameters - told.inputs, peak(partial(run, x, params))


def peak(work: Callable[[], Any]) -> int:
    """The most bytes that are alive at once beside those that were there before; the result is one of them."""
    gc.collect()
    tracemalloc.start()
    kept = work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return most


def sized(program: bg.Program, least: float = VALUES) -> tuple[bg.Program, dict[str, int]]:
    """The program at widths that fit into memory, and sizes of its inputs that are worth measuring."""
    program = narrowed(shallow(program))
    free = {
        s for port in program.graph.inputs for dim in program.graph.types[port.value].shape or () for s in dim.symbols
    }
    free -= program.spec.dims.keys()
    sizes = {name: fitting(program, name, LENGTH) for name in sorted(free)}
    sizes = {name: 1 if name == "B" else size for name, size in sizes.items()}
    grows = "B" if "B" in sizes else max(sizes, key=sizes.__getitem__)
    while memory(program.graph, program.sizes(**sizes), "float32").values < least:
        sizes[grows] *= 2
    return program, sizes


def fitting(program: bg.Program, name: str, size: int) -> int:
    """The largest size up to this one that the conditions allow, as positions may be limited."""
    numbers = program.graph.dims
    while any(condition.holds({**numbers, name: size}) is False for condition in program.graph.conditions):
        size //= 2
    return size


def shallow(program: bg.Program) -> bg.Program:
    """As few layers as show the pattern of every stack, where the spec can have so few."""
    stacks = [node.op for node in program.graph.nodes if isinstance(node.op, Repeat)]
    for depth in range(max([LAYERS, *(len(one.bodies) for one in stacks)]), DEEP) if stacks else ():
        try:
            return with_depth(program, depth)
        except BlockgraphError:
            continue
    return program


def narrowed(program: bg.Program) -> bg.Program:
    """Every dim from `WIDE` on divided by one power of two, until the parameters are few enough.

    Where the narrower dims do not fit any more, as a rotary width beyond that of a head, those from `NARROW` on too.
    """
    found, factor = program, 1
    while (number_of_parameters(found.graph) or 0) > PARAMETERS:
        factor *= 2
        tried = (divided(program, factor, least) for least in (WIDE, NARROW))
        fitting = next((one for one in tried if one is not None), None)
        assert fitting is not None, f"{program.spec.path} cannot be made {factor} times narrower"
        found = fitting
    return found


def divided(program: bg.Program, factor: int, least: int) -> bg.Program | None:
    """The program with every dim that is a number from `least` on divided; None if it does not check."""
    numbers = {name: dim.number for name, dim in program.spec.dims.items() if name != "L"}
    sizes = {name: int(size) // factor for name, size in numbers.items() if size is not None and size >= least}
    checked = bg.check(program.spec, **sizes)
    return bg.Program(checked.spec, checked.graph) if checked.ok and checked.graph is not None else None
