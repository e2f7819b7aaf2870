"""Files that a command writes: whole or not at all, and never over another one unasked."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from typing import BinaryIO

from blockgraph.errors import EnvironmentFailure, Finding, Place


def refuse_existing(path: str, force: bool) -> None:
    """Raises EnvironmentFailure (BG902) if a file is there and may not be replaced; called before the work starts."""
    if os.path.isdir(path):
        raise EnvironmentFailure([_cannot_write(path, "it is a folder")])
    if not force and os.path.isfile(path):
        message = f"{path} is there already and was kept"
        raise EnvironmentFailure(
            [Finding("BG902", message, Place(path), "add --force to replace it, or name another file")]
        )


def write_file(path: str, fill: Callable[[BinaryIO], object], force: bool = False) -> None:
    """Have `fill` write a file: under a temporary name in the same folder first, which is then renamed.

    Raises EnvironmentFailure: BG902 if the file exists and `force` is not set, BG903 if it cannot be written.
    """
    refuse_existing(path, force)
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "wb") as device:  # a device or a pipe takes no other name
                fill(device)
        else:
            _replace(os.path.realpath(path), fill)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise EnvironmentFailure([_cannot_write(path, getattr(error, "strerror", None) or str(error))]) from None


def _replace(path: str, fill: Callable[[BinaryIO], object]) -> None:
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            fill(file)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _cannot_write(path: str, reason: str) -> Finding:
    return Finding("BG903", f"cannot write {path}: {reason}", Place(path), "check the name and the folder")
