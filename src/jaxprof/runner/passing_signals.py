r"""Pass signals on to a recorded program, or to the processes of a job.

The program is in our process group: signals from the terminal (ctrl+c, ctrl+\, ctrl+z) reach it without our help, and
must not end us before it. Signals that are sent to us alone are passed on, interrupts too: the system reports whether a
process or the terminal sent one. Either way whoever passes them on learns of it, because a program that does not end
has to be ended (`escalation`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from jaxprof.base.operating_system import signal_handlers, signals

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
