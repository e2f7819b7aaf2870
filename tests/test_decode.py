"""Steps with what earlier ones left behind give the numbers of one whole run, for any spec that is causal."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.decode.cache import Rows
from blockgraph.decode.derive import Run
from blockgraph.facts import causal
from tests.made import spec as made
from tests.test_conformance import FAMILIES, model

ROOT = Path(__file__).parent.parent
SPECS = sorted(path for path in (ROOT / "specs").rglob("*.yaml") if path.parent.name != "models")
BOUND = 1e-12
DECODERS = [family for family in FAMILIES if family not in ("bert", "vit")]


def splits(total: int) -> list[list[int]]:
    """All at once, one by one, a prompt and single steps, and steps of several."""
    return [[total], [1] * total, [total - 3, 1, 1, 1], [2, 3, total - 5]]


def ways(x: Mapping[str, Any], total: int) -> Iterator[list[dict[str, Any]]]:
    """The inputs with an axis of time cut into steps."""
    for sizes in splits(total):
        edges = np.cumsum([0, *sizes])
        yield [{name: array[:, a:b] for name, array in x.items()} for a, b in pairwise(edges)]


def parted(program: bg.Program, x: Any) -> tuple[dict[str, Any], dict[str, Any], int]:
    """The inputs that steps bring, those that are the same for all, and the number of positions."""
    given = x if isinstance(x, Mapping) else {program.graph.inputs[0].name: x}
    shapes = {port.name: program.graph.types[port.value].shape or () for port in program.graph.inputs}
    steps = {name: array for name, array in given.items() if "T" in map(str, shapes[name])}
    rest = {name: array for name, array in given.items() if name not in steps}
    return steps, rest, next(iter(steps.values())).shape[1]


def named(result: Any) -> dict[str, Any]:
    return result if isinstance(result, dict) else {"y": result}


def largest_error(program: bg.Program, x: Any, params: Mapping[str, Any]) -> float:
    """The error of steps against one whole run, over all ways to cut, relative to the largest element."""
    steps, rest, total = parted(program, x)
    whole, worst = named(program(x, params)), 0.0
    for way in ways(steps, total):
        decoder = program.decoder(params, rest)
        found = [named(decoder.step(one if len(one) > 1 else next(iter(one.values())))) for one in way]
        assert decoder.length == total
        for name, expected in whole.items():
            y = np.concatenate([one[name] for one in found], axis=1)
            assert y.shape == expected.shape
            worst = max(worst, float(np.abs(y - expected).max() / np.abs(expected).max()))
    return worst


def stirred(params: Mapping[str, Any]) -> dict[str, Any]:
    """No gate at zero, no norm at the identity."""
    rng = np.random.default_rng(1)
    return {name: array + 0.1 * rng.standard_normal(array.shape) for name, array in params.items()}


@pytest.mark.parametrize("family", DECODERS)
def test_every_published_decoder_gives_the_logits_of_one_whole_run(family: str) -> None:
    one = model(family)
    masked = "keep" in {port.name for port in one.program.graph.inputs}
    assert largest_error(one.program, one.inputs(masked), one.cast("float64")) < BOUND


def look_back(data: Any) -> None:
    """Give everything that reads along time in a spec a causal mask."""
    if isinstance(data, list):
        for one in data:
            look_back(one)
    if isinstance(data, dict):
        if data.get("kind") == "attention":
            data["mask"] = "causal"
        if data.get("kind") == "depthwise_conv":
            data["causal"] = True
        for key, one in data.items():
            if isinstance(one, str) and "attend(" in one:
                data[key] = re.sub(r"(attend\(.*?, H\))\)", r'\1, mask="causal")', one)
            look_back(one)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_spec_that_is_causal_or_can_be_made_so_runs_step_by_step(path: Path) -> None:
    data: Any = copy.deepcopy(bg.load(path).document.data)
    if causal(bg.compile(path).graph, {}) != "proved":
        look_back(data)
    program = bg.compile(data)
    assert causal(program.graph, program.graph.dims) == "proved"
    x, params = program.sample(0, T=9)
    assert largest_error(program, x, stirred(params)) < BOUND


def test_specs_made_at_random_run_step_by_step_whenever_they_are_proved_to_be_causal() -> None:
    proved = 0
    for number in range(60):
        text = made(random.Random(f"decode {number}")).text
        program = bg.compile(text)
        if causal(program.graph, program.graph.dims) != "proved":
            with pytest.raises(bg.InputError, match="BG405"):
                program.decoder(program.init(0))
            continue
        proved += 1
        x, params = program.sample(number, T=9)
        assert largest_error(program, x, stirred(params)) < BOUND, text
    assert proved > 25


def program_of(equations: str, **more: Any) -> bg.Program:
    """A block of plain equations on x (B, T, C)."""
    return bg.compile({"dims": {"C": 8, "H": 2, "W": 3}, "block": {"equations": equations, **more}})


SPELLED = """
q = heads(x, H)
s = einsum("b h t d, b h u d -> b h t u", q, q)
w = softmax(s, mask="causal"{})
x = x + merge(einsum("b h t u, b h u d -> b h t d", w, q))
"""
OTHERS = {
    "positions of sinusoids": 'x = x + sinusoid(x, style="half")',
    "attention in primitive ops": SPELLED.format(""),
    "a window in primitive ops": SPELLED.format(", window=W"),
    "a look ahead that is taken back": "y = shift(shift(x, -1), 1) + x",
    "weights used twice": 's = einsum("b t c, b u c -> b t u", x, x)\nw = softmax(s, mask="causal")\n'
    'y = einsum("b t u, b u v, b v c -> b t c", w, w, x)',
    "scores that lie the other way round": 's = einsum("b t c, b u c -> b u t", x, tanh(x))\n'
    'w = softmax(rearrange(s, "b u t -> b t u"), mask="causal")\ny = einsum("b t u, b u c -> b t c", w, x)',
    "keys with a prefix": 'k = concat(repeat(p, "n c -> b n c", b=B), x, axes="b [t] c")\n'
    'w = softmax(einsum("b t c, b u c -> b t u", x, k), mask="causal")\ny = einsum("b t u, b u c -> b t c", w, k)',
    "rotary positions and ALiBi": 'q = rope(heads(x, H), style="pairs")\n'
    'y = merge(attend(q, q, heads(x, H), mask="causal", alibi=True))',
    "a bias that is computed": 's = rearrange(einsum("b t c, b u c -> b t u", x, x), "b t u -> b 1 t u")\n'
    'y = merge(attend(heads(x, H), heads(x, H), heads(x, H), score_bias=s, mask="causal", window=W))',
    "a convolution and a running sum": 'y = cumsum(depthwise_conv(x, k), "b [t] c")',
    "rows that a mixture repeats": 'y = repeat(x, "b t c -> b t r c", r=2)\nx = sum(y*y, "b t r c -> b t c")',
}


@pytest.mark.parametrize("name", OTHERS)
def test_equations_of_ones_own_run_step_by_step(name: str) -> None:
    params = {"p": ["H", "C"]} if "prefix" in name else {}
    equations = OTHERS[name]
    if "convolution" in name:
        params = {"k": ["W", "C"]}
        equations = equations.replace("depthwise_conv(x, k)", "depthwise_conv(x, k, causal=True)")
    program = program_of(equations, **({"params": params} if params else {}))
    x, drawn = program.sample(0, T=9)
    assert largest_error(program, x, stirred(drawn)) < BOUND


def test_several_outputs_come_by_name_and_weights_with_all_their_columns() -> None:
    program = program_of(SPELLED.format(""), outputs=["x", "w"])
    x, params = program.sample(0, T=7)
    whole, decoder = program(x, params), program.decoder(params)
    decoder.step(x[:, :4])
    found = decoder.step(x[:, 4:])
    np.testing.assert_allclose(found["x"], whole["x"][:, 4:], rtol=BOUND)
    np.testing.assert_allclose(found["w"], whole["w"][:, :, 4:], rtol=BOUND)


def test_a_step_computes_in_the_type_of_the_parameters() -> None:
    one = model("llama")
    decoder = one.program.decoder(one.cast("float32"))
    tokens = one.inputs()["tokens"]
    whole = one.program(one.inputs(), one.cast("float32"))
    decoder.feed(tokens[:, :-1])
    y = decoder.step(tokens[:, -1:])
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, whole[:, -1:], rtol=1e-3, atol=1e-5)


def test_a_window_lets_go_of_rows_and_never_holds_more_than_it_shows() -> None:
    one = model("mistral")
    window = one.program.graph.dims["W"]
    decoder, tokens = one.program.decoder(one.cast("float64")), one.inputs()["tokens"]
    sizes = []
    for row in range(200):
        decoder.step(tokens[:, row % tokens.shape[1]][:, None])
        assert max(decoder.kept.values()) <= window
        sizes.append(decoder.bytes)
    assert len(set(sizes[window:])) == 1
    G, D = one.program.graph.dims["G"], one.program.graph.dims["D"]
    layers = one.program.graph.dims["N"]
    assert sizes[-1] <= 2 * 2 * layers * G * D * 8 * (window + max(1, window // 4))


def test_a_long_prompt_leaves_no_more_behind_than_a_window_shows() -> None:
    one = model("mistral")
    tokens = np.tile(one.inputs()["tokens"], (1, 10))
    slow, quick = (one.program.decoder(one.cast("float64")) for _ in range(2))
    quick.feed(tokens)
    for row in range(tokens.shape[1]):
        slow.feed(tokens[:, row : row + 1])
    assert quick.bytes == slow.bytes
    np.testing.assert_allclose(quick.step(tokens[:, :1]), slow.step(tokens[:, :1]), rtol=1e-9)


def test_grouped_heads_keep_their_own_keys_and_values_only() -> None:
    one = model("llama")
    dims, tokens = one.program.graph.dims, one.inputs()["tokens"]
    decoder = one.program.decoder(one.cast("float64"), length=tokens.shape[1])
    decoder.feed(tokens)
    assert decoder.bytes == 2 * dims["N"] * tokens.shape[0] * dims["G"] * 64 * dims["D"] * 8
    assert dims["G"] < dims["H"]


def test_an_encoder_runs_once_and_its_memory_is_projected_once() -> None:
    schedule = model("t5").program.schedule
    scopes = [step.node.scope for step in schedule.steps if isinstance(step, Run)]
    assert scopes
    assert not [scope for scope in scopes if scope.startswith("encoder")]
    made_once = {schedule.graph.producers[value].scope for value in schedule.fixed}
    assert {"decoder.0.cross_attention", "decoder.1.cross_attention"} <= made_once
    crossing = [
        s.node.op.name for s in schedule.steps if isinstance(s, Run) and s.node.scope == "decoder.0.cross_attention"
    ]
    assert sorted(crossing) == ["attend", "heads", "matmul", "matmul", "merge"]


def test_room_for_more_positions_is_made_by_doubling() -> None:
    one = model("bloom")
    decoder, tokens = one.program.decoder(one.cast("float64")), one.inputs()["tokens"]
    sizes = []
    for row in range(300):
        decoder.feed(tokens[:, row % tokens.shape[1]][:, None])
        sizes.append(decoder.bytes)
    assert sorted(set(sizes)) == [sizes[0] * factor for factor in (1, 2, 4, 8)]


def test_a_step_that_was_refused_or_broken_off_has_not_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    one = model("gpt2")
    params, tokens = one.cast("float64"), one.inputs()["tokens"]
    whole, decoder = one.program(one.inputs(), params), one.program.decoder(params)
    decoder.step(tokens[:, :5])
    with pytest.raises(bg.InputError, match=r"BG303 .* holds 99"):
        decoder.step(np.full((2, 1), 99))
    put, calls = Rows.put, []

    def broken(self: Rows, *given: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt("in the middle of a step")
        put(self, *given)

    monkeypatch.setattr(Rows, "put", broken)
    with pytest.raises(KeyboardInterrupt, match="in the middle of a step"):
        decoder.step(tokens[:, 7:9])
    monkeypatch.undo()
    assert decoder.length == 5
    np.testing.assert_allclose(decoder.step(tokens[:, 5:]), whole[:, 5:], rtol=0, atol=1e-12)


def test_positions_beyond_the_table_are_refused_and_the_decoder_goes_on() -> None:
    one = model("gpt2")
    tokens = np.zeros((1, 40), int)
    decoder = one.program.decoder(one.cast("float64"))
    decoder.feed(tokens[:, :15])
    with pytest.raises(bg.InputError, match=r"BG109 .* T = 17 exceeds L = 16"):
        decoder.feed(tokens[:, :2])
    assert decoder.step(tokens[:, :1]).shape[1] == 1
    with pytest.raises(bg.InputError, match="T = 17 exceeds L = 16"):
        decoder.step(tokens[:, :1])
    assert decoder.length == 16


def test_a_spec_that_reads_ahead_is_refused_with_the_proof_in_the_words_of_check() -> None:
    sublayer = {"kind": "attention", "heads": "H"}
    spec = {"dims": {"C": 8, "H": 2}, "block": {"norm": "rms_norm", "causal": True, "sublayers": [sublayer]}}
    (claim,) = [one for one in bg.check(spec).findings if one.code == "BG112"]
    del spec["block"]["causal"]
    program = bg.compile(spec)
    with pytest.raises(bg.InputError, match="earlier positions read later ones") as refused:
        program.decoder(program.init(0))
    (finding,) = refused.value.findings
    proof = "earlier positions read later ones: x -> norm1 -> attention -> x"
    assert (proof in claim.message, proof in finding.message) == (True, True)
    assert [one.message for one in finding.related] == ["`attention` reads later positions"]


NO_STEPS = {
    "a mean over all positions": ({}, 'y = mean(x, "b t c -> b c")', "earlier positions"),
    "a number that depends on how many there are": ({}, "y = x / T", "earlier positions of `y` change with the number"),
    "rows counted from the end": ({}, 'y = x + repeat(p[W - T:], "t c -> b t c", b=B)', "earlier positions of `y`"),
    "a mask of two axes": (
        {"x": ["B", "T", "C"], "m": ["T", "T"]},
        'y = softmax(m, mask="causal") @ x',
        "is (T, T), and",
    ),
    "no positions": ({"x": ["B", "C"]}, "y = x", "no input has an axis of positions"),
    "a fixed number of positions": ({"x": ["B", "W", "C"]}, "y = x", "no input has an axis of positions"),
}


@pytest.mark.parametrize("name", NO_STEPS)
def test_what_has_no_steps_is_refused_with_the_reason(name: str) -> None:
    inputs, equations, reason = NO_STEPS[name]
    more: dict[str, Any] = {"inputs": inputs} if inputs else {}
    if "p[" in equations:
        more["params"] = {"p": ["W", "C"]}
    program = program_of(equations, **more)
    with pytest.raises(bg.InputError, match=f"BG405 .*{re.escape(reason)}"):
        program.decoder(program.init(0))


def test_what_a_decoder_lacks_or_does_not_know_is_told() -> None:
    one = model("t5")
    with pytest.raises(bg.InputError, match="the input `source` is missing"):
        one.program.decoder(one.cast("float64"))
    bart = model("bart")
    long = {"source": np.ones((1, 99), int), "keep": np.ones((1, 99), bool)}
    with pytest.raises(bg.InputError, match=r"BG109 .* S = 99 exceeds L"):
        bart.program.decoder(bart.cast("float64"), long)
    with pytest.raises(bg.InputError, match=r"there is no input `source`\n  help: all inputs come step by step"):
        model("gpt2").program.decoder(model("gpt2").cast("float64"), {"source": np.zeros((1, 2), int)})
    with pytest.raises(bg.InputError, match=r"the input `tokens` has an axis of positions(.|\n)*`decoder.step`"):
        model("gpt2").program.decoder(model("gpt2").cast("float64"), {"tokens": np.zeros((1, 2), int)})
    with pytest.raises(bg.InputError, match=r"the context is a dict of inputs by name, not an array of shape \(1, 2\)"):
        one.program.decoder(one.cast("float64"), np.zeros((1, 2), int))  # type: ignore[arg-type]
    decoder = model("gpt2").program.decoder(model("gpt2").cast("float64"))
    decoder.step(np.zeros((2, 3), int))
    with pytest.raises(bg.InputError, match=r"`tokens` is \(B, T\) with B = 2"):
        decoder.step(np.zeros((3, 1), int))
    with pytest.raises(bg.InputError, match="one position at least"):
        decoder.step(np.zeros((2, 0), int))


def test_what_a_step_returns_is_the_users_own() -> None:
    program = program_of(
        'y = x\nz = sinusoid(x, style="half")\nm = c*c',
        inputs={"x": ["B", "T", "C"], "c": ["C"]},
        outputs=["y", "z", "m"],
    )
    x, c = np.ones((1, 3, 8)), np.full(8, 2.0)
    decoder = program.decoder({}, {"c": c})
    first = decoder.step(x)
    expected = {name: one.copy() for name, one in first.items()}
    for one in first.values():
        one[...] = -1
    assert (x == 1).all()
    assert (c == 2).all()
    again = program.decoder({}, {"c": c}).step(x)
    np.testing.assert_array_equal(decoder.step(x)["m"], expected["m"])
    for name, one in again.items():
        np.testing.assert_array_equal(one, expected[name])


def test_products_that_are_joined_still_give_each_of_their_values() -> None:
    params = {"W1": ["C", "C"], "W2": ["C", "W"], "b": ["C"], "one": [1], "two": ["W"]}
    equations = "p = x @ W1\nq = p + b\nr = x @ W2 + one\ns = x @ W1 + b\nt = x @ W2 + two"
    program = program_of(equations, params=params, outputs=["p", "q", "r", "s", "t"])
    x, drawn = program.sample(0, T=6)
    assert largest_error(program, x, stirred(drawn)) < BOUND
