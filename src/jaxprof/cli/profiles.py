"""Reading somebody's profile for a command: in the engine's process, with progress and ctrl+c as for a run."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jaxprof.cli.exit_codes import SIGNAL_BASE, ExitCode

if TYPE_CHECKING:
    from jaxprof.session import Session

Command = TypeVar("Command", bound=Callable[..., Any])


def profile_options(command: Command) -> Command:
    """`--profile-run` and `--host`: what to open of a folder with several recordings or hosts."""
    command = click.option(
        "--host", "hosts", multiple=True, metavar="NAME", help="Of a profile, just this host. May be repeated."
    )(command)
    return click.option(
        "--profile-run", default="", metavar="NAME", help="Of a log folder, this recording; the newest by default."
    )(command)


def profile_at(file: str) -> Path | None:
    """The path, where `file` is a profile and no session."""
    from jaxprof.worker.opening import is_profile

    path = Path(file).expanduser()
    return path if path.exists() and is_profile(path) else None


@contextmanager
def imported(path: Path, profile_run: str = "", hosts: tuple[str, ...] = ()) -> Iterator[tuple[Path, Session]]:
    """The profile as a session in a file that is gone afterwards. Raises FileRefusedError where it cannot be read.

    Ends the command where it was interrupted.
    """
    with tempfile.TemporaryDirectory(prefix="jaxprof-") as folder:
        target = Path(folder) / _session_name(path)
        yield target, import_to(path, target, profile_run, hosts)


def _session_name(path: Path) -> str:
    from jaxprof.store.codec import EXTENSION

    return (path.name.split(".")[0] or "profile") + EXTENSION


def import_to(
    path: Path, target: Path, profile_run: str = "", hosts: tuple[str, ...] = (), *, replace: bool = False
) -> Session:
    """Reads the profile at `path` into a session at `target`; gives the session.

    Raises UsageError, FileRefusedError, StorageError; ends the command where it was interrupted.
    """
    from jaxprof.cli.conduct import Conducting
    from jaxprof.cli.progress import Progress
    from jaxprof.errors import FileRefusedError
    from jaxprof.store import LogWriter, new_header
    from jaxprof.worker import own_interpreter, plan_profile

    planned = plan_profile(path, profile_run, hosts)
    writer = LogWriter(new_header({}), target, replace_existing=replace)
    conducting = Conducting(writer, own_interpreter(), Progress(sys.stderr))
    conducting.work([planned])
    stopped = conducting.stopped_by
    if stopped is not None:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED if stopped.name == "SIGINT" else SIGNAL_BASE + stopped)
    if writer.failure is not None:
        raise writer.failure
    session = conducting.conductor.session
    whole = next(iter(session.runs.values()))
    if whole.status != "ok":
        raise FileRefusedError(whole.error or f"{path} could not be read", whole.advice)
    return session
