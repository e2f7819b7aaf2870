"""`probe`: how the signal behaves with depth, forward and backward, for one spec or several side by side."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from blockgraph.cli.arguments import Parser, size
from blockgraph.cli.files import refuse_existing, write_file
from blockgraph.cli.runs import Unready, add_arguments, prepare, refuse_size, values_of
from blockgraph.cli.terminal import Terminal, exit_code
from blockgraph.errors import Finding, InputError, Place

if TYPE_CHECKING:
    from blockgraph.api import Program
    from blockgraph.cli.specs import Examined
    from blockgraph.probe import Probe, Reading

SUMMARY = "show how activations and gradients behave with depth"
EXAMPLES = """\
  blockgraph probe specs/pre_norm.yaml specs/post_norm.yaml --init xavier --depth 2,6,12,24,48
  blockgraph probe specs/pre_norm_stack.yaml --seeds 10 --plot depth.svg
  blockgraph probe specs/models/gpt2.yaml --checkpoint DIR --input tokens=ids.npy
  blockgraph probe specs/deepnorm.yaml --depth 100 --format json

what is shown:
  Per layer the RMS of the stream, of each branch and their ratio; the norm of the gradient that arrives when a random
  cotangent of norm 1 is pulled back from the outputs; the share of it that came along the layer's skip path; and what
  arrives along skip paths alone. A block without a stack is stacked on itself, 12 layers unless --depth says otherwise.
"""
DEPTH: Final = 12
ENDINGS: Final = {".svg": "svg", ".png": "png", ".pdf": "pdf"}
INIT: Final = re.compile(r"(normal|uniform|xavier)(?:\(([0-9.eE+-]+)\))?")
AMOUNTS: Final = {"normal": 0.02, "uniform": 0.02, "xavier": 1.0}


def depths(text: str) -> list[int]:
    """Numbers of layers, `2,6,12`, from the least to the most."""
    return sorted({size(word.strip()) for word in text.split(",")})


def init(text: str) -> tuple[str, float]:
    """How matrices are drawn: `xavier`, `normal(0.05)`."""
    found = INIT.fullmatch(text.strip())
    try:
        amount = AMOUNTS[found[1]] if found and found[2] is None else float(found[2]) if found else -1.0
    except ValueError:
        amount = -1.0
    if found is None or not 0 <= amount < float("inf"):
        raise ArgumentTypeError(f"write normal(std), uniform(a) or xavier(gain), not {text!r}")
    return found[1], amount


def arguments(parser: Parser) -> None:
    """The specs, the depths, the runs, and where the picture goes."""
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a spec file, or - for standard input")
    add_arguments(parser)
    help = "numbers of layers, as in 2,6,12,24,48; every stack of the main module gets that many"
    parser.add_argument("--depth", type=depths, metavar="N,N,...", help=help)
    help = "runs for each depth, with one seed after the other from --seed on (default: 5)"
    parser.add_argument("--seeds", type=size, default=5, metavar="N", help=help)
    help = "draw all random matrices like this instead: normal(std), uniform(a) or xavier(gain)"
    parser.add_argument("--init", type=init, metavar="INIT", help=help)
    help = "draw the curves too (.svg .png .pdf); needs matplotlib, the extra [plot]"
    parser.add_argument("--plot", metavar="FILE", help=help)
    parser.add_argument("--force", action="store_true", help="replace the file of --plot if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Run every spec at every depth with every seed, and show medians and ranges."""
    from blockgraph.cli.progress import tracked

    format = _refuse(options)
    try:
        work = [_Spec(path, options) for path in options.specs]
    except Unready as unready:
        return terminal.failed(unready.one.findings, unready.one.lines)
    for one, name in zip(work, told_apart([one.name for one in work], options.specs), strict=True):
        one.name = name
    total = sum(len(one.programs) for one in work) * options.seeds
    probes: list[Probe] = []
    readings = tracked((step for one in work for step in one.steps()), total, "runs", terminal)
    for name, depth, group in _grouped(readings, options.seeds):
        from blockgraph.probe import summarise

        probes.append(summarise(name, depth, group))
    findings = [finding for one in work for finding in one.findings]
    for one in work:
        terminal.findings(one.findings, one.examined.lines)
    _show(probes, findings, options, terminal)
    if options.plot:
        from blockgraph.probe.plot import plot

        write_file(options.plot, lambda file: file.write(plot(probes, format)), options.force)
        terminal.words(f"wrote {terminal.console.shown(options.plot)}\n")
    return exit_code(findings)


def told_apart(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """What to call specs: their names; where some clash their files, then their paths, and at last a number."""
    found = list(names)
    for others in ([os.path.basename(path) for path in paths], paths):
        times = Counter(found)
        found = [other if times[name] > 1 else name for name, other in zip(found, others, strict=True)]
    times = Counter(found)
    return [f"{name} ({found[:at].count(name) + 1})" if times[name] > 1 else name for at, name in enumerate(found)]


def _refuse(options: Namespace) -> str:
    """End the command when options contradict each other; the format of the picture."""
    given = "--checkpoint" if options.checkpoint else "--params" if options.params else ""
    if given and len(options.specs) > 1:
        options.usage(f"{given} belongs to one spec, and there are {len(options.specs)}")
    for name, other in (("--depth", options.depth), ("--init", options.init)):
        if given and other is not None:
            options.usage(f"{given} gives the parameters as they are: leave out {name}")
    if not options.plot:
        return ""
    from blockgraph.probe.plot import refuse_plot

    ending = os.path.splitext(options.plot)[1].lower()
    if ending not in ENDINGS:
        options.usage(f"cannot tell what to draw from the ending of {options.plot}: it is .svg, .png or .pdf")
    refuse_plot(options.plot)
    refuse_existing(options.plot, options.force)
    return ENDINGS[ending]


class _Spec:
    """One spec at all its depths."""

    def __init__(self, path: str, options: Namespace) -> None:
        """Read it and set its depths. Raises Unready, InputError, SpecError, EnvironmentFailure."""
        self.options = options
        self.given: dict[str, Any] | None = None
        self.inputs: dict[str, Any] = {}
        if options.params or options.checkpoint or options.input:
            ready = prepare(path, options)
            self.examined, program = ready.one, ready.program
            self.given = ready.params if options.params or options.checkpoint else None
            names = {text.partition("=")[0] for text in options.input}
            every = len(ready.inputs) == 1 and bool(options.input)
            self.inputs = {name: one for name, one in ready.inputs.items() if every or name in names}
            self.findings = list(ready.findings)
        else:
            self.examined, program = _examined(path, options)
            self.findings = list(self.examined.findings)
        self.name = program.spec.name or path
        self.programs = _at_depths(program, options, self.given is not None)

    def steps(self) -> Iterator[tuple[str, int, Reading]]:
        """One reading for each depth and seed."""
        for depth, program in self.programs:
            refuse_size(program, {}, self.options)
            for seed in range(self.options.seed, self.options.seed + self.options.seeds):
                yield self.name, depth, self._reading(program, seed)

    def _reading(self, program: Program, seed: int) -> Reading:
        from blockgraph.cli.numeric import numeric_findings
        from blockgraph.probe import measure
        from blockgraph.trace import Trace

        sizes = self._sizes(program)
        drawn, params = program.sample(seed, self.options.dtype, **sizes)
        inputs = {program.graph.inputs[0].name: drawn} if len(program.graph.inputs) == 1 else drawn
        params = self.given if self.given is not None else _redrawn(program, params, seed, self.options.init)
        tape = program.tape({**inputs, **self.inputs}, params)
        if not any(finding.code == "BG402" for finding in self.findings):
            found = numeric_findings(Trace(program.flat, tape.slots), params)
            self.findings += [finding for finding in found if finding.code == "BG402"]
        return measure(program.graph, program.flat, tape, seed)

    def _sizes(self, program: Program) -> dict[str, int]:
        """The numbers of free sizes that the given inputs tell."""
        from blockgraph.arrays import bind_inputs
        from blockgraph.lazy import np

        ports = tuple(port for port in program.graph.inputs if port.name in self.inputs)
        if not ports:
            return {}
        graph = replace(program.graph, inputs=ports)
        _, numbers = bind_inputs(program.spec, graph, self.inputs, np.dtype(self.options.dtype))
        free = {symbol for port in ports for dim in graph.types[port.value].shape or () for symbol in dim.symbols}
        return {name: numbers[name] for name in free if name not in program.spec.dims}


def _examined(path: str, options: Namespace) -> tuple[Examined, Program]:
    from blockgraph.api import Program
    from blockgraph.cli.specs import examine

    one = examine(path, values_of(options))
    if not one.ok or one.checked is None or one.checked.graph is None:
        raise Unready(one)
    return one, Program(one.checked.spec, one.checked.graph, one.findings)


def _at_depths(program: Program, options: Namespace, given: bool) -> list[tuple[int, Program]]:
    """The program with each number of layers; as it is, if none is asked for and it has a stack. Raises InputError."""
    from blockgraph.graph import Repeat
    from blockgraph.resize import with_depth

    stacks = [node.op for node in program.graph.nodes if isinstance(node.op, Repeat)]
    known = program.graph.dims
    if options.depth is None and stacks and all(stack.count.symbols <= known.keys() for stack in stacks):
        return [(max(sum(1 for _ in stack.layers(known)) for stack in stacks), program)]
    if given:
        help = "probe a model with a stack, whose layers the parameters are those of"
        raise InputError([Finding("BG038", "there are no layers to look at", Place(program.spec.path), help)])
    return [(depth, with_depth(program, depth)) for depth in options.depth or [DEPTH]]


def _redrawn(program: Program, params: dict[str, Any], seed: int, how: tuple[str, float] | None) -> dict[str, Any]:
    """The parameters, with all matrices that are drawn at random drawn in another way."""
    if how is None:
        return params
    from blockgraph.lazy import np

    rng, numbers = np.random.default_rng([seed, 4]), program.graph.dims
    found = dict(params)
    for name, op in program.parameters.items():
        if len(op.dims) > 1 and op.init in AMOUNTS:
            drawn = replace(op.bind(numbers), init=how[0], amount=how[1]).draw(rng)
            found[name] = drawn.astype(params[name].dtype, copy=False)
    return found


def _grouped(steps: Iterator[tuple[str, int, Reading]], count: int) -> Iterator[tuple[str, int, list[Reading]]]:
    """The readings of all seeds of one depth together."""
    group: list[Reading] = []
    for name, depth, reading in steps:
        group.append(reading)
        if len(group) == count:
            yield name, depth, group
            group = []


def _show(probes: Sequence[Probe], findings: Sequence[Finding], options: Namespace, terminal: Terminal) -> None:
    from blockgraph.cli.probe_tables import ProbeTables
    from blockgraph.report import as_data

    tables = ProbeTables(probes)
    seeds = [options.seed, options.seed + options.seeds - 1]
    if terminal.format == "json":
        document = {"seeds": seeds, "dtype": options.dtype, "probes": tables.document()}
        terminal.document({"ok": exit_code(findings) == 0, "findings": as_data(findings), **document})
        return
    told = f"seeds {seeds[0]} to {seeds[1]}" if options.seeds > 1 else f"seed {seeds[0]}"
    drawn = "" if options.init is None else f", matrices {options.init[0]}({options.init[1]:g})"
    head = f"{told}, {options.dtype}{drawn}: median lowest..highest; gradients are those of a cotangent of norm 1"
    lines = "\n".join(wrap(head, terminal.width))
    terminal.data(f"{lines}\n\n{tables.text(terminal.console, terminal.width)}")
