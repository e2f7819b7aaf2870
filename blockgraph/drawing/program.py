"""Runs the Graphviz program, the machine's or that of graphviz-pure, in a child process with a time limit."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from blockgraph.errors import EnvironmentFailure, Finding, Place

Format = Literal["svg", "png", "pdf"]
SECONDS: Final = 30
PURE: Final = "graphviz-pure"
VARIABLE: Final = "BLOCKGRAPH_DOT"
MAGIC: Final = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}
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
    output, words, code = _run(program, f"-T{format}", dot)
    if code != 0 or not _is_picture(output, format):
        raise EnvironmentFailure([_failed(program, format, words, code)])
    scaled = SCALED.search(words)
    notes = (_scaled(program, scaled[1]),) if scaled else ()
    return (plain_svg(output) if format == "svg" else output), notes


def _is_picture(output: bytes, format: Format) -> bool:
    """Whether it begins, and for SVG ends, as its format does."""
    return MAGIC[format] in output[:4096] and (format != "svg" or output.rstrip().endswith(b"</svg>"))


def _run(program: str, flag: str, dot: str) -> tuple[bytes, str, int]:
    """Output, words and exit code; a program that takes too long is ended with all its children."""
    pipe = subprocess.PIPE
    try:
        child = subprocess.Popen([program, flag], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    except OSError as error:
        raise EnvironmentFailure([_failed(program, flag[2:], error.strerror or "it cannot be started", 1)]) from None
    try:
        output, words = child.communicate(dot.encode("utf-8", "replace"), timeout=SECONDS)
    except subprocess.TimeoutExpired:
        _end(child)
        raise EnvironmentFailure([_slow(program)]) from None
    except BaseException:
        _end(child)
        raise
    return output, words.decode("utf-8", "replace"), child.returncode


def _end(child: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    child.communicate()


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


def _failed(program: str, format: str, words: str, code: int) -> Finding:
    said = next((line.strip() for line in words.splitlines() if line.strip()), "it said nothing")
    pdf = format == "pdf" and PURE in Path(program).name
    help = "graphviz-pure draws no PDF: install the system package `graphviz`, or draw SVG" if pdf else ""
    return Finding(
        "BG951",
        f"the Graphviz program made no {format.upper()}: {said[:200]} (exit code {code})",
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
