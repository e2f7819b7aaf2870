"""What a word without quotes means: the core rules of YAML 1.2, and the limits on numbers.

`1e-5` is a number; `no`, `1_000` and `12:30:00` are text, unlike in YAML 1.1.
"""

from __future__ import annotations

import re

NULL = frozenset({"", "~", "null", "Null", "NULL"})
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
WHOLE = re.compile(r"[-+]?[0-9]+")
BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)")
NAN = re.compile(r"\.(nan|NaN|NAN)")
# Every whole number below this can become a float without overflow.
DIGIT_LIMIT = 308

Scalar = str | int | float | bool | None


def resolve(word: str) -> Scalar:
    """The value of an unquoted word.

    Raises ValueError, with the reason as its text, for a number that no float can hold.
    """
    if word in NULL:
        return None
    if word in BOOLEANS:
        return BOOLEANS[word]
    if word[0] not in "+-.0123456789":
        return word
    if WHOLE.fullmatch(word):
        return whole(word, 10)
    if BASED.fullmatch(word):
        return whole(word[2:], 8 if word[1] == "o" else 16)
    if DECIMAL.fullmatch(word):
        return decimal(word)
    infinite = INFINITE.fullmatch(word)
    if infinite:
        return float(f"{infinite[1]}inf")
    return float("nan") if NAN.fullmatch(word) else word


def whole(digits: str, base: int) -> int:
    """A whole number of bounded length, since reading its digits takes quadratic time and a float must hold it."""
    if len(digits) > DIGIT_LIMIT:
        raise ValueError(f"a number of {len(digits)} digits is too long")
    return int(digits, base)


def decimal(word: str) -> float:
    """A float; overflow to infinity and underflow to zero are refused, not passed on in silence."""
    value = float(word)
    significant = re.split("[eE]", word)[0].strip("+-0.")
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {word[:40]} is too large for a float")
    if value == 0 and significant:
        raise ValueError(f"the number {word[:40]} is too small for a float: it would become 0")
    return value
