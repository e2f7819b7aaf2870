"""Reads and writes `.safetensors`; a file is judged byte by byte before anything of its size is allocated.

The layout is 8 bytes (little-endian length N), N bytes of JSON that name each tensor with its dtype, shape and
data offsets, then the data. Source: https://huggingface.co/docs/safetensors, "Format".
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from math import prod
from typing import Any, final

from blockgraph.errors import EnvironmentFailure, Finding, InputError, Place
from blockgraph.lazy import np
from blockgraph.records import dataclass

ENDING = ".safetensors"
MAX_HEADER = 100_000_000
MAX_AXES = 64
MAX_SIZE = 2**63
DTYPES = {
    "F64": ("<f8", 8),
    "F32": ("<f4", 4),
    "F16": ("<f2", 2),
    "BF16": ("<u2", 2),
    "I64": ("<i8", 8),
    "I32": ("<i4", 4),
    "I16": ("<i2", 2),
    "I8": ("i1", 1),
    "U8": ("u1", 1),
    "BOOL": ("?", 1),
}
# What the format knows beside these, with the bytes of one element; the rest of such a file can still be read.
UNREAD = {"F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U16": 2, "U32": 4, "U64": 8, "C64": 8}


class Damage(Exception):
    """What is wrong with a file, in words that follow "cannot use FILE:"."""


@final
@dataclass(frozen=True, slots=True)
class Tensor:
    """One array of a file: its dtype as the file names it, its shape, and where it is read from."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    start: int = 0
    array: Any = None

    def read(self) -> Any:
        """The array, a view of the file where it can be; bfloat16 comes as float32, exactly.

        Raises InputError (BG311) for a dtype that NumPy has no numbers for.
        """
        if self.array is not None:
            return self.array
        if self.dtype not in DTYPES:
            help = f"convert it; what can be read is {', '.join(DTYPES)}"
            message = f"the tensor `{self.name}` is stored as {self.dtype}, which cannot be read"
            raise InputError([Finding("BG311", message, Place(self.file), help)])
        code, _ = DTYPES[self.dtype]
        count = prod(self.shape)
        if not count:
            return np.zeros(self.shape, np.float32 if self.dtype == "BF16" else code)
        flat = np.memmap(self.file, code, "r", self.start, (count,))
        plain = np.asarray(flat)
        if self.dtype == "BF16":
            plain = (plain.astype("<u4") << 16).view("<f4")
        return plain.reshape(self.shape)


def read_header(path: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file by name, nothing of their data read yet, and the file's own notes.

    Raises EnvironmentFailure (BG901) if it cannot be opened, InputError (BG310) with the one thing that is wrong with
    it: truncated, a length that cannot be, JSON that is broken or repeats a name, offsets that overlap, leave holes
    or point outside, byte counts that do not fit the shape, shapes that cannot be.
    """
    try:
        size = regular_size(path)
        with open(path, "rb") as file:
            begin = file.read(8)
            length = int.from_bytes(begin, "little")
            _check_length(len(begin), length, size)
            header = _parse(file.read(length))
        notes = _notes(header.pop("__metadata__", {}))
        tensors = [_tensor(name, entry, path, 8 + length) for name, entry in header.items()]
        _check_layout(tensors, 8 + length, size)
    except Damage as damage:
        raise InputError([damaged(path, str(damage))]) from None
    except OSError as error:
        raise EnvironmentFailure([unopened(path, error)]) from None
    return {tensor.name: tensor for tensor, _ in tensors}, notes


def damaged(path: str, reason: str, help: str = "copy or download it again, or write it anew") -> Finding:
    """The finding about a file whose bytes are wrong."""
    return Finding("BG310", f"cannot use {path}: {reason}", Place(path), help)


def unopened(path: str, error: OSError) -> Finding:
    """The finding about a file that cannot be opened."""
    message = f"cannot open {path}: {error.strerror or error}"
    return Finding("BG901", message, Place(path), "check the name and the folder")


def regular_size(path: str) -> int:
    """The size of a file in bytes. Raises OSError, or Damage where reading could block or never end."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise Damage("it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a regular file")
    return found.st_size


def _check_length(read: int, length: int, size: int) -> None:
    if read < 8:
        raise Damage(f"it ends after {size} bytes, and the header's length alone takes 8")
    if length > MAX_HEADER:
        raise Damage(f"its header claims {length:,} bytes, and at most {MAX_HEADER:,} can be")
    if 8 + length > size:
        raise Damage(f"its header claims {length:,} bytes, and the file ends after {size:,}")


def _parse(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        raise Damage("its header does not begin with `{`")
    try:
        return strict_json(text)
    except UnicodeDecodeError:
        raise Damage("its header is not UTF-8") from None


def strict_json(text: bytes, constants: bool = False) -> dict[str, Any]:
    """A JSON object without repeated keys, with NaN only by `constants`. Raises Damage, UnicodeDecodeError."""
    words = text.decode("utf-8")
    try:
        found = json.loads(words, object_pairs_hook=_once, parse_constant=float if constants else _refuse_constant)
    except RecursionError:
        raise Damage("its JSON is nested too deep") from None
    except ValueError as error:
        raise Damage(f"its JSON is broken ({getattr(error, 'msg', 'a number that cannot be')})") from None
    if not isinstance(found, dict):
        raise Damage("its JSON is no mapping")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Damage(f"the name `{_short(key)}` stands twice")
        found[key] = value
    return found


def _refuse_constant(word: str) -> Any:
    raise Damage(f"its JSON holds {word}")


def _notes(found: Any) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise Damage("its `__metadata__` does not map texts to texts")
    return found


def _tensor(name: str, entry: Any, path: str, base: int) -> tuple[Tensor, int]:
    """A tensor and the end of its data, both as offsets into the file."""
    what = f"the tensor `{_short(name)}`"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise Damage(f"{what} needs `dtype`, `shape` and `data_offsets`, and nothing else")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or (dtype not in DTYPES and dtype not in UNREAD):
        help = f"what can be read is {', '.join(DTYPES)}"
        shown = _short(dtype) if isinstance(dtype, str) else "no word"
        raise InputError([Finding("BG311", f"{what} has the unknown dtype {shown}", Place(path), help)])
    if not _sizes(shape) or len(shape) > MAX_AXES or prod(shape) >= MAX_SIZE:
        raise Damage(f"{what} has a shape that cannot be")
    if not _sizes(offsets) or len(offsets) != 2:
        raise Damage(f"{what} has data offsets that are not two whole numbers")
    start, end = offsets
    width = DTYPES[dtype][1] if dtype in DTYPES else UNREAD[dtype]
    if end - start != prod(shape) * width:
        raise Damage(
            f"{what}, {dtype} of shape {tuple(shape)}, takes {prod(shape) * width:,} bytes, not {end - start:,}"
        )
    return Tensor(name, dtype, tuple(shape), path, base + start), base + end


def _sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and 0 <= one < MAX_SIZE for one in value)


def _check_layout(tensors: list[tuple[Tensor, int]], base: int, size: int) -> None:
    """The tensors fill the data from end to end, each byte once."""
    at, before = base, ""
    for tensor, end in sorted(tensors, key=lambda one: (one[0].start, one[1])):
        name = _short(tensor.name)
        if end > size:
            raise Damage(f"the tensor `{name}` ends at byte {end:,}, and the file after {size:,}")
        if tensor.start < at:
            raise Damage(f"the tensors `{before}` and `{name}` overlap")
        if tensor.start > at:
            raise Damage(f"{tensor.start - at:,} bytes before the tensor `{name}` belong to nothing")
        at, before = end, name
    if at != size:
        raise Damage(f"its last {size - at:,} bytes belong to nothing")


def _short(name: str) -> str:
    """A stranger's name, printable and not too long."""
    plain = "".join(one if one.isprintable() else "?" for one in name[:81])
    return plain if len(name) <= 80 else plain[:77] + "..."


def write(path: str, arrays: Mapping[str, Any], notes: Mapping[str, str]) -> None:
    """Write arrays by name: under a temporary name in the same folder first, which is then renamed.

    Raises EnvironmentFailure (BG903) if it cannot be written; then nothing is left behind.
    """
    from safetensors.numpy import save_file

    folder, name = os.path.split(os.path.realpath(path))
    temporary = os.path.join(folder, f".{name[:100]}.{os.getpid()}")
    ready = {key: np.ascontiguousarray(array).reshape(np.shape(array)) for key, array in arrays.items()}
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(0, "it is a folder")
        save_file(ready, temporary, dict(notes))
        os.replace(temporary, os.path.join(folder, name))
    except OSError as error:
        reason = error.strerror or str(error)
        finding = Finding("BG903", f"cannot write {path}: {reason}", Place(path), "check the name and the folder")
        raise EnvironmentFailure([finding]) from None
    except Exception as error:  # the package reports what the system refused in an error of its own
        if type(error).__name__ != "SafetensorError":
            raise
        finding = Finding("BG903", f"cannot write {path}", Place(path), "check the name and the folder")
        raise EnvironmentFailure([finding]) from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
