"""`--fix`: what can be meant in one way only is mended in the file; comments and layout stay as they are."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.fixes import mend
from blockgraph.source import parse
from blockgraph.spec import from_document
from tests.test_cli import Run, run

__all__ = ["run"]

BEFORE = """\
# a block with slips
dims: {C: 64, H: 4}   # sizes

blocks:
  block:
    norm: LayerNorm       # a kind
    placment: "pre"       # a key
    sublayers:
      - {kind: attenton, heads: H,   msk: causal}   # a kind and an option
      - type: feed_forward
        hidden: 4C        # a sign
        'activaton': 'reluu'
"""
AFTER = """\
# a block with slips
dims: {C: 64, H: 4}   # sizes

blocks:
  block:
    norm: layer_norm       # a kind
    placement: "pre"       # a key
    sublayers:
      - {kind: attention, heads: H,   mask: causal}   # a kind and an option
      - kind: feed_forward
        hidden: 4*C        # a sign
        'activation': 'relu'
"""


def mended(text: str, path: str = "a.yaml") -> str:
    def judge(one: str):  # type: ignore[no-untyped-def]
        spec = from_document(parse(one, path))
        return spec.document, bg.check(spec).findings

    return mend(text, judge)[0]


def test_slips_are_mended_and_nothing_else_changes() -> None:
    assert mended(BEFORE) == AFTER
    assert bg.check(AFTER).findings == ()


def test_what_is_right_stays_as_it_is() -> None:
    assert mended(AFTER) == AFTER


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x += ff(x)", "x = x + ff(x)"),
        ("x += ff(x)  # a branch", "x = x + ff(x)  # a branch"),
        ("x+=ff(x)", "x= x +ff(x)"),
        ("x -= ff(x) - x", "x = x - (ff(x) - x)"),
        ("x += ff(x) - x", "x = x + (ff(x) - x)"),
        ("x -= (ff(x) - x)", "x = x - (ff(x) - x)"),
        ("x += 2*ff(x)", "x = x + 2*ff(x)"),
        ("x *= ff(x) + 1", "x = x * (ff(x) + 1)"),
        ("x /= 2*ff(x)", "x = x / (2*ff(x))"),
        ("x = x + 2ff(x)", "x = x + 2*ff(x)"),
        ("x = x + fff(x)", "x = x + ff(x)"),
        ("x = x + xylo(ff(x))", "x = x + xylo(ff(x))"),
        ("x = x + siluu(ff(x))", "x = x + silu(ff(x))"),
    ],
)
@pytest.mark.parametrize("form", ["equations: |\n    {}\n", "equations:\n    - '{}'\n", 'equations:\n    - "{}"\n'])
def test_an_equation_is_mended_in_its_place(before: str, after: str, form: str) -> None:
    frame = "dims: {C: 8}\nblock:\n  parts: {ff: linear}\n  " + form
    assert mended(frame.replace("{}", before)) == frame.replace("{}", after)


def test_a_text_with_windows_line_ends_and_wide_letters_keeps_them() -> None:
    before = "name: größe 😀\r\nblock:\r\n  parts: {ff: liner}   # ß\r\n  equations: |\r\n    x += ff(x)\r\n"
    assert mended(before) == before.replace("liner", "linear").replace("x +=", "x = x +")


def test_json_is_mended_too() -> None:
    before = '{"block": {"parts": {"ff": {"kind": "liner"}},\n "equations": "x \\u002b= ff(x)"}}'
    assert mended(before, "a.json") == before.replace("liner", "linear").replace("x \\u002b=", "x = x \\u002b")


def test_what_could_be_meant_in_two_ways_is_left_alone() -> None:
    text = "block:\n  parts: {ff: {kind: feed_forward, hidden: 8, activation: gelu}}\n  equations: x = ff(x)\n"
    assert mended(text) == text


def test_the_file_is_mended_and_keeps_its_permissions_and_mark(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + BEFORE.encode())
    path.chmod(0o640)
    code, out, err = run("check", path, "--fix")
    assert (code, err) == (0, f"{path}: 8 fixed\n")
    assert out.startswith(f"{path}: ok\n")
    assert path.read_bytes() == b"\xef\xbb\xbf" + AFTER.encode()
    assert os.name == "nt" or path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["a.yaml"]


def test_a_file_without_slips_is_not_written(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(AFTER)
    os.utime(path, (0, 0))
    assert run("check", path, "--fix")[0] == 0
    assert path.stat().st_mtime == 0


def test_standard_input_is_mended_to_standard_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BEFORE.encode())))
    assert run("check", "-", "--fix") == (0, AFTER, "<stdin>: 8 fixed\n")


def test_faults_that_stay_are_told_after_the_fixes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("block:\n  parts: {ff: liner}\n  equations: x = x + ff(q)\n")
    code, out, err = run("check", path, "--fix", "--format", "concise")
    assert (code, err) == (1, f"{path}: 1 fixed\n")
    assert out == f"{path}:3:25: BG025 unknown name `q`\n"


def test_a_missing_sign_is_read_as_it_is_written_where_it_would_bind_otherwise() -> None:
    text = "dims: {C: 8}\nblock:\n  params: {W: [C, C]}\n  equations: y = tanh(x @ 2W) / 2C + 4C**2\n"
    assert "y = tanh(x @ (2*W)) / (2*C) + 4*C**2" in mended(text)
    assert [one.code for one in bg.check(text).findings] == ["BG011"] * 3
    assert bg.check(mended(text)).ok
