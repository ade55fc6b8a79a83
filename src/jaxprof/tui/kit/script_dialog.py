"""Starts a user's program: the dialog that asks for its command line, and a rerun.

Both fields are parsed as the user types; an error stands beneath its field, and the program does not start until it is
corrected.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.engine.protocol.recording import RecordingOptions
from jaxprof.errors import UsageError
from jaxprof.files import with_home
from jaxprof.runner.program import ProgramCommand
from jaxprof.tui.kit.dialogs import FormDialog, FormField, Texts

if TYPE_CHECKING:
    from jaxprof.session import Run
    from jaxprof.tui.profiler import Profiler


_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")
_RECORDED: Mapping[str, type | tuple[type, ...]] = {
    "capture_steps": int,
    "capture_seconds": (int, float),
    "capture_after_seconds": (int, float),
    "function": str,
}
"""Options of a recording that a rerun has again, with their types."""


def read_command(text: str, directory: str) -> ProgramCommand:
    """Return the program of a command line, as after `python`: `train.py --epochs 1`, `-m package.module`; `directory`
    is where it runs, if not where jaxprof was started. Raises UsageError."""
    place = read_directory(directory)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command cannot be split: {error}", "Close every quote, as in a shell.") from None
    if not words:
        raise UsageError("no program is given", "Give train.py, or -m package.module.")
    if words[0] == "-m":
        name, arguments = " ".join(words[1:2]), words[2:]
        if not _MODULE.match(name):
            raise UsageError(f"{name!r} is not a module name", "Give -m package.module.")
        return ProgramCommand(path=name, module=True, arguments=tuple(arguments), directory=str(place))
    path = place / with_home(words[0])
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise UsageError(f"{path} is a directory", "Give a file in it, or -m package.module.")
    if not path.exists():
        raise UsageError(
            f"there is no file {path}", "A relative path starts at the directory that the program runs in."
        )
    given = words[0] if not words[0].startswith("~") else str(path)
    return ProgramCommand(path=given, arguments=tuple(words[1:]), directory=str(place))


def read_directory(text: str) -> Path:
    """Return the working directory of the program. Raises UsageError."""
    path = with_home(text) if text else Path.cwd()
    if not path.is_dir():
        raise UsageError(f"{path} is not a directory", "Leave it empty to run it where jaxprof was started.")
    return path.resolve()


def recorded_command(argv: Sequence[str], directory: str, options: Mapping[str, Any]) -> ProgramCommand:
    """Return the command of a recorded program, with those of its options that are recorded again."""
    again = ((name, options.get(name), kind) for name, kind in _RECORDED.items())
    recorded: dict[str, Any] = {name: value for name, value, kind in again if value and isinstance(value, kind)}
    module = argv[:1] == ["-m"] and len(argv) > 1
    path, *arguments = argv[module:] or [""]
    return ProgramCommand(
        path=path, module=module, arguments=tuple(arguments), directory=directory, options=RecordingOptions(**recorded)
    )


def _read_here(text: str, texts: Texts) -> None:
    """Check a command by the directory beside it, which may be wrong itself."""
    try:
        read_directory(texts.get("directory", ""))
    except UsageError:
        read_command(text, "")
    else:
        read_command(text, texts.get("directory", ""))


def script_dialog(program: ProgramCommand | None = None, question: str = "") -> FormDialog:
    """Return the dialog for a program: its command line and its directory."""
    given = program or ProgramCommand(path="")
    fields = {
        "command": FormField(
            "command", shlex.join(given.argv) if given.path else "",
            "a file or -m package.module, and arguments as in a shell", _read_here, "train.py --epochs 1", patient=True,
        ),
        "directory": FormField(
            "directory", given.directory, "where it runs; empty: where jaxprof was started",
            lambda text, _: [read_directory(text)],
        ),
    }  # fmt: skip
    options = [f"{name.replace('_', ' ')} {value}" for name in _RECORDED if (value := getattr(given.options, name))]
    words = " ".join(filter(None, (question, f"It is recorded with {', '.join(options)}." if options else "")))
    return FormDialog("Profile a script", fields, "Run", "runs it", question=words)


def ask_for_program(app: Profiler, program: ProgramCommand | None = None, question: str = "") -> None:
    """Ask for a program, by default any, and start it."""

    def start(texts: Texts) -> None:
        options = program.options if program is not None else RecordingOptions()
        app.start_program(replace(read_command(texts["command"], texts["directory"]), options=options))

    script_dialog(program, question).ask(app, start)


RERUN_CAPTURE_STEPS = 5
"""Steps of the capture window that a rerun proposes."""


def rerun_program(app: Profiler, run: Run, *, capture: bool = False) -> None:
    """Start the program of `run` again; `capture`: with a capture window, if the program had none.

    A program that this app itself started runs at once. One that a session file names, or that gets a capture, is shown
    first: a file from elsewhere must not make anybody run code unseen.
    """
    live = app.live
    ours = live.program is not None and live.session is not None and live.session.runs.get(run.id) is run
    if ours and not capture and live.program is not None:
        app.start_program(live.program)
        return
    from jaxprof.runner.rerun import recorded_elsewhere, refuse_fetched

    started = run.program.started if run.program is not None else None
    if app.session_path is not None and not ours:
        try:
            refuse_fetched(app.session_path, started.directory if started is not None else "")
        except UsageError as error:
            app.tell(error)
            return
    program = ProgramCommand(path="")
    if started is not None:
        program = recorded_command(started.argv, started.directory, started.options)
    question = f"This comes from the session file{recorded_elsewhere(app.session)}. Check it before you run it."
    if ours or started is None:
        question = "The program runs again, with a capture." if capture else ""
    if capture and not program.options.wants_window:
        program = replace(program, options=replace(program.options, capture_steps=RERUN_CAPTURE_STEPS))
    ask_for_program(app, program, question)
