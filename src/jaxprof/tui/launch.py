"""Starts the app in a real terminal, and restores the terminal however the app ends.

Textual hangs without a terminal, and leaves the terminal in disorder when a signal ends it. So this module checks the
streams first, and its signal handlers close the log, end the worker and restore the terminal.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from jaxprof.operating_system import can_run, signals
from jaxprof.text import safe

if TYPE_CHECKING:
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.tui.app import JaxprofApp
    from jaxprof.tui.live import Listener, Live, MadeForProgram, ProgramMaker

ENDING_SIGNALS = signals("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT")
PATIENCE_SECONDS = 3.0
"""Seconds that the app may take to end after a signal before the process exits without it."""
RESTORE = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[?25h"
    b"\x1b[?1049l\x1b[0m\r\n"
)
"""Sequences that turn off mouse, paste and focus reports and the keyboard protocol, show the cursor, and restore the
normal screen and colours."""


def launch(path: Path | None = None, *, interpreter: Interpreter | None = None, follow: bool = False) -> int:
    """Open the app, with the session at `path` if one is given; return the exit code of the process.

    `follow`: follow the session even if no writer is visible from here.
    """
    if _refused():
        return 2
    app = _make_app(path=path, interpreter=interpreter, follow=follow)
    _run(app)
    return app.return_code or 0


def launch_program(program: ProgramCommand, *, path: Path | None = None, interpreter: Interpreter | None = None) -> int:
    """Open the app and start a program in it; return the program's exit code.

    The session goes to `path`, or into the user's folder. Quitting while the program runs ends the program, and returns
    its exit code. If a signal ends the app, the exit code is 128 plus the number of the signal.
    """
    if _refused():
        return 2
    app = _make_app(program=program, interpreter=interpreter, session_path=path)
    _run(app)
    return app.return_code or _exit_code(app.live)


def _make_app(*, session_path: Path | None = None, **options: Any) -> JaxprofApp:
    """Create the app in colours that suit the terminal: the user's theme, otherwise one by the terminal's background,
    which the terminal reports while the app is imported. A program's session goes to `session_path`, or into the user's
    folder."""
    from jaxprof.config import read_config
    from jaxprof.tui.terminal_background import Background, Question

    config = read_config()
    question = Question() if config.theme in (None, "auto") else None
    answer = Background()
    try:
        from jaxprof.tui.app import JaxprofApp
        from jaxprof.tui.terminal_driver import driver_for_this_terminal
    finally:
        if question is not None:
            answer = question.answer()
    if session_path is not None:
        options["make_program"] = _once_at(session_path)
    driver = driver_for_this_terminal(answer.typed)
    return JaxprofApp(config=config, driver_class=driver, light=bool(answer.light), **options)


def _exit_code(live: Live) -> int:
    """Return the program's exit code, after waiting for a program that is just ending; 1 if it never started."""
    until = time.monotonic() + PATIENCE_SECONDS
    while live.started and live.exit_code is None and time.monotonic() < until:
        time.sleep(0.01)
    code = live.exit_code
    return code if code is not None else 1


def _once_at(path: Path) -> ProgramMaker:
    """Return a maker that writes the first session to `path`; a rerun of the program gets a session in the user's
    folder."""
    from jaxprof.tui.live import make_program_scheduler

    places = [path]

    def make(program: ProgramCommand, interpreter: Interpreter, listen: Listener) -> MadeForProgram:
        return make_program_scheduler(program, interpreter, listen, places.pop() if places else None)

    return make


def _refused() -> bool:
    """Report on stderr why the app cannot open here, if it cannot; return whether that is so."""
    problem = terminal_problem()
    if problem:
        sys.stderr.write(
            f"jaxprof: {safe(problem)}\n  jaxprof --help lists the commands that work without a terminal.\n"
        )
    return bool(problem)


def _run(app: JaxprofApp) -> None:
    """Run the app, then close the session and the children. An error of Textual's own code, which none of our handlers
    sees, is reported in one line, with its traceback in `errors.log`."""
    from rich.console import Console

    crash = io.StringIO()
    app.error_console = Console(file=crash, width=120, color_system=None)  # Textual prints here why it ended
    with _signals(app), drawing_on_stdout():
        try:
            app.run()
        finally:
            app.live.close()
            if app.live.file_change:
                sys.stderr.write(f"jaxprof: {safe(app.live.file_change)}\n")
            if crash.getvalue():
                sys.stderr.write(_crash_lines(crash.getvalue()))


def _crash_lines(text: str) -> str:
    """Return the message for a traceback that Textual printed."""
    from jaxprof.tui.kit.guard import log_defect

    shown = text.partition("\nNOTE: ")[0]  # Textual's note on the number of errors, of which it shows the first
    error = next((line for line in reversed(shown.splitlines()) if line.strip()), "")
    return f"jaxprof: the app ended: {safe(error.strip())}\n  {safe(log_defect(text))}\n"


def terminal_problem() -> str:
    """Return why the app cannot open here; empty if it can."""
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout)):
        if stream is None or not stream.isatty():
            return f"the app needs a terminal, but {name} is not one"
    # Windows has no TERM, and each of its consoles can move the cursor.
    if os.environ.get("TERM", "" if can_run() else "windows") in ("", "dumb"):
        return "the app needs a terminal that can move its cursor; TERM says that this one cannot"
    return ""


@contextmanager
def drawing_on_stdout() -> Iterator[None]:
    """Draw on stdout if stderr is not the terminal (`jaxprof 2>err.log`): Textual writes to `sys.__stderr__`."""
    stderr = sys.__stderr__
    if stderr is None or not stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]
    try:
        yield
    finally:
        sys.__stderr__ = stderr  # type: ignore[misc]


@contextmanager
def _signals(app: JaxprofApp) -> Iterator[None]:
    """While the app runs, let signals that end a process close the log and the children first."""
    attributes = _terminal_attributes()

    def end(number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        watchdog = threading.Timer(PATIENCE_SECONDS, _end_hard, (number, attributes))
        watchdog.daemon = True
        watchdog.start()
        closing = threading.Thread(target=_end_soft, args=(app, name, 128 + number), daemon=True)
        closing.start()

    before = {number: signal.signal(number, end) for number in ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_soft(app: JaxprofApp, name: str, code: int) -> None:
    """End the app in order. Runs in a thread, because syncing the log and ending a child may take a moment."""
    app.live.close(name)
    app.call_from_thread(app.exit, return_code=code)


def _end_hard(number: int, attributes: list[object] | None) -> None:
    """End an app that does not respond, or whose terminal is gone."""
    with suppress(OSError):
        os.write(1, RESTORE)
    if attributes is not None:
        import termios

        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, attributes)  # type: ignore[arg-type]
    os._exit(128 + number)


def _terminal_attributes() -> list[object] | None:
    try:
        import termios
    except ImportError:  # Windows: Textual itself restores the console
        return None
    try:
        return list(termios.tcgetattr(0))
    except termios.error:
        return None
