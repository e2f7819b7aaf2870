"""What the library is given and gives back: sizes, arrays, parameters, names; refusals in words, never a traceback."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg

SPECS = Path(__file__).parent.parent / "specs"

MAP = {"dims": {"C": 4, "D": "C/2"}, "block": {"parts": {"map": "linear"}, "equations": ["x = x + map(x)"]}}
BARE = {"dims": {"C": 4}, "block": {"equations": ["y = x"]}}


def joint(first: str, second: str) -> bg.Program:
    """A module of two inputs whose second axes are the given ones."""
    inputs = {"x": ["B", first, "C"], "z": ["B", second, "C"]}
    total = 'y = sum(x, "b t c -> b c") + sum(z, "b t c -> b c")'
    return bg.compile({"dims": {"C": 4}, "block": {"inputs": inputs, "equations": [total]}})


# Sizes


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"C": 2}, r"`C` is 4 in this program, not 2\n  help: .*compile\(spec, C=2\)"),
        ({"D": 2}, "no input has an axis `D`"),
        ({"Z": 2}, "no input has an axis `Z`"),
        ({"T": -1}, "`T`: whole number expected, got -1"),
        ({"T": 2.5}, "`T`: whole number expected, got 2.5"),
        ({"T": True}, "`T`: whole number expected, got true"),
    ],
)
def test_a_sample_takes_sizes_of_free_symbols_only(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(bg.InputError, match=message):
        bg.compile(MAP).sample(0, **sizes)


def test_a_sample_may_repeat_the_number_of_a_dim_and_have_no_positions() -> None:
    x, params = bg.compile(MAP).sample(0, C=4, T=0)
    assert x.shape == (2, 0, 4)
    assert params["map.W"].shape == (4, 4)


def test_a_sample_whose_axis_would_be_negative_is_refused() -> None:
    with pytest.raises(bg.InputError, match="an axis is T - 1 = -1"):
        joint("T - 1", "T").sample(0, T=0)


@pytest.mark.parametrize(
    ("first", "second", "lengths"),
    [("T - 1", "2*T", (4, 10)), ("2*T + 1", "S", (7, 2)), ("T*S", "S", (12, 4)), ("S", "3*T*S", (2, 18))],
)
def test_a_call_reads_its_symbols_off_linear_axes(first: str, second: str, lengths: tuple[int, int]) -> None:
    x, z = (np.full((2, length, 4), 1.0) for length in lengths)
    assert np.array_equal(joint(first, second)({"x": x, "z": z}, {}), np.full((2, 4), sum(lengths)))


@pytest.mark.parametrize(
    ("lengths", "message"),
    [((4, 9), r"`z` is \(B, 2\*T, C\)"), ((4, 12), r"`z` is \(B, 2\*T, C\) with 2\*T = 10")],
)
def test_a_call_whose_axes_disagree_is_refused(lengths: tuple[int, int], message: str) -> None:
    x, z = (np.ones((2, length, 4)) for length in lengths)
    with pytest.raises(bg.InputError, match=message):
        joint("T - 1", "2*T")({"x": x, "z": z}, {})


def test_an_axis_that_no_whole_number_explains_is_refused() -> None:
    spec = {"dims": {"C": 4}, "block": {"inputs": {"x": ["B", "2*T", "C"]}, "equations": ["y = 2*x"]}}
    with pytest.raises(bg.InputError, match=r"`x` is \(B, 2\*T, C\), and .*\(1, 5, 4\) fits no `T`"):
        bg.compile(spec)(np.ones((1, 5, 4)), {})


def test_a_size_of_a_parameter_may_be_a_symbol_that_a_use_binds_to_a_dim() -> None:
    block = {"inputs": {"x": ["B", "T", "D"]}, "params": {"g": ["D"]}, "equations": ["x = x*g"]}
    model = {"parts": {"one": "block", "layers": {"kind": "stack", "of": "block", "repeat": 2}}}
    model["equations"] = ["x = layers(one(x))"]  # type: ignore[assignment]
    spec = {"dims": {"C": 4}, "blocks": {"block": block}, "model": model}
    assert bg.check(spec).findings == ()
    assert [array.shape for array in bg.compile(spec).init(0).values()] == [(4,)] * 3


# Arrays


def test_what_is_no_array_is_refused_in_words() -> None:
    program = bg.compile(MAP)
    x, params = program.sample(0)
    with pytest.raises(bg.InputError, match="the input `x` is no array of numbers"):
        program([[1.0, 2.0], [3.0]], params)
    with pytest.raises(bg.InputError, match=r"`map\.W` is no array of numbers"):
        program(x, {"map.W": [[1.0, 2.0], [3.0]]})
    with pytest.raises(bg.InputError, match="the parameters are a dict of arrays by name, not nothing"):
        program(x, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "word"), [(3, "3"), ([1], "a list"), (None, "nothing")])
def test_what_is_no_spec_is_refused_in_words(given: Any, word: str) -> None:
    with pytest.raises(bg.SpecError, match=f"a spec is a path, text or a mapping, not {word}"):
        bg.load(given)


@pytest.mark.parametrize("equation", ["y = x", 'y = rearrange(x, "b t c -> t b c")', "y = x[0]"])
def test_a_result_is_never_the_callers_own_array(equation: str) -> None:
    program = bg.compile({"dims": {"C": 4}, "block": {"equations": [equation]}})
    x, _ = program.sample(0)
    assert not np.shares_memory(program(x, {}), x)
    assert not np.shares_memory(program.vjp(x, {})[0], x)


def test_numbers_that_are_not_finite_make_no_warning() -> None:
    program = bg.compile({"dims": {"C": 4}, "block": {"equations": ["y = log(x)/x"]}})
    x = np.zeros((1, 1, 4))
    assert np.isneginf(program(x, {})).all()
    assert np.isneginf(program.trace(x, {})["y"]).all()
    _, back = program.vjp(x, {})
    dx, _ = back(np.ones_like(x))
    assert not np.isfinite(dx).any()


# Names


def test_a_trace_without_a_name_tells_the_nearest() -> None:
    trace = bg.compile(MAP).trace(*bg.compile(MAP).sample(0))
    with pytest.raises(KeyError, match=r"no value is called `mapp`: did you mean `map`\?"):
        trace["mapp"]
    assert "mapp" not in trace


def test_a_trace_lists_values_in_the_order_in_which_they_are_made() -> None:
    block = {"equations": ["x = 2*x"]}
    model = {"parts": {"layers": {"kind": "stack", "of": "block", "repeat": 2}}}
    model["equations"] = ["h = 3*x", "x = layers(h)"]  # type: ignore[assignment]
    program = bg.compile({"dims": {"C": 4}, "blocks": {"block": block}, "model": model})
    names = list(program.trace(*program.sample(0)))
    assert names[:2] == ["x.1", "h"]
    assert names.index("h") < names.index("layers.0.x.2") < names.index("layers.1.x.2")


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda p, x, w: p.vjp(x, w)[1]([[1, 2], [3]]), "its rows differ in length"),
        (lambda p, x, w: bg.save_weights(p, None, "w.safetensors"), "a dict of arrays by name"),
        (lambda p, x, w: bg.save_weights(p, w, None), "a file is named by a path"),
        (lambda p, x, w: bg.load_weights(p, None), "a file is named by a path"),
        (lambda p, x, w: p.sample(0, T=10**12), "a size up to 2147483648"),
    ],
)
def test_what_is_no_gradient_no_path_or_no_size_is_refused_in_words(call: Any, word: str) -> None:
    program = bg.compile({"dims": {"C": 4}, "block": {"params": {"w": ["C"]}, "equations": "y = w*x"}})
    x, params = program.sample(0)
    with pytest.raises(bg.InputError, match=word):
        call(program, x, params)


@pytest.mark.parametrize("name", ["w", "w.npz", "w.bin", "w.SAFETENSORS"])
def test_weights_are_written_under_a_name_that_tells_their_form(name: str, tmp_path: Path) -> None:
    program = bg.compile({"dims": {"C": 4}, "block": {"params": {"w": ["C"]}, "equations": "y = w*x"}})
    with pytest.raises(bg.EnvironmentFailure, match=r"in a file that ends in \.safetensors"):
        bg.save_weights(program, program.init(0), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    bg.save_weights(program, program.init(0), tmp_path / "w.safetensors")
    assert bg.load_weights(program, tmp_path / "w.safetensors").params.keys() == {"w"}


@pytest.mark.parametrize("call", ["init", "sample"])
def test_what_does_not_fit_into_memory_is_refused_before_it_is_drawn(call: str) -> None:
    program = bg.compile(MAP, C=2_000_000_000)
    with pytest.raises(bg.EnvironmentFailure, match=r"(?s)BG904.*the largest is (map\.W|x), [0-9,]+ bytes"):
        getattr(program, call)(0)


def test_inputs_that_do_not_fit_are_refused_too() -> None:
    with pytest.raises(bg.EnvironmentFailure, match=f"the largest is x, {2**30 * 2**29 * 4 * 4:,} bytes"):
        bg.compile(BARE).sample(0, "float32", B=2**30, T=2**29)


@pytest.mark.parametrize("call", ["__call__", "trace", "vjp", "grad", "tape"])
def test_memory_that_runs_out_in_a_run_is_a_finding(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*args: Any) -> Any:
        raise MemoryError("Unable to allocate 1.00 TiB for an array")

    program = bg.compile(MAP)
    given = program.sample(0)
    monkeypatch.setattr(bg.Program, "_ready", exhausted)
    with pytest.raises(bg.EnvironmentFailure, match="the memory of this machine is not enough"):
        getattr(program, call)(*given)


def test_a_number_of_thousands_of_digits_is_no_size() -> None:
    spec = bg.load({"dims": {"C": 4}, "block": {"equations": "y = 2*x"}})
    for name in ("C", "T"):
        (found,) = bg.check(spec, **{name: "9" * 5000}).findings[:1]
        assert "got a number of 5,000 digits" in found.message


@pytest.mark.parametrize("value", [0, -1, True, "2", 2.5])
def test_a_number_of_threads_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(bg.InputError, match="`threads`: whole number from 1 on expected"):
        bg.compile(SPECS / "pre_norm.yaml", threads=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1, True, "a", 1.5])
def test_a_length_of_a_decoder_that_is_none_is_refused(value: object) -> None:
    program = bg.compile(SPECS / "models" / "gpt2.yaml", N=1, C=8, H=2, V=11, L=16)
    with pytest.raises(bg.InputError, match="`length`: whole number from 1 on expected"):
        program.decoder(program.init(0), length=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [17, 10**12])
def test_a_length_of_a_decoder_beyond_the_table_of_positions_is_refused(value: int) -> None:
    program = bg.compile(SPECS / "models" / "gpt2.yaml", N=1, C=8, H=2, V=11, L=16)
    with pytest.raises(bg.InputError, match="BG109"):
        program.decoder(program.init(0), length=value)


HIDDEN = np.ma.masked_array(np.ones((2, 3, 16)), mask=False)
NO_PARAMETERS: dict[str, tuple[Any, str]] = {
    "whole numbers": (
        np.ones(16, int),
        r"`norm1.gamma` is of type int64, and parameters are floats\n  help: if .*float64",
    ),
    "booleans": (np.ones(16, bool), "`norm1.gamma` is of type bool, and parameters are floats"),
    "another dtype": (
        np.ones(16, "float32"),
        r"the parameters are of several types \(float32: norm1.gamma, float64: norm1.beta, .*astype\(.float64.\)",
    ),
    "a masked array": (np.ma.masked_array(np.ones(16)), r"`norm1.gamma` is a masked array(.|\n)*`array.filled\(0\)`"),
    "text": (np.array(["a"] * 16), "`norm1.gamma` is no array of numbers"),
}


@pytest.mark.parametrize("name", NO_PARAMETERS)
def test_parameters_are_floats_of_one_dtype(name: str) -> None:
    array, message = NO_PARAMETERS[name]
    program = bg.compile(SPECS / "pre_norm.yaml", C=16)
    x, params = program.sample(0)
    with pytest.raises(bg.InputError, match=re.compile(message, re.DOTALL)) as caught:
        program(x, {**params, "norm1.gamma": array})
    assert [one.code for one in caught.value.findings] == ["BG301"]


def test_many_parameters_of_a_wrong_type_are_one_finding() -> None:
    program = bg.compile(SPECS / "pre_norm.yaml", C=16)
    x, params = program.sample(0)
    with pytest.raises(bg.InputError, match=r"`norm1.gamma` is of type int64.* \(and 11 more\)") as caught:
        program(x, {name: array.astype(int) for name, array in params.items()})
    assert len(caught.value.findings) == 1


def test_a_masked_array_is_refused_wherever_numbers_are_given() -> None:
    program = bg.compile(SPECS / "pre_norm.yaml", C=16)
    params = program.init(0)
    y, back = program.vjp(HIDDEN.filled(0), params)
    with pytest.raises(bg.InputError, match=r"the input `x` is a masked array(.|\n)*`array.filled\(0\)`"):
        program(HIDDEN, params)
    with pytest.raises(bg.InputError, match="the cotangent of `x` is a masked array"):
        back(np.ma.masked_array(y))
    with pytest.raises(bg.InputError, match=r"the targets are a masked array(.|\n)*`targets.filled\(-100\)`"):
        bg.CrossEntropy(np.ma.masked_array([[1]]))({"y": np.ones((1, 1, 3))})
