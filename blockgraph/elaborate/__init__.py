"""Spec to graph: the only evaluator of equations, and the check of every shape on the way.

A fault costs one finding: its value is unknown from there on, and the unknown shape fits everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from blockgraph.dims import Dim
from blockgraph.elaborate.body import MAX_NESTING, MAX_NODES, Body, Session, TooDeep, TooLarge, report_circle
from blockgraph.elaborate.env import Env, build
from blockgraph.elaborate.extent import extent
from blockgraph.elaborate.free import report_free_sizes
from blockgraph.elaborate.instance import ModuleInstance
from blockgraph.elaborate.items import Ref
from blockgraph.elaborate.unused import report_unused
from blockgraph.errors import Finding, Place
from blockgraph.graph import Graph, GraphBuilder, Port
from blockgraph.module import Module, PartDecl, Report
from blockgraph.op import load_ops
from blockgraph.ops.leaf import Input
from blockgraph.records import dataclass
from blockgraph.spec import Spec
from blockgraph.syntax import Name, walk


@dataclass(frozen=True)
class Elaborated:
    """The graph of the main module, and everything found on the way. None when there is no main module.

    `others` are the blocks that it does not call. `lost` says that some value is unknown, after a finding;
    `unknown_names` are those told to stand for nothing.
    """

    graph: Graph | None
    findings: tuple[Finding, ...]
    others: Mapping[str, Graph] = field(default_factory=dict)
    lost: bool = False
    unknown_names: frozenset[str] = frozenset()


def elaborate(spec: Spec) -> Elaborated:
    """Work out the main module and check every block of the file."""
    load_ops()
    report = Report(list(spec.findings))
    session = Session(spec, report, build(spec, report))
    found = extent(spec, MAX_NODES)
    try:
        if found.past is not None:
            raise TooLarge(found.past)
        graph, others = _graphs(session)
        kept = session.conditions.check(session.env.numbers, report, session.repeats)
    except (TooLarge, TooDeep) as end:
        _report_end(end, found.circle, spec, report)
        return Elaborated(None, _told(spec, report))
    report_unused(spec, report)
    if graph is not None:
        graph = replace(graph, conditions=kept)
        report_free_sizes(spec, graph, report)
    return Elaborated(graph, _told(spec, report), others, session.lost, frozenset(report.unknown_names))


def _graphs(session: Session) -> tuple[Graph | None, dict[str, Graph]]:
    """The graph of the main module, and those of the modules that it does not call."""
    spec = session.spec
    unsure = "model" in spec.unread  # what is taken for the main module may be a block of it
    graph = open_module(session, spec.modules[spec.main], unsure)[0] if spec.main in spec.modules else None
    others = {}
    for name, module in spec.modules.items():
        if name not in session.called and name != spec.main:  # it may be meant for a stack
            others[name] = open_module(session, module, in_stack=True)[0]
    return graph, others


def _report_end(end: TooLarge | TooDeep, circle: tuple[str, Place] | None, spec: Spec, report: Report) -> None:
    """Report why the blocks of a file could not be worked out to the end."""
    if circle is not None:
        report_circle(*circle, report)
    elif isinstance(end, TooLarge):
        place = end.place or spec.document.value(())
        help = "repeat a block with a stack instead"
        report.add("BG018", f"the graph has more than {MAX_NODES} distinct steps", place, help)
    else:
        help = "write some of them as parts of one block, or repeat one with a stack"
        report.add("BG018", f"blocks stand in blocks more than {MAX_NESTING} deep", end.place, help)


def _told(spec: Spec, report: Report) -> tuple[Finding, ...]:
    """The findings in file order, but for those of a value whose key has one."""
    return tuple(one for one in report.in_order if not spec.document.doubts(one.place))


def open_module(session: Session, module: Module, in_stack: bool = False) -> tuple[Graph, ModuleInstance]:
    """The graph of one module by itself, its inputs as declared, and the module with its parts.

    With `in_stack` it is read as a layer would be, where `layer` has a meaning.
    """
    spec = session.spec
    builder = GraphBuilder(spec.name or module.name)
    body = Body(session, builder, in_stack=in_stack)
    lenient = session.env.lenient or module.hides_names
    env = replace(session.env, in_stack=in_stack, free=_free_symbols(module, session.env), lenient=lenient)
    decl = PartDecl(module.name, module.name, {}, module.path)
    main = ModuleInstance(body, decl, "", env, module=module)
    ports, values = [], {}
    for one in module.inputs:
        dims = [env.size(axis) for axis in one.dims]
        below = env.size(one.below) if one.below is not None else None
        builder.place = spec.document.key(one.path)
        if one.unread or any(dim is None for dim in dims):
            values[one.name] = body.unknown(one.name)
            continue
        shape = tuple(dim for dim in dims if dim is not None)
        (value,) = body.node(Input(one.name, shape, one.dtype, below))
        values[one.name] = Ref(value)
        ports.append(Port(one.name, value, below))
    session.open_blocks.append(module.name)
    refs = main.run_module(values, env, "", 0)
    session.open_blocks.pop()
    outputs = [Port(name, ref.value) for name, ref in zip(module.outputs, refs, strict=True)]
    return builder.finish(ports, outputs, main.draws(), dims=dict(session.env.numbers)), main


def _free_symbols(module: Module, env: Env) -> dict[str, Dim]:
    """Symbols that only an input's shape introduces: bound at every call."""
    free: dict[str, Dim] = {}
    for one in module.inputs:
        for axis in one.dims:
            for node in walk(axis.expr):
                if isinstance(node, Name) and not env.knows(node.name):
                    free[node.name] = Dim(node.name)
    return free
