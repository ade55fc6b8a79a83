"""A program recorded without the app: it has the terminal, and we have nothing to say before it has ended.

The program is in our process group: what the terminal sends (ctrl+c, ctrl+\\, ctrl+z) reaches it without our help, and
must not end us before it. What is sent to us alone is passed on. All notes go to stderr.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from jaxprof.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from jaxprof.store import LogWriter
    from jaxprof.worker.interpreter import Interpreter
    from jaxprof.worker.program import Program
    from jaxprof.worker.program_run import ProgramConductor

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


def run_plain(program: Program, interpreter: Interpreter, writer: LogWriter) -> int:
    """Runs the program to its end, then tells in a few lines what was seen. Gives the program's exit code."""
    from jaxprof.worker.program_run import ProgramConductor

    conductor = ProgramConductor(writer, interpreter, _nobody, program, inherit=True)
    with _signals(conductor):
        run = conductor.start()
        import jaxprof.cli.program_summary  # noqa: F401 - while the program starts

        conductor.run()
        code = conductor.exit_code
        conductor.close()
    _tell(conductor, run)
    return ExitCode.FAILED if code is None else code


def note(text: str) -> None:
    """A line of ours, on stderr."""
    from jaxprof.safe_text import shorten

    click.echo(f"jaxprof: {shorten(text, 2000)}", err=True)


def _nobody(events: object) -> None:
    """There is no screen to pass events on to."""


def _tell(conductor: ProgramConductor, run: str) -> None:
    from jaxprof.cli.keeping import tell_where
    from jaxprof.cli.program_summary import summary_lines

    for line in summary_lines(conductor.session, run):
        note(line)
    tell_where(conductor.writer, note)


@contextmanager
def _signals(conductor: ProgramConductor) -> Iterator[None]:
    """While the program runs, signals do not end us. A signal that is ignored (nohup) stays so, for the program too."""

    def wait_for_it(number: int, frame: FrameType | None) -> None:
        """The program has it as well: what it does with it is its own affair."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        conductor.signal(number)

    handlers = dict.fromkeys(_FROM_THE_TERMINAL, wait_for_it) | dict.fromkeys(_PASSED_ON, pass_on)
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
