"""`explain WORD`: every kind, function, placement and code has a page that is true."""

from __future__ import annotations

import re
from itertools import product

import pytest

import blockgraph as bg
from blockgraph.elaborate.calls import bind, functions, usage
from blockgraph.elaborate.items import Ref
from blockgraph.equation import parse_equations
from blockgraph.explain import explain_word, main_text, topics, topics_text
from blockgraph.explain.function_page import example_of
from blockgraph.kind import load_kinds
from blockgraph.syntax import Call, Name, walk
from tests.test_cli import Run, run

__all__ = ["run"]

KINDS, FUNCTIONS, PLACEMENTS = (topics()[title] for title in ("kinds", "functions", "placements"))


def text_of(word: str) -> str:
    text, findings = main_text(word, {})
    assert findings == ()
    return text


def part(text: str, title: str) -> str:
    """The lines of a section, moved back to the left."""
    found = re.search(rf"^{re.escape(title)}[^\n]*:\n((?:  .*\n|\n(?=  ))*)", text, re.MULTILINE)
    return re.sub(r"^  ", "", found[1], flags=re.MULTILINE) if found else ""


@pytest.mark.parametrize("name", KINDS)
def test_the_example_of_a_kind_is_a_spec_without_findings(name: str) -> None:
    example = part(text_of(name), "Example")
    assert f"kind: {name}" in example
    assert bg.check(example).findings == ()


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_tells_every_option_with_its_meaning(name: str) -> None:
    options = part(text_of(name), "Options")
    for option, field in load_kinds()[name].model_fields.items():
        row = re.search(rf"^{option}  .*$", options, re.MULTILINE)
        assert row is not None
        assert (field.description or "").split()[0] in row[0]
        assert ("must be given" in row[0]) == field.is_required()


@pytest.mark.parametrize("name", KINDS)
def test_the_equations_of_a_kind_can_be_read(name: str) -> None:
    assert parse_equations(part(text_of(name), "Equations")).refusals == ()


def test_attention_shows_its_defaults_and_what_bias_brings() -> None:
    text = text_of("attention")
    assert re.search(r"^  mask +full \| causal +full +", text, re.MULTILINE)
    assert re.search(r"^  kv_heads +size +H +", text, re.MULTILINE)
    parameters = part(text, "Parameters")
    names = [row.split()[0] for row in parameters.splitlines()]
    assert names == ["Wq", "bq", "Wk", "bk", "Wv", "bv", "sink", "Wo", "bo"]
    assert re.search(r"^bq .*with bias: true$", parameters, re.MULTILINE)
    assert re.search(r"^Wq +\(C, H\*D\) +normal\(0.02\)$", parameters, re.MULTILINE)


def test_options_that_are_mappings_tell_their_keys() -> None:
    options = part(text_of("attention"), "Options")
    assert re.search(r"^rotary\.style +half \| pairs +must be given +", options, re.MULTILINE)
    assert re.search(r"^rotary\.theta +number \| none +10000 +", options, re.MULTILINE)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_calls_it_rightly(name: str) -> None:
    op = functions()[name]
    example = example_of(op)
    parsed = parse_equations(example)
    assert parsed.refusals == ()
    (equation,) = parsed.equations
    if isinstance(equation.expr, Call):
        from blockgraph.elaborate.env import build
        from blockgraph.elaborate.items import evaluate, fold
        from blockgraph.module import Report

        dims = {word: None for word in re.findall(r"\b[A-Z]\w*\b", example)}
        env = build(bg.load({"dims": dims, "block": {"equations": "y = x"}}), Report())

        def look(node: Name) -> object:
            return env.dims.get(node.name, Ref(0))

        items = [evaluate(one, lambda node, below: fold(node, below, look)) for one in equation.expr.args]
        items += [evaluate(one.value, lambda node, below: fold(node, below, look)) for one in equation.expr.named]
        bound = bind(equation.expr, tuple(items))
        assert (bound.op.name, list(bound.op.refusals())) == (name, [])


def test_the_function_behind_a_sign_is_shown_with_the_sign() -> None:
    assert example_of(functions()["add"]) == "y = left + right"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_tells_how_it_is_called_and_what_it_computes(name: str) -> None:
    text = text_of(name)
    assert usage(functions()[name]).partition("(")[0] + "(" in text
    assert " ".join((functions()[name].__doc__ or "").splitlines()[0].split()) in " ".join(text.split())
    assert part(text, "Example")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_expansion_of_a_function_can_be_read(name: str) -> None:
    text = text_of(name)
    assert parse_equations(part(text, "The same in simpler functions")).refusals == ()


@pytest.mark.parametrize("name", ["attend", "gelu_tanh", "layer_norm", "rms_norm", "rope", "heads", "merge", "silu"])
def test_composite_functions_show_what_is_inside(name: str) -> None:
    assert part(text_of(name), "The same in simpler functions")


def test_the_expansion_of_a_layer_norm_is_its_formula() -> None:
    assert part(text_of("layer_norm"), "The same in simpler functions").splitlines() == [
        'h1 = x - mean(x, "... c -> ... 1")',
        'h2 = sqrt(mean(h1*h1, "... c -> ... 1") + 1e-5)',
        "y = h1/h2*gamma + beta",
    ]


def test_a_word_that_is_kind_and_function_shows_both() -> None:
    text = text_of("layer_norm")
    assert "layer_norm: a kind\n" in text
    assert "layer_norm: a function of the equation language\n" in text


@pytest.mark.parametrize("name", PLACEMENTS)
def test_the_example_of_a_placement_is_a_spec_without_findings(name: str) -> None:
    assert bg.check(part(text_of(name), "Example")).findings == ()


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("pre", "x = x + f(norm1(x))"),
        ("post", "x = norm1(x + f(x))"),
        ("sandwich", "x = x + output_norm1(f(input_norm1(x)))"),
        ("output", "x = x + norm1(f(x))"),
        ("none", "x = x + f(x)"),
    ],
)
def test_a_placement_shows_its_equation(name: str, first: str) -> None:
    assert part(text_of(name), "Sublayers f and g, one after the other").splitlines()[0] == first


@pytest.mark.parametrize("word", ["BG101", "bg101"])
def test_a_code_shows_its_page(word: str) -> None:
    assert text_of(word).startswith("# BG101: operands-do-not-fit\n")


@pytest.mark.parametrize(
    ("word", "help"),
    [
        ("atention", "did you mean `attention`?"),
        ("gelu", "did you mean `gelu_erf` or `gelu_tanh`?"),
        ("xyzzy", "`blockgraph explain` without a word lists what there is"),
    ],
)
def test_an_unknown_word_is_one_finding_with_the_nearest_name(word: str, help: str) -> None:
    text, findings = main_text(word, {})
    assert text == ""
    assert [(one.code, one.message, one.help) for one in findings] == [
        ("BG039", f"nothing is known about `{word}`", help)
    ]


def test_the_list_of_topics_names_them_all() -> None:
    text = topics_text()
    missing = [name for names in topics().values() for name in names if not re.search(rf"\b{name}\b", text)]
    assert missing == []


@pytest.mark.parametrize("width", [80, 100])
def test_a_page_fits_the_screen_but_for_what_is_to_be_copied(width: int) -> None:
    for word in (name for names in topics().values() for name in names):
        prose = re.sub(r"^```.*?^```$", "", explain_word(word, width)[0], flags=re.MULTILINE | re.DOTALL)
        assert [line for line in prose.splitlines() if len(line) > width] == [], word
    assert max(map(len, topics_text(width).splitlines())) <= width


def test_a_page_is_broken_anew_for_the_terminal_and_says_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for width in (80, 50):
        monkeypatch.setenv("COLUMNS", str(width))
        texts.append(run("explain", "BG402")[1])
    monkeypatch.delenv("COLUMNS")
    assert run("explain", "BG402")[1] == texts[0]
    assert texts[0] != texts[1]
    assert texts[0].split() == texts[1].split()


def test_parts_that_read_ids_have_an_example_over_ids() -> None:
    for name in ("embedding", "learned_positions", "relative_bias"):
        assert "tokens: {ids: [B, T], below: V}" in text_of(name)
    assert "T  the last axis of `x`" in text_of("learned_positions")


def test_a_mask_is_no_operand_of_numbers() -> None:
    assert re.search(r"^  keep +true and false, may be left out$", text_of("attend"), re.MULTILINE)


AXES = ("B, H, T, D", "D", "B, T, C", "B, T", "H", "C, D", "C, D, E", "B, T, D1 + D2")


def accepted(example: str, names: tuple[str, ...]) -> bool:
    """Whether an example passes the check with inputs of some kinds and shapes."""
    words = {*re.findall(r"\b[A-Z]\w*\b", example), "D1", "D2"} - {*"BHTDCEV", *names}
    dims = "".join(f", {word}: 4" for word in sorted(words))
    kinds = [f"[{axes}]" for axes in AXES] + ["{bool: [B, T]}", "{ids: [B, T], below: V}"]
    for chosen in product(kinds, repeat=len(names)):
        inputs = ", ".join(f"{name}: {kind}" for name, kind in zip(names, chosen, strict=True))
        head = f"dims: {{H: 4, D: 8, C: 32, E: 8, V: 9{dims}}}\n"
        if bg.check(f"{head}block:\n  inputs: {{{inputs}}}\n  equations: |\n    {example}\n").ok:
            return True
    return False


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_passes_the_check_for_some_operands(name: str) -> None:
    (equation,) = parse_equations(example_of(functions()[name])).equations
    used = [one.name for one in walk(equation.expr) if isinstance(one, Name)]
    names = tuple(name for name in dict.fromkeys(used) if name.islower() or name in ("U", "W"))
    assert accepted(example_of(functions()[name]), names)
