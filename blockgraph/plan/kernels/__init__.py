"""How ops are computed within a plan, one file per family: a module here registers its kernels when it is imported."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load_kernels() -> None:
    """Import every module of this folder."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
