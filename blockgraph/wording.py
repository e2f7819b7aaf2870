"""Values of a spec in the words of its file, for messages about values of the wrong form."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\.?(inf|nan)", re.IGNORECASE)


def show_value(value: object) -> str:
    """A value as a reader would name it: `true`, `8.5`, `the text "8"`, `a list`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value if len(value) <= 40 else value[:37] + "..."
        return f'the text "{text}"'
    if isinstance(value, dict):
        return "a mapping"
    if hasattr(value, "shape"):
        return f"an array of shape {value.shape}"
    return "a list" if isinstance(value, list) else str(value)


def is_number_text(text: str) -> bool:
    """Whether a text is only a number, so that its quotes are a slip."""
    return _NUMBER.fullmatch(text.strip()) is not None


def wrong_value(expected: str, value: object, help: str = "") -> tuple[str, str]:
    """Message and help for a value of the wrong form."""
    if isinstance(value, str) and is_number_text(value):
        help = "remove the quotes"
    return f"{expected} expected, got {show_value(value)}", help


def counted(count: int, noun: str) -> str:
    """`1 name`, `2 names`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
