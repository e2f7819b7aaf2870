"""What is loaded when it is needed: modules are found by their names and texts, also in a zip file."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from blockgraph.kind import find_kind, load_kinds
from blockgraph.lazy import modules_in, source_of

ROOT = Path(__file__).parent.parent


def test_the_modules_of_a_package_are_its_files() -> None:
    files = {path.stem for path in (ROOT / "blockgraph" / "kinds").glob("*.py")} - {"__init__"}
    assert modules_in("blockgraph.kinds") == sorted(files)


def test_a_text_is_that_of_the_file_and_empty_where_there_is_none() -> None:
    path = ROOT / "blockgraph" / "kinds" / "linear.py"
    assert source_of("blockgraph.kinds", "linear") == path.read_text(encoding="utf-8")
    assert source_of("blockgraph.kinds", "no_such_kind") == ""


@pytest.mark.parametrize("name", sorted(load_kinds()))
def test_a_kind_is_in_the_file_of_its_name(name: str) -> None:
    kind = find_kind(name)
    assert kind is not None
    assert kind.__module__ == f"blockgraph.kinds.{name}"


def test_a_name_that_is_no_kind_finds_none() -> None:
    assert find_kind("no_such_kind") is None
    assert find_kind("attending") is None


def test_a_spec_loads_the_kinds_that_stand_in_it() -> None:
    code = (
        "import sys, blockgraph; blockgraph.check('block: {norm: rms_norm, sublayers: [{kind: linear}]}\\n');"
        "print(sorted(name for name in sys.modules if name.startswith('blockgraph.kinds.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("['blockgraph.kinds.linear', 'blockgraph.kinds.rms_norm']", "")


def test_the_program_runs_from_a_zip_file(tmp_path: Path) -> None:
    packed = tmp_path / "blockgraph.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((ROOT / "blockgraph").rglob("*")):
            if path.suffix != ".pyc" and path.is_file():
                archive.write(path, path.relative_to(ROOT))
    environment = {**os.environ, "PYTHONPATH": str(packed)}
    for words in (["--help"], ["check", str(ROOT / "specs" / "pre_norm.yaml")]):
        command = [sys.executable, "-m", "blockgraph", *words]
        inside, outside = (
            subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env, check=False)
            for folder, env in ((tmp_path, environment), (ROOT, {**environment, "PYTHONPATH": str(ROOT)}))
        )
        assert (inside.returncode, inside.stdout, inside.stderr) == (0, outside.stdout, "")
