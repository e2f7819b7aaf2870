"""What a person reads when a spec is wrong, letter by letter: no message ships unread."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from blockgraph import report
from blockgraph.errors import Finding, InputError, Place, Position, Related

MINE = "specs/mine.yaml"


def place(line: int, start: int, end: int, path: str = MINE, spec_path: str = "") -> Place:
    return Place(path, Position(line, start), Position(line, end), spec_path)


def only(text: str) -> Callable[[str, int], str]:
    """A file that has the same text on every line."""
    return lambda path, line: text


def no_lines(path: str, line: int) -> None:
    """A file that is gone."""


def under(text: str, start: int, end: int, label: str = "", **console: str) -> list[str]:
    """The two rows of the snippet of a one-line spec, without the gutter."""
    finding = Finding("BG001", "m", place(1, start, end), label=label)
    rows = report.full(finding, only(text), report.Console(**console)).split("\n")
    return [row[8:] for row in rows[1:]]


BRANCH = Finding(
    "BG101",
    "the branch does not fit the stream it is added to",
    place(14, 15, 27, spec_path="block.equations[1]"),
    help="`out` of feed_forward is 3*C; leave it out, or write `out: C`",
    label="(B, T, 3*C), from feed_forward, line 9",
    related=(Related("stream x is (B, T, C), from line 13", place(14, 11, 12)),),
)


def test_a_shape_mismatch_reads_as_in_the_style_guide() -> None:
    assert report.full(BRANCH, only("    - x = x + ff(norm2(x))")) == (
        "BG101 specs/mine.yaml:14:15  the branch does not fit the stream it is added to\n"
        "   14 |     - x = x + ff(norm2(x))\n"
        "      |               ^^^^^^^^^^^^ (B, T, 3*C), from feed_forward, line 9\n"
        "      |           stream x is (B, T, C), from line 13\n"
        "  help: `out` of feed_forward is 3*C; leave it out, or write `out: C`"
    )


def test_a_related_place_on_another_line_is_a_note_with_its_line() -> None:
    twice = Finding(
        "BG012",
        "`heads` is given twice",
        place(9, 5, 10),
        help="keep one of them",
        label="4 here",
        related=(Related("8 here", place(5, 5, 10)),),
    )
    assert report.full(twice, only("    heads: 4")) == (
        "BG012 specs/mine.yaml:9:5  `heads` is given twice\n"
        "    9 |     heads: 4\n"
        "      |     ^^^^^ 4 here\n"
        "  note: 8 here (specs/mine.yaml:5)\n"
        "  help: keep one of them"
    )


def test_nothing_is_lost_when_the_line_cannot_be_had() -> None:
    assert report.full(BRANCH, no_lines) == (
        "BG101 specs/mine.yaml:14:15  the branch does not fit the stream it is added to\n"
        "  note: (B, T, 3*C), from feed_forward, line 9\n"
        "  note: stream x is (B, T, C), from line 13 (specs/mine.yaml:14)\n"
        "  help: `out` of feed_forward is 3*C; leave it out, or write `out: C`"
    )


def test_a_warning_says_that_it_is_one_in_every_format() -> None:
    lint = Finding("BG201", "norm of a norm", place(3, 5, 6), severity="warning")
    assert report.full(lint, only("    x")).startswith("warning BG201 specs/mine.yaml:3:5  norm of a norm\n")
    assert report.concise(lint) == "specs/mine.yaml:3:5: warning BG201 norm of a norm"
    assert report.as_data([lint])[0]["severity"] == "warning"


def test_a_finding_on_a_whole_file_shows_no_line() -> None:
    empty = Finding("BG001", "the file is empty", Place(MINE), help="start with `blockgraph new NAME`")
    assert report.full(empty, only("text")) == (
        "BG001 specs/mine.yaml:1:1  the file is empty\n  help: start with `blockgraph new NAME`"
    )


def test_a_label_at_the_very_start_of_a_file_is_shown_under_its_line() -> None:
    brace = Finding("BG001", "the bracket is never closed", Place(MINE), label="opened here")
    assert report.full(brace, only("{")).split("\n")[1:] == ["    1 | {", "      | ^ opened here"]


def test_a_finding_without_a_file_names_none() -> None:
    missing = Finding("BG901", "the program dot was not found", Place(""), related=(Related("looked in PATH"),))
    assert report.full(missing, only("text")) == "BG901  the program dot was not found\n  note: looked in PATH"
    assert report.concise(missing) == "BG901 the program dot was not found"
    assert str(InputError([missing])) == "BG901  the program dot was not found\n  looked in PATH"
    (told,) = report.as_data([missing])
    assert (told["path"], told["range"]) == (None, None)


def test_several_findings_are_parted_by_an_empty_line() -> None:
    first, second = (Finding("BG001", "m", place(n, 1, 3)) for n in (1, 2))
    assert report.formatted([first, second], only("ab")) == (
        "BG001 specs/mine.yaml:1:1  m\n    1 | ab\n      | ^^\n\nBG001 specs/mine.yaml:2:1  m\n    2 | ab\n      | ^^\n"
    )
    assert report.formatted([], only("ab")) == ""


def test_concise_is_one_line_each_whatever_the_message_holds() -> None:
    assert report.formatted([BRANCH, Finding("BG002", "bad key 'a\nb'", place(2, 3, 4))], no_lines, "concise") == (
        "specs/mine.yaml:14:15: BG101 the branch does not fit the stream it is added to\n"
        "specs/mine.yaml:2:3: BG002 bad key 'a\\nb'\n"
    )


def test_json_carries_every_part_of_a_finding() -> None:
    assert json.loads(report.formatted([BRANCH], no_lines, "json")) == [
        {
            "code": "BG101",
            "severity": "error",
            "message": "the branch does not fit the stream it is added to",
            "label": "(B, T, 3*C), from feed_forward, line 9",
            "help": "`out` of feed_forward is 3*C; leave it out, or write `out: C`",
            "path": "specs/mine.yaml",
            "range": {"start": {"line": 14, "column": 15}, "end": {"line": 14, "column": 27}},
            "spec_path": "block.equations[1]",
            "related": [
                {
                    "message": "stream x is (B, T, C), from line 13",
                    "path": "specs/mine.yaml",
                    "range": {"start": {"line": 14, "column": 11}, "end": {"line": 14, "column": 12}},
                }
            ],
        }
    ]
    assert report.as_data([Finding("BG901", "m", Place(""), related=(Related("r"),))])[0]["related"] == [
        {"message": "r", "path": None, "range": None}
    ]


def test_json_is_ascii_without_control_characters() -> None:
    text = report.as_json([Finding("BG001", "é \x1b[31m \x7f \u202e", place(1, 1, 2))])
    assert text.isascii()
    assert not {"\x1b", "\x7f"} & set(text)
    assert json.loads(text)[0]["message"] == "é \x1b[31m \x7f \u202e"


@pytest.mark.parametrize(
    ("severities", "text"),
    [
        ("", "no findings"),
        ("e", "1 error"),
        ("wee", "2 errors, 1 warning"),
        ("nnw", "1 warning, 2 notes"),
    ],
)
def test_the_summary_counts_what_there_is(severities: str, text: str) -> None:
    names = {"e": "error", "w": "warning", "n": "note"}
    findings = [Finding("BG001", "m", place(1, 1, 2), severity=names[letter]) for letter in severities]
    assert report.summary(findings) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x9b31m\x7f\x00", r"\x9b31m\x7f\x00"),
        ("zero\u200bwidth\ufeff\u2028", r"zero\u200bwidth\ufeff\u2028"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("γ é 層 x̂", "γ é 層 x̂"),
    ],
)
def test_what_steers_a_terminal_is_spelled_out(text: str, shown: str) -> None:
    assert report.escape(text) == shown


def test_a_spec_cannot_speak_to_the_terminal_through_any_part_of_a_finding() -> None:
    evil = "\x1b]0;owned\x07\u202e\r"
    bad = Finding("BG001", evil, place(1, 1, 9, evil), evil, evil, (Related(evil, place(1, 2, 3, evil)), Related(evil)))
    for text in (report.full(bad, only(evil)), report.full(bad, no_lines), report.concise(bad), report.as_json([bad])):
        assert not set(text) & {"\x1b", "\x07", "\u202e", "\r"}


@pytest.mark.parametrize(
    ("text", "start", "end", "rows"),
    [
        ("ab cd", 4, 6, ["ab cd", "   ^^"]),
        ("層層 cd", 4, 6, ["層層 cd", "     ^^"]),
        ("a層b", 2, 3, ["a層b", " ^^"]),
        ("x\u0302 cd", 4, 6, ["x\u0302 cd", "  ^^"]),
        ("\x1b cd", 3, 5, [r"\x1b cd", "     ^^"]),
        ("\tcd", 2, 4, ["    cd", "    ^^"]),
        ("ab\tcd", 4, 6, ["ab  cd", "    ^^"]),
        ("\tcd", 1, 2, [r"\tcd", "^^"]),
        ("a\tb", 2, 2, [r"a\tb", " ^"]),
        ("ab", 3, 3, ["ab", "  ^"]),
        ("ab", 9, 12, ["ab", "  ^"]),
        ("ab\r\n", 1, 3, ["ab", "^^"]),
    ],
)
def test_the_caret_stands_under_the_guilty_text(text: str, start: int, end: int, rows: list[str]) -> None:
    assert under(text, start, end) == rows


def test_a_place_of_several_lines_is_marked_to_the_end_of_its_first() -> None:
    long = Finding("BG001", "m", Place(MINE, Position(3, 4), Position(7, 2)), label="here")
    assert report.full(long, only("ab cdef")).split("\n")[1:] == ["    3 | ab cdef", "      |    ^^^^ here"]


@pytest.mark.parametrize("start", [1, 2, 40, 92, 93, 150, 291, 298])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_long_line_is_cut_around_the_caret_to_100_columns(start: int, encoding: str) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(300))
    shown, carets = under(text, start, start + 3, encoding=encoding)
    at = carets.index("^")
    assert shown[at : at + 3] == text[start - 1 : start + 2]
    assert carets.count("^") == 3
    dots = "…" if encoding == "utf-8" else "..."
    assert shown.startswith(dots) == (not shown.startswith("abc"))
    assert 84 <= len(shown) <= 92


def test_a_line_of_exactly_100_columns_is_not_cut() -> None:
    assert under("a" * 92, 1, 2)[0] == "a" * 92
    assert under("a" * 93, 1, 2)[0] == "a" * 90 + "…"


def test_a_guilty_text_wider_than_the_screen_is_shown_from_its_start() -> None:
    shown, carets = under("x = " + "y" * 5000, 5, 5005)
    assert shown == "…" + "y" * 90 + "…"
    assert carets == " " + "^" * 90


def test_wide_characters_count_double_where_a_line_is_cut() -> None:
    shown, _ = under("層" * 300, 150, 151)
    assert report.columns(shown) <= 92
    assert report.columns(shown) >= 89


def test_a_label_without_room_beside_the_caret_stands_below() -> None:
    rows = under("a" * 90, 80, 91, label="(B, T, 3*C), from feed_forward, line 9")
    assert rows[1] == " " * 79 + "^" * 11
    assert rows[2] == " " * 54 + "(B, T, 3*C), from feed_forward, line 9"


def test_help_is_wrapped_between_words_but_not_inside_code() -> None:
    help = "leave the width out and it follows from the stream, or write it as an expression: `out: 4 * C`"
    text = report.full(Finding("BG001", "m", place(1, 1, 2), help=help + "\nor ask\n  again"), no_lines)
    assert text.split("\n")[1:] == [
        "  help: leave the width out and it follows from the stream, or write it as an expression:",
        "        `out: 4 * C`",
        "        or ask",
        "          again",
    ]


def test_a_lone_backquote_does_not_swallow_words() -> None:
    text = report.full(Finding("BG001", "m", place(1, 1, 2), help="a ` b  c `"), no_lines)
    assert text.endswith("  help: a ` b  c `")
    text = report.full(Finding("BG001", "m", place(1, 1, 2), help="it`s odd"), no_lines)
    assert text.endswith("  help: it`s odd")


def test_the_caret_stays_aligned_on_a_console_that_lacks_the_characters() -> None:
    assert under("γ × cd", 5, 7, encoding="ascii") == [r"\u03b3 x cd", "         ^^"]
    assert under("γ × cd", 5, 7, encoding="cp1252") == [r"\u03b3 × cd", "         ^^"]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", "x × 96 … γ"),
        ("cp1252", r"x × 96 … \u03b3"),
        ("ascii", r"x x 96 ... \u03b3"),
    ],
)
def test_any_console_can_be_written_to(encoding: str, text: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    report.write(stream, "x × 96 … γ")
    stream.flush()
    assert raw.getvalue().decode(encoding) == text


def test_a_lone_surrogate_can_be_written() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", errors="strict")
    report.write(stream, "a\ud800")
    stream.flush()
    assert raw.getvalue() == rb"a\ud800"


def test_text_in_memory_has_no_encoding_and_takes_everything() -> None:
    stream = io.StringIO()
    report.write(stream, "× …")
    assert stream.getvalue() == "× …"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.skipif("os.name == 'nt'", reason="consoles of Windows get plain text")
@pytest.mark.parametrize(
    ("stream", "environment", "color"),
    [
        (Terminal(), {}, True),
        (io.StringIO(), {}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    stream: io.StringIO, environment: dict[str, str], color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert report.Console.of(stream).color is color


def test_colours_change_nothing_but_the_colour() -> None:
    line = only("    - x = x + ff(norm2(x))")
    colored = report.full(BRANCH, line, report.Console(color=True))
    assert colored.startswith("\x1b[1;31mBG101\x1b[0m specs/mine.yaml:14:15  the branch")
    for code in ("1;31", "1;36", "2", "0"):
        assert f"\x1b[{code}m" in colored
        colored = colored.replace(f"\x1b[{code}m", "")
    assert colored == report.full(BRANCH, line)


def test_of_a_line_of_a_megabyte_only_the_part_that_fits_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(report, "columns", lambda text: seen.append(len(text)) or len(text))
    shown, carets = under("x" * 1_000_000, 500_000, 500_001)
    assert shown[carets.index("^")] == "x"
    assert len(shown) == 92
    assert sum(seen) < 1_000
