"""`jaxprof open FILE`, and `jaxprof` alone: the terminal app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.options import profile_options, python_option, refuse
from jaxprof.cli.target import follow_fetched, job_named, local_source, recorded, refuse_of_profile
from jaxprof.files import with_home

if TYPE_CHECKING:
    from jaxprof.runner import Interpreter


@click.command("open")
@click.argument("file", metavar="FILE", callback=local_source, shell_complete=complete_session)
@python_option(help="The interpreter or environment whose jax the app measures.")
@click.option(
    "--follow", is_flag=True, help="Follow a session that another process, or another host, is still writing."
)
@profile_options
def command(file: str, python: Path | None, follow: bool, profile_run: str, hosts: tuple[str, ...]) -> int:
    """Open FILE in the terminal app: a session's path or name, part of it, the folder of a job (run.jaxprof.d), or
    `last`, the newest of them.

    A session that a process on this machine is writing is followed anyway. --follow is for a writer that cannot be
    seen, such as another host writing to a shared folder.

    FILE can also be a profile that was recorded elsewhere: an .xplane.pb (or .gz), a .trace.json.gz, the folder that
    jax.profiler wrote to. `jaxprof import` keeps one as a session. It can also be HLO: text, a proto, the folder of an
    XLA dump.
    """
    from jaxprof.analysis.opener import Kind, kind_of
    from jaxprof.session import Session
    from jaxprof.session.log import Follower

    folder = job_named(file)
    if folder is not None:
        from jaxprof.session.log.job_folder import check_job

        refuse_of_profile(file)
        check_job(folder)  # before the screen changes
        return launch_app(folder, python)
    kind = kind_of(with_home(file))
    if kind in (Kind.HLO, Kind.PROFILE):
        refuse(
            ("follow",),
            f"applies to a session that is being written, and {file} is not one",
            "Open it without --follow.",
        )
    if kind is Kind.HLO:
        refuse_of_profile(file)
        return launch_app(with_home(file), python)
    if kind is Kind.PROFILE:
        _refuse_without_terminal()
    with recorded(file, profile_run, hosts) as found:
        if found.imported is None:
            # Reads the header: what is no session is refused before the screen changes.
            Follower(found.path, Session).finish()
        return launch_app(found.path, python, follow=follow)


def launch_app(path: Path | None, python: Path | None, *, follow: bool = False) -> int:
    """Start the app with the session at `path`, and return its exit code. Raises UsageError without a terminal."""
    from jaxprof.tui.launch import launch

    _refuse_without_terminal()
    follow_fetched()
    return launch(path, interpreter=_interpreter(python), follow=follow)


def _refuse_without_terminal() -> None:
    from jaxprof.errors import UsageError
    from jaxprof.tui.launch import terminal_problem

    problem = terminal_problem()
    if problem:
        instead = "jaxprof run NAME measures without the app, and jaxprof show FILE prints a session."
        raise UsageError(problem, instead)


def _interpreter(python: Path | None) -> Interpreter | None:
    """None leaves the choice to the app, which chooses after its first frame."""
    if python is None:
        return None
    from jaxprof.runner import find_interpreter

    return find_interpreter(python)
