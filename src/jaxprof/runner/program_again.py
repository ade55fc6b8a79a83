"""How a recorded program is started once more, from its session's records alone; or why it cannot be.

A session can come from anywhere, so nothing of it is started that is not the program of the same machine, unchanged.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import UsageError
from jaxprof.private import FLAGS, HIDDEN, REDACTED, SETTINGS, kept_value
from jaxprof.runner.program_launches import LaunchCommand

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.session import Run, Session

RECORD_AGAIN = "Record it again here, then jaxprof explain --try."


def command_again(session: Session, program: ProgramResult, folder: Path) -> LaunchCommand:
    """How the program of a session is started. `folder` takes its output while it runs. Raises UsageError where it is
    not the program of this machine as it was recorded."""
    if session.header.host != socket.gethostname():
        where = f" ({session.header.host})" if session.header.host else ""
        raise UsageError(f"the session is from another machine{where}", RECORD_AGAIN)
    if program.how not in ("script", "module") or not program.argv:
        raise UsageError("the program recorded itself, so how to start it is not known", RECORD_AGAIN)
    if session.header.process_count > 1:
        raise UsageError("it is one process of several, which cannot be started alone", "Try it in a single process.")
    if any(REDACTED in word for word in program.argv):
        raise UsageError(f"its command line holds what looks like a secret ({REDACTED})", "Give that by a variable.")
    if not program.ended or program.exit_code != 0:
        how = "has not ended" if not program.ended else f"ended with exit code {program.exit_code}"
        raise UsageError(f"the recorded program {how}", "Record a run that ends well.")
    if not Path(program.directory or ".").is_dir():
        raise UsageError(f"its folder {program.directory} is not here", RECORD_AGAIN)
    if program.how == "script":
        unchanged(Path(program.directory) / program.argv[0], session)
    if not Path(program.run.python).is_file():
        raise UsageError(f"its interpreter {program.run.python or 'is unknown and'} is not here", RECORD_AGAIN)
    return LaunchCommand(
        argv=(program.run.python, *program.argv),
        directory=program.directory,
        expected_seconds=program.wall_seconds,
        folder=folder,
    )


def unchanged(file: Path, session: Session) -> None:
    """Raises UsageError for a file that is not here, or was changed after the session was recorded: its findings may
    be about other lines by now."""
    try:
        changed = file.stat().st_mtime > session.header.wall_seconds
    except OSError:
        raise UsageError(f"{file} is not here", RECORD_AGAIN) from None
    if changed:
        raise UsageError(f"{file.name} was changed after the session was recorded", RECORD_AGAIN)


def environment_again(run: Run) -> dict[str, str]:
    """Our environment with the settings that the program had. What a session does not keep (paths, what is no setting)
    stays as it is now."""
    recorded: Mapping[str, object] = run.environment.settings if run.environment is not None else {}
    variables = dict(os.environ)
    for name in (*SETTINGS, *FLAGS) if recorded else ():
        value = recorded.get(name)
        if value is None:
            variables.pop(name, None)
        elif HIDDEN not in str(value) and kept_value(name, str(value)) == value:
            variables[name] = str(value)
    return variables
