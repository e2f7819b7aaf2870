"""Uses of blocks: `set:` rebinds dims and constants for one use."""

from __future__ import annotations

from dataclasses import replace

from blockgraph.elaborate.env import Env, build, constant
from blockgraph.elaborate.items import UNKNOWN, Item
from blockgraph.errors import near
from blockgraph.module import PartDecl


def settings(decl: PartDecl, env: Env, in_stack: bool) -> Env:
    """The environment of a use. The values of `set:` are read in the environment around it."""
    changes = decl.options.get("set")
    if changes is None:
        return replace(env, in_stack=in_stack) if env.in_stack != in_stack else env
    spec = env.spec
    if not isinstance(changes, dict):
        place = spec.document.value(decl.option("set"))
        env.report.add("BG022", "`set`: a mapping expected", place, "for example {set: {W: 4096}}")
        return env
    found: dict[str, Item] = {}
    around = replace(env, in_stack=in_stack)  # a use in a stack's `of` stands inside the stack
    for name, value in changes.items():
        path = (*decl.path, "set", name)
        if name not in spec.dims and name not in spec.constants:
            if name in env.report.unknown_names or spec.unread & {"dims", "constants"}:
                continue
            env.report.unknown_names.add(name)
            meant = near(name, (*spec.dims, *spec.constants))
            help = f"did you mean `{meant}`?" if meant else f"add `{name}` to `dims` or `constants`"
            env.report.add(
                "BG027", f"`{name}` is set, but the file has no such dim or constant", spec.document.key(path), help
            )
            continue
        item = around.item(value, path) if name in spec.dims else constant(around, value, path)
        if item is UNKNOWN or (name in spec.dims and around.as_size(item, path) is None):
            continue
        found[name] = item
    inner = build(spec, env.report, {**env.changes, **found}, in_stack)
    outer = frozenset(name for name in env.outer if name not in found)
    return replace(inner, free=env.free, outer=outer)
