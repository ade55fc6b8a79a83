"""Read a recorded profile as a session, in the engine's process, as runs are measured."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from jaxprof.cli.options import profile_part
from jaxprof.cli.output import written_whole
from jaxprof.cli.run_headless import HeadlessRuns, Progress
from jaxprof.errors import FileRefusedError, StorageError
from jaxprof.files import private_folder
from jaxprof.reaper import TemporaryFolder
from jaxprof.runner.interpreter import own_interpreter
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.profiles import plan_profile, session_name
from jaxprof.session import Session
from jaxprof.session.log import LogWriter, new_header


@contextmanager
def imported(path: Path, views: tuple[str, ...] = ()) -> Iterator[tuple[Path, Session]]:
    """Yield the profile as a session in a temporary file; with `views`, only what those views need.

    Raises FileRefusedError if the profile cannot be read. Ends the command on an interrupt.
    """
    with TemporaryFolder("profile") as folder:
        target = folder / session_name(path)
        yield target, import_to(path, target, views)


def import_to(path: Path, target: Path, views: tuple[str, ...] = (), *, replace: bool = False) -> Session:
    """Read the profile at `path`, or the part of it that the command chooses, into a session file at `target`, and
    return the session. On failure, no file is left.

    Raises UsageError, FileRefusedError or StorageError. Ends the command on an interrupt.
    """
    planned = plan_profile(path, *profile_part(), views)
    private_folder(target.parent)
    with written_whole(target, force=replace) as partial:
        return _read(planned, LogWriter(new_header({}), partial, replace_existing=True), path)


def _read(planned: PlannedRun, writer: LogWriter, path: Path) -> Session:
    headless_runs = HeadlessRuns(writer, own_interpreter(), Progress(sys.stderr), reports_storage=False)
    headless_runs.work([planned])
    if headless_runs.exit_code is not None:
        raise click.exceptions.Exit(headless_runs.exit_code)
    if writer.failure is not None:
        raise StorageError(writer.failure.what, "Free some space, or name another place with -o FILE.")
    session = headless_runs.scheduler.session
    run = next(iter(session.runs.values()))
    if run.status != "ok":
        raise FileRefusedError(run.error or f"{path} could not be read", run.advice)
    return session
