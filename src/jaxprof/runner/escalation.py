"""End programs that do not end by themselves once they were asked to: 5 s, then SIGTERM, 5 s, then SIGKILL.

A program in its own cleaning up after ctrl+c has as long as that. One that is stopped, waits for a lock, a file or
another process, or is in native code, never ends by itself: native code swallows SIGINT (a collective of gloo) as well
as SIGTERM (JAX's preemption notifier). A repeated ctrl+c skips the rest of a step's time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Container, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from jaxprof.base.operating_system import signals

if TYPE_CHECKING:
    import psutil

GRACE_SECONDS = 5.0
"""Time from one step to the next."""
HASTE_SECONDS = 2.0
"""Time to the next step after a repeated signal. A program's recorder reports within a small part of it that the
program handles the signal itself, unless all of it is stopped or held up."""
ENDING_SIGNALS = signals("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that ask a program to end."""
TERMINATE, KILL = 1, 2
"""The steps."""


class Escalation:
    """Which step is due, by the clock. `ask` may be called from any thread and from a signal handler."""

    def __init__(self) -> None:
        self.first: int | None = None
        """The first signal that asked the program to end; None if none did."""
        self.asked: int | None = None
        self.step = 0
        """The last step that was due."""
        self._due = float("inf")

    def ask(self, number: int) -> None:
        """Note that a signal asks the program to end."""
        now = time.monotonic()
        if self.first is None:
            self.first = number
            self.begin()
        elif number == signal.SIGTERM and self.step < TERMINATE:
            self.step, self._due = TERMINATE, now + GRACE_SECONDS
        else:
            self._due = min(self._due, now + HASTE_SECONDS)
        self.asked = number

    def withdraw(self) -> None:
        """Forget that the program was asked: it handles the signal itself."""
        self.first = self.asked = None
        self.step, self._due = 0, float("inf")

    def begin(self) -> None:
        """Begin to count, unless that has begun."""
        self._due = min(self._due, time.monotonic() + GRACE_SECONDS)

    def due_step(self) -> int | None:
        """Return the number of the step that is due now, once; None if none is."""
        now = time.monotonic()
        if now < self._due:
            return None
        self.step, self._due = self.step + 1, now + GRACE_SECONDS
        return self.step


def descendants(pid: int) -> list[psutil.Process]:
    """Return the processes below `pid` in our own process group; those that lead or joined another one have been left
    on purpose, as daemons are."""
    import psutil

    ours, found = os.getpgrp(), []
    with suppress(psutil.Error):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error, OSError):
                if os.getpgid(process.pid) == ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
    return found


def signal_each(processes: Iterable[psutil.Process], number: int, but: Container[int] = ()) -> None:
    """Send a signal to the processes, except those with the ids `but`. One that has ended gets none, even if its id is
    another process's by now."""
    import psutil

    for process in processes:
        if process.pid not in but:
            with suppress(psutil.Error):
                process.send_signal(number)


def continue_stopped(processes: Iterable[psutil.Process]) -> None:
    """Let the stopped ones among the processes go on: they would take no signal but SIGKILL."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            if process.status() == psutil.STATUS_STOPPED:
                process.send_signal(signal.SIGCONT)
