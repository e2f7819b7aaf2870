"""`blockgraph summary`: what it prints for people and for programs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from blockgraph.cli import main
from tests.test_cost import GPT2, LLAMA, MIXTRAL, UNTIED


@pytest.fixture
def spec(tmp_path: Path) -> Any:
    def written(text: str) -> str:
        path = tmp_path / "model.yaml"
        path.write_text(f"name: model\n{text}", encoding="utf-8")
        return str(path)

    return written


def document(path: str, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["summary", path, "--format", "json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_json_has_formulas_and_exact_numbers(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(spec(GPT2), capsys, "--batch", "1", "--time", "1024")
    block = next(row for row in found["parts"] if row["name"] == "block")
    assert block["flops_forward"] == {"formula": "4*B*C*T**2 + 24*B*C**2*T", "number": 17_716_740_096}
    assert block["macs"]["number"] == 8_858_370_048
    assert block["flops_backward"]["number"] == 2 * 17_716_740_096
    assert block["times"] == {"formula": "N", "number": 12}
    assert found["total"]["parameters"]["number"] == 124_439_808
    assert found["total"]["without_embeddings"]["number"] == 124_439_808 - 38_597_376 - 786_432
    assert [one["name"] for one in found["shared"]] == ["embed.table"]


def test_without_a_time_formulas_stand_alone(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(spec(GPT2), capsys)
    assert found["total"]["flops_forward"]["number"] is None
    assert "T**2" in found["total"]["flops_forward"]["formula"]
    assert found["memory"] is None


def test_the_dtype_sets_the_bytes(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--batch", "1", "--time", "8192", "--dtype", "bfloat16")
    found = document(spec(MIXTRAL), capsys, *words)
    assert found["total"]["kv_cache_bytes"]["number"] == 1_073_741_824
    assert found["memory"]["parameters"] == 2 * 46_702_792_704


def test_the_memory_report_names_the_largest_tensor(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(spec(MIXTRAL), capsys, "--batch", "1", "--time", "8192")["memory"]
    assert found["parameters"] == 186_811_170_816
    assert found["largest"]["bytes"] == 8_589_934_592
    assert found["largest"]["name"] == "layers.*.attention: scores of attend"
    assert found["largest"]["shape"] == "(B, H, T, T)"


def test_causal_counting_is_named(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = spec(GPT2)
    dense, causal = (document(path, capsys, "--batch", "1", "--time", "1024", *more) for more in ((), ("--causal",)))
    assert (dense["counting"], causal["counting"]) == ("dense", "causal")
    saved = dense["total"]["flops_forward"]["number"] - causal["total"]["flops_forward"]["number"]
    assert saved == 12 * 3_221_225_472 // 2


def test_a_set_dim_changes_the_numbers(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(spec(LLAMA), capsys, "--set", "N=1")
    assert found["total"]["parameters"]["number"] == 1_498_482_688 - 15 * (
        2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192 + 2 * 2048
    )


def test_the_tables_fit_into_eighty_columns(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (GPT2, UNTIED, LLAMA, MIXTRAL):
        assert main(["summary", spec(text), "--batch", "1", "--time", "1024"]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80
        for word in ("parameters", "without embeddings", "FLOPs backward", "MACs", "KV cache", "Dense counting"):
            assert word in out


def test_active_parameters_are_shown_where_they_are_fewer(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", spec(MIXTRAL)]) == 0
    assert "12,879,925,248" in capsys.readouterr().out
    assert main(["summary", spec(LLAMA)]) == 0
    assert "  active" not in capsys.readouterr().out


def test_a_spec_with_a_fault_is_told_and_counts_nothing(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", spec(LLAMA.replace("kv_heads: G", "kv_heads: 5"))]) == 1
    out, err = capsys.readouterr()
    assert (out, "BG103" in err) == ("", True)


def test_sizes_that_contradict_each_other_are_wrong_usage(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", spec(GPT2), "--time", "8", "--set", "T=9"]) == 2
    assert "--time 8 and --set T=9 contradict each other" in capsys.readouterr().err


def test_a_large_model_is_summed_up_in_less_than_two_seconds(spec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    document(spec(MIXTRAL), capsys, "--batch", "1", "--time", "8192")
    assert time.perf_counter() - start < 2
