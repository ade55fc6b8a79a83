r"""Pass signals on to a recorded program, or to the processes of a job. End those that do not end by themselves, after
they were asked to: 5 s, then SIGTERM, 5 s, then SIGKILL.

The program is in our process group: signals from the terminal (ctrl+c, ctrl+\, ctrl+z) reach it without our help, and
must not end us before it. Signals that are sent to us alone are passed on, interrupts too: the system reports whether a
process or the terminal sent one.

A program in its own cleaning up after ctrl+c has as long as that. One that is stopped, waits for a lock, a file or
another process, or is in native code, never ends by itself: native code swallows SIGINT (a collective of gloo) as well
as SIGTERM (JAX's preemption notifier). A repeated ctrl+c skips the rest of a step's time.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from jaxprof.base.operating_system import signal_handlers, signals

if TYPE_CHECKING:
    import psutil


GRACE_SECONDS = 5.0
"""Time from one step to the next."""
HASTE_SECONDS = 2.0
"""Time to the next step after a repeated signal. A program's recorder reports within a small part of it that the
program handles the signal itself, unless all of it is stopped or held up."""
ENDING_SIGNALS = signals("SIGINT", "SIGTERM", "SIGHUP")
TERMINATE, KILL = 1, 2


class Escalation:
    """Which step is due, by the clock. `ask` may be called from any thread and from a signal handler."""

    def __init__(self) -> None:
        self.first: int | None = None
        """The first signal that asked the program to end; None if none did."""
        self.asked: int | None = None
        self.step = 0
        self._due = float("inf")

    def ask(self, number: int) -> None:
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


_FROM_THE_TERMINAL = signals("SIGINT", "SIGQUIT")
_LOOK_SECONDS = 0.25
"""How often, in seconds, the interrupt thread checks whether the program has ended."""
_PASSED_ON = signals("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")

Pass = Callable[[int, bool], None]
"""Passes a signal on, to a program or to the processes of a job; or takes note of it, with True: the terminal has sent
it to all of our process group."""


@contextmanager
def passing_signals() -> Iterator[Callable[[Pass], None]]:
    """Keep signals from ending this process while the program runs. Yield a function that takes what passes them on to
    the program, those that arrived earlier first. An ignored signal (nohup) stays ignored, for the program too."""
    programs: list[Pass] = []
    early: list[tuple[int, bool]] = []

    def leave_to_program(number: int, frame: FrameType | None) -> None:
        """Take note alone: the program receives the signal as well, and decides what to do with it."""
        early.append((number, True))
        send()

    def pass_on(number: int, frame: FrameType | None) -> None:
        early.append((number, False))
        send()

    def send() -> None:
        while programs and early:
            programs[0](*early.pop(0))

    def pass_to(program: Pass) -> None:
        programs.append(program)
        send()
        # Not earlier: the program would inherit the mask, and never see an interrupt.
        interrupts.begin(program, {number for number in _FROM_THE_TERMINAL if number in before})

    interrupts = _Interrupts()
    handlers = dict.fromkeys(_FROM_THE_TERMINAL, leave_to_program) | dict.fromkeys(_PASSED_ON, pass_on)
    with signal_handlers(handlers) as before:
        try:
            yield pass_to
        finally:
            interrupts.end()


class _Interrupts:
    """Receives terminal signals in its own thread, on systems that report who sent each signal.

    A Python signal handler cannot learn the sender. On systems without another way (macOS), the handlers stay in place.
    """

    def __init__(self) -> None:
        self._numbers: set[signal.Signals] = set()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, program: Pass, numbers: set[signal.Signals]) -> None:
        """Pass signals that a process sent on to the program from now on, and note the others. In the main thread."""
        if not hasattr(signal, "sigtimedwait") or not numbers:
            return
        self._numbers = numbers
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        self._thread = threading.Thread(target=self._take, args=(program,), name="jaxprof-interrupts", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the thread, and unblock the signals, so that the handlers receive them again."""
        if self._thread is not None:
            self._over.set()
            if self._thread.ident is not None:  # the thread would keep waiting for up to _LOOK_SECONDS
                signal.pthread_kill(self._thread.ident, min(self._numbers))
            self._thread.join()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._numbers)

    def _take(self, program: Pass) -> None:
        while not self._over.is_set():
            sent = signal.sigtimedwait(self._numbers, _LOOK_SECONDS)
            # signals from the terminal have the kernel's own codes, which are positive
            if sent is not None and not self._over.is_set():
                program(sent.si_signo, sent.si_code > 0)
