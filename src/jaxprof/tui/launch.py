"""Starting the app in a real terminal, and leaving the terminal as it was, however the app ends.

Textual hangs without a terminal and leaves a mess behind when a signal ends it, so both are met here: the streams are
looked at first, and the signals that end a process close the log, end the worker and restore the terminal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.tui.app import JaxprofApp
    from jaxprof.worker import Interpreter

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)
PATIENCE_SECONDS = 3.0
"""How long an app that was told to end may take before it is ended without its help."""
RESTORE = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[?25h"
    b"\x1b[?1049l\x1b[0m\r\n"
)
"""Mouse, paste and focus reports off, keyboard protocol off, cursor on, the normal screen, no colours."""


def launch(path: Path | None = None, *, interpreter: Interpreter | None = None) -> int:
    """Opens the app, with the session at `path` when one is given; gives the process's exit code."""
    problem = terminal_problem()
    if problem:
        sys.stderr.write(f"jaxprof: {problem}\n  jaxprof --help lists what works without one.\n")
        return 2
    from jaxprof.tui.app import JaxprofApp
    from jaxprof.tui.ascii_driver import driver_for_this_terminal

    app = JaxprofApp(path, interpreter=interpreter, driver_class=driver_for_this_terminal())
    with _signals(app):
        try:
            app.run()
        finally:
            app.live.close()
    return app.return_code or 0


def terminal_problem() -> str:
    """Why the app cannot be opened here, or an empty text."""
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr)):
        if stream is None or not stream.isatty():
            return f"the app needs a terminal, and {name} is none"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return "the app needs a terminal that can place its cursor, and TERM says that this one cannot"
    return ""


@contextmanager
def _signals(app: JaxprofApp) -> Iterator[None]:
    """While the app runs, the signals that end a process end it in good order."""
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
    """In a thread, because the log is synced and a child is ended: both may take a moment."""
    app.live.close(name)
    app.call_from_thread(app.exit, return_code=code)


def _end_hard(number: int, attributes: list[object] | None) -> None:
    """For an app that does not answer, or whose terminal is gone."""
    with suppress(OSError):
        os.write(2, RESTORE)
    if attributes is not None:
        import termios

        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, attributes)  # type: ignore[arg-type]
    os._exit(128 + number)


def _terminal_attributes() -> list[object] | None:
    import termios

    try:
        return list(termios.tcgetattr(0))
    except termios.error:
        return None
