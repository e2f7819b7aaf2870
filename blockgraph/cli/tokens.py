"""Text to ids and back by a checkpoint's tokenizer.json, in a child process: nothing in that file is trusted."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from blockgraph.errors import EnvironmentFailure, Finding, InputError, Place

LARGEST: Final = 1 << 28  # bytes of a file; the largest published one has some 30 MB
SECONDS: Final = 60
CHILD: Final = """
import json, sys
from tokenizers import Tokenizer
order = json.load(sys.stdin)
tokenizer = Tokenizer.from_file(order["path"])
if "text" in order:
    answer = tokenizer.encode(order["text"]).ids
else:
    answer = [tokenizer.decode(row, skip_special_tokens=True) for row in order["ids"]]
json.dump(answer, sys.stdout)
"""


def encode(folder: str, text: str) -> list[int]:
    """The ids of a text. Raises InputError (BG310), EnvironmentFailure (BG901, BG905)."""
    found = _ask(folder, {"text": text})
    if not isinstance(found, list) or not all(isinstance(one, int) for one in found):
        raise _unusable(folder, "it makes no ids of the text")
    return found


def decode(folder: str, ids: Sequence[Sequence[int]]) -> list[str]:
    """The texts of some rows of ids. Raises as `encode` does."""
    found = _ask(folder, {"ids": [list(row) for row in ids]})
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise _unusable(folder, "it makes no text of the ids")
    return found


def path_in(folder: str) -> str:
    """Where the file stands. Raises EnvironmentFailure: BG901 there is none, BG905 the package is missing."""
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.isfile(path):
        help = "give ids with --input, or the folder of a checkpoint that has one"
        raise EnvironmentFailure([Finding("BG901", f"cannot open {path}: there is no such file", Place(path), help)])
    if importlib.util.find_spec("tokenizers") is None:
        message = "text in and out needs the package tokenizers"
        help = 'pip install "blockgraph[tokenizers]", or give ids with --input'
        raise EnvironmentFailure([Finding("BG905", message, Place(path), help)])
    return path


def _ask(folder: str, order: dict[str, Any]) -> Any:
    """What the child answers."""
    path = path_in(folder)
    if os.path.getsize(path) > LARGEST:
        raise _unusable(folder, "it is larger than any tokenizer")
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    text = json.dumps({**order, "path": path})
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD], input=text, capture_output=True, text=True, timeout=SECONDS, env=environment
        )
        return json.loads(done.stdout) if done.returncode == 0 else _failed(folder)
    except subprocess.TimeoutExpired:
        raise _unusable(folder, f"it takes more than {SECONDS} seconds") from None
    except ValueError:
        raise _unusable(folder, "it makes no sense of what it is given") from None


def _failed(folder: str) -> None:
    raise _unusable(folder, "it is damaged, or no tokenizer")


def _unusable(folder: str, reason: str) -> InputError:
    path = os.path.join(folder, "tokenizer.json")
    help = "fetch it again, or give ids with --input"
    return InputError([Finding("BG310", f"cannot use {path}: {reason}", Place(path), help)])
