"""Starts a user's program: the dialog that asks for its command line, and a rerun.

It is parsed as the user types; an error stands beneath it, and the program does not start until it is corrected.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.runner.program import RECORDED_AGAIN, ProgramCommand, read_command, working_directory
from jaxprof.tui.kit.dialogs import FormDialog, FormField, Texts

if TYPE_CHECKING:
    from jaxprof.session import Run
    from jaxprof.tui.kit.host import Host


def script_dialog(program: ProgramCommand | None = None, question: str = "") -> FormDialog:
    given = program or ProgramCommand(path="")
    field = FormField(
        "command", shlex.join(given.argv) if given.path else "",
        "a file or -m package.module, and arguments as in a shell",
        lambda text: [read_command(text, given.directory)], "train.py --epochs 1",
    )  # fmt: skip
    options = [
        f"{name.replace('_', ' ')} {value}" for name in RECORDED_AGAIN if (value := getattr(given.options, name))
    ]
    directory = f"It runs in {working_directory(given.directory)}." if given.directory else ""
    words = (question, directory, f"It is recorded with {', '.join(options)}." if options else "")
    return FormDialog("Profile a script", {"command": field}, "Run", "runs it", question=" ".join(filter(None, words)))


def ask_for_program(app: Host, program: ProgramCommand | None = None, question: str = "") -> None:
    given = program or ProgramCommand(path="")

    def start(texts: Texts) -> None:
        app.start_program(replace(read_command(texts["command"], given.directory), options=given.options))

    script_dialog(program, question).ask(app, start)


RERUN_CAPTURE_STEPS = 5
"""Steps of the capture window that a rerun proposes."""


def rerun_program(app: Host, run: Run, *, capture: bool = False) -> None:
    """Start the program of `run` again; `capture`: with a capture window, if the program had none. A program that this
    app itself started runs at once. One that a session file names, or that gets a capture, is shown first: a file from
    elsewhere must not make anybody run code unseen. Raises UsageError for one that was fetched."""
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
        program = ProgramCommand.of(started.argv, started.directory, started.options)
    question = f"This comes from the session file{recorded_elsewhere(app.session)}. Check it before you run it."
    if ours or started is None:
        question = "The program runs again, with a capture." if capture else ""
    if capture and not program.options.wants_window:
        program = replace(program, options=replace(program.options, capture_steps=RERUN_CAPTURE_STEPS))
    ask_for_program(app, program, question)
