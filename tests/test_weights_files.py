"""Files of weights: what is read from them, and that a damaged one costs one finding and no memory."""

from __future__ import annotations

import json
import os
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import blockgraph as bg
from blockgraph.weights.files import open_checkpoint
from blockgraph.weights.safetensors import read_header, write


def raw(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """The bytes of a file: the header as data or as text, its length unless another is claimed."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(shape: list[Any], begin: Any, end: Any, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000
DAMAGED = {
    "empty": (b"", "ends after 0 bytes"),
    "a cut length": (b"\x01\x00\x00", "ends after 3 bytes"),
    "a cut header": (raw({"a": entry([1], 0, 4)}, b"1234")[:20], "the file ends after 20"),
    "a length past the end": (raw(b"{}", length=50), "claims 50 bytes"),
    "an absurd length": (raw(b"{}", length=2**63), "at most 100,000,000"),
    "no mapping": (raw(b"[1]"), "does not begin with `{`"),
    "broken JSON": (raw(b'{"a": '), "JSON is broken"),
    "text after the JSON": (raw(b"{} x"), "JSON is broken"),
    "not UTF-8": (raw(b'{"\xff": 1}'), "not UTF-8"),
    "NaN in the JSON": (raw(b'{"a": NaN}'), "holds NaN"),
    "JSON nested too deep": (raw(DEEP), "nested too deep"),
    "a number of 5000 digits": (raw(b'{"a": ' + b"9" * 5000 + b"}"), "JSON is broken"),
    "a repeated name": (raw(b'{"a": 1, "a": 2}'), "`a` stands twice"),
    "a repeated key inside": (raw(b'{"a": {"dtype": "F32", "dtype": "F16"}}'), "`dtype` stands twice"),
    "notes that are no texts": (raw({"__metadata__": {"a": 1}}), "__metadata__"),
    "a missing key": (raw({"a": {"dtype": "F32", "shape": [0]}}), "needs `dtype`, `shape` and `data_offsets`"),
    "an unknown key": (raw({"a": {**entry([0], 0, 0), "b": 1}}), "and nothing else"),
    "a negative size": (raw({"a": entry([-1], 0, 4)}, b"1234"), "shape that cannot be"),
    "a size that is no number": (raw({"a": entry([True], 0, 4)}, b"1234"), "shape that cannot be"),
    "a size of 2**70": (raw({"a": entry([2**70], 0, 4)}, b"1234"), "shape that cannot be"),
    "sizes whose product is absurd": (raw({"a": entry([2**40, 2**40], 0, 4)}, b"1234"), "shape that cannot be"),
    "a thousand axes": (raw({"a": entry([1] * 1000, 0, 4)}, b"1234"), "shape that cannot be"),
    "offsets backwards": (raw({"a": entry([1], 4, 0)}, b"1234"), "takes 4 bytes, not -4"),
    "a negative offset": (raw({"a": entry([1], -4, 0)}, b"1234"), "not two whole numbers"),
    "an offset that is a fraction": (raw({"a": entry([1], 0, 4.0)}, b"1234"), "not two whole numbers"),
    "three offsets": (raw({"a": {**entry([1], 0, 4), "data_offsets": [0, 4, 4]}}, b"1234"), "not two whole numbers"),
    "too few bytes for the shape": (raw({"a": entry([2], 0, 4)}, b"1234"), "takes 8 bytes, not 4"),
    "too many bytes for the dtype": (raw({"a": entry([2], 0, 8, "F16")}, b"12345678"), "takes 4 bytes, not 8"),
    "data past the end": (raw({"a": entry([2], 0, 8)}, b"1234"), "the tensor `a` ends at byte"),
    "an overlap": (raw({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}, b"x" * 12), "`a` and `b` overlap"),
    "two names for one place": (raw({"a": entry([1], 0, 4), "b": entry([1], 0, 4)}, b"1234"), "overlap"),
    "a hole at the start": (raw({"a": entry([1], 4, 8)}, b"12345678"), "4 bytes before the tensor `a`"),
    "a hole in between": (raw({"a": entry([1], 0, 4), "b": entry([1], 8, 12)}, b"x" * 12), "before the tensor `b`"),
    "bytes left over": (raw({"a": entry([1], 0, 4)}, b"123456"), "last 2 bytes belong to nothing"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_costs_one_finding_that_says_what_is_wrong(case: str, tmp_path: Path) -> None:
    content, words = DAMAGED[case]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(bg.InputError, match="BG310") as caught:
        read_header(str(path))
    assert len(caught.value.findings) == 1
    assert words in caught.value.findings[0].message


def test_a_name_from_a_file_is_shown_short_and_without_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw({"\x1b[31m" + "a" * 500: entry([-1], 0, 4)}))
    with pytest.raises(bg.InputError, match=r"`\?\[31ma+\.\.\.`") as caught:
        read_header(str(path))
    assert len(caught.value.findings[0].message) < 300


def test_an_unknown_dtype_names_the_tensor_and_the_dtype(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw({"w": entry([1], 0, 4, "Q4_0")}, b"1234"))
    with pytest.raises(bg.InputError, match=r"BG311.*`w` has the unknown dtype Q4_0"):
        read_header(str(path))


def test_a_dtype_without_numpy_numbers_is_refused_when_it_is_read_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw({"w": entry([4], 0, 4, "F8_E4M3"), "v": entry([1], 4, 8)}, struct.pack("<4xf", 2.5)))
    tensors, _ = read_header(str(path))
    assert tensors["v"].read().tolist() == [2.5]
    with pytest.raises(bg.InputError, match=r"BG311.*`w` is stored as F8_E4M3"):
        tensors["w"].read()


def test_a_folder_a_pipe_and_a_file_that_is_not_there_are_refused_without_reading(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(bg.InputError, match=r"BG310.*not a regular file"):
        read_header(str(tmp_path / "pipe.safetensors"))
    with pytest.raises(bg.InputError, match=r"BG310.*it is a folder"):
        read_header(str(tmp_path / "folder.safetensors"))
    with pytest.raises(bg.EnvironmentFailure, match=r"BG901.*cannot open"):
        read_header(str(tmp_path / "nothing.safetensors"))


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?"])
def test_each_dtype_reads_as_the_official_package_wrote_it(dtype: str, tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    save_file({"b": np.zeros((), dtype), "a": array, "none": np.zeros((0, 3), dtype)}, tmp_path / "x.safetensors")
    tensors, _ = read_header(str(tmp_path / "x.safetensors"))
    assert tensors["a"].read().dtype == array.dtype
    assert tensors["a"].read().tolist() == array.tolist()
    assert tensors["b"].read().shape == ()
    assert tensors["none"].read().shape == (0, 3)


def test_bfloat16_words_become_float32_exactly(tmp_path: Path) -> None:
    words = struct.pack("<6H", 0x3F80, 0xC049, 0x0000, 0x8000, 0x7F80, 0x0001)
    path = tmp_path / "x.safetensors"
    path.write_bytes(raw({"w": entry([6], 0, 12, "BF16")}, words))
    found = read_header(str(path))[0]["w"].read()
    assert found.dtype == np.float32
    assert found[:5].tolist() == [1.0, -3.140625, 0.0, -0.0, np.inf]
    assert np.signbit(found[3])
    assert float(found[5]) == 2.0**-133


def test_tensors_of_odd_sizes_may_begin_at_any_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(
        raw({"a": entry([3], 0, 3, "U8"), "w": entry([2], 3, 19, "F64")}, b"abc" + struct.pack("<2d", 1, 2))
    )
    assert read_header(str(path))[0]["w"].read().tolist() == [1.0, 2.0]


def test_a_huge_tensor_is_a_view_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    size = 2**33  # a sparse file: 8 GiB that take no room
    path.write_bytes(raw({"w": entry([size // 4], 0, size)}))
    begin = path.stat().st_size
    os.truncate(path, begin + size)
    found = read_header(str(path))[0]["w"].read()
    assert found.shape == (size // 4,)
    assert float(found[-1]) == 0.0


def test_a_written_file_is_read_by_the_official_package_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    write(str(tmp_path / "x.safetensors"), {"t": array.T, "s": np.float32(3), "n": np.zeros((0, 2))}, {"format": "pt"})
    found = load_file(tmp_path / "x.safetensors")
    assert found["t"].tolist() == array.T.tolist()
    assert found["s"].shape == ()
    assert found["n"].shape == (0, 2)
    assert os.listdir(tmp_path) == ["x.safetensors"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    with pytest.raises(bg.EnvironmentFailure, match=r"BG903.*cannot write"):
        write(str(tmp_path / "no" / "x.safetensors"), {"t": np.zeros(2)}, {})
    (tmp_path / "x").mkdir()
    with pytest.raises(bg.EnvironmentFailure, match=r"BG903.*it is a folder"):
        write(str(tmp_path / "x"), {"t": np.zeros(2)}, {})
    assert os.listdir(tmp_path) == ["x"]


def test_a_write_that_breaks_off_keeps_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.safetensors"
    write(str(path), {"t": np.zeros(2)}, {})
    before = path.read_bytes()

    def half(arrays: Any, name: str, notes: Any) -> None:
        Path(name).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", half)
    with pytest.raises(bg.EnvironmentFailure, match=r"BG903.*No space left on device"):
        write(str(path), {"t": np.ones(2)}, {})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.safetensors"]


def shards(folder: Path, **weight_map: str) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_shards_are_read_by_their_index(tmp_path: Path) -> None:
    save_file({"a": np.ones(2)}, tmp_path / "one.safetensors")
    save_file({"b": np.zeros(3)}, tmp_path / "two.safetensors")
    save_file({"c": np.zeros(3)}, tmp_path / "model.safetensors")
    shards(tmp_path, a="one.safetensors", b="two.safetensors")
    assert open_checkpoint(str(tmp_path)).shapes == {"a": (2,), "b": (3,)}


def test_each_fault_of_the_shards_is_a_finding_and_all_come_together(tmp_path: Path) -> None:
    save_file({"a": np.ones(2), "x": np.ones(2)}, tmp_path / "one.safetensors")
    save_file({"a": np.ones(2), "b": np.zeros(3)}, tmp_path / "two.safetensors")
    (tmp_path / "four.safetensors").write_bytes(b"")
    shards(
        tmp_path,
        a="one.safetensors",
        b="two.safetensors",
        c="two.safetensors",
        d="three.safetensors",
        e="four.safetensors",
    )
    with pytest.raises(bg.InputError, match="BG310") as caught:
        open_checkpoint(str(tmp_path))
    words = [finding.message for finding in caught.value.findings]
    assert len(words) == 5
    assert "ends after 0 bytes" in words[0]
    assert "1 tensor (x) is in it, and not listed" in words[1]
    assert "the shard three.safetensors is missing, with 1 of the tensors" in words[2]
    assert "1 tensor (a) is in one.safetensors too" in words[3]
    assert "1 tensor (c) is listed for it in the index, and not in it" in words[4]


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "..", "", 3])
def test_an_index_names_files_of_its_own_folder_only(name: Any, tmp_path: Path) -> None:
    shards(tmp_path, a=name)
    with pytest.raises(bg.InputError, match=r"BG310.*`weight_map` does not map tensors to files"):
        open_checkpoint(str(tmp_path))


def test_a_folder_without_one_clear_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(bg.InputError, match=r"BG310.*holds no .safetensors file"):
        open_checkpoint(str(tmp_path))
    save_file({"a": np.ones(2)}, tmp_path / "one.safetensors")
    assert open_checkpoint(str(tmp_path)).shapes == {"a": (2,)}
    save_file({"b": np.ones(2)}, tmp_path / "two.safetensors")
    with pytest.raises(bg.InputError, match=r"BG310.*holds 2 .safetensors files"):
        open_checkpoint(str(tmp_path))
    save_file({"c": np.ones(2)}, tmp_path / "model.safetensors")
    assert open_checkpoint(str(tmp_path)).shapes == {"c": (2,)}


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1, "a": 2}', '{"a": }', "\udcff"])
def test_a_damaged_config_is_a_finding(text: str, tmp_path: Path) -> None:
    save_file({"a": np.ones(2)}, tmp_path / "one.safetensors")
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(bg.InputError, match=r"BG310.*config\.json"):
        open_checkpoint(str(tmp_path))


def test_an_npz_gives_its_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **{"a.b": np.arange(3.0), "c": np.eye(2, dtype="f4")})
    found = open_checkpoint(str(tmp_path / "x.npz"))
    assert found.shapes == {"a.b": (3,), "c": (2, 2)}
    assert found.tensors["a.b"].read().tolist() == [0.0, 1.0, 2.0]


def npz(path: Path, **entries: bytes) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return str(path)


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


NPZ = {
    "no zip": (b"x" * 100, "no .npz file"),
    "an absurd shape": (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"), "as many bytes"),
    "a cut array": (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", b"12345678"), "as many bytes"),
    "objects": (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\x80\x04N."), "can run code"),
    "no array": (b"hello", "no .npz file"),
}


@pytest.mark.parametrize("case", NPZ)
def test_a_damaged_npz_costs_one_finding(case: str, tmp_path: Path) -> None:
    content, words = NPZ[case]
    path = tmp_path / "x.npz"
    if case == "no zip":
        path.write_bytes(content)
    else:
        npz(path, a=content)
    with pytest.raises(bg.InputError, match="BG310") as caught:
        open_checkpoint(str(path))
    assert len(caught.value.findings) == 1
    assert words in caught.value.findings[0].message


def test_an_npz_with_a_repeated_name_or_with_text_is_refused(tmp_path: Path) -> None:
    good = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", b"12345678")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr("a.npy", good)
            archive.writestr("a.npy", good)
    with pytest.raises(bg.InputError, match=r"BG310.*a name stands twice"):
        open_checkpoint(str(tmp_path / "x.npz"))
    np.savez(tmp_path / "y.npz", a=np.array(["text"]))
    with pytest.raises(bg.InputError, match=r"BG311.*`a` is stored as <U4"):
        open_checkpoint(str(tmp_path / "y.npz"))
