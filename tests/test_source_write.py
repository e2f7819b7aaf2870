"""Writing data as YAML and JSON, and taking data from Python."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockgraph.errors import SpecError
from blockgraph.source import from_data, parse
from blockgraph.source.write import to_json, to_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "",
        "no",
        "null",
        "1e-5",
        "0x1",
        "-",
        "- a",
        "a: b",
        "a #b",
        "#",
        "x = a\ny = b\n",
        "a\n",
        "\n",
        "\n\n",
        " a\nb",
        "a\n\n\n",
        "\ta\nb",
        "a\n  \n b",
        "\n  a\n",
        "<<",
        "...",
        "---",
        "a:",
        "@x",
        "*x",
        "%",
        "{a",
        "true ",
        "'",
        '"',
        "\\",
        "a\r\nb",
        "x\u2028y",
    ]
)
SCALARS = (
    TEXT | st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
)
DATA = st.dictionaries(
    TEXT,
    st.recursive(SCALARS, lambda x: st.lists(x, max_size=4) | st.dictionaries(TEXT, x, max_size=4), max_leaves=15),
    max_size=5,
)


def same(a: Any, b: Any) -> bool:
    """Whether two pieces of data are equal in value, type and order."""
    return repr(a) == repr(b)


@given(DATA)
@settings(max_examples=400, deadline=None)
def test_what_is_written_as_yaml_reads_back_equal(data: dict[str, Any]) -> None:
    assert same(parse(to_yaml(data), "s.yaml").data, data)


@given(DATA)
@settings(deadline=None)
def test_what_is_written_as_json_reads_back_equal(data: dict[str, Any]) -> None:
    assert same(parse(to_json(data), "s.json").data, data)
    assert same(from_data(data).data, data)
    assert same(json.loads(to_json(data)), data)


HOUSE = """\
name: pre_norm
source: "Xiong et al. 2020, arXiv:2002.04745"
dims: {C: 64, H: 4, B: null}
block:
  norm: {kind: layer_norm, eps: 1e-5}
  placement: pre
  sublayers:
    - {kind: attention, heads: H, rotary: {style: half, theta: 10000.0}}
    - kind: block
      placement: |
        y = f(norm(x))
        x = x + y
      inputs: {x: [B, T, C]}
  equations:
    - "a: b"
    - |-
      x
      y
"""


def test_yaml_is_written_in_house_style() -> None:
    assert to_yaml(parse(HOUSE, "s.yaml").data) == HOUSE


def test_data_from_python_has_places_and_is_held_to_the_same_rules() -> None:
    document = from_data({"block": {"heads": (1, "x")}})
    assert document.data == {"block": {"heads": [1, "x"]}}
    place = document.value(("block", "heads", 1))
    assert (document.line(place.start.line).strip(), str(place)) == ('"x"', "<dict>:5:7")


LOOP: dict[str, Any] = {}
LOOP["a"] = LOOP


@pytest.mark.parametrize(
    ("data", "code", "path", "words"),
    [
        ({"a": [numpy.int64(3)]}, "BG001", "a[0]", "got a value of type int64 from numpy"),
        ({"a": numpy.float64(3)}, "BG001", "a", "float64 from numpy"),
        ({"a": numpy.ones(2)}, "BG001", "a", "ndarray from numpy"),
        ({"a": {1, 2}}, "BG001", "a", "type set"),
        ({"a": b"x"}, "BG001", "a", "type bytes"),
        ({"a": math.inf}, "BG001", "a", "got inf"),
        ({"a": 10**5000}, "BG001", "a", "too long"),
        ({"a": "\ud800"}, "BG001", "a", "half a character"),
        ({"a": {1: 2}}, "BG006", "a", "got 1"),
        ({("a",): 2}, "BG006", "", "got a tuple"),
        (LOOP, "BG007", "a.a.a.a", "64 levels"),
        ([1], "BG008", "", "a list"),
        (3, "BG008", "", "only 3"),
    ],
)
def test_what_a_spec_cannot_hold_is_refused_with_its_path(data: Any, code: str, path: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        from_data(data)
    assert [(f.code, f.place.spec_path) for f in caught.value.findings] == [(code, path)]
