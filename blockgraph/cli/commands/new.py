"""`new`: a spec to begin with, its comments saying what may be changed."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from blockgraph.cli.arguments import Parser
from blockgraph.cli.files import refuse_existing, write_file
from blockgraph.cli.terminal import Terminal
from blockgraph.errors import near

SUMMARY = "write a spec to begin with, commented"
EXAMPLES = """\
  blockgraph new my_block
  blockgraph new my_block --from post_norm
  blockgraph new specs/my_model.yaml --from gpt --force
"""
SCHEMA: Final = "blockgraph.schema.json"
DEFAULT: Final = "pre_norm"
ENDING: Final = ".yaml"


def arguments(parser: Parser) -> None:
    """The name, and what to begin with."""
    parser.add_argument("name", metavar="NAME", help="the spec's name; a file NAME.yaml is written")
    parser.add_argument(
        "--from", dest="start", default=DEFAULT, metavar="STARTER", help=f"one of {', '.join(starters())}"
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Write the spec, and beside it the schema that its first line shows an editor, unless there is one."""
    if options.start not in starters():
        found = near(options.start, starters())
        hint = f"did you mean {found}?" if found else f"there are {', '.join(starters())}"
        options.usage(f"there is no starter {options.start}; {hint}")
    path, name = _path(options.name), _name(options.name)
    if not name:
        options.usage(f"{options.name} does not say how the spec is called")
    refuse_existing(path, options.force)
    text = starter(options.start).replace("NAME", name)
    write_file(path, lambda file: file.write(text.encode()), options.force)
    written = [path, *_schema(os.path.dirname(path))]
    terminal.words("".join(f"wrote {terminal.console.shown(one)}\n" for one in written))
    terminal.words(f"next: blockgraph check {terminal.console.shown(path)}\n")
    if terminal.format == "json":
        terminal.document({"ok": True, "findings": [], "files": written})
    return 0


def starters() -> list[str]:
    """What a spec can begin with."""
    return sorted(one.name.removesuffix(ENDING) for one in _folder().iterdir() if one.name.endswith(ENDING))


def starter(name: str) -> str:
    """The text of one; `NAME` stands where the spec's name belongs."""
    return (_folder() / f"{name}{ENDING}").read_text(encoding="utf-8")


def _folder() -> Traversable:
    return files("blockgraph") / "starters"


def _path(name: str) -> str:
    return name if name.endswith((".yaml", ".yml")) else f"{name}{ENDING}"


def _name(name: str) -> str:
    """The name without folder and ending, as a word that needs no quotes."""
    plain = os.path.basename(name)
    for ending in (".yaml", ".yml"):
        plain = plain.removesuffix(ending)
    return re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_")


def _schema(folder: str) -> list[str]:
    from blockgraph.jsonschema import json_schema_text

    path = os.path.join(folder, SCHEMA)
    if os.path.lexists(path):
        return []
    write_file(path, lambda file: file.write(json_schema_text().encode()))
    return [path]
