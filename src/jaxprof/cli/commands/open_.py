"""`jaxprof open FILE`, and `jaxprof` alone: the terminal app."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.complete import complete_session

if TYPE_CHECKING:
    from jaxprof.worker import Interpreter


@click.command("open")
@click.argument("file", metavar="FILE", shell_complete=complete_session)
@click.option("--python", metavar="PATH", help="The interpreter, or environment, whose jax the app measures.")
def command(file: str, python: str | None) -> int:
    """Open FILE in the terminal app: a session's path or name, part of it, or `last`."""
    from jaxprof.store import Library

    return launch_app(Library().find(file), python)


def launch_app(path: Path | None, python: str | None) -> int:
    """Starts the app, with the session at `path` opened; gives its exit code. Raises UsageError without a terminal."""
    _want_terminal()
    from jaxprof.tui.launch import launch

    return launch(path, interpreter=_interpreter(python))


def _interpreter(python: str | None) -> Interpreter | None:
    """None leaves the choice to the app, which makes it after its first frame."""
    if python is None:
        return None
    from jaxprof.worker import find_interpreter

    return find_interpreter(Path(python))


def _want_terminal() -> None:
    from jaxprof.errors import UsageError

    instead = "jaxprof run NAME measures without the app, and jaxprof show FILE prints a session."
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr)):
        if stream is None or not stream.isatty():
            raise UsageError(f"the app needs a terminal, and {name} is none", instead)
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise UsageError(
            "the app needs a terminal that can place its cursor, and TERM says that this one cannot", instead
        )
