"""One command: what its module offers, how it is run, and what its end means for the exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from blockgraph.cli.arguments import FORMATS, Parser, command_parser
from blockgraph.cli.commands import load
from blockgraph.cli.terminal import OutputLost, Terminal, flush
from blockgraph.errors import BlockgraphError

INTERRUPTED: Final = 130
READER_GONE: Final = 141


class Command(Protocol):
    """One line that says what it does, examples for its help, its arguments and its work."""

    SUMMARY: str
    EXAMPLES: str

    def arguments(self, parser: Parser) -> None:
        """Add the command's own arguments."""

    def main(self, options: Namespace, terminal: Terminal) -> int:
        """Do the work and return the exit code. Raises BlockgraphError."""


def run(name: str, words: Sequence[str]) -> int:
    """Run one command with its arguments and return the exit code."""
    _end_cleanly()
    command = load(name)
    parser = command_parser(name, command.SUMMARY, command.EXAMPLES, getattr(command, "FORMATS", FORMATS))
    command.arguments(parser)
    try:
        options = parser.read(words)
        options.usage, options.words = parser.error, [name, *words]
    except SystemExit as end:
        code = int(end.code or 0)
    else:
        code = _guarded(command, options)
    flush()
    return code


def ended_by(error: BaseException) -> int:
    """The exit code of a command that was interrupted or lost its output; raises any other exception again."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError | OutputLost):
        _let_go()
    if isinstance(error, BrokenPipeError):
        return READER_GONE
    if isinstance(error, OutputLost):
        Terminal().findings(error.findings)
        return 2
    raise error


def _end_cleanly() -> None:
    """Let SIGTERM and SIGHUP pass through the code, so that children are ended and temporary files go."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:
                signal.signal(getattr(signal, name), leave)


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
        from blockgraph.room import used_up

        return terminal.failed([used_up("")])
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        from blockgraph.cli.faults import own_fault

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
