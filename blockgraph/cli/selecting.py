"""Which findings a command line wants to hear of: `--select` and `--ignore` with codes or beginnings of codes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Final

from blockgraph.cli.arguments import Parser
from blockgraph.errors import Finding

CODES: Final = re.compile(r"BG[0-9]{0,3}")


def add_arguments(parser: Parser) -> None:
    """The two options."""
    help = "tell only findings of these codes, or of codes that begin so: BG1,BG203 (faults of the machine always)"
    parser.add_argument("--select", action="append", type=code_list, default=[], metavar="CODES", help=help)
    help = "tell no findings of these codes; they do not count for the exit code either"
    parser.add_argument("--ignore", action="append", type=code_list, default=[], metavar="CODES", help=help)


def code_list(text: str) -> tuple[str, ...]:
    """`BG1,bg203` as codes. Raises ArgumentTypeError."""
    codes = tuple(word.strip().upper() for word in text.split(",") if word.strip())
    if not codes or not all(CODES.fullmatch(code) for code in codes):
        raise argparse.ArgumentTypeError(f"codes are expected, as in BG203 or BG1,BG203, not {text!r}")
    return codes


def chosen(
    findings: Iterable[Finding], select: Iterable[Sequence[str]], ignore: Iterable[Sequence[str]]
) -> tuple[Finding, ...]:
    """The findings that are to be told, in the same order; the longest beginning that fits a code decides."""
    wanted = [code for codes in select for code in codes]
    unwanted = [code for codes in ignore for code in codes]
    return tuple(one for one in findings if one.is_environment or _is_chosen(one.code, wanted, unwanted))


def _is_chosen(code: str, wanted: Sequence[str], unwanted: Sequence[str]) -> bool:
    for_it = max((len(begin) for begin in wanted if code.startswith(begin)), default=-1 if wanted else 0)
    against = max((len(begin) for begin in unwanted if code.startswith(begin)), default=-1)
    return for_it > against
