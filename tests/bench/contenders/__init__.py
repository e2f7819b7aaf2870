"""Those who compute a case: each module has functions `name(case, params)` that return a `Work`.

What a library needs of its own is imported inside the functions, so that a row without it is told and not lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Work:
    """`call(x, dy)` is what is timed, and gives named arrays or None; `again()` comes before each turn, untimed.

    `note` is told beside the figure. At most `steps` calls follow one another before `again` is needed.
    """

    call: Callable[[Any, Any], Any]
    again: Callable[[Any], object] | None = None
    note: str = ""
    steps: int = 1_000_000
    named: Callable[[Any], dict[str, Any]] = lambda result: {"y": result}
