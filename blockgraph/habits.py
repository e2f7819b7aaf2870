"""What people write by the habit of other libraries, and what a spec has for it.

The nearest name would be a wrong hint there: `reshape` is no misspelt `repeat`, and `norm` no `l2_norm`.
"""

from __future__ import annotations

from typing import Final

AXES: Final = 'write `rearrange(x, "b t (h d) -> b h t d", h=H)`; for attention there are `heads(x, H)` and `merge(x)`'
NO_DROPOUT: Final = "leave it out: a spec has no dropout, it describes inference and exact gradients"
KEPT: Final = 'write `{name}(x, "b t c -> b t 1")`: the pattern says which axis goes, 1 keeps it'
_FUNCTIONS: Final = {
    "norm": "declare it under `parts`, as `norm: layer_norm` or `norm: rms_norm`",
    **dict.fromkeys(("reshape", "view", "flatten", "permute", "swapaxes", "transpose", "unflatten"), AXES),
    **dict.fromkeys(("squeeze", "unsqueeze", "expand_dims"), "write `x[..., None]`, or `x[..., 0]`"),
    **{name: KEPT.format(name=name) for name in ("mean", "sum", "max", "min")},
}
_METHODS: Final = "only a name can be called: write `{name}(x)`, not `x.{name}()`; to multiply write `*`"


def for_function(name: str) -> str:
    """Help for a function that does not exist but elsewhere; nothing if it is not known elsewhere."""
    return NO_DROPOUT if is_dropout(name) else _FUNCTIONS.get(name, "")


def for_method(name: str) -> str:
    """Help for `x.mean(-1)`: the function that does it."""
    return for_function(name) or _METHODS.format(name=name)


def is_dropout(word: str) -> bool:
    """Whether a name means the rate of a dropout, as `attn_dropout` and `dropout_p`."""
    return "dropout" in word.casefold()
