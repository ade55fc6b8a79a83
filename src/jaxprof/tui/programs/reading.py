"""Reads the program in view in a thread, part by part. Of a program that was left nothing more is told."""

from __future__ import annotations

import threading
from collections.abc import Callable

from jaxprof.errors import JaxprofError
from jaxprof.tui.programs.opened import Opened, open_program


class Reading:
    """At most one program is read at a time. Both callbacks are called in its thread."""

    def __init__(self, tell: Callable[[Opened, str], object], fail: Callable[[JaxprofError], object]) -> None:
        self._tell, self._fail = tell, fail
        self._stop = threading.Event()

    def begin(self, opened: Opened) -> None:
        """Reads a program, in place of the one before, and tells each part of it that is ready."""
        self._stop.set()
        self._stop = threading.Event()
        # A thread of its own and no worker: the app waits for its workers at its end, and a large program takes long.
        threading.Thread(target=self._read, args=(opened, self._stop), name="program", daemon=True).start()

    def stop(self) -> None:
        """Nothing more is told. The thread ends at the next part, and nobody waits for it."""
        self._stop.set()

    def _read(self, opened: Opened, stop: threading.Event) -> None:
        """In a thread. Whatever a program makes the analysis do, the app lives and says so."""

        def tell(part: str) -> None:
            if not stop.is_set():
                self._tell(opened, part)

        try:
            open_program(opened, tell, stop.is_set)
        except Exception as error:  # noqa: BLE001  the end of a thread: there is nobody else to tell it
            if not stop.is_set():
                what = f"{opened.program.label} could not be analysed: {type(error).__name__}: {error}"
                mend = "This is a defect of jaxprof. Its text can be read; please report it, with the HLO."
                self._fail(JaxprofError(what, mend))
