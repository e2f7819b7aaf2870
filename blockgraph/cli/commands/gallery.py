"""`gallery`: an index page of many specs, and a page for each with its facts and its difference from all others."""

from __future__ import annotations

import glob
import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Final

from blockgraph.cli.arguments import Parser
from blockgraph.cli.terminal import Terminal
from blockgraph.wording import counted

if TYPE_CHECKING:
    from blockgraph.errors import Finding
    from blockgraph.gallery import Exhibit

SUMMARY = "make pages of many specs: pictures, facts, and what differs between any two"
EXAMPLES = """\
  blockgraph gallery specs/ -o gallery
  blockgraph gallery specs/models mine.yaml -o gallery --force
"""
ENDINGS: Final = (".yaml", ".yml", ".json")


def arguments(parser: Parser) -> None:
    """The specs, and the folder of the pages."""
    help = "spec files and folders; of a folder all .yaml, .yml and .json files, however deep"
    parser.add_argument("specs", nargs="+", metavar="SPEC", help=help)
    help = "the folder for the pages, made if it is not there; the first page is index.html"
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help=help)
    parser.add_argument("--force", action="store_true", help="replace pages that are there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Write all pages; specs with findings get one too."""
    from blockgraph.cli.files import refuse_existing, write_file
    from blockgraph.cli.pictures import end
    from blockgraph.gallery import INDEX, pages

    names = list(dict.fromkeys(_specs(options.specs)))
    if not names:
        options.usage(f"there is no spec in {', '.join(options.specs)}: they end in {', '.join(ENDINGS)}")
    faults: list[Finding] = []
    exhibits = _exhibits(names, options, terminal, faults)
    if not exhibits:
        return end(terminal, faults, [])
    for file in (INDEX, *(one.file for one in exhibits)):
        refuse_existing(os.path.join(options.output, file), options.force)
    _make(options.output)
    findings = [*faults, *(finding for one in exhibits for finding in one.findings)]
    undrawn: list[Finding] = []
    written = []
    for file, text in pages(exhibits, undrawn):
        written.append(os.path.join(options.output, file))
        write_file(written[-1], partial(_fill, text), options.force)
    terminal.findings(undrawn)
    terminal.words(f"wrote {terminal.console.shown(written[0])} and {counted(len(written) - 1, 'page')}\n")
    return end(terminal, [*findings, *undrawn], written)


def _fill(text: str, stream: BinaryIO) -> None:
    stream.write(text.encode("utf-8", "replace"))


def _specs(names: Sequence[str]) -> Iterator[str]:
    """The files, and all specs in the folders, in the order of their names."""
    from blockgraph.cli.specs import expanded

    for name in expanded(names):
        if os.path.isdir(name):
            found = glob.glob(os.path.join(glob.escape(name), "**", "*"), recursive=True)
            yield from sorted(path for path in found if path.endswith(ENDINGS) and os.path.isfile(path))
        else:
            yield name


def _exhibits(names: Sequence[str], options: Namespace, terminal: Terminal, faults: list[Finding]) -> list[Exhibit]:
    """What is to be shown; a file that cannot be opened is not, and why goes to the faults."""
    from blockgraph.cli.specs import examine, values
    from blockgraph.gallery import Exhibit, file_names

    found = {}
    for name in names:
        one = examine(name, values(options.set))
        terminal.findings(one.findings, one.lines)
        if one.checked is None and all(finding.is_environment for finding in one.findings):
            faults += one.findings
        else:
            found[name] = one
    places = zip(found.values(), file_names(list(found)), strict=True)
    exhibits = (Exhibit(one.path, group, file, one.checked, one.findings, one.lines) for one, (group, file) in places)
    return sorted(exhibits, key=lambda one: one.group)


def _make(folder: str) -> None:
    """Make the folder. Raises EnvironmentFailure (BG903)."""
    from blockgraph.errors import EnvironmentFailure, Finding, Place

    try:
        os.makedirs(folder, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message, help = f"cannot make the folder {folder}: {reason}", "name another one"
        raise EnvironmentFailure([Finding("BG903", message, Place(folder), help)]) from None
