"""Where keys, values and characters of a text stand in a spec file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockgraph.errors import Place
from blockgraph.source import Document, parse


def stretch(document: Document, place: Place) -> str:
    """The characters of the file at a place; the lines of a longer place are joined by a bar."""
    (line, column), (last, end) = place.start, place.end
    if line == last:
        return document.line(line)[column - 1 : end - 1]
    middle = [document.line(number) for number in range(line + 1, last)]
    return "|".join([document.line(line)[column - 1 :], *middle, document.line(last)[: end - 1]])


def test_aliases_share_what_they_repeat_and_stand_where_it_is_written() -> None:
    lines = ["# filler"] * 140 + ["blocks:", "  a: &a", "    heads: eight", "  b: *a", "  c: [*a]"]
    document = parse("\n".join(lines), "s.yaml")
    place = document.value(("blocks", "c", 0, "heads"))
    assert (str(place), place.spec_path) == ("s.yaml:143:12", "blocks.c[0].heads")
    assert document.data["blocks"]["b"] is document.data["blocks"]["a"]
    assert str(document.key(("blocks", "b"))) == "s.yaml:144:3"


PLACES = """\
name: p
block:   # c
  norm: &n {kind: layer_norm, eps: 1e-5}
  sublayers:
    - {kind: attention, heads: H}
    -   kind: feed_forward
        hidden: 4*C

  empty:
  equations: |
    x = x

# end
last: "q"
"""


@pytest.mark.parametrize(
    ("path", "start", "end"),
    [
        ((), (1, 1), (14, 10)),
        (("block",), (3, 3), (11, 10)),
        (("block", "norm"), (3, 12), (3, 41)),
        (("block", "norm", "eps"), (3, 36), (3, 40)),
        (("block", "sublayers"), (5, 5), (7, 20)),
        (("block", "sublayers", 0), (5, 7), (5, 34)),
        (("block", "sublayers", 1), (6, 9), (7, 20)),
        (("block", "sublayers", 1, "hidden"), (7, 17), (7, 20)),
        (("block", "sublayers", 0, "missing"), (5, 7), (5, 34)),
        (("block", "sublayers", 7), (5, 5), (7, 20)),
        (("block", "empty"), (9, 9), (9, 9)),
        (("block", "equations"), (10, 14), (11, 10)),
        (("last",), (14, 7), (14, 10)),
    ],
)
def test_a_value_has_its_place(path: tuple[str | int, ...], start: tuple[int, int], end: tuple[int, int]) -> None:
    place = parse(PLACES, "s.yaml").value(path)
    assert (place.start, place.end) == (start, end)


def test_a_key_has_its_place_and_a_missing_one_that_of_its_parent() -> None:
    document = parse(PLACES, "s.yaml")
    sublayers = ("block", "sublayers")
    assert document.key((*sublayers, 1, "hidden")).start == (7, 9)
    assert document.key((*sublayers, 1)).start == (6, 9)
    missing = document.key((*sublayers, "kind"))
    assert (missing.start, missing.end, missing.spec_path) == ((4, 3), (4, 12), "block.sublayers.kind")
    assert document.key(("nothing",)).start == (1, 1)


def test_json_has_the_same_places_as_yaml_in_flow_style() -> None:
    text = '{"a": {"b": [1, "x\\n", null]},\r\n "c": -1.5e3}'
    as_json, as_yaml = parse(text, "s.json"), parse(text, "s.yaml")
    paths: list[tuple[str | int, ...]] = [(), ("a",), ("a", "b"), ("a", "b", 0), ("a", "b", 1), ("a", "b", 2), ("c",)]
    for path in paths:
        assert as_json.value(path) == replace(as_yaml.value(path), path="s.json")
    assert as_json.key(("c",)).start == (2, 2)
    assert as_json.data == as_yaml.data == {"a": {"b": [1, "x\n", None]}, "c": -1500.0}


def test_quoted_and_block_text_is_told_from_bare_words() -> None:
    document = parse("a: \"8\"\nb: '8'\nc: |\n  8\nd: x\ne: 8\nf: []\n", "s.yaml")
    assert [document.is_quoted((key,)) for key in "abcdefg"] == [True, True, True, False, False, False, False]
    assert parse('{"a": "8", "b": 8}', "s.json").is_quoted(("a",))


WITHIN: list[tuple[str, int, int, str]] = [
    ("k: x = x + y\n", 4, 9, "x + y"),
    ("k: &a  x = y\n", 4, 5, "y"),
    ("k: one\n  two\n\n  six\n", 4, 7, "two"),  # plain over lines: one two\nsix
    ("k: one\n  two\n\n  six\n", 8, 11, "six"),
    ("k: 'it''s one'\n", 3, 4, "s"),
    ("k: 'it''s one'\n", 2, 3, "''"),
    ('k: "a\\tb\\u0041\\x42c"\n', 3, 4, "\\u0041"),
    ('k: "a\\tb\\u0041\\x42c"\n', 5, 6, "c"),
    ('k: "one\n  two \\\n  six"\n', 4, 7, "two"),
    ('k: "one\n  two \\\n  six"\n', 8, 11, "six"),
    ("k: |\n  x = 1\n    y = 2\n\n  z = 3\n", 4, 5, "1"),
    ("k: |\n  x = 1\n    y = 2\n\n  z = 3\n", 6, 13, "  y = 2"),
    ("k: |\n  x = 1\n    y = 2\n\n  z = 3\n", 15, 20, "z = 3"),
    ("k: |-\n  x = 1\n  y = 2", 6, 11, "y = 2"),
    ("k: |2+\n    x\n\n  y\n\n", 0, 3, "  x"),
    ("k: | # comment\r\n  x\r\n  y\r\n", 2, 3, "y"),
    ("k: >\n  one\n  two\n\n  six\n    ten\n  end\n", 4, 7, "two"),
    ("k: >\n  one\n  two\n\n  six\n    ten\n  end\n", 8, 11, "six"),
    ("k: >\n  one\n  two\n\n  six\n    ten\n  end\n", 14, 17, "ten"),
    ("k: >\n  one\n  two\n\n  six\n    ten\n  end\n", 18, 21, "end"),
]


@pytest.mark.parametrize(("text", "start", "end", "shown"), WITHIN)
def test_characters_of_a_text_are_found_in_the_file(text: str, start: int, end: int, shown: str) -> None:
    document = parse(text, "s.yaml")
    assert stretch(document, document.within(("k",), start, end)) == shown


def test_characters_of_a_json_text_are_found_in_the_file() -> None:
    document = parse('{"k": "a\\n\\ud83d\\ude00\\u0041b"}', "s.json")
    assert document.data["k"] == "a\n\U0001f600Ab"
    found = [stretch(document, document.within(("k",), i, i + 1)) for i in range(5)]
    assert found == ["a", "\\n", "\\ud83d\\ude00", "\\u0041", "b"]


def test_an_empty_or_impossible_stretch_has_a_place_all_the_same() -> None:
    document = parse("k: abc\nn: 5\nl: [x]\n", "s.yaml")
    assert (document.within(("k",), 3, 3).start, document.within(("k",), 3, 3).end) == ((1, 7), (1, 7))
    for path, start, end in ((("k",), 2, 9), (("n",), 0, 1), (("l",), 0, 1), (("k", "z"), 0, 1)):
        assert document.within(path, start, end) == document.value(path)


LINE_TEXT = st.text("abxy=+ #:-\t'\"\\é𝛼", max_size=12)


@given(st.lists(LINE_TEXT, min_size=1, max_size=6), st.sampled_from(["|", "|-", "|+"]), st.integers(1, 8))
def test_every_character_of_a_literal_block_is_found(lines: list[str], header: str, indent: int) -> None:
    body = "\n".join(" " * indent + line if line else "" for line in lines)
    document = parse(f"a: 1\nk: {header[0]}{indent}{header[1:]}\n{body}\nz: 2\n", "s.yaml")
    value = document.data["k"]
    for i, character in enumerate(value):
        place = document.within(("k",), i, i + 1)
        assert place.start != document.value(("k",)).start
        if character != "\n":
            assert stretch(document, place) == character
        assert place.start.line == 3 + value[:i].count("\n")


WORDY = st.lists(st.text("abé'\\", min_size=1, max_size=5), min_size=1, max_size=6)


@given(WORDY, st.lists(st.sampled_from([" ", "  ", "\n  ", "\n\n  ", " \n \n   "]), min_size=5, max_size=5), st.data())
def test_every_character_of_folded_text_is_found(words: list[str], gaps: list[str], data: st.DataObject) -> None:
    style = data.draw(st.sampled_from(["plain", "'", '"', ">"]))
    escaped = {"'": {"'": "''"}, '"': {"\\": "\\\\"}}.get(style, {})
    shown = ["".join(escaped.get(c, c) for c in word) for word in words]
    shown[0], words = ("b" + shown[0], ["b" + words[0], *words[1:]])
    body = "".join(word + gap for word, gap in zip(shown, [*gaps[: len(shown) - 1], ""], strict=True))
    quote = style if style in "'\"" else ""
    document = parse(f"k: {'>-' + chr(10) + '  ' if style == '>' else quote}{body}{quote}\nz: 2\n", "s.yaml")
    value = document.data["k"]
    assert value.split() == words
    for i, character in enumerate(value):
        found = stretch(document, document.within(("k",), i, i + 1))
        assert found == escaped.get(character, character) or character in " \n"
