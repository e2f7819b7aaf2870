"""Pictures that are kept: the DOT text of twelve specs, byte for byte, and the pictures of the README.

`python -m pytest tests/test_render_golden.py --regenerate` writes them anew; what changed is to be looked at.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import blockgraph as bg
from blockgraph.cli import main
from blockgraph.drawing import find_dot, to_dot
from tests.test_cli import ROOT

GOLDEN = ROOT / "tests" / "golden"
PICTURES = ROOT / "specs" / "pictures"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SPECS = [
    *("pre_norm", "post_norm", "parallel", "deepnorm", "custom_mixer"),
    *("layouts/hyper_connections", "layouts/value_residual", "layouts/macaron", "layouts/mix_ln"),
    *("models/gpt2", "models/gemma2", "models/t5"),
]
COMMANDS = re.findall(r"^blockgraph (render .*specs/pictures/.*)$", README, re.M)
PROGRAM = """
import sys
from pathlib import Path
import blockgraph as bg
from blockgraph.drawing import to_dot
for name in sys.argv[2:]:
    checked = bg.check(Path(sys.argv[1], "specs", name + ".yaml"))
    sys.stdout.buffer.write(to_dot([checked.graph], captions=[checked.spec.source]).encode())
"""
NEEDED = "import sys, pydantic, yaml, networkx; sys.exit(sys.version_info < (3, 11))"


def golden(name: str) -> Path:
    return GOLDEN / f"{name.replace('/', '-')}.dot"


def dot(name: str) -> str:
    checked = bg.check(ROOT / "specs" / f"{name}.yaml")
    assert checked.graph is not None
    return to_dot([checked.graph], captions=[checked.spec.source])


@pytest.mark.parametrize("name", SPECS)
def test_the_dot_text_is_the_one_that_is_kept(name: str, regenerate: bool) -> None:
    if regenerate:
        golden(name).parent.mkdir(exist_ok=True)
        golden(name).write_bytes(dot(name).encode())
    assert dot(name).encode() == golden(name).read_bytes()


def test_twelve_texts_are_kept_and_no_other() -> None:
    assert len(SPECS) == 12
    assert sorted(GOLDEN.iterdir()) == sorted(map(golden, SPECS))


def interpreters() -> list[str]:
    """This Python, and all others on the machine that have what blockgraph needs; `$BLOCKGRAPH_PYTHONS` names more."""
    named = os.environ.get("BLOCKGRAPH_PYTHONS", "").split(os.pathsep)
    found = [shutil.which(name) for name in (*named, *(f"python3.{minor}" for minor in range(11, 20))) if name]
    others = [path for path in found if path is not None and path != sys.executable]
    return [sys.executable, *(one for one in dict.fromkeys(others) if not _output(one, NEEDED).returncode)]


def _output(python: str, program: str, *words: str, seed: str = "0") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    return subprocess.run([python, "-c", program, *words], env=environment, capture_output=True, check=False)


def test_the_bytes_are_the_same_in_every_python_whatever_the_hash_seed() -> None:
    kept = b"".join(golden(name).read_bytes() for name in SPECS)
    for python in interpreters():
        for seed in ("0", "1", "4294967295"):
            done = _output(python, PROGRAM, str(ROOT), *SPECS, seed=seed)
            assert (python, seed, done.stdout == kept, done.stderr) == (python, seed, True, b"")


# The README's pictures


def normal(svg: str) -> list[tuple[str, ...]]:
    """What does not depend on the program that drew: classes, lines, frames, texts and all colours.

    Where exactly a text or an arrow's head stands does: programs measure fonts themselves.
    """
    found: list[tuple[str, ...]] = []
    for group in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        found.append(("group", *sorted((group.get("class") or "").split())))
        for element in group:
            tag, edge = element.tag.rpartition("}")[2], "edge" in (group.get("class") or "")
            colours = tuple(element.get(key, "").replace("transparent", "none") for key in ("fill", "stroke"))
            where = element.get("d", "") or ("" if edge else element.get("points", ""))
            if tag not in ("g", "title"):
                found.append((tag, *colours, where, element.get("stroke-dasharray", ""), element.text or ""))
    return found


@pytest.mark.skipif(find_dot() is None, reason="there is no Graphviz program")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_makes_the_picture_that_is_kept(
    command: str, regenerate: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = command.split()
    where = words.index("-o") + 1
    kept = Path(words[where])
    if regenerate:
        kept.parent.mkdir(exist_ok=True)
        assert main(words) == 0
    words[where] = str(tmp_path / "made.svg")
    assert main(words) == 0
    made = Path(words[where]).read_text(encoding="utf-8")
    assert normal(made) == normal(kept.read_text(encoding="utf-8"))
    assert len([one for one in normal(made) if one[0] == "text"]) > 10


def test_the_readme_shows_the_pictures_that_its_commands_make_in_light_and_in_dark() -> None:
    shown = re.findall(r'(?:srcset|src)="(specs/pictures/[^"]+)"', README)
    made = [words[words.index("-o") + 1] for words in map(str.split, COMMANDS)]
    assert sorted(shown) == sorted(made) == sorted(path.relative_to(ROOT).as_posix() for path in PICTURES.iterdir())
    block = re.search(r"<picture>.*?</picture>", README, re.S)
    assert block is not None
    dark = re.search(r'<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">', block[0])
    light = re.search(r'<img [^>]*src="([^"]+)"', block[0])
    assert dark is not None
    assert light is not None
    themes = dict(zip(made, (re.search(r"--theme (\w+)", one)[1] for one in COMMANDS), strict=True))  # type: ignore[index]
    assert (themes[light[1]], themes[dark[1]]) == ("light", "dark")
