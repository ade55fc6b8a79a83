"""Record a program without the app: the program has the terminal, and jaxprof prints nothing before the program ends.

The program is in our process group: signals from the terminal (ctrl+c, ctrl+\\, ctrl+z) reach it without our help, and
must not end us before it. Signals that are sent to us alone are passed on, interrupts too: the system reports whether a
process or the terminal sent one. All notes go to stderr.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from jaxprof.cli import output
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.session_output import new_writer, report_location
from jaxprof.operating_system import signals

if TYPE_CHECKING:
    from jaxprof.early_start import Started
    from jaxprof.job_process import JobProcess
    from jaxprof.rollup.recording import RollUpRecorder
    from jaxprof.runner.capture_ranks import CaptureChoice
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session.log import LogWriter

SUMMARY_WIDTH = 200
"""Maximum columns of a line on stderr, which may go to a log file. A finding that the terminal wraps is better than one
that is truncated."""
_FROM_THE_TERMINAL = signals("SIGINT", "SIGQUIT")
_LOOK_SECONDS = 0.25
"""How often, in seconds, the interrupt thread checks whether the program has ended."""
_PASSED_ON = signals("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


def run_missing(python: str, program: ProgramCommand) -> int:
    """Run a file that does not exist: Python reports that itself, and no session is kept."""
    code = subprocess.run([python, *program.argv], check=False).returncode
    note(f"nothing was recorded: there is no {program.path}")
    return code


def is_missing(program: ProgramCommand) -> bool:
    """Whether the file does not exist. Only Python itself can tell this for a module."""
    return not program.module and program.path != "-" and not Path(program.path).exists()


def run_plain(
    program: ProgramCommand,
    interpreter: Interpreter,
    out: Path | None,
    *,
    force: bool,
    form: str = "text",
    member: JobProcess | None = None,
    capturing: Callable[[Capturing], CaptureChoice] | None = None,
    started: Started | None = None,
) -> int:
    """Run the program to its end, then print a summary of a few lines, and the session as `json`. Returns the exit code
    of the program.

    `member`: the process of a job that this is. What it writes on stderr is kept in the session, for its last words
    if it fails, and nothing is printed: thousands of processes may share one terminal. `capturing`: makes what decides,
    while the program runs, whether this process captures. `started`: the program, if it runs already.

    Raises UsageError or StorageError before the program starts if the session cannot be written to `out`.
    """
    from jaxprof.runner.program import ProgramProcess

    def writer_of(out: Path | None) -> LogWriter:
        return new_writer(out, replace_existing=force, process=member)

    writer = None if out is None or not out.exists() else writer_of(out)
    with output.stdout_is_stderr() if form == "json" else nullcontext(), passing_signals() as pass_to:
        # The program runs from here on. We import what we need to follow it while its own Python starts.
        process = ProgramProcess(
            interpreter.path, program, inherit=True, keep_stderr=member is not None, started=started
        )
        if started is not None:
            started.take_signals()
        pass_to(process)
        from jaxprof.report.recording.text import summary_lines
        from jaxprof.runner.program_run import ProgramScheduler

        writer = writer or writer_of(out)
        rollup = _roll_up_recorder(writer) if member is not None else None
        listen = rollup.listen if rollup is not None else _nobody
        scheduler = ProgramScheduler(writer, interpreter, listen, program, process=process)
        run = scheduler.start()
        choice = capturing(scheduler) if capturing is not None else None
        scheduler.run()
        if choice is not None:
            choice.close()
        code = scheduler.exit_code
        scheduler.close()
        if rollup is not None:
            rollup.close()
    if member is None or scheduler.storage_failure is not None:
        for line in summary_lines(scheduler.session, run, SUMMARY_WIDTH):
            note(line)
        report_location(scheduler.writer, note)
    if form == "json":
        from jaxprof.cli.answers import print_session

        print_session(scheduler.session, scheduler.writer.path if scheduler.writer.failure is None else None)
    return ExitCode.FAILED if code is None else code


def run_started(started: Started) -> int:
    """`run_plain` of a program that `early_start` has started."""
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.program import ProgramCommand

    words = started.words
    program = ProgramCommand(path=words.path, arguments=words.arguments)
    out = Path(words.out) if words.out is not None else None
    return run_plain(program, find_interpreter(), out, force=False, started=started)


def note(text: str) -> None:
    """Print a line of our own on stderr."""
    from jaxprof.text import shorten

    output.note(f"jaxprof: {shorten(text, 2000)}")


def _roll_up_recorder(writer: LogWriter) -> RollUpRecorder | None:
    from jaxprof.rollup.recording import roll_up_recorder

    return roll_up_recorder(writer.header, writer.path) if writer.path is not None else None


def _nobody(events: object) -> None:
    """No screen to pass events to."""


class Capturing(Protocol):
    """What requests capture windows of a program."""

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Request a window of so many seconds or steps."""


class Signalled(Protocol):
    """What takes the signals that were meant for it: a program, or the processes of a job."""

    def signal(self, number: int) -> None:
        """Pass a signal on."""


@contextmanager
def passing_signals() -> Iterator[Callable[[Signalled], None]]:
    """While the program runs, signals do not end us. Returns a function that takes the program's process; signals that
    arrived earlier are passed on to it then. An ignored signal (nohup) stays ignored, for the program too."""
    programs: list[Signalled] = []
    early: list[int] = []

    def wait_for_it(number: int, frame: FrameType | None) -> None:
        """The program receives it as well, and decides what to do with it."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        early.append(number)
        send()

    def send() -> None:
        while programs and early:
            programs[0].signal(early.pop(0))

    def pass_to(program: Signalled) -> None:
        programs.append(program)
        send()
        # Not earlier: the program would inherit the mask, and never see an interrupt.
        interrupts.begin(program, {number for number in _FROM_THE_TERMINAL if number in before})

    interrupts = _Interrupts()
    handlers = dict.fromkeys(_FROM_THE_TERMINAL, wait_for_it) | dict.fromkeys(_PASSED_ON, pass_on)
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield pass_to
    finally:
        interrupts.end()
        for number, former in before.items():
            signal.signal(number, former)


class _Interrupts:
    """Takes terminal signals in its own thread, on systems that report who sent each signal.

    A Python signal handler cannot learn the sender. On systems without another way (macOS), the handlers stay in place.
    """

    def __init__(self) -> None:
        self._numbers: set[signal.Signals] = set()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, program: Signalled, numbers: set[signal.Signals]) -> None:
        """From now on, pass signals that a process sent on to the program. Call in the main thread."""
        if not hasattr(signal, "sigtimedwait") or not numbers:
            return
        self._numbers = numbers
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        self._thread = threading.Thread(target=self._take, args=(program,), name="jaxprof-interrupts", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Put the handlers back."""
        if self._thread is not None:
            self._over.set()
            if self._thread.ident is not None:  # the thread would keep waiting for up to _LOOK_SECONDS
                signal.pthread_kill(self._thread.ident, min(self._numbers))
            self._thread.join()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._numbers)

    def _take(self, program: Signalled) -> None:
        while not self._over.is_set():
            sent = signal.sigtimedwait(self._numbers, _LOOK_SECONDS)
            # signals from the terminal have the kernel's own codes, which are positive
            if sent is not None and sent.si_code <= 0 and not self._over.is_set():
                program.signal(sent.si_signo)
