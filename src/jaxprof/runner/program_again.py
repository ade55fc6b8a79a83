"""How a recorded program is started once more, from its session's records alone; or why it cannot be.

A session can come from anywhere: its program is asked for first (`from_file`), and has to be that of the same machine,
unchanged.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import UsageError
from jaxprof.files import is_as_recorded
from jaxprof.private import FLAGS, HIDDEN, SETTINGS, kept_value
from jaxprof.redaction import REDACTED
from jaxprof.runner.from_file import (
    Ask,
    changed_variables,
    known_interpreter,
    program_words,
    recorded_on,
    with_variables,
)
from jaxprof.runner.program_launches import LaunchCommand

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramFinding, ProgramResult
    from jaxprof.events import SourceLocation
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.session import Run, Session

_FIXED_PROGRAM = Path(__file__).resolve().parent.parent / "recorder" / "fixed_program.py"
RECORD_AGAIN = "Record it again here, then jaxprof explain --try."


def command_again(
    session: Session, program: ProgramResult, folder: Path, ask: Ask, python: Interpreter | None = None
) -> LaunchCommand:
    """How the program of a session is started, once `ask` allowed it. `folder` takes its output while it runs;
    `python`: the interpreter that the user named. Raises UsageError where it is not the program of this machine as it
    was recorded."""
    of_this_machine(session)
    if program.how not in ("script", "module") or not program.argv:
        raise UsageError("the program recorded itself, so how to start it is not known", RECORD_AGAIN)
    if session.header.process_count != 1:
        raise UsageError("it is one process of several, which cannot be started alone", "Try it in a single process.")
    nothing_redacted(program.argv)
    if not program.ended or program.exit_code != 0:
        how = "has not ended" if not program.ended else f"ended with exit code {program.exit_code}"
        raise UsageError(f"the recorded program {how}", "Record a run that does not fail.")
    if not Path(program.directory or ".").is_dir():
        raise UsageError(f"its folder {program.directory} is not here", RECORD_AGAIN)
    words = program_words(program.how, program.argv, program.directory)
    if program.how == "script":
        unchanged(Path(program.directory, words[0]), session, program.run)
    argv = (known_interpreter(program.run.python, python).path, *words)
    environment = environment_again(program.run)
    variables = with_variables(changed_variables(environment))
    ask([f"{shlex.join(argv)}, in {program.directory}{variables}{recorded_on(session)}"])
    return LaunchCommand(
        argv=argv,
        environment=environment,
        directory=program.directory,
        expected_seconds=program.wall_seconds,
        folder=folder,
    )


def of_this_machine(session: Session) -> None:
    """Raises UsageError for a session that another machine wrote."""
    if session.header.host != socket.gethostname():
        where = f" ({session.header.host})" if session.header.host else ""
        raise UsageError(f"the session is from another machine{where}", RECORD_AGAIN)


def nothing_redacted(argv: Sequence[str]) -> None:
    """Raises UsageError for a command line of which a session did not keep each word."""
    if any(REDACTED in word for word in argv):
        raise UsageError(f"its command line holds what looks like a secret ({REDACTED})", "Give that by a variable.")


def unchanged(file: Path, session: Session, run: Run) -> None:
    """Raises UsageError for a file that is not here, or is not what it was when the run was recorded: its findings may
    be about other lines by now."""
    if not file.is_file():
        raise UsageError(f"{file} is not here", RECORD_AGAIN)
    if not is_as_recorded(str(file), run.sources, session.header.wall_seconds):
        raise UsageError(f"{file.name} was changed after the session was recorded", RECORD_AGAIN)


def with_functions(
    command: LaunchCommand, how: str, functions: Sequence[SourceLocation] = (), report: str = ""
) -> LaunchCommand:
    """The same, started by what changes these functions in memory; `how` empty: by the same, with nothing changed."""
    plan = {"how": how, "functions": [[at.file, _name(at), at.line] for at in functions], "report": report}
    python, *words = command.argv
    return replace(command, argv=(python, str(_FIXED_PROGRAM), json.dumps(plan), *words))


def functions_to_jit(session: Session, program: ProgramResult, finding: ProgramFinding) -> list[SourceLocation]:
    """The functions that hold the operations of a finding, without the one that the loop stands in. Raises UsageError
    where there is none, or where they are not what was recorded."""
    key = program.hot.key
    in_loop = key[:2] if key is not None else None
    places = [at for at in (finding.where, *finding.others) if at is not None and (at.file, at.function) != in_loop]
    places = [at for at in places if _name(at).isidentifier()]
    if not places:
        raise UsageError(
            "the operations stand in the loop itself, not in a function of their own",
            "Put them into one, and record the program again.",
        )
    return _checked(session, program, places)


def compiled_functions(session: Session, program: ProgramResult, function: str) -> list[SourceLocation]:
    """Where the compiled function of a finding is defined. Raises UsageError where that is not known."""
    defined = [each.defined_at for each in program.functions if each.function == function]
    places = [replace(at, function=function) for at in defined if at is not None and at.line is not None]
    if not places or not function.isidentifier():
        raise UsageError(f"where {function} is defined is not known", "Make the change where it is called.")
    return _checked(session, program, places)


def _checked(session: Session, program: ProgramResult, places: Sequence[SourceLocation]) -> list[SourceLocation]:
    if program.how != "script":
        raise UsageError("the program is started as a module (-m), whose source cannot be changed in memory", "")
    for at in places:
        unchanged(Path(at.file), session, program.run)
    return list(places)


def _name(at: SourceLocation) -> str:
    """The function's own name: `step` of `Model.step`."""
    return (at.function or "").rpartition(".")[2]


def environment_again(run: Run) -> dict[str, str]:
    """Our environment with the settings that the program had. What a session does not keep (paths, what is no setting)
    stays as it is now. Raises UsageError for such a variable that is not set now."""
    recorded: Mapping[str, object] = run.environment.settings if run.environment is not None else {}
    variables = dict(os.environ)
    for name, value in recorded.items():
        if name.isupper() and HIDDEN in str(value) and name not in variables:
            raise UsageError(
                f"{name} was set when it was recorded, to a value that is not kept, and is not set here",
                f"export {name}=... as it was.",
            )
    for name in (*SETTINGS, *FLAGS) if recorded else ():
        value = recorded.get(name)
        if value is None:
            variables.pop(name, None)
        elif HIDDEN not in str(value) and kept_value(name, str(value)) == value:
            variables[name] = str(value)
    return variables
