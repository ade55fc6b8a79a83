"""Starts a user's program: the dialog that asks for its command line, and a rerun.

It is parsed as the user types; an error stands beneath it, and the program does not start until it is corrected.
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
    """Return the program of a command line, as after `python`: `train.py --epochs 1`, `-m package.module`, which runs
    in the `directory` where it was recorded, if that is here. Raises UsageError."""
    place = _place(directory)
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


def _place(directory: str) -> Path:
    """Return where a program runs: in its directory if there is one, otherwise where jaxprof was started."""
    return (Path(directory) if directory and Path(directory).is_dir() else Path.cwd()).resolve()


def recorded_command(argv: Sequence[str], directory: str, options: Mapping[str, Any]) -> ProgramCommand:
    """Return the command of a recorded program, with those of its options that are recorded again."""
    again = ((name, options.get(name), kind) for name, kind in _RECORDED.items())
    recorded: dict[str, Any] = {name: value for name, value, kind in again if value and isinstance(value, kind)}
    module = argv[:1] == ["-m"] and len(argv) > 1
    path, *arguments = argv[module:] or [""]
    return ProgramCommand(
        path=path, module=module, arguments=tuple(arguments), directory=directory, options=RecordingOptions(**recorded)
    )


def script_dialog(program: ProgramCommand | None = None, question: str = "") -> FormDialog:
    """Return the dialog for the command line of a program."""
    given = program or ProgramCommand(path="")
    field = FormField(
        "command", shlex.join(given.argv) if given.path else "",
        "a file or -m package.module, and arguments as in a shell",
        lambda text: [read_command(text, given.directory)], "train.py --epochs 1",
    )  # fmt: skip
    options = [f"{name.replace('_', ' ')} {value}" for name in _RECORDED if (value := getattr(given.options, name))]
    place = f"It runs in {_place(given.directory)}." if given.directory else ""
    words = (question, place, f"It is recorded with {', '.join(options)}." if options else "")
    return FormDialog("Profile a script", {"command": field}, "Run", "runs it", question=" ".join(filter(None, words)))


def ask_for_program(app: Profiler, program: ProgramCommand | None = None, question: str = "") -> None:
    """Ask for a program, by default any, and start it."""
    given = program or ProgramCommand(path="")

    def start(texts: Texts) -> None:
        app.start_program(replace(read_command(texts["command"], given.directory), options=given.options))

    script_dialog(program, question).ask(app, start)


RERUN_CAPTURE_STEPS = 5
"""Steps of the capture window that a rerun proposes."""


def rerun_program(app: Profiler, run: Run, *, capture: bool = False) -> None:
    """Start the program of `run` again; `capture`: with a capture window, if the program had none.

    A program that this app itself started runs at once. One that a session file names, or that gets a capture, is shown
    first: a file from elsewhere must not make anybody run code unseen. Raises UsageError for one that was fetched.
    """
    live = app.live
    ours = live.program is not None and live.session is not None and live.session.runs.get(run.id) is run
    if ours and not capture and live.program is not None:
        app.start_program(live.program)
        return
    from jaxprof.runner.rerun import recorded_elsewhere, refuse_fetched

    started = run.program.started if run.program is not None else None
    if app.session_path is not None and not ours:
        refuse_fetched(app.session_path, started.directory if started is not None else "")
    program = ProgramCommand(path="")
    if started is not None:
        program = recorded_command(started.argv, started.directory, started.options)
    question = f"This comes from the session file{recorded_elsewhere(app.session)}. Check it before you run it."
    if ours or started is None:
        question = "The program runs again, with a capture." if capture else ""
    if capture and not program.options.wants_window:
        program = replace(program, options=replace(program.options, capture_steps=RERUN_CAPTURE_STEPS))
    ask_for_program(app, program, question)
