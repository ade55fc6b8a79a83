"""Starting a program: one that is asked for, one that was run here before, or one that an opened session names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.tui.script_form import Form, form_of_argv, read_form

if TYPE_CHECKING:
    from jaxprof.session import Run
    from jaxprof.tui.app import JaxprofApp


def ask_for_program(app: JaxprofApp, form: Form | None = None, question: str = "") -> None:
    """Asks for a program, and starts it."""
    from jaxprof.tui.dialogs.script import ScriptDialog

    def answered(filled: Form | None) -> None:
        if filled is not None:
            app.start_program(read_form(filled))

    app.push_screen(ScriptDialog(form, question=question), answered)


def run_again(app: JaxprofApp, run: Run) -> None:
    """Starts the program of `run` once more.

    What this app started itself is started at once. What a session file names is shown first: a file that came from
    elsewhere must not make anybody run something that was not looked at.
    """
    live = app.live
    if live.program is not None and live.session is not None and live.session.runs.get(run.id) is run:
        app.start_program(live.program)
        return
    started = run.program.started if run.program is not None else None
    if started is None:
        ask_for_program(app)
        return
    form = form_of_argv(tuple(started.argv), started.directory, started.options)
    ask_for_program(app, form, "As the session has it. Look at it before you run it.")
