"""A checkpoint on disk: the tensors of a file, of shards with an index, or of an `.npz`, and its config.json."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from math import prod
from typing import Any, final

from blockgraph.errors import EnvironmentFailure, Finding, InputError, Place
from blockgraph.lazy import np
from blockgraph.records import dataclass
from blockgraph.weights.safetensors import Damage, Tensor, damaged, read_header, regular_size, strict_json, unopened

INDEX = "model.safetensors.index.json"
USUAL = ("model.safetensors", "weights.safetensors")
CONFIG = "config.json"
MAX_JSON = 100_000_000


@final
@dataclass(frozen=True)
class Checkpoint:
    """What a path holds: tensors by name, the notes of the file, and config.json (None without one)."""

    path: str
    tensors: Mapping[str, Tensor]
    notes: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    config_path: str = ""

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes by name."""
        return {name: tensor.shape for name, tensor in self.tensors.items()}

    @property
    def own(self) -> bool:
        """Whether blockgraph wrote it, in its own names."""
        return self.notes.get("format") == "blockgraph"


def read_config(path: str) -> tuple[Mapping[str, Any] | None, str]:
    """config.json of a folder, and its path; None for a folder without one, and for a single file.

    Raises EnvironmentFailure (BG901), InputError (BG310).
    """
    file = os.path.join(path if os.path.isdir(path) else os.path.dirname(path), CONFIG)
    if not os.path.isdir(path) or not os.path.exists(file):
        return None, file
    return _read_json(file), file


def open_checkpoint(path: str) -> Checkpoint:
    """The tensors of a folder or a file; none of their data is read.

    In a folder the index of the shards comes first, then model.safetensors, then the only .safetensors file.
    Raises EnvironmentFailure (BG901), InputError (BG310, BG311).
    """
    config, config_path = read_config(path)
    if os.path.isdir(path) and os.path.exists(os.path.join(path, INDEX)):
        tensors, notes = _read_shards(path, os.path.join(path, INDEX))
    else:
        file = _only_file(path) if os.path.isdir(path) else path
        tensors, notes = (_read_npz(file), {}) if file.endswith(".npz") else read_header(file)
    return Checkpoint(path, tensors, notes, config, config_path)


def _only_file(folder: str) -> str:
    names = sorted(name for name in _listed(folder) if name.endswith(".safetensors"))
    for usual in USUAL:
        if usual in names:
            return os.path.join(folder, usual)
    if len(names) == 1:
        return os.path.join(folder, names[0])
    if not names:
        message, help = "it holds no .safetensors file", "name the folder of a checkpoint, or the file itself"
        raise InputError([damaged(folder, message, help)])
    message = f"it holds {len(names)} .safetensors files ({', '.join(names[:3])}) and no {INDEX}"
    raise InputError([damaged(folder, message, "name one of the files, or add the index that lists the shards")])


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise EnvironmentFailure([unopened(folder, error)]) from None


def _read_shards(folder: str, index: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All shards, each held against the index."""
    where = _read_json(index).get("weight_map")
    if not isinstance(where, dict) or not all(_is_plain_file(name) for name in where.values()):
        help = "`weight_map` maps each tensor to a file of the same folder"
        raise InputError([damaged(index, "its `weight_map` does not map tensors to files", help)])
    findings: list[Finding] = []
    found: dict[str, Tensor] = {}
    for shard in sorted(set(where.values())):
        path = os.path.join(folder, shard)
        if not os.path.exists(path):
            count = sum(1 for name in where.values() if name == shard)
            message = f"the shard {shard} is missing, with {count} of the tensors that the index lists"
            findings.append(damaged(folder, message, "download it too"))
            continue
        try:
            tensors, _ = read_header(path)
        except InputError as error:
            findings += error.findings
            continue
        findings += _against_index(path, shard, tensors, where, found)
        found.update(tensors)
    if findings:
        raise InputError(findings)
    return found, {}


def _is_plain_file(name: Any) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"}


def _against_index(
    path: str, shard: str, tensors: Mapping[str, Tensor], where: Mapping[str, str], found: Mapping[str, Tensor]
) -> list[Finding]:
    findings = []
    twice = [name for name in tensors if name in found]
    lost = [name for name, file in where.items() if file == shard and name not in tensors]
    unlisted = [name for name in tensors if where.get(name) != shard and name not in twice]
    if twice:
        other = os.path.basename(found[twice[0]].file)
        findings.append(damaged(path, f"{first_of(twice, 'tensor')} in {other} too"))
    if lost:
        findings.append(damaged(path, f"{first_of(lost, 'tensor')} listed for it in the index, and not in it"))
    if unlisted:
        findings.append(damaged(path, f"{first_of(unlisted, 'tensor')} in it, and not listed for it in the index"))
    return findings


def first_of(names: list[str], noun: str) -> str:
    """`3 tensors (a, b, c) are`, `1 tensor (a) is`: at most three names."""
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} {noun} ({shown}) is" if len(names) == 1 else f"{len(names)} {noun}s ({shown}) are"


def _read_json(path: str) -> dict[str, Any]:
    try:
        if regular_size(path) > MAX_JSON:
            raise Damage(f"it is larger than {MAX_JSON:,} bytes")
        with open(path, "rb") as file:
            return strict_json(file.read(), constants=True)
    except Damage as damage:
        raise InputError([damaged(path, str(damage))]) from None
    except UnicodeDecodeError:
        raise InputError([damaged(path, "it is not UTF-8")]) from None
    except OSError as error:
        raise EnvironmentFailure([unopened(path, error)]) from None


def _read_npz(path: str) -> dict[str, Tensor]:
    """The arrays of an `.npz`, each judged by its header before it is read; Python objects are refused."""
    try:
        regular_size(path)
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            for entry in entries:
                _check_entry(archive, entry, path)
            names = [entry.filename.removesuffix(".npy") for entry in entries]
            if len(set(names)) < len(names):
                raise Damage("a name stands twice in it")
            arrays = {name: _read_entry(archive, entry) for name, entry in zip(names, entries, strict=True)}
    except Damage as damage:
        raise InputError([damaged(path, str(damage))]) from None
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError, RuntimeError):
        raise InputError([damaged(path, "it is no .npz file, or it is damaged", "write it with numpy.savez")]) from None
    except OSError as error:
        raise EnvironmentFailure([unopened(path, error)]) from None
    return {name: Tensor(name, str(array.dtype), array.shape, path, 0, array) for name, array in arrays.items()}


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: str) -> None:
    """Whether the bytes are those that the header tells."""
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    name = entry.filename.removesuffix(".npy")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        if version not in headers:
            raise Damage(f"`{name}` is in a form of .npy that is not for plain numbers")
        shape, _, dtype = headers[version](file)
        if dtype.hasobject:
            raise Damage(f"`{name}` holds Python objects, which can run code")
        if dtype.kind not in "fiub":
            message = f"the tensor `{name}` is stored as {dtype}, which holds no numbers"
            raise InputError([Finding("BG311", message, Place(path), "save it as floats")])
        if file.tell() + prod(shape) * dtype.itemsize != entry.file_size:
            raise Damage(f"`{name}` has not as many bytes as its shape {shape} takes")


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Any:
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
