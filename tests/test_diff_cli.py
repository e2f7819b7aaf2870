"""`diff` and `explain --fingerprint` on the command line: words, documents, pictures and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.diff import fingerprint
from blockgraph.drawing import find_dot
from blockgraph.drawing.themes import THEMES
from tests.test_cli import ROOT, SPEC, Run, run

__all__ = ["run"]

POST = str(ROOT / "specs" / "post_norm.yaml")
GPT2 = str(ROOT / "specs" / "models" / "gpt2.yaml")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_spec_and_itself_are_the_same_architecture(run: Run) -> None:
    assert run("diff", SPEC, SPEC) == (0, "same architecture\n", "")


def test_yaml_and_json_and_the_long_form_are_the_same_architecture(run: Run) -> None:
    Path("a.json").write_text(json.dumps(bg.load(SPEC).data))
    _, long, _ = run("explain", SPEC)
    Path("long.yaml").write_text(long)
    assert run("diff", SPEC, "a.json") == (0, "same architecture\n", "")
    assert run("diff", "long.yaml", SPEC) == (0, "same architecture\n", "")


def test_a_difference_is_told_and_ends_with_1(run: Run) -> None:
    assert run("diff", SPEC, POST) == (1, "attention, feed_forward: placement pre -> post\n", "")


def test_other_sizes_alone_are_a_difference_that_says_so(run: Run) -> None:
    Path("wide.yaml").write_text(Path(SPEC).read_text().replace("C: 64", "C: 128"))
    assert run("diff", SPEC, "wide.yaml") == (1, "same architecture up to sizes\nsizes: C 64 -> 128\n", "")
    assert run("diff", SPEC, "wide.yaml", "--set", "C=32") == (0, "same architecture\n", "")
    words = "same architecture up to sizes; sizes: C 64 -> 128\n"
    assert run("diff", SPEC, "wide.yaml", "--format", "concise") == (1, words, "")


def test_the_document_has_every_change(run: Run) -> None:
    code, out, err = run("diff", SPEC, POST, "--format", "json")
    document = json.loads(out)
    assert (code, err) == (1, "")
    assert document["changes"] == [
        {
            "sign": "~",
            "text": "placement pre -> post",
            "names": ["attention", "feed_forward"],
            "stack": "",
            "layers": [],
        }
    ]
    told = [document[key] for key in ("ok", "same", "same_architecture", "text", "sizes", "findings", "files")]
    assert told == [False, False, False, "attention, feed_forward: placement pre -> post", [], [], []]
    assert document["fingerprints"] == [fingerprint(bg.check(path).graph) for path in (SPEC, POST)]  # type: ignore[arg-type]
    _, out, _ = run("diff", SPEC, SPEC, "--format", "json")
    assert json.loads(out)["ok"] is True


def test_the_figure_marks_what_is_removed_added_and_changed_by_sign_line_and_colour(run: Run) -> None:
    code, out, err = run("diff", SPEC, POST, "-o", "both.dot")
    assert (code, out, err) == (1, "attention, feed_forward: placement pre -> post\n", "wrote both.dot\n")
    text = Path("both.dot").read_text(encoding="utf-8")
    assert text.count("digraph") == 1
    counts = [text.count(f'class="op norm {one}"') for one in ("removed", "added", "changed")]
    assert counts == [2, 2, 0]
    assert text.count('class="op attention changed"') == 2
    assert [text.count(f">{sign} LayerNorm<") for sign in ("\N{MINUS SIGN}", "+", "~")] == [2, 2, 0]
    assert text.count('style="rounded,filled,dashed"') == 2
    assert text.count("placement pre → post") == 2
    assert text.count("removed, ~ changed") == 1
    assert run("diff", SPEC, POST, "-o", "both.dot")[0] == 2
    assert run("diff", SPEC, POST, "-o", "-") == (1, text, "")


def test_the_figure_of_a_difference_takes_a_theme(run: Run) -> None:
    dots = {
        theme: run("diff", SPEC, POST, "-o", "-", "--theme", theme)[1] for theme in ("light", "dark", "print", "auto")
    }
    assert dots["auto"] == dots["light"]
    assert len(set(dots.values())) == 3
    for theme, dot in dots.items():
        signs = THEMES["light" if theme == "auto" else theme].marks  # type: ignore[index]
        assert {signs["+"], signs["-"]} <= set(re.findall(r'[^l]color="(#\w+)"', dot))
    if find_dot() is not None:
        assert run("diff", SPEC, POST, "-o", "a.svg", "--theme", "auto")[0] == 1
        assert "prefers-color-scheme" in Path("a.svg").read_text(encoding="utf-8")


def test_a_figure_of_equal_specs_has_no_marks(run: Run) -> None:
    code, out, _ = run("diff", SPEC, SPEC, "-o", "-")
    assert code == 0
    assert not [one for one in ("removed", "added", "changed") if f" {one}" in out]


def test_a_spec_with_errors_is_not_compared(run: Run) -> None:
    Path("bad.yaml").write_text("block: {equations: y = x + z}\n")
    code, out, err = run("diff", SPEC, "bad.yaml")
    assert (code, out) == (1, "")
    assert err.startswith("BG025 bad.yaml:1:")
    code, out, _ = run("diff", "bad.yaml", SPEC, "--format", "json")
    assert (code, [one["code"] for one in json.loads(out)["findings"]]) == (1, ["BG025"])
    assert run("diff", SPEC, "none.yaml")[0] == 2


def test_wrong_usage_is_told(run: Run) -> None:
    assert run("diff", "-", "-")[0] == 2
    code, _, err = run("diff", SPEC, POST, "-o", "a.sv")
    assert code == 2
    assert "did you mean .svg?" in err


def test_explain_prints_fingerprints(run: Run) -> None:
    one, two = (fingerprint(bg.check(path).graph) for path in (SPEC, GPT2))  # type: ignore[arg-type]
    assert run("explain", SPEC, "--fingerprint") == (0, f"{one}\n", "")
    assert run("explain", SPEC, GPT2, "--fingerprint") == (0, f"{one}  {SPEC}\n{two}  {GPT2}\n", "")
    _, out, _ = run("explain", SPEC, "--fingerprint", "--format", "json")
    assert json.loads(out) == {"ok": True, "topics": [{"topic": SPEC, "fingerprint": one, "findings": []}]}
    assert run("explain", "--fingerprint")[0] == 2
    Path("bad.yaml").write_text("block: {equations: y = x + z}\n")
    assert run("explain", "bad.yaml", "--fingerprint")[:2] == (1, "")
