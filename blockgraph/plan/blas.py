"""How many threads the BLAS under NumPy uses: set for a call, restored afterwards, also when the call fails.

NumPy has no function for this. The wheels bring an OpenBLAS whose own functions are found here by name; where there is
none the number is left alone, and a plan then never runs threads of its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cache
from pathlib import Path
from types import TracebackType

from blockgraph.lazy import np
from blockgraph.records import dataclass

FOLDERS = ("numpy.libs", "numpy/.dylibs")
NAMES = tuple(
    f"{prefix}openblas_{{}}_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")
)


@dataclass(frozen=True, slots=True)
class Blas:
    """The two functions of the library."""

    get: Callable[[], int]
    set: Callable[[int], None]


@cache
def blas() -> Blas | None:
    """The OpenBLAS that NumPy has loaded; None if there is none, or another library."""
    for path in _libraries():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for name in NAMES:
            if hasattr(library, name.format("set")) and hasattr(library, name.format("get")):
                return Blas(getattr(library, name.format("get")), getattr(library, name.format("set")))
    return None


def _libraries() -> Iterator[Path]:
    site = Path(str(np.__file__)).parent.parent
    for folder in FOLDERS:
        yield from sorted((site / folder).glob("*openblas*"))


@dataclass(slots=True)
class _Limit:
    """The threads with a call under way; the first one in sets the number, the last one out restores it.

    Whatever Ctrl-C left undone the next call of the same thread makes good.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: set[int] = field(default_factory=set)
    before: int | None = None

    def enter(self, threads: int) -> None:
        library = blas()
        if library is None:
            return
        with self.lock:
            if self.before is None:
                self.before = library.get()
            caller = threading.get_ident()
            if self.inside <= {caller} and library.get() != threads:
                library.set(threads)
            self.inside.add(caller)

    def leave(self) -> None:
        library = blas()
        if library is None:
            return
        with self.lock:
            self.inside.discard(threading.get_ident())
            if not self.inside and self.before is not None:
                if library.get() != self.before:
                    library.set(self.before)
                self.before = None

    def forget(self) -> None:
        """In the child of a fork: the threads of the parent are not here; the next call restores the number."""
        self.lock = threading.Lock()
        self.inside.clear()


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forget)


@dataclass(frozen=True, slots=True)
class limited:
    """Within it BLAS uses so many threads."""

    threads: int

    def __enter__(self) -> None:
        _LIMIT.enter(self.threads)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _LIMIT.leave()
