"""What is loaded only when it is needed: NumPy, and the modules of a package by what they define.

Checking and drawing a spec never load NumPy, and a process that checks one file loads only the ops and kinds that
stand in it.
"""

from __future__ import annotations

import importlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _LazyModule:
    """Stands for a module and imports it at the first attribute access."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


def modules_in(package: str) -> list[str]:
    """The names of a package's modules, sorted; none of them is loaded, and a package in a zip file will do."""
    folders = list(importlib.import_module(package).__path__)
    files = {name for folder in folders if os.path.isdir(folder) for name in os.listdir(folder)}
    found = {name.removesuffix(".py") for name in files if name.endswith(".py")} - {"__init__"}
    if not found:
        import pkgutil  # it knows every way to pack modules, and loads much for it

        found = {one.name for one in pkgutil.iter_modules(folders)}
    return sorted(found)


def source_of(package: str, module: str) -> str:
    """The text of a module that need not be loaded; empty where only its bytecode is there."""
    home = importlib.import_module(package)
    try:
        content: bytes = home.__loader__.get_data(os.path.join(home.__path__[0], f"{module}.py"))  # type: ignore[union-attr]
    except (OSError, AttributeError):
        return ""
    return content.decode("utf-8")


UNMASK = "say what stands in the hidden places: `array.filled(0)`, for one"
"""What to do with a masked array."""


def masked(value: object) -> bool:
    """Whether this is an array of `numpy.ma`, whose hidden numbers every computation would read."""
    return hasattr(value, "filled") and hasattr(value, "mask")


if TYPE_CHECKING:
    import numpy as np
else:
    np = _LazyModule("numpy")

__all__ = ["UNMASK", "masked", "modules_in", "np", "source_of"]
