"""`generate`: a prompt continued on the command line, from ids and from text, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.decode.memory import foresee
from blockgraph.decode.sampling import Choice, choose, vocabulary
from tests.bench import estimates
from tests.test_cli import ROOT, Run, run
from tests.test_conformance import model

__all__ = ["run"]

DATA = ROOT / "tests" / "conformance"
GPT2 = ROOT / "specs" / "models" / "gpt2.yaml"
GENERATE = ["generate", GPT2, "--checkpoint", DATA / "gpt2"]
BY_LETTER = """
import json
class Encoding:
    def __init__(self, ids): self.ids = ids
class Tokenizer:
    def from_file(path):
        json.load(open(path))
        return Tokenizer()
    def encode(self, text): return Encoding([ord(one) - 97 for one in text])
    def decode(self, ids, skip_special_tokens): return "".join(chr(97 + one % 26) for one in ids)
"""


def saved(path: Path, array: Any) -> Path:
    np.save(path, np.asarray(array))
    return path


def best(family: str, ids: dict[str, Any], name: str, count: int) -> list[list[int]]:
    """Greedy decoding without a cache: the whole run again for every id."""
    one = model(family)
    given = {key: np.asarray(array) for key, array in ids.items()}
    for _ in range(count):
        logits = one.program(given, one.cast("float32"))
        given[name] = np.concatenate([given[name], logits[:, -1].argmax(-1)[:, None]], axis=1)
    new: list[list[int]] = given[name][:, -count:].tolist()
    return new


def test_the_best_ids_are_those_of_whole_runs(run: Run, tmp_path: Path) -> None:
    ids = [[1, 2, 3], [4, 5, 6]]
    words = [
        "generate",
        GPT2,
        "--checkpoint",
        DATA / "gpt2",
        "--input",
        saved(tmp_path / "ids.npy", ids),
        "--tokens",
        6,
    ]
    code, out, err = run(*words)
    new = best("gpt2", {"tokens": ids}, "tokens", 6)
    assert (code, err) == (0, "")
    assert out == "".join(" ".join(map(str, row)) + "\n" for row in new)
    code, out, _ = run(*words, "--format", "json", "-o", tmp_path / "out.npy")
    assert json.loads(out) == {"ok": True, "findings": [], "ids": new}
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.concatenate([ids, new], axis=1))


def test_an_encoder_reads_the_source_and_the_decoder_goes_on(run: Run, tmp_path: Path) -> None:
    source, target = [[5, 6, 7, 8]], [[0]]
    found = run(
        *("generate", ROOT / "specs" / "models" / "t5.yaml", "--checkpoint", DATA / "t5", "--tokens", 4),
        *(
            "--input",
            f"source={saved(tmp_path / 's.npy', source)}",
            "--input",
            f"target={saved(tmp_path / 't.npy', target)}",
        ),
    )
    keep = np.ones((1, 4), bool)
    (new,) = best("t5", {"source": source, "target": target, "keep": keep}, "target", 4)
    assert found == (0, " ".join(map(str, new)) + "\n", "")


def test_a_seed_says_what_is_drawn_and_top_k_from_how_many(run: Run, tmp_path: Path) -> None:
    words = [
        "generate",
        GPT2,
        "--checkpoint",
        DATA / "gpt2",
        "--input",
        saved(tmp_path / "i.npy", [1, 2]),
        "--tokens",
        8,
    ]
    drawn = [run(*words, "--temperature", 2, "--seed", seed)[1] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert run(*words, "--temperature", 5, "--top-k", 1)[1] == run(*words)[1]


def test_ids_are_drawn_as_often_as_their_weights_say() -> None:
    scores = np.log(np.tile([0.1, 0.2, 0.3, 0.4], (20_000, 1)))
    rng = np.random.default_rng(0)
    often = np.bincount(choose(scores, Choice(1.0), rng), minlength=4) / 20_000
    np.testing.assert_allclose(often, [0.1, 0.2, 0.3, 0.4], atol=0.015)
    often = np.bincount(choose(scores, Choice(0.5, top_k=2), rng), minlength=4) / 20_000
    np.testing.assert_allclose(often, [0, 0, 0.09 / 0.25, 0.16 / 0.25], atol=0.015)


def test_text_goes_in_and_comes_out_by_the_tokenizer_of_the_checkpoint(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokenizers.py").write_text(BY_LETTER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = shutil.copytree(DATA / "gpt2", tmp_path / "gpt2")
    words = ["generate", GPT2, "--checkpoint", folder, "--text", "abc", "--tokens", 4]
    code, _, err = run(*words)
    assert code == 2
    assert "tokenizer.json: there is no such file" in err
    (folder / "tokenizer.json").write_text("{}")
    (new,) = best("gpt2", {"tokens": [[0, 1, 2]]}, "tokens", 4)
    text = "".join(chr(97 + one % 26) for one in new)
    assert run(*words) == (0, text + "\n", "")
    assert json.loads(run(*words, "--format", "json")[1])["text"] == [text]
    (folder / "tokenizer.json").write_text('{"model": ')
    code, _, err = run(*words)
    assert code == 1
    assert "BG310" in err
    assert "it is damaged, or no tokenizer" in err
    (folder / "tokenizer.json").write_text("{}")
    code, _, err = run("generate", GPT2, "--checkpoint", folder, "--text", "ab~")
    assert (code, "BG303" in err or "BG109" in err) == (1, True)


def test_without_the_package_text_is_refused_with_what_to_install(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(DATA / "gpt2", tmp_path / "gpt2")
    (folder / "tokenizer.json").write_text("{}")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = run("generate", GPT2, "--checkpoint", folder, "--text", "a")
    assert code == 2
    assert 'pip install "blockgraph[tokenizers]"' in err


def test_a_row_ends_with_the_first_id_of_stop_and_the_run_with_the_last_row(run: Run, tmp_path: Path) -> None:
    ids, out = [[1, 2, 3], [4, 5, 6]], tmp_path / "out.npy"
    first, second = best("gpt2", {"tokens": ids}, "tokens", 12)
    stops = (first[1], next(one for one in second[3:] if one not in first[:2]))
    ends = [min(row.index(one) for one in stops if one in row) + 1 for row in (first, second)]
    assert 0 < min(ends) < max(ends) < 12
    words = [*GENERATE, "--input", saved(tmp_path / "ids.npy", ids), "--tokens", 12, "--force", "-o", out]
    words += [word for one in stops for word in ("--stop", one)]
    rows = [first[: ends[0]], second[: ends[1]]]
    assert run(*words)[:2] == (0, "".join(" ".join(map(str, row)) + "\n" for row in rows))
    assert json.loads(run(*words, "--format", "json")[1])["ids"] == rows
    filled = [row + row[-1:] * (max(ends) - len(row)) for row in rows]
    np.testing.assert_array_equal(np.load(out), np.concatenate([ids, filled], axis=1))


def test_python_generates_what_the_command_does() -> None:
    one, ids = model("gpt2"), [[1, 2, 3], [4, 5, 6]]
    new = np.asarray(best("gpt2", {"tokens": ids}, "tokens", 6))
    decoder = one.program.decoder(one.cast("float32"))
    np.testing.assert_array_equal(np.stack(list(decoder.generate(ids, 6)), axis=1), new)
    decoder = one.program.decoder(one.cast("float32"))
    (only,) = decoder.generate(ids[:1], 6, stop=[int(new[0, 0])])
    assert only == new[:1, 0]
    decoder = one.program.decoder(one.cast("float32"))
    unsigned = np.asarray(ids, np.uint64)
    np.testing.assert_array_equal(np.stack(list(decoder.generate(unsigned, 6, temperature=np.float32(0))), axis=1), new)


def test_little_room_is_made_ahead_where_a_row_may_end_at_once() -> None:
    program = bg.compile(
        """
dims: {C: 16, H: 2, V: 32}
block: {norm: rms_norm, sublayers: [{kind: attention, heads: H, mask: causal, rotary: {style: half}}]}
model:
  inputs: {tokens: {ids: [B, T], below: V}}
  parts:
    embed: {kind: embedding, size: V, width: C}
    layers: {kind: stack, of: block, repeat: 2}
    head: {kind: linear, out: V}
  equations: y = head(layers(embed(tokens)))
"""
    )
    tokens, params = program.sample(0, B=1, T=4)
    decoder = program.decoder(params)
    next(decoder.generate(tokens, 10**8, stop=[3]))
    assert decoder.bytes < 10**7


WRONG_CHOICES: dict[str, tuple[dict[str, Any], str]] = {
    "a stop beyond the ids": ({"stop": [99]}, r"BG303 .* no row ends with 99: ids of `tokens` run from 0 to "),
    "a stop that is no id": ({"stop": [1.5]}, r"BG303 .* no row ends with 1.5"),
    "one stop without a list": ({"stop": 5}, r"BG022 .* `stop`: ids expected, got 5\n  help: write \[5\]"),
    "no number of ids": ({"count": 0}, r"BG022 .* `count`: whole number from 1 on expected, got 0"),
    "a temperature below 0": ({"temperature": -1}, r"BG022 .* `temperature`: number from 0 on expected, got -1"),
    "the best of some where the best is taken": ({"top_k": 3}, r"BG022 .* `top_k` chooses among what is drawn"),
    "a seed below 0": ({"temperature": 1.0, "seed": -1}, r"BG022 .* `seed`: whole number from 0 on expected, got -1"),
    "a seed that is a word": ({"temperature": 1.0, "seed": "x"}, r"BG022 .* `seed`: whole number from 0 on expected"),
    "a few ids too many": ({"count": 15}, r"BG109 .*\n  help: at most 14 new ids after this prompt: `--tokens 14`"),
}


@pytest.mark.parametrize("name", WRONG_CHOICES)
def test_a_choice_that_makes_no_sense_is_refused_before_the_first_id(name: str) -> None:
    one, (given, message) = model("gpt2"), WRONG_CHOICES[name]
    with pytest.raises(bg.InputError, match=message):
        one.program.decoder(one.cast("float32")).generate([[1, 2, 3]], **given)


def test_a_generation_that_needs_more_memory_than_allowed_does_not_start(run: Run, tmp_path: Path) -> None:
    words = [*GENERATE, "--input", saved(tmp_path / "ids.npy", [[1, 2, 3]]), "--tokens", 4]
    code, out, err = run(*words, "--max-memory", "1M")
    assert (code, out) == (2, "")
    assert "BG904" in err
    assert "ask for fewer --tokens" in err
    assert run(*words, "--max-memory", "100M")[0] == 0


def test_the_memory_is_told_whatever_the_axes_of_the_prompt_are_called(run: Run, tmp_path: Path) -> None:
    text = """
dims: {C: 16, V: 32}
model:
  inputs: {tokens: {ids: [Z, S], below: V}}
  parts: {embed: {kind: embedding, size: V, width: C}, head: {kind: linear, out: V}}
  equations: y = head(cumsum(embed(tokens), "z [s] c"))
"""
    (tmp_path / "z.yaml").write_text(text)
    program = bg.compile(tmp_path / "z.yaml")
    tokens, params = program.sample(0, Z=1, S=3)
    np.savez(tmp_path / "w.npz", **params)
    words = ("--params", tmp_path / "w.npz", "--input", saved(tmp_path / "ids.npy", tokens.tolist()))
    code, _, err = run("generate", tmp_path / "z.yaml", *words, "--tokens", 1_000_000, "--max-memory", "1M")
    assert (code, "BG904" in err) == (2, True)


@pytest.mark.parametrize(("prompt", "count"), [(1, 400), (300, 8)])
@pytest.mark.parametrize("name", ["gpt2", "mixtral", "gemma2"])
def test_a_generation_takes_the_memory_that_was_told_before_it(name: str, prompt: int, count: int) -> None:
    program = estimates.narrowed(estimates.shallow(bg.compile(ROOT / "specs" / "models" / f"{name}.yaml")))
    params = program.init(0, "float32")
    ids = np.ones((2, prompt), int)

    def work() -> Any:
        decoder = program.decoder(params)
        return decoder, list(decoder.generate(ids, count))

    list(program.decoder(params).generate(ids[:, :1], 1))  # modules are loaded
    report = foresee(program.schedule, {"B": 2}, prompt, prompt + count - 1, "float32")
    assert estimates.within(report.total, report.parameters + estimates.peak(work))


REFUSED = {
    "numbers that are no ids": (
        [[0.5, 1.0]],
        "BG302",
        "float64 help: if that is what its numbers mean, give `array.astype(int)`",
    ),
    "ids out of range": ([[1, 99]], "BG303", "`tokens` holds 99 at [0, 0]"),
    "a prompt longer than the positions": ([[1] * 20], "BG109", "help: the prompt alone is too long: give 4 ids less"),
    "more tokens than positions": (
        [[1] * 12],
        "BG109",
        "T = 17 exceeds L = 16 help: at most 5 new ids after this prompt: `--tokens 5`",
    ),
    "an empty prompt": (np.zeros((1, 0), int), "BG302", "one position at least"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_prompt_that_does_not_fit_is_a_finding(name: str, run: Run, tmp_path: Path) -> None:
    array, code, words = REFUSED[name]
    path, out = saved(tmp_path / "ids.npy", array), tmp_path / "out.npy"
    found = run("generate", GPT2, "--checkpoint", DATA / "gpt2", "--input", path, "--tokens", 6, "-o", out)
    assert found[0] == 1
    assert code in found[2]
    assert words in " ".join(found[2].split())
    assert not out.exists()


MODEL = """
dims: {C: 8, V: 11}
model:
  inputs: {INPUTS}
  parts: {embed: {kind: embedding, size: V, width: C}}
  equations: y = EQUATION
"""
IDS = "{ids: [B, T], below: V}"
NO_STEPS = {
    "no scores": (f"tokens: {IDS}", "embed(tokens)", "no output has scores over the V ids of `tokens`"),
    "two prompts": (f"t: {IDS}, u: {IDS}", "(embed(t) + embed(u)) @ embed.table.T", "2 inputs of ids"),
    "reading ahead": (f"t: {IDS}", "shift(embed(t), -1) @ embed.table.T", "earlier positions read later ones: t ->"),
}


@pytest.mark.parametrize("name", NO_STEPS)
def test_a_spec_that_cannot_be_continued_is_refused_with_the_reason(name: str, run: Run, tmp_path: Path) -> None:
    inputs, equation, words = NO_STEPS[name]
    spec, weights = tmp_path / "spec.yaml", tmp_path / "weights.npz"
    spec.write_text(MODEL.replace("INPUTS", inputs).replace("EQUATION", equation))
    np.savez(weights, **{"embed.table": np.ones((11, 8))})
    code, _, err = run("generate", spec, "--params", weights)
    assert code == 1
    assert "BG405" in err
    assert words in " ".join(err.split())


def test_vectors_have_no_next_one_to_choose() -> None:
    program = bg.compile({"dims": {"C": 8}, "block": {"equations": 'y = cumsum(x, "b [t] c")'}})
    with pytest.raises(bg.InputError, match="no inputs of ids have an axis of positions"):
        vocabulary(program.spec, program.graph, program.schedule.timing.time)


def test_without_weights_or_prompt_there_is_nothing_to_continue(run: Run) -> None:
    code, _, err = run("generate", GPT2, "--input", "ids.npy")
    assert (code, "no weights are given" in err) == (1, True)
    code, _, err = run("generate", GPT2, "--checkpoint", DATA / "gpt2")
    assert (code, "no prompt is given: the input `tokens` is missing" in err) == (1, True)


@pytest.mark.parametrize(
    "words",
    [("--tokens", 0), ("--temperature", -1), ("--temperature", "nan"), ("--top-k", 0), ("--top-k", 5), ("--text", "a")],
)
def test_options_that_make_no_sense_are_wrong_usage(words: tuple[Any, ...], run: Run) -> None:
    code, out, err = run("generate", GPT2, *words)
    assert (code, out) == (2, "")
    assert err.startswith("blockgraph generate: ")


@pytest.mark.skipif(os.name == "nt", reason="needs a signal as a terminal sends it")
def test_a_run_that_is_interrupted_leaves_no_file(tmp_path: Path) -> None:
    program = (
        "import sys, time, blockgraph.decode.sampling as s\n"
        "from blockgraph.__main__ import main\n"
        "choose = s.choose\n"
        "s.choose = lambda *given: (print('one', flush=True), time.sleep(0.2), choose(*given))[2]\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = [*GENERATE, "--input", saved(tmp_path / "i.npy", [1]), "--tokens", 15]
    command = [sys.executable, "-c", program, *map(str, words), "-o", str(tmp_path / "out.npy")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert child.stdout is not None
    assert child.stdout.readline() == "one\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["i.npy"]
