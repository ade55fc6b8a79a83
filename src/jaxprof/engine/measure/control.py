"""Steers a run from outside: cancelling it, the hard cap on its time, and its turns beside other runs.

The first two are checked between calls and between phases; a running call is never interrupted.
"""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxprof.engine.protocol.request import TurnRequest


class Cancelled(Exception):
    """The run was cancelled."""


class CapReached(Exception):
    """The run has reached the hard cap on its time."""


def _nothing(*, begins: bool) -> None:
    """Nobody asks when a run waits."""


class RunControl:
    """Shared by the thread that measures and the threads that steer it."""

    def __init__(self) -> None:
        self._cancel = threading.Event()
        self._deadline: float | None = None
        self._turns: SimpleQueue[TurnRequest | None] = SimpleQueue()
        """Written by the thread that reads requests; None ends the turns, or wakes a cancelled run."""
        self.waits_for_turn = False
        """Whether nothing is done until the next one comes."""
        self.on_wait: Callable[..., object] = _nothing
        """Called with `begins=True` when the run begins to wait for a turn, and with `begins=False` when it goes on."""

    def cancel(self) -> None:
        """Requests that the run stop at the next occasion."""
        self._cancel.set()
        self._turns.put(None)

    def give_turn(self, turn: TurnRequest | None) -> None:
        """Hands the next turn to the run; None: there are no more."""
        self._turns.put(turn)

    def next_turn(self) -> TurnRequest | None:
        """Waits for the next turn, None for no more; the wait does not count towards the hard cap. Raises Cancelled and
        CapReached."""
        self.check()
        remaining = self.remaining_seconds()
        self.stop_clock()
        self.on_wait(begins=True)
        self.waits_for_turn = True
        turn = self._turns.get()
        self.waits_for_turn = False
        self.on_wait(begins=False)
        self.start_clock(remaining)
        self.check()
        return turn

    def take_turns(
        self, call_seconds: float, take: Callable[[TurnRequest], list[float]], settle: Callable[[], object]
    ) -> None:
        """Has `take` take the samples of each turn, until there are no more; a sample takes `call_seconds`. `settle`
        makes a call that is not timed, for where other runs of this process have emptied JAX's caches. Raises Cancelled
        and CapReached."""
        while (turn := self.next_turn()) is not None:
            take(turn)

    def start_clock(self, max_seconds: float | None) -> None:
        """From now on `max_seconds` are left, or there is no limit."""
        self._deadline = None if max_seconds is None else time.monotonic() + max_seconds

    def stop_clock(self) -> None:
        """The cap no longer applies."""
        self._deadline = None

    def remaining_seconds(self) -> float | None:
        """Seconds until the hard cap, negative past it; None without a cap."""
        deadline = self._deadline
        return None if deadline is None else deadline - time.monotonic()

    def check(self) -> None:
        """Raises Cancelled or CapReached if there is a reason to stop."""
        if self._cancel.is_set():
            raise Cancelled
        remaining = self.remaining_seconds()
        if remaining is not None and remaining <= 0:
            raise CapReached
