"""Starts the app in a real terminal, and restores the terminal however the app ends.

Textual hangs without a terminal, which its caller has to make sure of, and leaves the terminal in disorder when a
signal ends it: the signal handlers here close the log, end the worker and restore the terminal.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from jaxprof.base.operating_system import signals
from jaxprof.base.text import safe
from jaxprof.tui import clock

if TYPE_CHECKING:
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.tui.shell.live import Listener, Made
    from jaxprof.tui.shell.profiler import Profiler

ENDING_SIGNALS = signals("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT")
_OBJECTS = 200_000
"""Number of new objects from which Python looks for garbage, until the first frame: more than that makes. Looking took
an eighth of the time to it."""
PATIENCE_SECONDS = 3.0
"""Seconds that the app may take to end after a signal before the process exits without it."""
RESTORE = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[?25h"
    b"\x1b[?1049l\x1b[0m\r\n"
)
"""Sequences that turn off mouse, paste and focus reports and the keyboard protocol, show the cursor, and restore the
normal screen and colours."""


def launch(
    path: Path | None = None,
    *,
    program: ProgramCommand | None = None,
    interpreter: Interpreter | None = None,
    follow: bool = False,
    profile: Path | None = None,
) -> int:
    """Open the app, with the session at `path` if one is given, which may be made of a `profile`; return the exit code
    of the process.

    `follow`: follow the session even if no writer is visible from here. With a `program`, start it; its session goes to
    `path`, or into the user's folder, and the exit code is the program's. Quitting while the program runs ends it. If a
    signal ends the app, the exit code is 128 plus the number of the signal.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS)  # before the imports, which make most of the objects
    from rich.console import Console

    from jaxprof.base.config import read_config
    from jaxprof.tui.shell.live import make_scheduler
    from jaxprof.tui.shell.profiler import Profiler

    outputs = [path if program is not None else None]

    def make(program: ProgramCommand | None, interpreter: Interpreter, listen: Listener) -> Made:
        """Only the first session goes to `path`; a rerun of the program has its session in the user's folder."""
        return make_scheduler(program, interpreter, listen, outputs.pop() if outputs else None)

    def freeze_imports() -> None:
        gc.freeze()  # what was imported stays: a full collection would pause the app for 50 ms, and free nothing
        gc.set_threshold(*thresholds)

    app = Profiler(
        path if program is None else None,
        interpreter=interpreter,
        make=make,
        program=program,
        follow=follow,
        profile=profile,
        drawn=freeze_imports,
        config=read_config(),
        light=is_light(os.environ.get("COLORFGBG", "")),
        few_colours=Console(force_terminal=True).color_system in (None, "standard", "windows"),
    )
    _run(app)
    gc.set_threshold(*thresholds)
    live = app.live
    if app.return_code or program is None:
        return app.return_code or int(not live.is_kept)
    # The program may be just ending; if it never started, the code is 1.
    until = clock.monotonic() + PATIENCE_SECONDS
    while live.program is not None and live.exit_code is None and clock.monotonic() < until:
        clock.sleep(0.01)
    code = live.exit_code if live.exit_code is not None else 1
    return code or int(live.has_lost_events)


def is_light(variable: str) -> bool:
    """Return whether COLORFGBG, `foreground;background` as numbers of the 16 colours, says light."""
    background = variable.rpartition(";")[2]
    return ";" in variable and background.isdecimal() and int(background) in (7, *range(9, 16))


def _run(app: Profiler) -> None:
    """Run the app, close the session and the children, and print where the session is, with its conclusion. An error of
    Textual's own code, which none of our handlers sees, is reported in one line, with its traceback in `errors.log`."""
    from rich.console import Console

    crash = io.StringIO()
    app.error_console = Console(file=crash, width=120, color_system=None)  # Textual prints here why it ended
    with _signals(app), drawing_on_stdout():
        try:
            app.run()
        finally:
            app.live.close()
            words = app.live.last_words()
            for line in words if not app.return_code else islice(words, 1):  # a signal, or a defect, ended the app
                sys.stderr.write(f"{safe(line)}\n")
            if text := crash.getvalue():
                from jaxprof.tui.kit.guard import log_defect

                # Below the traceback is Textual's note on the number of errors, of which it shows the first.
                shown = text.partition("\nNOTE: ")[0]
                error = next((line for line in reversed(shown.splitlines()) if line.strip()), "")
                sys.stderr.write(f"jaxprof: the app ended: {safe(error.strip())}\n  {safe(log_defect(text))}\n")


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
def _signals(app: Profiler) -> Iterator[None]:
    """Let signals that end a process close the log and the children first, while the app runs."""
    attributes: list[object] | None = None
    with suppress(ImportError):  # Windows: Textual itself restores the console
        import termios

        with suppress(termios.error):
            attributes = list(termios.tcgetattr(0))

    def end(number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        watchdog = threading.Timer(PATIENCE_SECONDS, _end_hard, (number, attributes))
        watchdog.daemon = True
        watchdog.start()
        threading.Thread(target=_end_soft, args=(app, name, 128 + number), daemon=True).start()

    before = {number: signal.signal(number, end) for number in ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_soft(app: Profiler, name: str, code: int) -> None:
    """End the app in order. Runs in a thread, because syncing the log and ending a child may take a moment."""
    app.live.close(name)
    app.call_from_thread(app.exit, return_code=code)


def _end_hard(number: int, attributes: list[object] | None) -> None:
    with suppress(OSError):
        os.write(1, RESTORE)
    if attributes is not None:
        import termios

        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, attributes)  # type: ignore[arg-type]
    os._exit(128 + number)
