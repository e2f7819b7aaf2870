"""The rules of the house that no linter knows: what may import what, how long things get, what loading costs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "blockgraph"
FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]

# A module imports modules of lower levels, and those of its own folder. A folder has one level.
LEVELS: dict[str, float] = {
    "records": -1,
    **dict.fromkeys(("errors", "dims", "lazy", "syntax", "wording", "display", "collector", "habits"), 0),
    **dict.fromkeys(("number", "solve", "room"), 0.25),
    **dict.fromkeys(("pattern", "scan"), 0.5),
    **dict.fromkeys(("op", "equation", "source", "report"), 1),
    "alike": 1.25,
    **dict.fromkeys(("placement", "kind", "module"), 1.5),
    **dict.fromkeys(("ops", "kinds"), 2),
    **dict.fromkeys(("graph", "schema"), 3),
    **dict.fromkeys(("read_module", "origins", "bounds"), 3.25),
    "sublayer": 3.4,
    "shortform": 3.5,
    **dict.fromkeys(("spec", "build", "facts", "cost", "lower", "same", "tables", "suppress", "fixes"), 4),
    **dict.fromkeys(("elaborate", "run", "lints", "drawing", "export", "losses", "peephole", "adjoint", "trace"), 5),
    "plan": 5.25,
    "diff": 5.5,
    **dict.fromkeys(("grad", "explain"), 6),
    "page": 6.5,
    **dict.fromkeys(("weights", "probe", "gradcheck", "sarif"), 7),
    **dict.fromkeys(("arrays", "jsonschema"), 8),
    **dict.fromkeys(("checking", "decode"), 8.5),
    "api": 9,
    "depict": 9.25,
    **dict.fromkeys(("compare", "resize", "notebook", "gallery"), 9.5),
    "shrink": 9.75,
    "cli": 10,
    "__main__": 11,
    "__init__": 12,
}

# The two halves of the hourglass meet in the graph, and nowhere else.
FRONT = {"source", "equation", "placement", "kind", "kinds", "module", "read_module"}
FRONT |= {"schema", "origins", "sublayer", "shortform", "spec", "elaborate"}
BACK = {"facts", "cost", "lower", "run", "grad", "gradcheck", "probe", "lints", "drawing", "export"}
BACK |= {"peephole", "adjoint", "plan", "decode"}

FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "manager", "process", "data", "common", "misc"}


def top(path: Path) -> str:
    """The module or folder right under blockgraph/ that a file belongs to: `ops` for ops/norms.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and top name of each import of the package's own, wherever in the file and for whatever use."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "blockgraph":
                    yield node.lineno, [*alias.name.split("."), "__init__"][1]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "blockgraph":
            for alias in node.names:
                yield node.lineno, _target([*str(node.module).split("."), alias.name])


def _target(parts: list[str]) -> str:
    """`from blockgraph import op` means the module; `from blockgraph import compile` what __init__ says."""
    known = {top(path) for path in FILES}
    return parts[1] if len(parts) > 2 or parts[1] in known else "__init__"


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_the_package_is_where_these_tests_look() -> None:
    assert PACKAGE / "errors.py" in FILES


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_every_module_has_a_level(path: Path) -> None:
    assert top(path) in LEVELS, f"say in LEVELS what {top(path)} may import"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_module_imports_only_lower_levels_or_its_own_folder(path: Path) -> None:
    own = top(path)
    level = LEVELS.get(own, 0)
    wrong = [
        f"line {line}: {own} ({level}) imports {other} ({LEVELS.get(other)})"
        for line, other in imported(path)
        if not ((other == own and path.parent != PACKAGE) or LEVELS.get(other, 99) < level)
    ]
    assert not wrong


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_front_end_and_the_back_ends_do_not_know_each_other(path: Path) -> None:
    others = {name for _, name in imported(path)}
    assert not (others & BACK if top(path) in FRONT else others & FRONT if top(path) in BACK else set())


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_file_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_function_is_longer_than_60_lines(path: Path) -> None:
    lengths = {f.name: (f.end_lineno or f.lineno) - f.lineno + 1 for f in functions(path)}
    assert not {name: length for name, length in lengths.items() if length > 60}


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_every_module_says_why_it_exists(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_module_has_a_name_that_says_nothing(path: Path) -> None:
    words = {word for part in path.relative_to(PACKAGE).with_suffix("").parts for word in part.split("_")}
    assert not words & FORBIDDEN_NAMES


@pytest.mark.parametrize("module", ["blockgraph", "blockgraph.__main__"])
def test_loading_the_program_loads_neither_numpy_nor_networkx(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'numpy', 'networkx', 'rich', 'graphviz'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_gate_runs_the_test_command_of_the_readme() -> None:
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.findall(r"^test_command='(.+)'$", gate, re.MULTILINE)
    assert len(commands) == 1
    assert 'bash -euo pipefail -c "$test_command"' in gate
    fenced = re.findall(
        r"^```\w*\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert [commands[0]] in [block.splitlines() for block in fenced]


def test_the_gate_can_be_run_as_a_program() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
