"""`jaxprof script -n 4`: a job of several processes on this machine; and one process of a job, whoever started it."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from jaxprof.cli.options import words_given
from jaxprof.cli.plain_script import note, passing_signals, run_plain
from jaxprof.errors import StorageError, UsageError
from jaxprof.operating_system import processors, python_words
from jaxprof.rollup import ENDING, FOLDER
from jaxprof.session.log import Library
from jaxprof.session_names import EXTENSION, JOB_EXTENSION, job_folder_for, process_number, session_path
from jaxprof.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxprof.cli.plain_script import Capturing
    from jaxprof.job_process import JobProcess
    from jaxprof.runner.capture_ranks import CaptureChoice, CaptureRanks
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.program import ProgramCommand

_OURS: Final = ("target", "arguments", "processes", "oversubscribe", "out", "force", "plain", "form")
"""What is not handed on to the processes as an option, or not as it was given."""
_ALWAYS: Final = 16
_FOR_EACH_PROCESSOR: Final = 4
"""So many processes are started at once without a word: more hardly get on, and each needs memory for a JAX of its
own, some 300 MB."""


def run_process(
    program: ProgramCommand,
    interpreter: Interpreter,
    process: JobProcess,
    out: Path | None,
    ranks: CaptureRanks | None = None,
    *,
    force: bool,
    quiet: bool,
    taken: Collection[str] = (),
) -> int:
    """Record one process of a job into the job's folder. `quiet`: whoever started it says where that is. `taken`: names
    of sessions that the folder has in a store. Raises UsageError if the processes cannot agree on a folder."""
    if out is None and not process.job:
        raise UsageError(
            f"this is process {process.index} of {process.count or 'a job'}, and its launcher gives the job no id",
            f"Name the folder of the job: --out run{JOB_EXTENSION}",
        )
    folder = _folder(out) if out is not None else job_folder_for(program.name, process.job, Path.cwd())
    if force:
        _delete(folder, process.index)
    capturing = None
    if ranks is not None:
        program, capturing = _capturing(program, ranks, process.index, folder)
    path = session_path(folder, process.index, taken)
    code = run_plain(program, interpreter, path, force=False, member=process, capturing=capturing)
    if process.index == 0 and not quiet:
        note(f"job: {Library().name_of(folder)}")
    return code


def _capturing(
    program: ProgramCommand, ranks: CaptureRanks, index: int, folder: Path
) -> tuple[ProgramCommand, Callable[[Capturing], CaptureChoice] | None]:
    """The program with the window that this process takes by itself; and, where that is not known before it runs, who
    decides it."""
    from dataclasses import replace

    from jaxprof.runner.capture_ranks import CHOICE, DEFAULT_AFTER_SECONDS, CaptureChoice, options_of

    wanted = program.options
    mine = replace(program, options=options_of(ranks, index, wanted))
    if not ranks.slowest:
        return mine, None
    if index == 0:
        (folder / CHOICE).unlink(missing_ok=True)  # of a job that was here before
    after = wanted.capture_after_seconds if wanted.capture_after_seconds is not None else DEFAULT_AFTER_SECONDS

    def choose(scheduler: Capturing) -> CaptureChoice:
        return CaptureChoice(
            ranks, index, folder, after, lambda: scheduler.capture(wanted.capture_seconds, wanted.capture_steps)
        )

    return mine, choose


def refuse_too_many(count: int) -> None:
    """Raises UsageError for a count that this machine would hardly bear, and that may be a mistake."""
    here = processors()
    most = max(_ALWAYS, _FOR_EACH_PROCESSOR * here)
    if count > most:
        what = f"-n {count} starts {count} processes on {counted(here, 'processor')}, each with a JAX of its own"
        raise UsageError(
            f"{what} (some 300 MB)",
            f"Up to {most} start at once; --oversubscribe starts them all. Options of the program go after its name.",
        )


def launch_job(count: int, out: Path | None, *, force: bool, form: str) -> int:
    """Start the present command `count` times as the processes of a job, and say at the end how it went. Returns the
    exit code of the process that failed first, or 0.

    Raises UsageError or StorageError before anything starts.
    """
    from jaxprof.runner.job_launch import JobLaunch

    parameters = click.get_current_context().params
    folder = _folder(out) if out is not None else _free_folder(parameters["target"])
    _clear(folder, force=force)
    command = python_words(
        sys.executable, "-m", "jaxprof", "script", *map(str, words_given(_OURS)), "--out", str(folder)
    )
    command += [parameters["target"], *parameters["arguments"]]
    job = f"{socket.gethostname()}-{secrets.token_hex(4)}"
    with passing_signals() as pass_to:
        launch = JobLaunch(command, count, job, output=2 if form == "json" else None)
        pass_to(launch)
        code = launch.wait(lambda index, code: note(f"process {index} of {count} ended with exit code {code}"))
    _report(folder, form)
    return code


def _report(folder: Path, form: str) -> None:
    from jaxprof.cli.job_answers import print_job, read
    from jaxprof.errors import FileRefusedError
    from jaxprof.report.hosts import summary_lines

    try:
        job = read(folder)
    except FileRefusedError as error:
        note(f"{error.what}: nothing was recorded")
        return
    if form == "json":
        print_job(job, form)
        return
    for line in summary_lines(job):
        note(line)
    note(f"job: {Library().name_of(folder)}")


def _folder(out: Path) -> Path:
    """The folder that `--out` names. Raises UsageError for the name of a session."""
    if out.name.endswith(JOB_EXTENSION):
        return out
    if out.suffix == EXTENSION or out.is_file():
        raise UsageError(
            f"{out} is one file, and a job has a session for each process",
            f"Name a folder: --out {out.stem}{JOB_EXTENSION}",
        )
    return out.with_name(out.name + JOB_EXTENSION)


def _free_folder(target: str) -> Path:
    """`train.jaxprof.d` here, or with the next number: `train-2.jaxprof.d`."""
    stem = Path(target).stem or "program"
    path, number = Path(f"{stem}{JOB_EXTENSION}"), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}{JOB_EXTENSION}")
    return path


def _clear(folder: Path, *, force: bool) -> None:
    """Raises StorageError if there is a job already, unless it may be replaced."""
    there = _sessions(folder)
    if there and not force:
        raise StorageError(f"{folder} holds a job already", "Give another name, or --force to replace it.")
    _delete(folder)


def _delete(folder: Path, index: int | None = None) -> None:
    """Deletes what is in the folder of that process, or of all: of a job that was here before, its roll-ups would
    otherwise stand for processes that have no session yet."""
    for path in _sessions(folder, index):
        path.unlink(missing_ok=True)
    for path in (folder / FOLDER).glob(f"*/*{ENDING}"):
        number = process_number(f"{path.stem}{EXTENSION}")
        if index is None or number == index:
            path.unlink(missing_ok=True)


def _sessions(folder: Path, index: int | None = None) -> list[Path]:
    """The sessions in the folder: of that process, or of all."""
    with suppress(OSError):
        numbers = {path: process_number(path.name) for path in folder.iterdir()}
        return [path for path, number in numbers.items() if number is not None and index in (None, number)]
    return []
