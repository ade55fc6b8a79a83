"""Record a program without the app: the program has the terminal, and jaxprof prints nothing before the program ends,
unless it stands still. All notes go to stderr.

A job is several such programs: all of it on this machine (`jaxprof script -n 4`), or one process of it, whoever started
it.
"""

from __future__ import annotations

import secrets
import socket
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.base.errors import FileRefusedError, StorageError, UsageError, system_words
from jaxprof.base.files import private_folder
from jaxprof.base.operating_system import python_words
from jaxprof.base.text import shorten
from jaxprof.cli import output
from jaxprof.cli.answers import print_conclusion, print_job, print_session
from jaxprof.cli.options import words_given
from jaxprof.cli.output import ExitCode
from jaxprof.runner.program_signals import passing_signals
from jaxprof.runner.session_recorder import new_writer, report_location
from jaxprof.session.files import EXTENSION, JOB_EXTENSION, job_folder_for, lasting_name, process_number, session_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxprof.base.early_start import Started
    from jaxprof.events import Event
    from jaxprof.jobs.process import JobProcess
    from jaxprof.rollup.recording import RollUpRecorder
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.runner.program_run import ProgramScheduler
    from jaxprof.runner.session_recorder import Listener
    from jaxprof.session import LogWriter, Session

_NAME = "jaxprof: "
"""Stands before each line of ours, among those of the program."""


def run_plain(
    program: ProgramCommand,
    interpreter: Interpreter,
    out: Path | None,
    *,
    force: bool,
    form: str = "text",
    member: JobProcess | None = None,
    started: Started | None = None,
) -> int:
    """Run the program to its end, then print a summary, and the session if `form` is `json`. Return its exit code.

    `member`: which process of a job this is. What it writes on stderr is kept in the session, for its last words if it
    fails, and nothing is printed, because thousands of processes may share one terminal. `started`: the program, if it
    runs already.

    Raises UsageError or StorageError before the program starts if the session cannot be written to `out`.
    """
    from jaxprof.runner.program import ProgramProcess

    writer_of = partial(new_writer, replace_existing=force, process=member)
    writer = None if out is None or not out.exists() else writer_of(out)
    with output.stdout_is_stderr() if form == "json" else nullcontext(), passing_signals() as pass_to:
        # The program runs from here on. We import what we need to follow it while its own Python starts.
        process = ProgramProcess(
            interpreter.path,
            program,
            inherit=True,
            keep_stderr=member is not None,
            escalates=member is None,
            started=started,
        )
        if started is not None:
            started.take_signals()
        pass_to(process.signal)
        from jaxprof.runner.program_run import ProgramScheduler

        writer = writer or writer_of(out)
        rollup: RollUpRecorder | None = None
        if member is not None and writer.path is not None:
            from jaxprof.rollup.recording import roll_up_recorder

            rollup = roll_up_recorder(writer.header, writer.path)
        # There is no screen. What started the processes of a job says that one stands still.
        listen: Listener = rollup.listen if rollup is not None else lambda events: None
        if member is None:
            listen = standstill_listener(lambda: scheduler.session, note)
        listen = storage_listener(writer, listen, note)
        scheduler = ProgramScheduler(writer, interpreter, listen, program, process=process)
        run = scheduler.start()
        if member is None:
            import_summary()
        scheduler.run()
        code = scheduler.exit_code
        scheduler.close()
        if rollup is not None:
            rollup.close()
    if member is None or scheduler.storage_failure is not None:
        print_summary(scheduler, run)
    elif scheduler.file_change:
        note(scheduler.file_change)
    if form == "json":
        print_session(scheduler.session, scheduler.writer.kept_path)
    # In a job, another code than the program's would make the launcher end the other processes.
    return code or int(scheduler.has_lost_events and member is None) if code is not None else ExitCode.FAILED


def storage_listener(writer: LogWriter, then: Listener, say: Callable[[str], object]) -> Listener:
    """Return a listener that says at once, and once, that the session cannot be written, and passes the events on."""
    reported: StorageError | None = None

    def listen(events: list[Event]) -> None:
        nonlocal reported
        if writer.failure is not None and reported is None:
            reported = writer.failure
            say(f"{reported.what}. {reported.hint}")
        then(events)

    return listen


def standstill_listener(session: Callable[[], Session], say: Callable[[str], object]) -> Listener:
    """Return a listener that says when the program begins to stand still, and when it goes on."""
    stood = False

    def listen(events: list[Event]) -> None:
        from jaxprof.events import SilenceSeen, StandstillSeen

        nonlocal stood
        if any(isinstance(event, StandstillSeen | SilenceSeen) for event in events):
            from jaxprof.findings.program_result import program_result

            result = program_result(session(), next(iter(session().programs)).id)
            stood, before = result.stands_still, stood
            if stood and not before and result.standstill is not None:
                say(f"it stands still {result.standstill.text(result.directory)}")
            elif before and not stood and not result.ended:
                say("it goes on")

    return listen


def import_summary() -> None:
    """Import what the summary needs while the program runs: at its end the user waits."""
    import platformdirs  # noqa: F401

    import jaxprof.base.recorded_source  # noqa: F401
    import jaxprof.findings.derive  # noqa: F401
    import jaxprof.findings.programs  # noqa: F401
    import jaxprof.report.conclusion  # noqa: F401
    import jaxprof.report.program  # noqa: F401


def print_summary(scheduler: ProgramScheduler, run: str) -> None:
    from jaxprof.report.program import summary_lines

    # stderr may go to a log file, and a finding that the terminal wraps is better than one that is truncated.
    for line in summary_lines(scheduler.session, run, 200):
        note(line)
    report_location(scheduler.writer, note)
    print_conclusion(scheduler.session, scheduler.writer.kept_path, note, indent=len(_NAME))


def run_started(started: Started) -> int:
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.program import ProgramCommand

    words = started.words
    program = ProgramCommand(path=words.path, arguments=words.arguments)
    out = Path(words.out) if words.out is not None else None
    return run_plain(program, find_interpreter(), out, force=False, started=started)


def note(text: str) -> None:
    output.note(f"{_NAME}{shorten(text, 2000)}")


_NOT_PASSED_AS_OPTIONS = ("target", "arguments", "processes", "oversubscribe", "out", "force", "plain", "form")
"""Parameters that are not passed to the processes as options, or not as they were given."""


def run_process(
    program: ProgramCommand,
    interpreter: Interpreter,
    process: JobProcess,
    out: Path | None,
    *,
    force: bool,
    quiet: bool,
) -> int:
    """Record one process of a job into the job's folder. Return the exit code of the program. `quiet`: the caller
    reports where the folder is. Raises UsageError if the processes cannot agree on a folder."""
    if out is None and not process.job:
        raise UsageError(
            f"this is process {process.index} of {process.count or 'a job'}, and its launcher gives the job no id",
            f"Name the folder of the job: --out run{JOB_EXTENSION}",
        )
    folder = out or job_folder_for(program.name, process.job, Path.cwd())
    if force:
        from jaxprof.runner.job_launch import delete_sessions

        delete_sessions(folder, process.index)
    path = session_path(folder, process.index)
    code = run_plain(program, interpreter, path, force=False, member=process)
    if process.index == 0 and not quiet:
        note(f"job: {lasting_name(folder)}")
    return code


def launch_job(count: int, out: Path | None, *, force: bool, form: str) -> int:
    """Start the current command `count` times as the processes of a job, and report the outcome. Return the exit code
    of the process that failed first, or 0. Raises UsageError or StorageError before anything starts."""
    from jaxprof.jobs.watch import JobWatch
    from jaxprof.runner.job_launch import JobLaunch, delete_sessions, free_folder

    parameters = click.get_current_context().params
    folder = out or free_folder(parameters["target"])
    if not force and any(process_number(path.name) is not None for path in folder.glob(f"*{EXTENSION}")):
        raise StorageError(f"{folder} holds a job already", "Give another name, or --force to replace it.")
    try:
        private_folder(folder)
    except OSError as error:
        raise StorageError(
            f"the folder {folder} cannot be made: {system_words(error)}", f"Name another: --out run{JOB_EXTENSION}"
        ) from None
    delete_sessions(folder)
    command = python_words(
        sys.executable, "-m", "jaxprof", "script", *map(str, words_given(_NOT_PASSED_AS_OPTIONS)), "--out", str(folder)
    )
    command += [parameters["target"], *parameters["arguments"]]
    job = f"{socket.gethostname()}-{secrets.token_hex(4)}"
    with passing_signals() as pass_to:
        launch = JobLaunch(command, count, job, output=2 if form == "json" else None)
        pass_to(launch.signal)
        watch = JobWatch(folder, note)
        watch.start()
        code = launch.wait(lambda index, code: note(f"process {index} of {count} ended with exit code {code}"), note)
        watch.stop()
    _report(folder, form)
    harmed = set(range(count)) - {
        process_number(path.name) for path in folder.glob(f"*{EXTENSION}") if _is_kept(path, job)
    }
    if harmed:
        from jaxprof.jobs.figures import processes_named

        note(f"{processes_named(sorted(harmed))} of {count}: no session in the folder, or not all of it")
    return code or (ExitCode.FAILED if harmed else ExitCode.OK)


def _is_kept(path: Path, job: str) -> bool:
    """Return whether the file at `path` is a session of that job, without lost events."""
    from jaxprof.base.files import open_regular
    from jaxprof.session.lines import events_of, read_header
    from jaxprof.session.writer import EVENTS_LOST

    try:
        with open_regular(path) as file:
            if read_header(file, str(path)).job != f"jaxprof-{job}":
                return False
            warnings = events_of(file, ("warning_raised",))
            return not any(getattr(warning, "code", "") == EVENTS_LOST for warning in warnings)
    except (OSError, FileRefusedError):
        return False


def _report(folder: Path, form: str) -> None:
    from jaxprof.findings.derive import explanation_of_job
    from jaxprof.jobs.job import read_job_figures
    from jaxprof.report import WIDTH, report_lines
    from jaxprof.report.conclusion import conclusion, conclusion_lines
    from jaxprof.report.hosts import summary

    try:
        job = read_job_figures(folder)
    except FileRefusedError as error:
        note(f"{error.what}: nothing was recorded")
        return
    if form == "json":
        print_job(job, form)
        return
    width = WIDTH - len(_NAME)
    for line in report_lines(summary(job), width):
        note(line)
    note(f"job: {lasting_name(folder)}")
    for line in conclusion_lines(conclusion(explanation_of_job(job)), width):
        note(line)
