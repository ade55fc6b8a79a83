"""A program recorded without the app: it has the terminal, and we have nothing to say before it has ended.

The program is in our process group: what the terminal sends (ctrl+c, ctrl+\\, ctrl+z) reaches it without our help, and
must not end us before it. What is sent to us alone is passed on. All notes go to stderr.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.keeping import new_writer, tell_where

if TYPE_CHECKING:
    from jaxprof.store import LogWriter
    from jaxprof.worker.interpreter import Interpreter
    from jaxprof.worker.program import Program, ProgramProcess

SUMMARY_WIDTH = 200
"""Columns of a line on stderr, which may go to a log file: a finding that the terminal wraps is better than half a
one."""
_FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run_missing(python: str, program: Program) -> int:
    """A file that is not there: Python says so in its own words, and nothing is kept."""
    code = subprocess.run([python, *program.argv], check=False).returncode
    note(f"nothing was recorded: there is no {program.path}")
    return code


def is_missing(program: Program) -> bool:
    """Whether there is no such file; a module is only found by Python itself."""
    return not program.module and program.path != "-" and not Path(program.path).exists()


def run_plain(program: Program, interpreter: Interpreter, out: Path | None, *, force: bool) -> int:
    """Runs the program to its end, then tells in a few lines what was seen. Gives the program's exit code.

    Raises UsageError or StorageError where the session cannot be written to `out`, before the program is started.
    """
    from jaxprof.worker.program import ProgramProcess

    writer = None if out is None or not out.exists() else _new_writer(out, force)
    with _signals() as pass_to:
        # From here on the program runs. What is needed to follow it is imported while its own Python starts.
        process = ProgramProcess(interpreter.path, program, inherit=True)
        pass_to(process)
        from jaxprof.report.recording.text import summary_lines
        from jaxprof.worker.program_run import ProgramConductor

        conductor = ProgramConductor(writer or _new_writer(out, force), interpreter, _nobody, program, process=process)
        run = conductor.start()
        conductor.run()
        code = conductor.exit_code
        conductor.close()
    for line in summary_lines(conductor.session, run, SUMMARY_WIDTH):
        note(line)
    tell_where(conductor.writer, note)
    return ExitCode.FAILED if code is None else code


def note(text: str) -> None:
    """A line of ours, on stderr."""
    from jaxprof.safe_text import shorten

    click.echo(f"jaxprof: {shorten(text, 2000)}", err=True)


def _nobody(events: object) -> None:
    """There is no screen to pass events on to."""


def _new_writer(out: Path | None, force: bool) -> LogWriter:
    return new_writer(out, replace_existing=force)


@contextmanager
def _signals() -> Iterator[Callable[[ProgramProcess], None]]:
    """While the program runs, signals do not end us. Gives a function that is told the program; what comes before is
    passed on then. A signal that is ignored (nohup) stays so, for the program too."""
    programs: list[ProgramProcess] = []
    early: list[int] = []

    def wait_for_it(number: int, frame: FrameType | None) -> None:
        """The program has it as well: what it does with it is its own affair."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        early.append(number)
        send()

    def send() -> None:
        while programs and early:
            programs[0].signal(early.pop(0))

    def pass_to(program: ProgramProcess) -> None:
        programs.append(program)
        send()

    handlers = dict.fromkeys(_FROM_THE_TERMINAL, wait_for_it) | dict.fromkeys(_PASSED_ON, pass_on)
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield pass_to
    finally:
        for number, former in before.items():
            signal.signal(number, former)
