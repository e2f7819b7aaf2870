"""A few threads that run the stages of a plan side by side and wait for one another after each.

Teams are lent: whoever runs a plan takes one and gives it back, so that several callers may run at once. They do not
survive a fork, so a child process makes its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import field

from blockgraph.lazy import np
from blockgraph.records import dataclass

Work = Sequence[Callable[[], None]]
"""What one thread does in each stage."""


class Team:
    """`size` threads, the caller's own among them."""

    def __init__(self, size: int) -> None:
        """Start the others; they sleep until there is work."""
        self.size = size
        self.failure: BaseException | None = None
        self.gone = False
        self._work: Sequence[Work] = ()
        self._met = [0] * size
        self._start = [_closed() for _ in range(size)]
        # Two doors for every ordered pair, used in turn: nobody can be two stages ahead.
        self._doors = [[[_closed() for _ in range(size)] for _ in range(size)] for _ in range(2)]
        self._threads = [
            threading.Thread(target=self._wait, args=(number,), daemon=True, name=f"blockgraph-{number}")
            for number in range(1, size)
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.close()
            raise

    def run(self, work: Sequence[Work]) -> None:
        """Run `work[k]` on thread k, all of the same number of stages. Raises what any of them raises."""
        self._work, self.failure = work, None
        try:
            for door in self._start[1:]:
                door.release()
            self._stages(0)
        except BaseException:  # Ctrl-C between two stages: who would meet this thread must not wait for it
            self._give_up()
            raise
        self._work = ()
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Let the threads end."""
        self.gone = True
        for door in self._start[1:]:
            _open(door)

    def _give_up(self) -> None:
        """Let the threads end wherever they are, and wait until none of them touches an array any more."""
        while any(thread.is_alive() for thread in self._threads):
            try:
                self.close()
                for door in (door for turn in self._doors for row in turn for door in row):
                    _open(door)
                for thread in self._threads:
                    thread.join()
            except KeyboardInterrupt:
                continue

    def _wait(self, number: int) -> None:
        np.seterr(all="ignore")  # what is not finite shows in the numbers; the setting is this thread's own
        while True:
            self._start[number].acquire()
            if self.gone:
                return
            self._stages(number)

    def _stages(self, number: int) -> None:
        for stage in self._work[number]:
            if self.failure is None:
                try:
                    stage()
                except BaseException as error:
                    self.failure = error
            if not self._meet(number):
                return

    def _meet(self, number: int) -> bool:
        """Wait until all have come this far; whether they have, and the team goes on."""
        doors = self._doors[self._met[number] % 2]
        self._met[number] += 1
        others = [other for other in range(self.size) if other != number]
        for other in others:
            _open(doors[number][other])
        for other in others:
            doors[other][number].acquire()
            if self.gone:
                return False
        return True


def _open(door: threading.Lock) -> None:
    try:
        door.release()
    except RuntimeError:  # it is open: the team is given up
        return


def _closed() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(slots=True)
class _Pool:
    idle: list[Team] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


_POOLS: dict[int, _Pool] = {}
"""By process: a child of a fork must not touch the threads of its parent."""


def _pool() -> _Pool:
    return _POOLS.setdefault(os.getpid(), _Pool())


def run_together(work: Sequence[Work]) -> None:
    """Run one list of stages per thread, with a team that is idle or new. Raises what any thread raises."""
    pool, size = _pool(), len(work)
    with pool.lock:
        team = next((one for one in pool.idle if one.size == size), None)
        if team is not None:
            pool.idle.remove(team)
    team = team or Team(size)
    try:
        team.run(work)
    finally:
        with pool.lock:
            keep = not team.gone and len(pool.idle) < 2
            if keep:
                pool.idle.append(team)
        if not keep:
            team.close()
