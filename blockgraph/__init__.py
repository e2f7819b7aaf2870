"""blockgraph: a compiler for transformer architectures.

One spec file says what a block, a stack or a model is; from it come the op graph, the proof that the shapes fit,
the numbers and the picture. Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # what type checkers take for true; the module of this name costs as much as Python's own start
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

# Where each public name is defined; `module:name` where it is called something else there.
_PUBLIC = {
    "load": "spec",
    "Spec": "spec",
    "check": "checking",
    "compile": "api",
    "Checked": "checking",
    "Program": "api",
    "Trace": "trace",
    "TransformerBlock": "api",
    "render": "depict",
    "render_html": "depict",
    "CrossEntropy": "losses",
    "Block": "build",
    "Model": "build",
    "load_weights": "weights:load",
    "save_weights": "weights:save",
    "export_weights": "weights:export",
    "Graph": "graph",
    "BlockgraphError": "errors",
    "EnvironmentFailure": "errors",
    "Finding": "errors",
    "InputError": "errors",
    "SpecError": "errors",
}

__all__ = [*_PUBLIC, "__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        made = importlib.import_module(f"{__name__}.build").constructor(name) if name[:1].isupper() else None
        if made is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return made
    module, _, attribute = _PUBLIC[name].partition(":")
    return getattr(importlib.import_module(f"{__name__}.{module}"), attribute or name)
