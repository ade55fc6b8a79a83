"""`jaxprof open FILE`, and `jaxprof` alone: the terminal app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.profiles import profile_at, profile_options

if TYPE_CHECKING:
    from jaxprof.worker import Interpreter


@click.command("open")
@click.argument("file", metavar="FILE", shell_complete=complete_session)
@click.option("--python", metavar="PATH", help="The interpreter, or environment, whose jax the app measures.")
@click.option(
    "--follow", is_flag=True, help="Follow a session that something else still writes, from another host too."
)
@profile_options
def command(file: str, python: str | None, follow: bool, profile_run: str, hosts: tuple[str, ...]) -> int:
    """Open FILE in the terminal app: a session's path or name, part of it, or `last`.

    A session that a process of this machine writes now is followed anyway; --follow does so where no writer can be
    seen, as in a folder that another host writes to.

    Or a profile that was recorded elsewhere: an .xplane.pb (or .gz), a .trace.json.gz, the folder that jax.profiler
    wrote to. `jaxprof import` keeps one as a session. Or HLO: text, a proto, the folder of an XLA dump.
    """
    from jaxprof.session import Session
    from jaxprof.store import Follower, Library
    from jaxprof.tui.programs.program import holds_hlo

    if holds_hlo(Path(file).expanduser()):
        return launch_app(Path(file).expanduser(), python)
    profile = profile_at(file)
    if profile is not None:
        from jaxprof.cli.profiles import imported

        _refuse_without_terminal()
        with imported(profile, profile_run, hosts) as (session_path, _):
            return launch_app(session_path, python)
    path = Library().find(file)
    Follower(path, Session).finish()  # reads the header: what is no session is refused here, before the screen changes
    return launch_app(path, python, follow=follow)


def launch_app(path: Path | None, python: str | None, *, follow: bool = False) -> int:
    """Starts the app, with the session at `path` opened; gives its exit code. Raises UsageError without a terminal."""
    from jaxprof.tui.launch import launch

    _refuse_without_terminal()
    return launch(path, interpreter=_interpreter(python), follow=follow)


def _refuse_without_terminal() -> None:
    from jaxprof.errors import UsageError
    from jaxprof.tui.launch import terminal_problem

    problem = terminal_problem()
    if problem:
        instead = "jaxprof run NAME measures without the app, and jaxprof show FILE prints a session."
        raise UsageError(problem, instead)


def _interpreter(python: str | None) -> Interpreter | None:
    """None leaves the choice to the app, which makes it after its first frame."""
    if python is None:
        return None
    from jaxprof.worker import find_interpreter

    return find_interpreter(Path(python))
