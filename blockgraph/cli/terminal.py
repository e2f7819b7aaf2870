"""The two streams a command writes to: answers go to standard output, words to standard error.

With `--format json` the findings are part of the answer. Whatever a stream's encoding is, writing never fails on it.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterable
from dataclasses import field
from typing import Any, Final, TextIO

from blockgraph.errors import EnvironmentFailure, Finding, Place, foremost
from blockgraph.records import dataclass
from blockgraph.report import Console, Format, Lines, as_data, formatted, write

DOCUMENTS: Final = frozenset({"json", "sarif"})
LINES: Final = frozenset({"concise", "github"})
READ: Final = frozenset({"full", "concise"})


class OutputLost(EnvironmentFailure):
    """An answer could not be written, so there is no use in writing more."""


def no_lines(path: str, number: int) -> None:
    """The lines of files that need not be shown."""


@dataclass(slots=True)
class Terminal:
    """Where one command writes; `everything`: all findings, also where a person reads them.

    `spaced` remembers that a finding was printed, so that the next one stands apart.
    """

    format: Format = "full"
    everything: bool = False
    spaced: bool = field(default=False)

    @property
    def console(self) -> Console:
        """What standard output can show."""
        return Console() if sys.stdout is None else Console.of(sys.stdout)

    @property
    def width(self) -> int:
        """The columns of the reader's screen; 80 where there is none."""
        return shutil.get_terminal_size((80, 24)).columns

    def data(self, text: str) -> None:
        """Write an answer."""
        _write(sys.stdout, text)

    def words(self, text: str) -> None:
        """Write a remark for a person; a program that asked for JSON gets none."""
        if self.format not in DOCUMENTS:
            _write(sys.stderr, text)

    def document(self, document: dict[str, Any]) -> None:
        """Write a JSON document. Only ASCII, so that any pipe carries it."""
        import json

        self.data(json.dumps(document, indent=2, allow_nan=False) + "\n")

    def findings(self, findings: Iterable[Finding], lines: Lines = no_lines, answer: bool = False) -> None:
        """Write findings, unless they belong into a JSON document.

        With `answer` they are what was asked for: lines for an editor then go to standard output. Of very many in a
        file a person reads the foremost, and how many there are beside.
        """
        stream = sys.stdout if answer and self.format in LINES else sys.stderr
        found = list(findings)
        if self.format in DOCUMENTS or not found or stream is None:
            return
        shown = found if self.everything or self.format not in READ else foremost(found)
        text = formatted(shown, lines, self.format, Console.of(stream))
        _write(stream, f"\n{text}" if self.spaced and self.format == "full" else text)
        self.spaced = True
        if len(shown) < len(found):
            left = len(found) - len(shown)
            space = "" if self.format == "concise" else "\n"
            self.words(f"{space}and {left:,} more: `check --all` tells all of them\n")

    def sarif(self, findings: Iterable[Finding]) -> None:
        """Write findings as a SARIF log."""
        from blockgraph.sarif import as_sarif

        version = importlib.import_module(__name__.partition(".")[0]).__version__
        self.document(as_sarif(findings, version))

    def failed(self, findings: Iterable[Finding], lines: Lines = no_lines) -> int:
        """Report findings that leave nothing else to say, and return the exit code they mean."""
        found = list(findings)
        if self.format == "json":
            self.document({"ok": exit_code(found) == 0, "findings": as_data(found)})
        if self.format == "sarif":
            self.sarif(found)
        self.findings(found, lines)
        return exit_code(found)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 clean (warnings and notes included), 1 a fault in what was given, 2 a fault of the machine."""
    errors = [finding for finding in findings if finding.severity == "error"]
    return 2 if any(finding.is_environment for finding in errors) else 1 if errors else 0


def flush() -> None:
    """Send out what still waits in the streams."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            _guarded(stream, "")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # a program can be started without one
        _guarded(stream, text)


def _guarded(stream: TextIO, text: str) -> None:
    """Write and send out. A reader that has gone away is no fault (BrokenPipeError passes); a full disk is one."""
    try:
        write(stream, text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        finding = Finding("BG903", f"cannot write the output: {reason}", Place(""), "make room, or send it elsewhere")
        raise OutputLost([finding]) from None
