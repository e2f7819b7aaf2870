"""NumPy, imported when first used: checking and drawing a spec never load it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class _LazyModule:
    """Stands for a module and imports it at the first attribute access."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import numpy as np
else:
    np = _LazyModule("numpy")

__all__ = ["np"]
