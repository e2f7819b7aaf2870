"""What is said when blockgraph itself is at fault: one line that asks for a report, and no traceback."""

from __future__ import annotations

import os
import shlex
import traceback
from collections.abc import Sequence
from typing import Final

from blockgraph.errors import Finding, Place

DEBUG: Final = "BLOCKGRAPH_DEBUG"


def own_fault(error: Exception, words: Sequence[str]) -> Finding:
    """The finding for an exception nobody expected; raises it again if BLOCKGRAPH_DEBUG is set.

    `words` are the command line without the program's name.
    """
    if os.environ.get(DEBUG):
        raise error
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    line = shlex.join(["blockgraph", *words])
    message = (
        f"a fault of blockgraph itself ({type(error).__name__}{place}): please report it with this command line: {line}"
    )
    return Finding("BG900", message, Place(""))
