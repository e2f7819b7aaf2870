"""Comments that hide a finding on their line, and what is said of one that hides nothing."""

from __future__ import annotations

import pytest

import blockgraph as bg
from blockgraph.source import parse
from blockgraph.suppress import ignores, suppressed

UNUSED = "block:\n  equations: |\n    h = tanh(x){}\n    y = x + x{}\n"


def found(text: str) -> list[tuple[str, int, int]]:
    return [(one.code, one.place.start.line, one.place.start.column) for one in bg.check(text).findings]


def test_without_a_comment_the_warning_is_there() -> None:
    assert found(UNUSED.format("", "")) == [("BG203", 3, 5)]


@pytest.mark.parametrize(
    "comment",
    [
        "  # blockgraph: ignore[BG203]",
        "  #blockgraph:ignore[BG203]",
        "  # the value is looked at in the trace  # blockgraph: ignore[ BG203 ]",
        "  # blockgraph: ignore[BG203] because the trace shows it",
    ],
)
def test_a_comment_hides_the_warning_of_its_line(comment: str) -> None:
    assert found(UNUSED.format(comment, "")) == []


def test_a_comment_hides_a_warning_about_a_key_in_yaml_itself() -> None:
    text = "block:\n  parts:\n    n: layer_norm{}\n  equations: x = x + tanh(x)\n"
    assert found(text.format("")) == [("BG204", 3, 5)]
    assert found(text.format("  # blockgraph: ignore[BG204]")) == []


def test_a_comment_on_another_line_hides_nothing_and_is_reported_itself() -> None:
    assert found(UNUSED.format("", "  # blockgraph: ignore[BG203]")) == [("BG203", 3, 5), ("BG206", 4, 37)]


def test_of_two_codes_the_one_that_hides_nothing_is_reported() -> None:
    text = UNUSED.format("  # blockgraph: ignore[BG203, BG204]", "")
    (finding,) = bg.check(text).findings
    assert (finding.code, finding.severity, finding.message) == (
        "BG206",
        "warning",
        "`ignore[BG204]` hides nothing on this line",
    )
    assert text.splitlines()[2][finding.place.start.column - 1 : finding.place.end.column - 1] == "BG204"


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# blockgraph: ignore", "`ignore` does not say what it hides"),
        ("# blockgraph: ignore[]", "`ignore` does not say what it hides"),
        ("# blockgraph: ignore[unused]", "`unused` is no code"),
        ("# blockgraph: ignore[203]", "`203` is no code"),
    ],
)
def test_a_comment_that_names_no_code_is_reported(comment: str, message: str) -> None:
    messages = [one.message for one in bg.check(UNUSED.format(f"  {comment}", "")).findings]
    assert messages == ["the value `h` is never used", message]


def test_an_error_stays_and_the_comment_is_told_so() -> None:
    text = "block:\n  equations: |\n    y = x + z  # blockgraph: ignore[BG025]\n"
    checked = bg.check(text)
    assert not checked.ok
    assert [one.code for one in checked.findings] == ["BG025", "BG206"]
    assert checked.findings[1].message == "BG025 is an error here, and a comment hides only warnings and notes"


def test_beside_an_error_elsewhere_an_idle_comment_is_not_blamed() -> None:
    text = "block:\n  equations: |\n    h = tanh(x)  # blockgraph: ignore[BG201]\n    y = h + z\n"
    assert [code for code, _, _ in found(text)] == ["BG025"]


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_comment_inside_quotes_is_text(quote: str) -> None:
    text = f"name: {quote}a # blockgraph: ignore[BG203]{quote}\nblock: {{equations: y = x + x}}\n"
    assert list(ignores(parse(text, "a.yaml"))) == []
    assert found(text) == []


def test_json_has_no_comments() -> None:
    document = parse('{"name": "a # blockgraph: ignore[BG203]"}', "a.json")
    assert list(ignores(document)) == []
    assert suppressed(document, ()) == ()


def test_a_program_keeps_no_warning_that_a_comment_hides() -> None:
    assert bg.compile(UNUSED.format("  # blockgraph: ignore[BG203]", "")).findings == ()
