"""Starts a user's program: its fields as text and as a command, the dialog that asks for them, and a rerun.

Every field is parsed as the user types; an error stands beneath its field, and the program does not start until it is
corrected.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.errors import UsageError
from jaxprof.files import with_home
from jaxprof.tui.kit.dialogs import FormDialog, FormField, Texts

if TYPE_CHECKING:
    from jaxprof.runner.program import ProgramCommand
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


@dataclass(frozen=True, slots=True)
class ScriptForm:
    """The fields of the dialog, as text, and what the recording has besides."""

    program: str = ""
    """Program to run: `train.py`, or `-m package.module`."""
    arguments: str = ""
    """Arguments of the program, written as in a shell."""
    directory: str = ""
    """Working directory of the program; empty for the directory that jaxprof was started in."""
    options: tuple[tuple[str, Any], ...] = ()
    """Options of the recording (see `RecordingOptions`) and their values."""


def read_program(text: str, directory: Path) -> tuple[str, bool]:
    """Return the path or module name, and whether it is a module. Raises UsageError."""
    text = text.strip()
    if not text:
        raise UsageError("no program is given", "Give train.py, or -m package.module.")
    if text.startswith("-m"):
        name = text[2:].strip()
        if not _MODULE.match(name):
            raise UsageError(f"{name!r} is not a module name", "Give -m package.module.")
        return name, True
    path = directory / with_home(text)
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise UsageError(f"{path} is a directory", "Give a file in it, or -m package.module.")
    if not path.exists():
        raise UsageError(
            f"there is no file {path}", "A relative path starts at the directory that the program runs in."
        )
    return text if not text.startswith("~") else str(path), False


def read_arguments(text: str) -> tuple[str, ...]:
    """Return the arguments, split as a shell does. Raises UsageError."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"the arguments cannot be split: {error}", "Close every quote, as in a shell.") from None


def read_directory(text: str) -> Path:
    """Return the working directory of the program. Raises UsageError."""
    path = with_home(text.strip()) if text.strip() else Path.cwd()
    if not path.is_dir():
        raise UsageError(f"{path} is not a directory", "Leave it empty to run it where jaxprof was started.")
    return path.resolve()


def read_form(form: ScriptForm) -> ProgramCommand:
    """Return the command that the form describes. Raises UsageError."""
    from jaxprof.engine.protocol.recording import RecordingOptions
    from jaxprof.runner.program import ProgramCommand

    directory = read_directory(form.directory)
    path, module = read_program(form.program, directory)
    options, arguments = RecordingOptions(**dict(form.options)), read_arguments(form.arguments)
    return ProgramCommand(path=path, module=module, arguments=arguments, directory=str(directory), options=options)


def form_of_argv(argv: tuple[str, ...], directory: str, options: Mapping[str, Any]) -> ScriptForm:
    """Return the form that describes a recorded program."""
    if not argv:
        return ScriptForm()
    module = argv[0] == "-m" and len(argv) > 1
    program, rest = (f"-m {argv[1]}", argv[2:]) if module else (argv[0], argv[1:])
    again = ((name, options.get(name), kind) for name, kind in _RECORDED.items())
    recorded = tuple((name, value) for name, value, kind in again if value and isinstance(value, kind))
    return ScriptForm(program, shlex.join(rest), directory, recorded)


def _read_here(program: str, texts: Texts) -> None:
    """Check a program by the directory beside it, which may be wrong itself."""
    try:
        directory = read_directory(texts.get("directory", ""))
    except UsageError:
        directory = Path.cwd()
    read_program(program, directory)


def script_dialog(form: ScriptForm | None = None, question: str = "") -> FormDialog:
    """Return the dialog for a program: a file or a module, its arguments, its directory."""
    texts = form or ScriptForm()
    fields = {
        "program": FormField(
            "program", texts.program, "a file, or -m package.module", _read_here, "a program, such as train.py",
            patient=True,
        ),
        "arguments": FormField(
            "arguments", texts.arguments, "as in a shell: quotes keep spaces", lambda text, _: read_arguments(text),
            "arguments, such as --epochs 1",
        ),
        "directory": FormField(
            "directory", texts.directory, "where it runs; empty: where jaxprof was started",
            lambda text, _: [read_directory(text)],
        ),
    }  # fmt: skip
    recorded = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in texts.options)
    words = " ".join(filter(None, (question, f"It is recorded with {recorded}." if recorded else "")))
    return FormDialog("Profile a script", fields, "Run", "runs it", question=words)


def ask_for_program(app: Profiler, form: ScriptForm | None = None, question: str = "") -> None:
    """Ask for a program and start it."""
    given = form or ScriptForm()

    def start(texts: Texts) -> None:
        app.start_program(read_form(ScriptForm(**texts, options=given.options)))

    script_dialog(given, question).ask(app, start)


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
    form = ScriptForm()
    if started is not None:
        form = form_of_argv(tuple(started.argv), started.directory, started.options)
    question = f"This comes from the session file{recorded_elsewhere(app.session)}. Check it before you run it."
    if ours or started is None:
        question = "The program runs again, with a capture." if capture else ""
    if capture and not any(name.startswith("capture") for name, _ in form.options):
        form = replace(form, options=(("capture_steps", RERUN_CAPTURE_STEPS), *form.options))
    ask_for_program(app, form, question)
