"""Arrays in files: `.npy` for one, `.npz` and `.safetensors` for many by name. Nothing in a file is trusted."""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from blockgraph.errors import EnvironmentFailure, Finding, InputError, Place
from blockgraph.lazy import np

KINDS = "fiub"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time a zip file can hold: equal arrays give equal bytes."""


def read_array(path: str) -> Any:
    """The array in an `.npy` file.

    Raises EnvironmentFailure (BG901) if the file cannot be opened, InputError (BG304) if it holds no array.
    """
    found = _read(path, _load)
    if isinstance(found, dict):
        raise _damaged(path, "it holds several arrays", "give the file of one array, as numpy.save writes it")
    return _of_numbers(path, found, "the array")


def read_arrays(path: str) -> dict[str, Any]:
    """The arrays in an `.npz` or `.safetensors` file by name.

    Raises EnvironmentFailure (BG901, BG905 a package is missing), InputError (BG304 it holds no arrays).
    """
    found = _read(path, _load_safetensors if path.endswith(".safetensors") else _load)
    if not isinstance(found, dict):
        raise _damaged(path, "it holds one array without a name", "give named arrays, as numpy.savez writes them")
    return {name: _of_numbers(path, array, f"`{name}`") for name, array in found.items()}


def save_arrays(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Write arrays as an `.npz`; the same arrays always give the same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", EPOCH), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)


def _read(path: str, load: Callable[[str], Any]) -> Any:
    """What `load` makes of a file. Whatever goes wrong while it reads means that the bytes are damaged."""
    try:
        with open(path, "rb") as file:
            empty = not file.read(1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        finding = Finding("BG901", f"cannot open {path}: {reason}", Place(path), "check the name and the folder")
        raise EnvironmentFailure([finding]) from None
    if empty:
        raise _damaged(path, "it is empty", "")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load(path)
    except EnvironmentFailure:
        raise
    except Exception as error:
        if "allow_pickle" in str(error):
            raise _damaged(path, "it holds Python objects, which can run code", "save plain numbers") from None
        raise _damaged(path, "it is damaged, or no file of arrays", "") from None


def _load(path: str) -> Any:
    with open(path, "rb") as file:  # numpy leaves a damaged archive open
        found = np.load(file, allow_pickle=False)
        return found if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}


def _load_safetensors(path: str) -> Any:
    try:
        from safetensors.numpy import load_file
    except ImportError:
        help = "`pip install safetensors`, or save the parameters as .npz"
        message = f"reading {os.path.basename(path)} needs the package safetensors"
        raise EnvironmentFailure([Finding("BG905", message, Place(path), help)]) from None
    return load_file(path)


def _of_numbers(path: str, array: Any, what: str) -> Any:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in KINDS:
        raise _damaged(path, f"{what} does not hold numbers", "save it as floats, whole numbers or booleans")
    return array


def _damaged(path: str, reason: str, help: str) -> InputError:
    help = help or "write it again: numpy.save makes .npy, numpy.savez makes .npz"
    return InputError([Finding("BG304", f"cannot use {path}: {reason}", Place(path), help)])
