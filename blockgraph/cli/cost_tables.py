"""What `summary` has to show: the costs of a model as tables for a person, or as plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from blockgraph.cost.memory import MemoryReport
from blockgraph.cost.parameters import number
from blockgraph.cost.report import Costs
from blockgraph.cost.tally import Tally
from blockgraph.dims import Dim, show
from blockgraph.records import dataclass
from blockgraph.report import Console
from blockgraph.tables import Column, table

UNITS: Final = ("", "K", "M", "G", "T", "P", "E")
UNKNOWN: Final = "depends on the number of layers"


@dataclass(frozen=True, slots=True)
class Amount:
    """A cost as a formula and, where all its symbols have numbers, as a number."""

    formula: str
    number: int | None

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {"formula": self.formula, "number": self.number}


@dataclass(frozen=True, slots=True)
class Measure:
    """One column: its key in JSON, its names in the summary above the tables and over a column, and its value."""

    key: str
    title: str
    column: str
    of: Callable[[Tally], Dim]


MEASURES: Final = (
    Measure("parameters", "parameters", "parameters", lambda t: t.weights.total),
    Measure("without_embeddings", "  without embeddings", "", lambda t: t.weights.total - t.weights.embedding),
    Measure("active_parameters", "  active", "", lambda t: t.weights.active),
    Measure("flops_forward", "FLOPs forward", "forward", lambda t: t.products),
    Measure("flops_backward", "FLOPs backward", "backward", lambda t: t.products * 2),
    Measure("macs", "MACs forward", "MACs", lambda t: t.products / 2),
    Measure("flops_elementwise", "elementwise FLOPs", "others", lambda t: t.elementwise),
    Measure("activation_bytes", "activation bytes", "outputs", lambda t: t.activations),
)
FORMULAS: Final = ("parameters", "flops_forward", "activation_bytes")
"""The measures whose formulas are worth a table: those of the others follow from them."""


@dataclass(frozen=True)
class CostTables:
    """The costs, and the memory of a run where all sizes have numbers."""

    costs: Costs
    memory: MemoryReport | None
    dtype: str

    def amount(self, measure: Measure, tally: Tally | None) -> Amount:
        """One cost of a part."""
        if tally is None:
            return Amount(UNKNOWN, None)
        size, numbers = measure.of(tally), self.costs.numbers
        if size.symbols - numbers.keys():
            return Amount(str(size), None)
        return Amount(str(size), round(size.evaluate(numbers)))  # of k experts of E the work need not be whole

    def cache(self, tally: Tally | None) -> Amount:
        """The bytes of keys and values."""
        if tally is None:
            return Amount(UNKNOWN, None)
        numbers = self.costs.numbers
        found = [cache.bytes(numbers) for cache in tally.caches]
        formulas = dict.fromkeys(cache.formula(numbers) for cache in tally.caches)
        whole = sum((cache.width * cache.keys for cache in tally.caches), Dim(0))
        plain = all(cache.window is None for cache in tally.caches)
        text = str(whole) if plain else " + ".join(self._repeated(tally, formula) for formula in formulas)
        return Amount(text, None if None in found else sum(one for one in found if one is not None))

    def _repeated(self, tally: Tally, formula: str) -> str:
        times = sum(cache.formula(self.costs.numbers) == formula for cache in tally.caches)
        return formula if times == 1 else f"{times}*({formula})"

    # For a program

    def document(self) -> dict[str, Any]:
        """Everything, with formulas and exact numbers."""
        costs = self.costs
        return {
            "sizes": dict(costs.numbers),
            "dtype": self.dtype,
            "counting": "causal" if costs.counting.causal else "dense",
            "conventions": list(conventions(costs)),
            "total": self._entry(costs.total),
            "shared": [
                {"name": one.name, "parameters": self._size(one.parameters), "uses": self._size(one.uses)}
                for one in costs.shared
            ],
            "parts": [
                {
                    "name": row.name,
                    "kind": row.kind,
                    "depth": row.depth,
                    "times": self._size(row.times),
                    "inner": row.inner,
                    **self._entry(row.tally),
                }
                for row in costs.rows
            ],
            "kinds": [{"kind": kind, **self._entry(tally)} for kind, tally in costs.kinds.items()],
            "kv_caches": self._caches(),
            "memory": self._memory(),
        }

    def _size(self, size: Dim | None) -> dict[str, Any]:
        if size is None:
            return Amount(UNKNOWN, None).data()
        return Amount(str(size), number(size, self.costs.numbers)).data()

    def _entry(self, tally: Tally | None) -> dict[str, Any]:
        found = {measure.key: self.amount(measure, tally).data() for measure in MEASURES}
        return {**found, "kv_cache_bytes": self.cache(tally).data()}

    def _caches(self) -> list[dict[str, Any]]:
        numbers, total = self.costs.numbers, self.costs.total
        return [
            {"name": cache.name, "formula": cache.formula(numbers), "number": cache.bytes(numbers)}
            for cache in (total.caches if total is not None else ())
        ]

    def _memory(self) -> dict[str, Any] | None:
        report = self.memory
        if report is None:
            return None
        tensors = {"largest": report.largest, "largest_held": report.largest_held}
        shown = {
            key: {
                "name": one.name,
                "shape": show(one.shape),
                "bytes": one.bytes,
                "held": one.held,
                "line": one.place.start.line if one.place is not None else None,
            }
            for key, one in tensors.items()
        }
        sizes = {"parameters": report.parameters, "inputs": report.inputs, "values": report.values}
        return {**sizes, "total": report.total, **shown}

    # For a person

    def text(self, name: str, console: Console, width: int) -> str:
        """The totals, a table of the parts, one of the kinds, one of formulas, and the conventions."""
        numbers = self.costs.numbers
        sizes = "".join(f", {symbol} = {numbers[symbol]}" for symbol in ("B", "T") if symbol in numbers)
        blocks = [
            console.shown(f"{name}: {self.dtype}{sizes}") + "\n",
            self._totals(console, width),
            self._numbers("by part, of one layer", self._parts(), console, width),
            self._numbers("by kind, all layers", self._kinds(), console, width),
            self._formulas(console, width),
            self._notes(console, width),
        ]
        return "\n".join(filter(None, blocks))

    def _parts(self) -> list[tuple[str, Tally | None]]:
        found = []
        for row in self.costs.rows:
            layers = row.inner and row.kind != "stack"
            shown = f" × {self._times(row.times)}" if layers else ""
            found.append(("  " * row.depth + row.name + shown, row.tally))
        return found

    def _times(self, times: Dim | None) -> str:
        known = None if times is None else number(times, self.costs.numbers)
        return "?" if times is None else str(times) if known is None else str(known)

    def _kinds(self) -> list[tuple[str, Tally | None]]:
        return list(self.costs.kinds.items())

    def _totals(self, console: Console, width: int) -> str:
        total = self.costs.total
        rows = [(measure.title, self.amount(measure, total)) for measure in MEASURES]
        if total is None or total.weights.active == total.weights.total:
            rows = [row for row in rows if row[0].strip() != "active"]
        rows.append(("KV cache bytes", self.cache(total)))
        known = any(amount.number is not None for _, amount in rows)
        head = [Column("the whole"), *([Column("number", right=True)] if known else []), Column("formula", wrap=True)]
        cells = [(title, *([_exact(amount.number)] if known else []), amount.formula) for title, amount in rows]
        return table(head, cells, console, width)

    def _numbers(self, title: str, rows: Sequence[tuple[str, Tally | None]], console: Console, width: int) -> str:
        """Numbers in short form; columns without any are left out."""
        columns: list[tuple[str, list[str]]] = []
        for measure in MEASURES:
            found = [self.amount(measure, tally).number for _, tally in rows]
            if measure.column and None not in found:
                write = _exact if measure.key == "parameters" else _short
                columns.append((measure.column, [write(one) for one in found]))
        caches = [self.cache(tally).number for _, tally in rows]
        if any(caches):
            columns.append(("cache", [_short(one) for one in caches]))
        if not columns:
            return ""
        head = [Column(title, wrap=True), *(Column(name, right=True) for name, _ in columns)]
        cells = [(name, *(column[index] for _, column in columns)) for index, (name, _) in enumerate(rows)]
        return table(head, cells, console, width)

    def _formulas(self, console: Console, width: int) -> str:
        measures = [measure for measure in MEASURES if measure.key in FORMULAS]
        head = [Column("formulas"), *(Column(measure.title, wrap=True) for measure in measures)]
        rows = [row for row in self._parts() if row[1] is None or row[1] != Tally()]
        cells = [
            (name.lstrip(), *(self.amount(measure, tally).formula for measure in measures)) for name, tally in rows
        ]
        return table(head, list(dict.fromkeys(cells)), console, width)

    def _notes(self, console: Console, width: int) -> str:
        lines = []
        for one in self.costs.shared:
            uses = "several places" if one.uses is None else f"{one.uses} places"
            lines.append(f"shared, counted once: {one.name} ({one.parameters} parameters, used in {uses})")
        if self.memory is not None:
            lines += self._memory_notes(self.memory)
        lines += [f"{line}." for line in conventions(self.costs)]
        return "".join(f"{console.shown(row)}\n" for line in lines for row in _wrapped(line, width))

    def _memory_notes(self, report: MemoryReport) -> Iterator[str]:
        yield (
            f"a run takes at most about {report.total:,} bytes: {report.parameters:,} of parameters, "
            f"{report.inputs:,} of inputs, {report.values:,} of values alive at once"
        )
        largest = report.largest
        blocks = "" if largest.held else ", spelled out; a run works through it in blocks"
        yield f"largest tensor: {largest}: {largest.bytes:,} bytes{blocks}"
        if not largest.held:
            yield f"largest tensor of a run: {report.largest_held}: {report.largest_held.bytes:,} bytes"


def conventions(costs: Costs) -> Iterator[str]:
    """How things are counted, one sentence each."""
    yield "A multiply-add counts as two FLOPs. FLOPs forward are those of matrix products; others are elementwise"
    yield "FLOPs backward are twice the forward products: one product for the gradient of each operand"
    if costs.counting.causal:
        yield (
            "Causal counting: under a causal mask the T*T/2 hidden pairs of query and key do not count, so that the "
            "products of self-attention halve; windows are not looked at"
        )
    else:
        yield "Dense counting: every pair of query and key counts, whatever the mask (--causal leaves hidden ones out)"
    total = costs.total
    if total is not None and total.weights.active != total.weights.total:
        yield "Of experts of which each position uses a few, FLOPs and active parameters count those few"
    yield (
        "Activation bytes are those of what every op puts out, as a backward pass reads it; attention puts out no "
        "scores, and views take nothing"
    )
    if total is not None and total.caches:
        yield "The KV cache holds the keys and values of every attention, at most a window of them"


def _exact(size: int | None) -> str:
    return "" if size is None else f"{size:,}"


def _short(size: int | None) -> str:
    """Four digits and a unit of a thousand: `17.72G`."""
    if size is None:
        return ""
    value, unit = float(size), 0
    while value >= 999.95 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return str(size)
    return f"{value:.{max(0, 3 - len(str(int(value))))}f}{UNITS[unit]}"


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, max(width, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
