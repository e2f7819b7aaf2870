"""Parameters, FLOPs and caches of models whose numbers are published or follow from pencil and paper."""

from __future__ import annotations

from pathlib import Path

import pytest

import blockgraph as bg
from blockgraph.cost.parameters import count_parameters, number, number_of_parameters
from blockgraph.cost.report import Costs, costs
from blockgraph.dims import Dim
from blockgraph.graph import Graph

MODELS = Path(__file__).parent.parent / "specs" / "models"
GPT2 = """
dims: {C: 768, H: 12, N: 12, V: 50257, L: 1024}
blocks:
  block:
    norm: layer_norm
    placement: pre
    sublayers:
      - {kind: attention, heads: H, mask: causal, bias: true}
      - {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}
model:
  inputs: {tokens: {ids: [B, T], below: V}}
  parts:
    embed: {kind: embedding, size: V, width: C}
    positions: {kind: learned_positions, length: L, width: C}
    layers: {kind: stack, of: block, repeat: N}
    final_norm: layer_norm
  equations: |
    x = embed(tokens) + positions(tokens)
    logits = final_norm(layers(x)) @ embed.table.T
"""
UNTIED = GPT2.replace("final_norm: layer_norm", "final_norm: layer_norm\n    head: {kind: linear, out: V}").replace(
    "final_norm(layers(x)) @ embed.table.T", "head(final_norm(layers(x)))"
)
LLAMA = """
dims: {C: 2048, H: 32, G: 8, D: 64, F: 8192, N: 16, V: 128256}
blocks:
  block:
    norm: rms_norm
    placement: pre
    sublayers:
      - {kind: attention, heads: H, kv_heads: G, head_dim: D, mask: causal}
      - {kind: gated_feed_forward, hidden: F, activation: silu}
model:
  inputs: {tokens: {ids: [B, T], below: V}}
  parts:
    embed: {kind: embedding, size: V, width: C}
    layers: {kind: stack, of: block, repeat: N}
    final_norm: rms_norm
    head: {kind: linear, out: V}
  equations: |
    logits = head(final_norm(layers(embed(tokens))))
"""
TIED_LLAMA = LLAMA.replace("    head: {kind: linear, out: V}\n", "").replace(
    "head(final_norm(layers(embed(tokens))))", "final_norm(layers(embed(tokens))) @ embed.table.T"
)
QWEN = TIED_LLAMA.replace(
    "{C: 2048, H: 32, G: 8, D: 64, F: 8192, N: 16, V: 128256}",
    "{C: 2560, H: 32, G: 8, D: 128, F: 9728, N: 36, V: 151936}",
).replace("mask: causal", "mask: causal, qk_norm: {kind: rms_norm, over: head}")
MIXTRAL = LLAMA.replace(
    "{C: 2048, H: 32, G: 8, D: 64, F: 8192, N: 16, V: 128256}",
    "{C: 4096, H: 32, G: 8, D: 128, F: 14336, N: 32, V: 32000, E: 8, K: 2}",
).replace(
    "{kind: gated_feed_forward, hidden: F, activation: silu}",
    "{kind: moe, experts: E, top_k: K, expert: {kind: gated_feed_forward, hidden: F, activation: silu}}",
)


def graph_of(text: str, **values: int) -> Graph:
    checked = bg.check(bg.load(text).with_values(values))
    assert checked.ok, checked.findings
    assert checked.graph is not None
    return checked.graph


def costs_of(text: str, width: int = 4, causal: bool = False, **values: int) -> Costs:
    return costs(graph_of(text, **values), width, causal)


def known(size: Dim, of: Costs) -> int | None:
    return number(size, of.numbers)


def part(of: Costs, name: str) -> dict[str, int | None]:
    tally = next(row.tally for row in of.rows if row.name == name)
    assert tally is not None
    return {"parameters": known(tally.weights.total, of), "products": known(tally.products, of)}


@pytest.mark.parametrize(
    ("text", "total", "tables"),
    [
        pytest.param(GPT2, 124_439_808, 50257 * 768 + 1024 * 768, id="GPT-2 small, tied"),
        pytest.param(UNTIED, 163_037_184, 50257 * 768 + 1024 * 768, id="GPT-2 small, untied"),
        pytest.param(TIED_LLAMA, 1_235_814_400, 128256 * 2048, id="Llama 3.2 1B, tied"),
        pytest.param(LLAMA, 1_498_482_688, 128256 * 2048, id="Llama 3.2 1B, untied"),
        pytest.param(QWEN, 4_022_468_096, 151936 * 2560, id="Qwen3 4B"),
        pytest.param(MIXTRAL, 46_702_792_704, 32000 * 4096, id="Mixtral 8x7B"),
    ],
)
def test_a_published_model_has_its_published_number_of_parameters(text: str, total: int, tables: int) -> None:
    found = costs_of(text)
    assert found.total is not None
    assert known(found.total.weights.total, found) == total == number_of_parameters(found.graph)
    assert known(found.total.weights.embedding, found) == tables


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("bert", 109_514_298),
        ("bloom", 559_214_592),
        ("falcon", 41_303_293_952),
        ("gemma2", 2_614_341_888),
        ("gpt2", 124_439_808),
        ("gpt_neox", 20_554_567_680),
        ("llama", 8_030_261_248),
        ("mistral", 7_241_732_096),
        ("mixtral", 46_702_792_704),
        ("olmo2", 7_298_617_344),
        ("opt", 125_239_296),
        ("phi", 2_779_683_840),
        ("t5", 60_506_624),
        ("vit", 86_567_656),
    ],
)
def test_the_spec_of_a_family_has_as_many_parameters_as_its_model_card_says(name: str, total: int) -> None:
    found = bg.check(MODELS / f"{name}.yaml").graph
    assert found is not None
    assert number_of_parameters(found) == total


def test_a_block_and_the_head_of_gpt2_have_their_published_numbers() -> None:
    found = costs_of(UNTIED)
    assert part(found, "block")["parameters"] == 7_087_872
    assert part(found, "head")["parameters"] == 38_597_376


def test_a_tied_table_is_listed_as_shared_and_an_untied_one_is_not() -> None:
    (shared,) = costs_of(GPT2).shared
    assert (shared.name, shared.uses, str(shared.parameters)) == ("embed.table", 2, "C*V")
    assert costs_of(UNTIED).shared == ()


def test_of_a_mixture_the_chosen_experts_are_active() -> None:
    found = costs_of(MIXTRAL)
    assert found.total is not None
    assert known(found.total.weights.active, found) == 12_879_925_248


def test_in_a_dense_model_all_parameters_are_active() -> None:
    found = costs_of(GPT2).total
    assert found is not None
    assert found.weights.active == found.weights.total


def test_the_work_of_a_mixture_is_that_of_the_chosen_experts() -> None:
    found = costs_of(MIXTRAL, B=1, T=1)
    assert part(found, "moe")["products"] == 2 * 4096 * 8 + 2 * (2 * 3 * 4096 * 14336)


@pytest.mark.parametrize(("time", "flops"), [(1024, 17_716_740_096), (2048, 41_875_931_136)])
def test_the_products_of_scores_and_values_are_counted(time: int, flops: int) -> None:
    found = costs_of(GPT2, B=1, T=time, L=time)
    assert part(found, "block")["products"] == flops


def test_macs_are_half_and_backward_is_twice_the_forward_products() -> None:
    found = costs_of(GPT2, B=1, T=1024)
    tally = next(row.tally for row in found.rows if row.name == "block")
    assert tally is not None
    assert known(tally.products / 2, found) == 8_858_370_048


def test_causal_counting_halves_scores_and_values_and_nothing_else() -> None:
    found = costs_of(GPT2, causal=True, B=1, T=1024)
    assert part(found, "block")["products"] == 14_495_514_624 + 3_221_225_472 // 2


def test_causal_counting_leaves_full_attention_as_it_is() -> None:
    text = GPT2.replace("mask: causal", "mask: full")
    assert part(costs_of(text, causal=True, B=1, T=1024), "block")["products"] == 17_716_740_096


@pytest.mark.parametrize(
    ("kind", "flops"),
    [
        ("{kind: feed_forward, hidden: F, activation: relu}", 256),
        ("{kind: gated_feed_forward, hidden: F, activation: silu}", 384),
    ],
)
def test_a_gated_feed_forward_costs_three_products(kind: str, flops: int) -> None:
    text = f"dims: {{C: 4, F: 16}}\nblock: {{parts: {{f: {kind}}}, equations: 'x = f(x)'}}"
    assert part(costs_of(text, B=1, T=1), "f")["products"] == flops


def test_the_elementwise_product_of_a_gate_is_listed_apart() -> None:
    plain = costs_of("block:\n  inputs: {x: [B, T, 16]}\n  equations: x = silu(x)\n", B=1, T=1)
    gated = costs_of("block:\n  inputs: {x: [B, T, 16], g: [B, T, 16]}\n  equations: x = x * silu(g)\n", B=1, T=1)
    assert plain.total is not None
    assert gated.total is not None
    assert known(gated.total.elementwise, gated) == (known(plain.total.elementwise, plain) or 0) + 16
    assert gated.total.products == 0


@pytest.mark.parametrize(
    ("groups", "options", "size"),
    [(8, "", 1_073_741_824), (32, "", 4_294_967_296), (8, ", window: 4096", 536_870_912)],
)
def test_the_cache_has_the_heads_of_the_keys_and_ends_with_the_window(groups: int, options: str, size: int) -> None:
    text = MIXTRAL.replace("mask: causal", f"mask: causal{options}")
    found = costs_of(text, width=2, G=groups, B=1, T=8192).total
    assert found is not None
    sizes = [cache.bytes({"B": 1, "T": 8192, "C": 4096, "G": groups, "D": 128, "N": 32}) for cache in found.caches]
    assert sizes == [size]


def test_a_window_without_a_number_stands_in_the_formula() -> None:
    text = LLAMA.replace("mask: causal", "mask: causal, window: W").replace("N: 16", "N: 16, W: ")
    (cache,) = costs_of(text, width=2).total.caches  # type: ignore[union-attr]
    assert cache.formula({}) == "4*B*D*G*N*min(T, W)"
    assert cache.bytes({"B": 1, "D": 64, "G": 8, "N": 1, "T": 10, "W": 4}) == 4 * 64 * 8 * 4


def test_the_whole_is_the_sum_of_its_parts_and_of_its_kinds() -> None:
    for text in (GPT2, QWEN, MIXTRAL):
        found = costs_of(text)
        assert found.total is not None
        for of in (lambda t: t.weights.total, lambda t: t.products, lambda t: t.elementwise, lambda t: t.activations):
            assert sum((of(tally) for tally in found.kinds.values()), Dim(0)) == of(found.total)
    assert found.total.weights.total == count_parameters(found.graph)


def test_layers_that_share_one_set_are_counted_once_and_said_to_be_shared() -> None:
    text = GPT2.replace("repeat: N", "repeat: N, share: true")
    found = costs_of(text)
    assert found.total is not None
    assert known(found.total.weights.total, found) == 124_439_808 - 11 * 7_087_872 == number_of_parameters(found.graph)
    assert {one.name: known(one.uses, found) for one in found.shared if one.uses} == {"embed.table": 2, "layers": 12}
    assert found.total.products == costs_of(GPT2).total.products  # type: ignore[union-attr]


def test_a_part_called_twice_works_twice_with_one_set_of_parameters() -> None:
    text = (
        "dims: {C: 4}\nblock:\n  parts: {f: {kind: feed_forward, hidden: 16, activation: relu, bias: false}}\n"
        "  equations: |\n    x = x + f(x)\n    x = x + f(x)\n"
    )
    found = costs_of(text, B=1, T=1)
    assert part(found, "f") == {"parameters": 2 * 4 * 16, "products": 2 * 256}
    assert [(one.name, one.uses) for one in found.shared] == [("f", 2)]


def test_a_stack_called_twice_works_twice_with_one_set_of_parameters() -> None:
    once, twice = costs_of(GPT2), costs_of(GPT2.replace("layers(x)", "layers(layers(x))"))
    assert once.total is not None
    assert twice.total is not None
    assert number_of_parameters(twice.graph) == 124_439_808
    assert twice.total.weights == once.total.weights
    assert twice.total.products - once.total.products == Dim("N") * next(
        row.tally.products for row in once.rows if row.name == "block" and row.tally is not None
    )


def test_layers_that_take_turns_are_counted_each() -> None:
    text = GPT2.replace("of: block, repeat: N", "of: [block, other], repeat: 5").replace(
        "model:", "  other: {norm: layer_norm, placement: pre, sublayers: [{kind: attention, heads: H}]}\nmodel:"
    )
    found = costs_of(text)
    assert [(row.name, row.times) for row in found.rows if row.depth == 1] == [("block", 3), ("other", 2)]
    assert found.total is not None
    assert found.total.weights.total == count_parameters(found.graph)


def test_the_time_of_counting_does_not_depend_on_the_number_of_layers() -> None:
    few, many = costs_of(GPT2, N=2), costs_of(GPT2, N=1_000_000)
    assert len(few.rows) == len(many.rows)
    assert few.total.products == many.total.products  # type: ignore[union-attr]
