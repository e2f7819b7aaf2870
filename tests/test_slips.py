"""One slip gives one finding, wherever it is made: a tenth of all slips in all specs."""

from __future__ import annotations

import pytest

from tests.slips import SLIPS, Slip, judge


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.__name__)
def test_one_slip_gives_one_finding(slip: Slip) -> None:
    counts = judge(slip, share=0.1).counts
    print(slip.__name__, dict(counts))
    assert counts["one"] > 15
    assert counts["more"] <= counts.total() / 100
