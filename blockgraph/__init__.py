"""blockgraph: a compiler for transformer architectures.

One spec file says what a block, a stack or a model is; from it come the op graph, the proof that the shapes fit,
the numbers and the picture. Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "load": "spec",
    "Spec": "spec",
    "check": "api",
    "compile": "api",
    "Checked": "api",
    "Program": "api",
    "Trace": "api",
    "TransformerBlock": "api",
    "render": "api",
    "Block": "build",
    "Model": "build",
    "Graph": "graph",
    "BlockgraphError": "errors",
    "EnvironmentFailure": "errors",
    "Finding": "errors",
    "InputError": "errors",
    "SpecError": "errors",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        made = importlib.import_module(f"{__name__}.build").constructor(name) if name[:1].isupper() else None
        if made is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return made
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
