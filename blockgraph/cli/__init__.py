"""The command line: finds the command, runs it, and turns whatever happens into words and an exit code.

Nothing is loaded here before it is known to be needed: `--help` and `--version` answer at once.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Run a command line without the program's name and return the exit code.

    0 is clean (warnings and notes included), 1 means findings, 2 wrong usage or a fault of the machine. With the
    variable BLOCKGRAPH_DEBUG set, an exception of our own passes through.
    """
    try:
        return _answer(list(argv))
    except (Exception, KeyboardInterrupt) as error:
        from blockgraph.cli.command import ended_by

        return ended_by(error)


def _answer(words: list[str]) -> int:
    from blockgraph.cli.commands import names

    if words and words[0] in ("-V", "--version"):
        version = importlib.import_module(__name__.partition(".")[0]).__version__
        return _say(f"blockgraph {version}\n")
    if not words or words[0] in ("-h", "--help", "help"):
        if len(words) > 1 and words[1] in names():
            return _run(words[1], ["--help"])
        return _say(_overview(), error=not words)
    if words[0] not in names():
        return _unknown(words[0])
    return _run(words[0], words[1:])


def _run(name: str, words: list[str]) -> int:
    from blockgraph.cli.command import run

    return run(name, words)


def _say(text: str, error: bool = False) -> int:
    """Write a text of our own, which is ASCII; for a stream that fails there is the terminal, which has the words."""
    stream = sys.stderr if error else sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError, AttributeError):
        from blockgraph.cli.terminal import Terminal

        terminal = Terminal()
        (terminal.words if error else terminal.data)(text)
    return 2 if error else 0


def _unknown(word: str) -> int:
    from blockgraph.cli.commands import names
    from blockgraph.errors import near
    from blockgraph.report import escape

    kind = "option" if word.startswith("-") else "command"
    choices = names() if kind == "command" else ["--help", "--version"]
    found = near(word, choices)
    hint = f"; did you mean `{found}`?" if found else f": there are {', '.join(choices)}"
    return _say(f"blockgraph: there is no {kind} `{escape(word)}`{hint}\n", error=True)


def _overview() -> str:
    from textwrap import fill

    from blockgraph.cli.commands import names, summary_of

    listed = "".join(f"{fill(f'  {name:<9} {summary_of(name)}', 80, subsequent_indent=' ' * 12)}\n" for name in names())
    return (
        "usage: blockgraph COMMAND ...\n\n"
        "One spec file of a transformer gives the proof that its shapes fit, its numbers\nand its picture.\n\n"
        f"commands:\n{listed}\n"
        "  --help     this text; after a command, its options and examples\n"
        "  --version  the version\n\n"
        "examples:\n"
        "  blockgraph check specs/pre_norm.yaml\n"
        "  blockgraph run specs/pre_norm.yaml --seed 42 --batch 1 --time 6\n"
        "  blockgraph render specs/pre_norm.yaml -o pre_norm.svg\n"
    )


__all__ = ["main"]
