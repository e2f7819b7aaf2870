"""The command line: finds the command, runs it, and turns whatever happens into words and an exit code.

Nothing heavy is loaded here: `--help` and `--version` answer at once.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from typing import Final, NoReturn

from blockgraph.cli.arguments import FORMATS, command_parser
from blockgraph.cli.commands import Command, load, names
from blockgraph.cli.faults import own_fault
from blockgraph.cli.terminal import OutputLost, Terminal, flush
from blockgraph.errors import BlockgraphError, Finding, Place, near
from blockgraph.report import escape

INTERRUPTED: Final = 130
READER_GONE: Final = 141


def main(argv: Sequence[str]) -> int:
    """Run a command line without the program's name and return the exit code.

    0 is clean (warnings and notes included), 1 means findings, 2 wrong usage or a fault of the machine. With the
    variable BLOCKGRAPH_DEBUG set, an exception of our own passes through.
    """
    _end_cleanly()
    try:
        code = _answer(list(argv))
        flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = READER_GONE
        _let_go()
    except OutputLost as error:
        code = 2
        _let_go()
        Terminal().findings(error.findings)
    return code


def _end_cleanly() -> None:
    """Let SIGTERM and SIGHUP pass through the code, so that children are ended and temporary files go."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:
                signal.signal(getattr(signal, name), leave)


def _answer(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        if len(words) > 1 and words[1] in names():
            return _run(words[1], ["--help"])
        _say(_overview(), error=not words)
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        version = importlib.import_module(__name__.partition(".")[0]).__version__
        _say(f"blockgraph {version}\n")
        return 0
    if words[0] not in names():
        kind = "option" if words[0].startswith("-") else "command"
        choices = names() if kind == "command" else ["--help", "--version"]
        found = near(words[0], choices)
        hint = f"; did you mean `{found}`?" if found else f": there are {', '.join(choices)}"
        _say(f"blockgraph: there is no {kind} `{escape(words[0])}`{hint}\n", error=True)
        return 2
    return _run(words[0], words[1:])


def _say(text: str, error: bool = False) -> None:
    terminal = Terminal()
    (terminal.words if error else terminal.data)(text)


def _overview() -> str:
    listed = "".join(f"  {name:<9} {load(name).SUMMARY}\n" for name in names())
    return (
        "usage: blockgraph COMMAND ...\n\n"
        "One spec file of a transformer gives the proof that its shapes fit, its numbers and its picture.\n\n"
        f"commands:\n{listed}\n"
        "  --help     this text; after a command, its options and examples\n"
        "  --version  the version\n\n"
        "examples:\n"
        "  blockgraph check specs/pre_norm.yaml\n"
        "  blockgraph run specs/pre_norm.yaml --seed 42 --batch 1 --time 6\n"
        "  blockgraph render specs/pre_norm.yaml -o pre_norm.svg\n"
    )


def _run(name: str, words: list[str]) -> int:
    """Run one command."""
    command = load(name)
    parser = command_parser(name, command.SUMMARY, command.EXAMPLES, getattr(command, "FORMATS", FORMATS))
    command.arguments(parser)
    try:
        options = parser.read(words)
        options.usage, options.words = parser.error, [name, *words]
    except SystemExit as end:
        return int(end.code or 0)
    return _guarded(command, options)


def _guarded(command: Command, options: Namespace) -> int:
    """The command's exit code; an exception that nobody expected becomes one line that asks for a report."""
    terminal = Terminal(options.format)
    try:
        return command.main(options, terminal)
    except SystemExit as end:
        return int(end.code or 0)
    except OutputLost:
        raise
    except BlockgraphError as error:
        return terminal.failed(error.findings)
    except MemoryError:
        help = "choose a smaller --batch or --time, or --dtype float32"
        return terminal.failed([Finding("BG904", "the memory of this machine is not enough", Place(""), help)])
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        return terminal.failed([own_fault(error, options.words)])


def _let_go() -> None:
    """Point the streams at nothing, so that Python does not complain about them when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            except OSError:
                continue
        except (AttributeError, ValueError):
            continue


__all__ = ["main"]
