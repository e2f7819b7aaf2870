"""Runs the Graphviz program, the machine's or that of graphviz-pure, in a child process with a time limit."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from threading import Thread
from typing import IO, Final, Literal
from xml.parsers.expat import ExpatError, ParserCreate

from blockgraph.errors import EnvironmentFailure, Finding, Place

Format = Literal["svg", "png", "pdf"]
ENDINGS: Final = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".dot": "dot", ".gv": "dot"}
"""The format of a file by the ending of its name."""
SECONDS: Final = 30
PURE: Final = "graphviz-pure"
VARIABLE: Final = "BLOCKGRAPH_DOT"
OUTPUT: Final = 128 << 20
"""Bytes of a picture: the largest spec that can be expanded gives less than a tenth."""
WORDS: Final = 1 << 16
STARTS: Final = {"svg": (b"<?xml", b"<svg"), "png": (b"\x89PNG",), "pdf": (b"%PDF",)}
ENDS: Final = {"svg": b"</svg>", "png": b"IEND", "pdf": b"%%EOF"}
SHARP: Final = 2
"""A bitmap has twice the pixels of the picture at its plain size, for screens that show it so and for slides."""
SCALED: Final = re.compile(r"Scaling by ([0-9.]+) to fit")


def find_dot() -> str | None:
    """The path of the Graphviz program: `$BLOCKGRAPH_DOT`, else `dot`, else that of graphviz-pure, else None."""
    named = os.environ.get(VARIABLE)
    if named:
        return shutil.which(named)
    return shutil.which("dot") or _pure()


def _pure() -> str | None:
    """The program in the package graphviz-pure, also when its folder is not on PATH."""
    try:
        files = metadata.files(PURE) or []
    except metadata.PackageNotFoundError:
        return shutil.which(PURE)
    listed = (
        Path(str(file.locate())) for file in files if file.stem == PURE and file.parent.name in ("bin", "Scripts")
    )
    scripts = sysconfig.get_path("scripts")
    return next((str(path.resolve()) for path in listed if path.is_file()), None) or shutil.which(PURE, path=scripts)


def draw(dot: str, format: Format) -> bytes:
    """The picture of a DOT text.

    Raises EnvironmentFailure: BG950 no program, BG951 it failed, BG952 it took too long.
    """
    return picture(dot, format)[0]


def picture(dot: str, format: Format) -> tuple[bytes, tuple[Finding, ...]]:
    """The picture and what to know of it: a warning (BG953) when the program made it smaller. Raises as `draw` does."""
    program = find_dot()
    if program is None:
        raise EnvironmentFailure([_missing()])
    output, words, code = _run(program, format, dot)
    if code != 0 or not _is_picture(output, format):
        raise EnvironmentFailure([_failed(program, format, _said(words, code, bool(output)))])
    scaled = SCALED.search(words)
    factor = float(scaled[1]) * SHARP if scaled else 1.0
    notes = (_scaled(program, f"{factor:.3g}"),) if factor < 1 else ()
    return (plain_svg(output) if format == "svg" else output), notes


def _is_picture(output: bytes, format: Format) -> bool:
    """Whether it begins and ends as its format does; an SVG is read to its end."""
    if not output[:4096].lstrip().startswith(STARTS[format]) or ENDS[format] not in output[-64:]:
        return False
    try:
        if format == "svg":
            ParserCreate().Parse(output, True)
    except ExpatError:
        return False
    return True


class _Reader(Thread):
    """Reads a stream to its end and keeps its first bytes; when there are more it says so at once."""

    def __init__(self, stream: IO[bytes], most: int, on_more: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.stream, self.most, self.on_more = stream, most, on_more
        self.kept, self.more = b"", False
        self.start()

    def run(self) -> None:
        """Read on past what is kept, so that the program is not left waiting."""
        kept: list[bytes] = []
        room = self.most
        with self.stream:
            while piece := self.stream.read(1 << 16):
                kept.append(piece[:room])
                room -= len(kept[-1])
                if len(piece) > len(kept[-1]) and not self.more:
                    self.more = True
                    self.on_more()
        self.kept = b"".join(kept)


def _run(program: str, format: Format, dot: str) -> tuple[bytes, str, int]:
    """Output, words and exit code; a program that takes too long or writes too much is ended with all its children."""
    pipe = subprocess.PIPE
    command = [program, f"-T{format}", *((f"-Gdpi={96 * SHARP}",) if format == "png" else ())]
    try:
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    except OSError as error:
        raise EnvironmentFailure([_failed(program, format, error.strerror or "it cannot be started")]) from None
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    output = _Reader(child.stdout, OUTPUT, lambda: _kill(child))
    words = _Reader(child.stderr, WORDS, lambda: None)
    threads = (output, words, Thread(target=_feed, args=(child.stdin, dot.encode("utf-8", "replace")), daemon=True))
    try:
        threads[-1].start()
        deadline = time.monotonic() + SECONDS
        _join(threads, deadline)
        with suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, deadline - time.monotonic()))
        slow = child.returncode is None or any(one.is_alive() for one in threads)
    finally:
        _kill(child)
        code = child.wait()
        _join(threads, time.monotonic() + 1)
    if slow:
        raise EnvironmentFailure([_slow(program)])
    if output.more:
        raise EnvironmentFailure([_failed(program, format, f"it was stopped after {OUTPUT >> 20} MiB of output")])
    return output.kept, words.kept.decode("utf-8", "replace"), code


def _feed(stream: IO[bytes], content: bytes) -> None:
    """Write all of it; a program that does not read to the end is judged by what it writes."""
    with suppress(OSError), stream:
        stream.write(content)


def _join(threads: Iterable[Thread], deadline: float) -> None:
    for one in threads:
        one.join(max(0.0, deadline - time.monotonic()))


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the program and whatever it started that is still there."""
    with suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL) if hasattr(os, "killpg") else child.kill()


def plain_svg(output: bytes) -> bytes:
    """The SVG without its document type, which points to another site."""
    return re.sub(rb"<!DOCTYPE[^>]*>\s*", b"", output, count=1)


def _missing() -> Finding:
    named = os.environ.get(VARIABLE)
    what = f"${VARIABLE} names {named}, and there is no such program" if named else "Graphviz program not found"
    return Finding(
        "BG950",
        what if not named else f"Graphviz program not found: {what}",
        Place(named or "dot"),
        "install the system package `graphviz`, or `pip install graphviz-pure`; DOT text needs neither",
    )


def _said(words: str, code: int, wrote: bool) -> str:
    """What a program that made no picture had to say, and how it ended."""
    said = next((line.strip() for line in words.splitlines() if line.strip()), "it said nothing")[:200]
    if code < 0:
        name = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
        return f"{said} (it was ended by {name})"
    if code == 0 and wrote:
        said = said if words.strip() else "what it wrote is not one"
    return f"{said} (exit code {code})"


def _failed(program: str, format: str, said: str) -> Finding:
    pdf = format == "pdf" and PURE in Path(program).name
    help = "graphviz-pure draws no PDF: install the system package `graphviz`, or draw SVG" if pdf else ""
    return Finding(
        "BG951",
        f"the Graphviz program made no {format.upper()}: {said}",
        Place(program),
        help or f"draw to DOT to see the text it was given, or name another program in ${VARIABLE}",
    )


def _scaled(program: str, factor: str) -> Finding:
    return Finding(
        "BG953",
        f"the picture is too large for a bitmap: it was made smaller by the factor {factor} and may be blurred",
        Place(program),
        "draw SVG or PDF, which have no such limit",
        severity="warning",
    )


def _slow(program: str) -> Finding:
    return Finding(
        "BG952",
        f"the Graphviz program was stopped: it took more than {SECONDS} seconds",
        Place(program),
        "draw without `expand`, or draw to DOT and lay it out elsewhere",
    )
