"""The short form written out: sublayers and a placement become parts and equations.

What a placement does is in `placement`; here each sublayer gets its names, its own wiring options and its norms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from blockgraph.equation import parse_equations
from blockgraph.errors import Place, SpecPath, near
from blockgraph.module import Line, ParamDecl, PartDecl, Report
from blockgraph.origins import Span, origins
from blockgraph.placement import (
    NAMED,
    NORM,
    PLACES,
    SUBLAYER,
    Group,
    Member,
    names_used,
    norms,
    own_wiring,
    wire,
    written_at,
)
from blockgraph.read_module import Names, article, read_equations, read_params, read_part
from blockgraph.records import dataclass
from blockgraph.schema import GroupKeys, ModuleKeys, PlacementKeys, Wiring, misread, suggestion, validate
from blockgraph.source import Document
from blockgraph.sublayer import Sublayer, read_sublayer
from blockgraph.syntax import Unread


@dataclass(slots=True)
class ShortForm:
    """Writes out the sublayers of one block; `parts`, `params` and `lines` are the result."""

    keys: ModuleKeys
    path: SpecPath
    stream: str
    document: Document
    report: Report
    names: Names
    unread: frozenset[str] = frozenset()
    params: list[ParamDecl] = field(default_factory=list)
    parts: dict[str, PartDecl] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    normed: bool = False
    _count: int = 0
    _first_use: dict[SpecPath, str] = field(default_factory=dict)
    _aliases: dict[str, str] = field(default_factory=dict)
    _used: set[SpecPath] = field(default_factory=set)  # wiring options that had an effect
    _lost: bool = False  # a sublayer could not be read, so that what it used is not known

    def write(self) -> None:
        """Write out every sublayer in order."""
        for index, entry in enumerate(self.keys.sublayers or ()):
            path = (*self.path, "sublayers", index)
            if isinstance(entry, dict) and "parallel" in entry:
                self._group(entry, path)
            else:
                self._single(entry, path)
        if self._lost:
            self.unread |= {"sublayers"}
        else:
            self._refuse_unused(self.keys, self.path)

    def _refuse_unused(self, owner: Wiring, path: SpecPath) -> None:
        """Report a norm that no placement sets, and a factor on a skip path that is not there."""
        without = {NORM: "no placement sets it", "skip_scale": "`residual: none` leaves no skip path"}
        for option, why in without.items():
            where = (*path, option)
            if getattr(owner, option) is not None and where not in self._used:
                self.report.add("BG033", f"`{option}` has no effect: {why}", self.document.key(where), "leave it out")

    def _single(self, entry: Any, path: SpecPath) -> None:
        sublayer = self._sublayer(entry, path)
        if sublayer is None:
            return
        if _is_equations(self._chosen("placement", sublayer.keys)):
            self._own_placement(sublayer)
            return
        places = self._places(sublayer.keys, path)
        self._join([sublayer], [places], sublayer.keys, path, shared=False)

    def _group(self, entry: dict[str, Any], path: SpecPath) -> None:
        keys = validate(GroupKeys, entry, path, self.document, self.report, "a parallel group")
        if keys is None:
            self._lost = True
            return
        if _is_equations(self._chosen("placement", keys)):
            self._refuse_own_placement(path)
            return
        members = [self._sublayer(member, (*path, "parallel", i)) for i, member in enumerate(keys.parallel)]
        found = [one for one in members if one is not None and not _is_equations(one.keys.placement)]
        for member in members:
            if member is not None and member not in found:
                self._refuse_own_placement(member.path)
        self._lost |= len(found) < len(members)
        self._refuse_of_members(found)
        if found:
            places = [self._places(member.keys, member.path, keys) for member in found]
            self._join(found, places, keys, path, shared=keys.norms == "shared")

    def _refuse_own_placement(self, path: SpecPath) -> None:
        self._lost = True
        help = "give this group a named placement, or write the block as equations"
        message = "a placement of equations joins one sublayer, not a group"
        self.report.add("BG034", message, self._key(path, "placement"), help)

    def _refuse_of_members(self, members: list[Sublayer]) -> None:
        """The skip path and the norm after the sum belong to the group as a whole."""
        for member in members:
            self._refuse_placement(member)
            self._used.add((*member.path, "skip_scale"))
            for option in ("residual", "skip_scale"):
                if getattr(member.keys, option) is not None:
                    where = self.document.key((*member.path, option))
                    self.report.add(
                        "BG033",
                        f"`{option}` has no effect in one member of a group",
                        where,
                        "write it beside `parallel`",
                    )

    def _refuse_placement(self, member: Sublayer) -> None:
        own = member.keys.placement
        if own is not None and "after" in self._named_places(own, (*member.path, "placement")):
            message = "a norm after the sum belongs to the whole group, not to one member"
            place = self.document.value((*member.path, "placement"))
            self.report.add("BG034", message, place, "write the placement beside `parallel`")

    def _join(
        self, sublayers: list[Sublayer], places: list[frozenset[str]], keys: Wiring, path: SpecPath, *, shared: bool
    ) -> None:
        """Wire one group by the placement law."""
        members = []
        for sublayer, own in zip(sublayers, places, strict=True):
            scale = sublayer.keys.branch_scale
            scale = self._chosen("branch_scale", keys) if scale is None else scale
            members.append(Member(sublayer.part, sublayer.number, own, _text(scale), sublayer.passed))
        residual = self._chosen("residual", keys) or "stream"
        group = Group(
            tuple(members),
            self.stream,
            after=any("after" in own for own in places),
            shared=shared and "input" in places[0],
            residual=residual,
            skip_scale=_text(self._chosen("skip_scale", keys)),
            copy=next(
                name for name in ("h", "normed", "shared") if name != self.stream and name not in self.names.known
            ),
        )
        if residual == "normed" and "input" not in places[0] and self._lost:
            return
        if residual == "normed" and "input" not in places[0]:
            help = "use a placement with an input norm, or leave `residual` out"
            self.report.add(
                "BG033", "`residual: normed` needs a norm before the sublayer", self._key(path, "residual"), help
            )
            self._lost = True
            return
        if shared and "input" not in places[0] and not self._lost:
            self.report.add("BG033", "`norms: shared` has no effect without an input norm", self._key(path, "norms"))
        self.normed |= residual == "normed"
        self._norms_and_parts(group, sublayers, keys)
        self._judge(sublayers, keys, path, residual)
        called = {one.part: one.path for one in sublayers}
        factors = self._factors(group, sublayers, keys, path)
        self._lines(self._with_shared_names(wire(group)), path, called, factors)

    def _factors(self, group: Group, sublayers: list[Sublayer], keys: Wiring, path: SpecPath) -> dict[str, SpecPath]:
        """Where each factor on a path stands, by its text."""
        found: dict[str, SpecPath] = {}
        for member, sublayer in zip(group.members, sublayers, strict=True):
            if member.scale is not None:
                own = sublayer.keys.branch_scale is not None
                owner, where = (sublayer.keys, sublayer.path) if own else (keys, path)
                found[member.scale] = self._origin(owner, where, "branch_scale")
        if group.skip_scale is not None:
            found[group.skip_scale] = self._origin(keys, path, "skip_scale")
        return found

    def _origin(self, keys: Wiring, path: SpecPath, option: str) -> SpecPath:
        """Where a wiring option that is in force stands."""
        return (*(self.path if getattr(keys, option) is None else path), option)

    def _norms_and_parts(self, group: Group, sublayers: list[Sublayer], keys: Wiring) -> None:
        """Declare the parts in the order of the flow: input norm, sublayer, output norm, after norm."""
        needed = list(norms(group))
        for member, sublayer in zip(group.members, sublayers, strict=True):
            own = [(name, place) for name, place, whose in needed if whose is member]
            for name, place in own:
                if place == "input":
                    self._norm(name, sublayer, keys)
            self.parts[sublayer.part] = sublayer.decl
            for name, place in own:
                if place == "output":
                    self._norm(name, sublayer, keys)
        for name, place, _member in needed:
            if place == "after":
                self._norm(name, sublayers[0], keys)

    def _judge(self, sublayers: list[Sublayer], keys: Wiring, path: SpecPath, residual: str) -> None:
        """Note which factor scales the skip path, and report what has no effect on this group."""
        if residual != "none":
            self._used.add((*(self.path if keys.skip_scale is None else path), "skip_scale"))
        self._refuse_unused(keys, path)
        for sublayer in sublayers:
            self._refuse_unused(sublayer.keys, sublayer.path)

    def _norm(self, name: str, sublayer: Sublayer, keys: Wiring) -> None:
        for owner, path in ((sublayer.keys, sublayer.path), (keys, sublayer.path[:-2]), (self.keys, self.path)):
            if owner.norm is not None:
                self._used.add((*path, NORM))
                where = path if self.document.has((*path, NORM)) else self.path
                self._share_or_add(read_part(name, owner.norm, (*where, NORM), self.document, self.report))
                return
        if not self._lost and not self.unread & {NORM, "placement"}:
            help = "add `norm: layer_norm` (or another norm) to the block, or `placement: none`"
            message = "this placement needs a norm, and none is given"
            self.report.add("BG021", message, self.document.key(self.path), help)
        self.parts[name] = PartDecl(name, "layer_norm", {}, self.path)

    def _share_or_add(self, part: PartDecl) -> None:
        """A norm that says `share: true` is one part for all its uses."""
        first = self._first_use.setdefault(part.path, part.name) if part.options.get("share") is True else part.name
        if first != part.name:
            self._aliases[part.name] = first
        elif self.names.declare(part.name, "norm", part.path):
            self.parts[part.name] = part

    def _with_shared_names(self, text: str) -> str:
        return own_wiring(text, SUBLAYER, {}, self._aliases)[0] if self._aliases else text

    def _sublayer(self, entry: Any, path: SpecPath) -> Sublayer | None:
        found = read_sublayer(entry, path, self._count + 1, self.names, self.document, self.report)
        self._count += found is not None
        self._lost |= found is None or not found.whole
        return found

    def _chosen(self, option: str, keys: Wiring) -> Any:
        own = getattr(keys, option)
        return getattr(self.keys, option) if own is None else own

    def _places(self, keys: Wiring, path: SpecPath, group: Wiring | None = None) -> frozenset[str]:
        """The norm places of a sublayer: its own placement, else its group's, else the block's, else pre."""
        for owner, where in ((keys, path), (group, path[:-2]), (self.keys, self.path)):
            if owner is not None and owner.placement is not None:
                return self._named_places(owner.placement, (*where, "placement"))
        return NAMED["pre"]

    def _named_places(self, value: Any, path: SpecPath) -> frozenset[str]:
        if isinstance(value, list):
            for index, name in enumerate(value):
                if name not in PLACES:
                    where = self.document.value((*path, index))
                    self._lost = True
                    self.report.add("BG034", f"`{name}` is no place for a norm", where, suggestion(str(name), PLACES))
            return frozenset(str(name) for name in value) & frozenset(PLACES)
        if value in NAMED:
            return NAMED[value]
        self._lost = True
        where = self.document.value(path)
        stem = str(value).replace("-", "_").casefold().removesuffix("norm").removesuffix("_")
        self.report.add("BG034", f"unknown placement `{value}`", where, suggestion(stem, NAMED))
        return NAMED["pre"]

    def _own_placement(self, sublayer: Sublayer) -> None:
        """A placement written as equations: copy it with this sublayer's names."""
        own = sublayer.keys.placement
        path = (*(sublayer.path if own is not None else self.path), "placement")
        value = own if own is not None else self.keys.placement
        data = value if isinstance(value, dict) else {"equations": value}
        keys = validate(PlacementKeys, data, path, self.document, self.report, "a placement")
        if keys is None:
            self._lost = True
            return
        self.unread |= misread(keys, data)
        inner = (*path, "equations") if isinstance(value, dict) else path
        first = sublayer.number == 1 or own is not None
        checked = read_equations(keys.equations, inner, self.document, self.report if first else Report())
        self._refuse_overruled(sublayer, path)
        if not any(SUBLAYER in names_used(line.equation.text) for line in checked):
            self.report.add(
                "BG034",
                "the placement never calls f, the sublayer",
                self.document.value(path),
                "for example `x = x + f(norm(x))`",
            )
            self._lost = True
            return
        self._copy(sublayer, keys, path, checked)
        self._refuse_unused(sublayer.keys, sublayer.path)

    def _copy(self, sublayer: Sublayer, keys: PlacementKeys, path: SpecPath, written: list[Line]) -> None:
        number = sublayer.number
        renamed = {name: f"{name}{number}" for name in (*keys.params, *keys.parts)}
        for name in renamed:
            what, _ = self.names.known.get(name, ("", ()))
            if what in ("input", "dim", "constant"):
                where = self.document.value(path)
                message = f"`{name}` of the placement is already the name of {article(what)}"
                self.report.add("BG029", message, where, "choose another name")
                self._lost = True
                return
        for param in read_params(keys.params, (*path, "params"), self.document, self.report):
            name = renamed[param.name]
            if self.names.declare(name, "parameter", param.path):
                self.params.append(ParamDecl(name, param.dims, param.init, param.frozen, param.path))
        names = {name for line in written for name in names_used(line.equation.text)}
        uses_norm = NORM in names
        if any(isinstance(line.equation.expr, Unread) for line in written):
            self.unread |= {"placement"}
        if not uses_norm and near(NORM, names):
            self._used |= {(*sublayer.path, NORM), (*self.path, NORM)}  # a misspelt call of it is told elsewhere
        if uses_norm and NORM not in renamed:
            renamed[NORM] = f"norm{number}"
            self._norm(renamed[NORM], sublayer, sublayer.keys)
        self.parts[sublayer.part] = sublayer.decl
        for name, use in keys.parts.items():
            part = read_part(renamed[name], use, (*path, "parts", name), self.document, self.report)
            self.parts[part.name] = part
        renamed = {old: self._aliases.get(new, new) for old, new in renamed.items()}
        for line in written:
            self._copy_line(line, sublayer, renamed)

    def _copy_line(self, line: Line, sublayer: Sublayer, renamed: Mapping[str, str]) -> None:
        """One equation with this sublayer's names, found again where the placement is written."""
        text, edits = own_wiring(line.equation.text, sublayer.part, sublayer.passed, renamed)
        offset = line.equation.start

        for one in parse_equations(text).equations:
            passed = origins(one, self.document, {sublayer.part: sublayer.path}, {})

            def locate(start: int, end: int, passed: Mapping[Span, Place] = passed) -> Place:
                own = passed.get((start, end))
                return own or line.locate(offset + written_at(start, edits), offset + written_at(end, edits))

            self.lines.append(Line(one, locate, sublayer.path))

    def _refuse_overruled(self, sublayer: Sublayer, placement: SpecPath) -> None:
        for owner, path in ((sublayer.keys, sublayer.path), (self.keys, self.path)):
            for option in ("residual", "skip_scale", "branch_scale"):
                if getattr(owner, option) is not None:
                    self._used.add((*path, option))
                    help = "write it into the equations, or leave it out"
                    self.report.add(
                        "BG033",
                        f"`{option}` has no effect beside a placement of equations",
                        self._key(path, option),
                        help,
                    )

    def _lines(
        self, text: str, path: SpecPath, called: Mapping[str, SpecPath], factors: Mapping[str, SpecPath]
    ) -> None:
        place = self.document.value(path)
        for equation in parse_equations(text).equations:
            known = origins(equation, self.document, called, factors)

            def locate(start: int, end: int, known: Mapping[Span, Place] = known) -> Place:
                return known.get((start, end), place)

            self.lines.append(Line(equation, locate, path, written=False))

    def _key(self, path: SpecPath, option: str) -> Any:
        """The place of a wiring option, which may stand in the sublayer or in the block."""
        for where in ((*path, option), (*self.path, option)):
            if self.document.has(where):
                return self.document.key(where)
        return self.document.value(path)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _is_equations(placement: Any) -> bool:
    return isinstance(placement, dict) or (isinstance(placement, str) and ("=" in placement or "\n" in placement))
