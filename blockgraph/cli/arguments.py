"""What the commands' arguments have in common, in argparse; a slip is answered with what was probably meant."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NoReturn

from blockgraph.errors import near
from blockgraph.report import escape

FORMATS: Final = ("full", "concise", "json")
WIDTH: Final = 80
"""Columns of what is read without a screen: helps and examples."""


class Parser(argparse.ArgumentParser):
    """A parser that exits with 2 on a slip and then says one line about it, not the whole usage."""

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The options in the words of a command line; options may stand before, between and behind files."""
        options, unknown = self.parse_known_intermixed_args(words)
        if unknown:
            if not unknown[0].startswith("-"):
                self.error(f"`{unknown[0]}` is one argument too many")
            known = [name for action in self._actions for name in action.option_strings]
            found = near(unknown[0].partition("=")[0], known)
            self.error(f"there is no option {unknown[0]}" + (f"; did you mean {found}?" if found else ""))
        return options

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end with exit code 2."""
        self.exit(2, f"{self.prog}: {escape(message)}\ntry `{self.prog} --help`\n")


def indented(line: str, width: int) -> list[str]:
    """A line two columns in, on several where it is longer than the screen."""
    return _wrapped(line, max(width, 20), "  ", "    ")


def narrow(text: str, width: int = WIDTH) -> str:
    """A text in lines of at most `width` columns: paragraphs anew, commands at their options, behind a backslash."""
    rows: list[str] = []
    for (indent, is_command), group in groupby(text.splitlines(), _kind_of_line):
        lines = list(group)
        if all(len(line) <= width for line in lines):
            rows += lines
        elif is_command:
            rows += [row for line in lines for row in _command(line, width)]
        else:
            rows += _wrapped(" ".join(map(str.strip, lines)), width, indent, indent)
    return "\n".join(rows)


def _kind_of_line(line: str) -> tuple[str, bool]:
    bare = line.lstrip()
    return line[: len(line) - len(bare)], bare.startswith("blockgraph ")


def _command(line: str, width: int) -> list[str]:
    rows: list[str] = []
    for word in re.split(r" (?=--?[a-z])", line):
        if rows and len(rows[-1]) + len(word) + 3 <= width:
            rows[-1] += f" {word}"
        else:
            rows.append(f"      {word}" if rows else word)
    return [*(f"{row} \\" for row in rows[:-1]), rows[-1]]


def _wrapped(line: str, width: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        line, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def command_parser(name: str, summary: str, examples: str, formats: Sequence[str] = FORMATS) -> Parser:
    """The parser of one command, with its examples at the end of its help and the options that all commands have."""
    parser = Parser(
        prog=f"blockgraph {name}",
        description=narrow(summary),
        epilog=narrow(f"examples:\n{examples}"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    help = "give a dim or a constant of the spec another value (may be repeated)"
    parser.add_argument("--set", action="append", default=[], type=setting, metavar="NAME=VALUE", help=help)
    help = "full: for reading; concise: one line per finding; json: one document for a program"
    help += "; github: annotations in a workflow; sarif: a log for code hosts" if "sarif" in formats else ""
    parser.add_argument("--format", choices=formats, default="full", help=help)
    return parser


def setting(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as a pair."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, as in C=64, not {text!r}")
    return name.strip(), value.strip()


def whole(text: str, least: int) -> int:
    """A whole number of at least `least`."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"a whole number from {least} on is expected, not {text!r}")
    return number


def size(text: str) -> int:
    """The length of an axis."""
    return whole(text, 1)


def bytes_of(text: str) -> int:
    """A number of bytes: 800M, 12G, 1.5e9."""
    units = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    word = text.strip().upper().removesuffix("B")
    unit = units.get(word[-1:], 1)
    try:
        number = float(word[:-1] if unit > 1 else word) * unit
    except ValueError:
        number = -1
    if not 0 < number < 10**18:
        raise argparse.ArgumentTypeError(f"a number of bytes is expected, as in 800M or 12G, not {text!r}")
    return int(number)


def tolerance(text: str) -> float:
    """A relative difference, from 0 on and finite."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"a number from 0 on is expected, as in 1e-6, not {text!r}")
    return number


def seed(text: str) -> int:
    """The seed of a random generator."""
    return whole(text, 0)


def add_level(parser: Parser) -> None:
    """How close the picture looks."""
    help = "how close to look: a block as one box, its sublayers, or every op of attention, feed-forward and norms "
    help += "(default: sublayer)"
    parser.add_argument("--level", choices=("block", "sublayer", "op"), default="sublayer", help=help)


def add_theme(parser: Parser) -> None:
    """For which page the colours are."""
    help = "the colours: for a light page, a dark one, whichever the reader has (auto, SVG only; else light), or in "
    help += "greys for print (default: light)"
    parser.add_argument("--theme", choices=("light", "dark", "auto", "print"), default="light", help=help)


def add_rankdir(parser: Parser) -> None:
    """Which way the picture runs."""
    help = "let the figure run upwards (BT), or to the right (LR) with the residual rails above (default: BT)"
    parser.add_argument("--rankdir", choices=("BT", "LR"), default="BT", help=help)
