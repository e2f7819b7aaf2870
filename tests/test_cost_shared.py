"""Parameters that several layers have in common are counted once, wherever the stack stands."""

from __future__ import annotations

import pytest

import blockgraph as bg
from blockgraph.cost.parameters import number_of_parameters

SPEC = """
dims: {C: 8, N: 3, M: 2}
blocks:
  small: {parts: {lin: linear}, equations: x = x + lin(x)}
  inner: {parts: {layers: {kind: stack, of: small, repeat: M}}, equations: x = layers(x)}
  outer: {parts: {inner: {kind: inner, share: SHARE}}, equations: x = inner(x)}
model: {parts: {layers: {kind: stack, of: outer, repeat: N}}, equations: x = layers(x)}
"""


@pytest.mark.parametrize(("share", "matrices"), [("false", 6), ("true", 2)])
def test_a_shared_part_with_a_stack_inside_is_counted_once(share: str, matrices: int) -> None:
    program = bg.compile(SPEC.replace("SHARE", share))
    assert len(program.parameters) == matrices
    assert number_of_parameters(program.graph) == matrices * 64
