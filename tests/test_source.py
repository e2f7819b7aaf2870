"""The reader of spec files: what it takes, what it refuses and where, and where every character stands."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from blockgraph.errors import EnvironmentFailure, Finding, Position, SpecError
from blockgraph.source import Document, decode, parse, read


def faults(text: str, name: str = "s.yaml") -> list[tuple[str, int, int]]:
    """The code, line and column of each finding in a text that must be refused."""
    with pytest.raises(SpecError, match="BG0") as caught:
        parse(text, name)
    return [(f.code, f.place.start.line, f.place.start.column) for f in caught.value.findings]


def outcome(text: str, name: str) -> Document | tuple[Finding, ...]:
    """What reading gives: a document or findings, and nothing else."""
    try:
        return parse(text, name)
    except SpecError as error:
        return error.findings


WORDS: list[tuple[str, Any]] = [
    ("1e-5", 1e-5), ("1E-5", 1e-5), ("1e5", 100000.0), ("1.0e5", 100000.0), (".5", 0.5), ("5.", 5.0), ("-1.5", -1.5),
    ("0", 0), ("-7", -7), ("+7", 7), ("007", 7), ("0o17", 15), ("0x1F", 31), (".inf", math.inf), ("-.INF", -math.inf),
    ("~", None), ("null", None), ("NULL", None), ("", None), ("true", True), ("TRUE", True), ("False", False),
    ("no", "no"), ("yes", "yes"), ("on", "on"), ("off", "off"), ("1_000", "1_000"), ("12:30:00", "12:30:00"),
    ("2024-01-01", "2024-01-01"), ("0b1", "0b1"), ("1e", "1e"), ("4C", "4C"), ("4*C", "4*C"), ("N - 1", "N - 1"),
    ("inf", "inf"), ("nan", "nan"), ("tRUE", "tRUE"), ("-", None), ("0o8", "0o8"), ("1.2.3", "1.2.3"), ("-0x1", "-0x1"),
    ('"1e-5"', "1e-5"), ("'8'", "8"), ('"true"', "true"), ("x#y", "x#y"), ("a:b", "a:b"), ("4\t# four", 4),
]  # fmt: skip


@pytest.mark.parametrize(("word", "value"), [pair for pair in WORDS if pair[0] != "-"])
def test_a_word_means_what_yaml_1_2_says(word: str, value: Any) -> None:
    got = parse(f"k: {word}\n", "s.yaml").data["k"]
    assert (type(got), got) == (type(value), value)


def test_not_a_number_is_read_as_a_float() -> None:
    assert math.isnan(parse("k: .nan\n", "s.yaml").data["k"])


ACCEPTED: list[tuple[str, Any]] = [
    ("a: 1\n", {"a": 1}),
    ("---\na: 1\n...\n", {"a": 1}),
    ("%YAML 1.2\n---\na: 1\n", {"a": 1}),
    ("\ufeffa: 1\n", {"a": 1}),
    ("a: 1\r\nb:\r\n  c: 2\r\n", {"a": 1, "b": {"c": 2}}),
    ('{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
    ("a: &n {k: 1}\nb: *n\nc: [*n, *n]\n", {"a": {"k": 1}, "b": {"k": 1}, "c": [{"k": 1}, {"k": 1}]}),
    ("l:\n  - x = x + f(x) # residual\n", {"l": ["x = x + f(x)"]}),
    ("l:\n  - h = q: k\n", {"l": [{"h = q": "k"}]}),
    ("e: |\n  x = y  # c\n\n  z = x\n", {"e": "x = y  # c\n\nz = x\n"}),
    ("dims: {B: , C: }\n", {"dims": {"B": None, "C": None}}),
    ('"<<": 1\n', {"<<": 1}),
    ('a: "\\u0041\\x42\\n"\n', {"a": "AB\n"}),
]


@pytest.mark.parametrize(("text", "data"), ACCEPTED)
def test_good_yaml_is_read(text: str, data: Any) -> None:
    assert parse(text, "s.yaml").data == data


REFUSED: list[tuple[str, str, int, int]] = [
    # repeated keys, tags, merge keys, keys that are no text
    ("a:\n  heads: 8\n  x: 1\n  heads: 4\n", "BG002", 4, 3),
    ('a: {b: 1, "b": 2}\n', "BG002", 1, 11),
    ("a: !!python/object/apply:os.system ['true']\n", "BG004", 1, 4),
    ("a: !!str 8\n", "BG004", 1, 4),
    ("a: &n !x {b: 1}\n", "BG004", 1, 7),
    ("a: !e!x 1\n", "BG004", 1, 4),
    ("a: ! b\n", "BG004", 1, 4),
    ("a: ! [b]\n", "BG004", 1, 4),
    ("! a: b\n", "BG004", 1, 1),
    ("a: !x\nb: 1\n", "BG004", 1, 4),
    ("a: &n {x: 1}\nb:\n  <<: *n\n", "BG005", 3, 3),
    ("a:\n  true: 1\n", "BG006", 2, 3),
    ("1: a\n", "BG006", 1, 1),
    ("1e5: a\n", "BG006", 1, 1),
    ("null: a\n", "BG006", 1, 1),
    ("[a, b]: c\n", "BG006", 1, 1),
    ("a: {{b}}\n", "BG006", 1, 5),
    # tabs
    ("a:\n  b: 1\n\n\n\n# six\n\tc: 1\n", "BG003", 7, 1),
    ("a:\n\tb: 1\n", "BG003", 2, 1),
    ("a: |\n\tx = y\n", "BG003", 2, 1),
    ("a:\n  \tb: 2\n", "BG003", 2, 3),
    ("a:\n  -\tb: 2\n", "BG003", 2, 4),
    # text that YAML takes for something else
    ("l:\n  - @x\n", "BG001", 2, 5),
    ("l:\n  - `x`\n", "BG001", 2, 5),
    ("l:\n  - %x\n", "BG001", 2, 5),
    ("l:\n  - *x\n", "BG001", 2, 5),
    ("l:\n  - *x + y\n", "BG001", 2, 5),
    ("l:\n  - * x\n", "BG001", 2, 5),
    ("l:\n  - |x|\n", "BG001", 2, 6),
    ('a: "x" + y\n', "BG001", 1, 8),
    ("a: 'it's'\n", "BG001", 1, 8),
    ("a: [x] + y\n", "BG001", 1, 8),
    ("a: {x:1}\n", "BG001", 1, 5),
    ("dims: {B:, C: }\n", "BG001", 1, 9),
    ("{", "BG001", 1, 1),
    ("a: {b: [c,\n", "BG001", 1, 8),
    # punctuation and indentation
    ("a: [1, 2", "BG001", 1, 4),
    ("a: [1, 2\nb: 3\n", "BG001", 2, 2),
    ("a: {x: 1\n", "BG001", 1, 4),
    ('a: "abc\nb: c\n', "BG001", 1, 4),
    ("a: 'abc\n", "BG001", 1, 4),
    ("a: 1]\nb: [1]]\n", "BG001", 2, 7),
    ("a: }\n", "BG001", 1, 4),
    ("a: b: c\n", "BG001", 1, 5),
    ("a: 1\n  b: 2\n", "BG001", 2, 4),
    ("a:\n  b: 1\n c: 2\n", "BG001", 3, 2),
    ("a: 1\nb\nc: 1\n", "BG001", 2, 1),
    ("a\nb: 1\n", "BG001", 2, 2),
    ("a: 1\n- b\n", "BG001", 2, 1),
    ("a:\n  - b\n  c: 1\n", "BG001", 3, 3),
    ("a: - b\n", "BG001", 1, 4),
    ('a: "\\q"\n', "BG001", 1, 5),
    ('a: "x\\ud800"\n', "BG001", 1, 6),
    ("a: 1\n---\nb: 1\n", "BG001", 2, 1),
    ("a: 1\n...\nb: 1\n", "BG001", 3, 1),
    ("%FOO\n---\na: 1\n", "BG001", 1, 1),
    ("a: &x 1\nb: &x 2\n", "BG001", 2, 4),
    # limits
    ("a: &x [*x]\n", "BG007", 1, 8),
    (f"a: {'9' * 4301}\n", "BG007", 1, 4),
    ("a: 1e999\n", "BG007", 1, 4),
    ("a: 1e-999\n", "BG007", 1, 4),
    ("a: " + "[" * 64 + "]" * 64, "BG007", 1, 67),
    # line i + 1 holds list i, which is i + 1 lists deep, in the top mapping
    ("a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 99)), "BG007", 64, 12),
    # nothing, or something else, in the file; characters
    ("", "BG008", 1, 1),
    ("# only a comment\n", "BG008", 1, 1),
    ("---\n", "BG008", 1, 1),
    ("- a\n", "BG008", 1, 1),
    ("\nhello\n", "BG008", 2, 1),
    ("null\n", "BG008", 1, 1),
    ("a:1\nb:2\n", "BG008", 1, 1),
    ("a: 1\nb: \x00\n", "BG009", 2, 4),
    ("a: \x1b[31m\n", "BG009", 1, 4),
    ("a: x\u2028b: 1\n", "BG009", 1, 5),
]


@pytest.mark.parametrize(("text", "code", "line", "column"), REFUSED)
def test_bad_yaml_is_refused_at_its_place(text: str, code: str, line: int, column: int) -> None:
    assert faults(text) == [(code, line, column)]


REFUSED_JSON: list[tuple[str, str, int, int]] = [
    ('{"a": 1,}', "BG001", 1, 8),
    ('{"a": [1, 2,\n]}', "BG001", 1, 12),
    ('{"a": 1 // one\n}', "BG001", 1, 9),
    ('# c\n{"a": 1}', "BG001", 1, 1),
    ("{'a': 1}", "BG001", 1, 2),
    ("{\"a\": 'b'}", "BG001", 1, 7),
    ('{"a": NaN}', "BG001", 1, 7),
    ('{"a": -Infinity}', "BG001", 1, 7),
    ('{"a": True}', "BG001", 1, 7),
    ('{"a": 01}', "BG001", 1, 7),
    ('{"a": .5}', "BG001", 1, 7),
    ('{"a": 1.}', "BG001", 1, 7),
    ('{"a": b}', "BG001", 1, 7),
    ("{a: 1}", "BG001", 1, 2),
    ('{"a" 1}', "BG001", 1, 6),
    ('{"a": }', "BG001", 1, 7),
    ('{"a": 1\n "b": 2}', "BG001", 2, 2),
    ('{"a": [1 2]}', "BG001", 1, 10),
    ('{"a": [1, 2}', "BG001", 1, 12),
    ('{"a": [1, 2', "BG001", 1, 7),
    ('{"a": {"b": 1}', "BG001", 1, 1),
    ('{"a": 1} {"b": 2}', "BG001", 1, 10),
    ('{"a": "x\\q"}', "BG001", 1, 9),
    ('{"a": "\\u12"}', "BG001", 1, 8),
    ('{"a": "\\ud800x"}', "BG001", 1, 8),
    ('{"a": "\\udc00"}', "BG001", 1, 8),
    ('{"a": "b\n"}', "BG001", 1, 7),
    ('{"a": "b\tc"}', "BG001", 1, 9),
    ('{"a": "b', "BG001", 1, 7),
    ("name: x\n", "BG001", 1, 1),
    ('{"a": 1,\n "a": 2}', "BG002", 2, 2),
    ('{"a": 1, "\\u0061": 2}', "BG002", 1, 10),
    ('{"a": 1e999}', "BG007", 1, 7),
    ('{"a": ' + "[" * 64 + "]" * 64 + "}", "BG007", 1, 70),
    ("", "BG008", 1, 1),
    (" \n", "BG008", 1, 1),
    ("[1]", "BG008", 1, 1),
    ("null", "BG008", 1, 1),
    ('{"a": "\x00"}', "BG009", 1, 8),
]


@pytest.mark.parametrize(("text", "code", "line", "column"), REFUSED_JSON)
def test_bad_json_is_refused_at_its_place(text: str, code: str, line: int, column: int) -> None:
    assert faults(text, "s.json") == [(code, line, column)]


def test_a_repeated_key_names_both_lines_both_values_and_the_path() -> None:
    for name, text in (
        ("s.yaml", "block:\n  attn:\n    kind: attention\n\n    heads: 8\n\n\n\n    heads: 4\n"),
        ("s.json", '{"block": {\n "attn": {\n "kind": "attention",\n\n "heads": 8,\n\n\n\n "heads": 4}}}'),
    ):
        with pytest.raises(SpecError, match="8 in line 5 and 4 in line 9") as caught:
            parse(text, name)
        (finding,) = caught.value.findings
        assert finding.place.spec_path == "block.attn.heads"
        assert (finding.place.start.line, [r.place and r.place.start.line for r in finding.related]) == (9, [5])


def test_independent_faults_come_together_in_the_order_of_the_file() -> None:
    text = "a: !x 1\nb: {c: 1, c: 2}\nd:\n  <<: 1\n  2: e\n"
    assert faults(text) == [("BG004", 1, 4), ("BG002", 2, 11), ("BG005", 4, 3), ("BG006", 5, 3)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l:\n  - @x + 1  # c\n", 'quote the text: "@x \\+ 1"'),
        ("l:\n  - *x\n", r'quote the text: "\*x"'),
        ("a:\n\tb: 1\n", r"a tab \(`\\t`\) indents this line; YAML asks for spaces"),
        ("a: {<<: {b: 1}}\n", "blocks:.*&norm"),
        ("", "the file is empty"),
        ("a: 1\nb\nc: 1\n", '"b" has no `:`'),
        ("true: 1\n", "a key must be text, got true"),
        ("1: 1\n", "a key must be text, got 1\n"),
    ],
)
def test_a_message_says_what_to_do(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        parse(text, "s.yaml")


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 3000))
COSTLY = {
    "alias bomb": BOMB,
    "aliases nested without end": CHAIN,
    "brackets": "a: " + "[" * 200_000,
    "braces": "a: " + "{a: " * 200_000,
    "nested lists": "a: " + "- " * 200_000,
    "nested blocks": "".join(" " * i + "a:\n" for i in range(1000)),
    "a million keys": "".join(f"k{i}: 1\n" for i in range(1_000_000)),
    "many keys": "".join(f"k{i:x}:\n" for i in range(100_000)),
}


@pytest.mark.parametrize("text", COSTLY.values(), ids=COSTLY.keys())
def test_costly_yaml_is_refused_before_it_is_read_out(text: str) -> None:
    with pytest.raises(SpecError, match=r"BG00[17]"):
        parse(text, "s.yaml")


def test_costly_json_is_refused_without_recursion() -> None:
    for text in ('{"a": ' + "[" * 200_000, '{"a": [' + "1," * 150_000 + "1]}", '{"a":' * 100_000):
        with pytest.raises(SpecError, match="BG007"):
            parse(text, "s.json")


def test_limits_themselves_are_allowed() -> None:
    assert parse("a: " + "[" * 63 + "]" * 63, "s.yaml").data["a"]
    values = 100_000 - 3  # the mapping, its key and the list count too
    assert len(parse('{"a": [' + "1," * (values - 1) + "1]}", "s.json").data["a"]) == values
    assert faults('{"a": [' + "1," * values + "1]}", "s.json")[0][0] == "BG007"
    assert parse("a: " + "x" * (2**20 - 3), "s.yaml").data
    assert faults("a: " + "x" * (2**20 - 2)) == [("BG007", 1, 1)]
    assert parse(f"a: {'9' * 308}", "s.yaml").data["a"] == 10**308 - 1


@given(st.text('{}[]",:0123456789.eE+-truefalsn\\u dD8', max_size=25))
@settings(max_examples=500, deadline=None)
def test_json_is_taken_exactly_when_the_standard_library_takes_it(text: str) -> None:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    def refuse(word: str) -> Any:
        raise ValueError(word)

    whole = f'{{"a": {text}}}'
    got = outcome(whole, "s.json")
    try:
        expected = json.loads(whole, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, AssertionError):
        expected = None
    if isinstance(got, Document):
        assert repr(got.data) == repr(expected)
    else:
        assert expected is None or {f.code for f in got} == {"BG007"}


@given(st.text(st.sampled_from("ab:-?[]{},#&*!|>'\"%@`\\ \n\t<~1.é"), max_size=40))
@settings(max_examples=600, deadline=None)
def test_no_text_whatever_gives_anything_but_data_or_findings(text: str) -> None:
    lines = text.count("\n") + 1
    for name in ("s.yaml", "s.json"):
        got = outcome(text, name)
        if isinstance(got, Document):
            assert isinstance(got.data, dict)
        else:
            assert all(1 <= f.place.start.line <= lines and f.message and f.help for f in got)


def test_files_are_read_by_their_ending(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfa: 1 # c\r\n")
    (tmp_path / "a.json").write_text('{"a": 1}')
    assert [read(tmp_path / name).data for name in ("a.yaml", "a.json")] == [{"a": 1}, {"a": 1}]
    (tmp_path / "b.json").write_text("a: 1")
    with pytest.raises(SpecError, match=r"b\.json:1:1"):
        read(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("content", "line", "column", "words"),
    [
        (b"a: 1\nb: \xff\n", 2, 4, "0xff is not UTF-8"),
        (b"\xef\xbb\xbfa: \xc3\xa9\xc3(\n", 1, 5, "0xc3 is not UTF-8"),
        ("a: 1".encode("utf-16"), 1, 1, "UTF-16"),
    ],
)
def test_a_wrong_byte_is_refused_at_its_place(content: bytes, line: int, column: int, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        decode(content, "s.yaml")
    assert [(f.code, f.place.start) for f in caught.value.findings] == [("BG009", Position(line, column))]


def test_a_file_that_cannot_be_opened_is_a_failure_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "gpt_neox.yaml").write_text("a: 1")
    with pytest.raises(EnvironmentFailure, match=r"BG901.*no such file\n.*did you mean .*gpt_neox\.yaml"):
        read(tmp_path / "gpt-neox.yaml")
    with pytest.raises(EnvironmentFailure, match=r'it is a folder\n.*name a file in it.*\*\*.\*\.yaml"'):
        read(tmp_path)
    with pytest.raises(EnvironmentFailure, match="BG901"):
        read("a\x00b")
    (tmp_path / "large.yaml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(SpecError, match="larger than 1 MiB"):
        read(tmp_path / "large.yaml")


def test_the_parser_in_python_serves_where_the_c_parser_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert parse("a: &x {b: [1, q]}\nc: *x\n", "s.yaml").data["c"] == {"b": [1, "q"]}
    for text, code in (("a:\n\tb: 1\n", "BG003"), ("a: [1", "BG001"), ("a: {b: 1, b: 2}", "BG002"), ("- *x", "BG001")):
        assert faults(text)[0][0] == code
