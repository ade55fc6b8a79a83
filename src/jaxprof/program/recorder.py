"""One recording of one program: what is watched in it, from when to when, and how its parts fit together.

The recorder knows no pipe and no file: it is given `emit`. It is the same for a program that was launched for recording
and for one that records itself. It begins with jax, because that is what it watches: before, it only waits for it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from jaxprof.engine.recording import RecordingOptions
from jaxprof.events import Compiled, Event, JaxImported, ProgramEnded, ProgramStarted, WarningRaised
from jaxprof.program.jax_import import JaxFinder


class Recorder:
    """`start`, `stop`, and in between whatever the program does. Nothing here raises into the program."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        options: RecordingOptions,
        *,
        began_seconds: float | None = None,
        how: str = "record",
    ) -> None:
        """`emit` is called from several threads. `began_seconds`: monotonic, when the program was started. `how`: as
        `ProgramStarted` has it; empty where somebody else has told the program's start."""
        self._emit = emit
        self._options = options
        self._began = time.monotonic() if began_seconds is None else began_seconds
        self._how = how
        self._owner = os.getpid()
        self._finder = JaxFinder(self._jax_is_there)
        self._watching = False
        self._over = False
        self._failed: set[str] = set()
        self._compiled = False
        self._environment_read = False
        self._prepared = False
        self._window_due = options.wants_window
        self._ledger: Any = None
        self._sampler: Any = None
        self._window: Any = None
        self._tap: Any = None
        self._waiting: deque[tuple[float | None, int | None]] = deque()
        self.on_tick: list[Callable[[float], None]] = []
        """Called with the monotonic time by the recorder's own thread, about once a second, once jax is there."""

    def start(self, import_seconds: float | None = None) -> None:
        """Begins. `import_seconds`: what the import of jax took, where the caller has just seen it."""
        if self._how:
            self._emit(
                ProgramStarted(
                    argv=list(sys.argv), how=self._how, directory=_directory(), options=asdict(self._options)
                )
            )
        if "jax" in sys.modules:
            self._jax_is_there(import_seconds)
        else:
            self._finder.install()

    def stop(
        self, exit_code: int | None = None, notes: Sequence[dict[str, Any]] = (), *, interrupted: bool = False
    ) -> None:
        """Ends, with all that still waits; then measures the function that was asked for. Again: does nothing.

        `interrupted`: an unhandled KeyboardInterrupt is ending the process. Python then ends itself by SIGINT, but
        forgets to when code is compiled from text meanwhile (as a dataclass is, at its import): nothing that might do
        so is begun any more.
        """
        if self._over or os.getpid() != self._owner:
            return
        self._over = True
        self._finder.remove()
        told = list(notes)
        if self._watching:
            for what, step in self._endings(interrupted=interrupted):
                self._safely(what, step)
        else:
            told.append({"code": "no_jax", "message": "the program did not import jax"})
        self._emit(ProgramEnded(exit_code=exit_code, wall_seconds=time.monotonic() - self._began, notes=told))
        if self._tap is not None and interrupted:
            message = f"{self._options.function} was not measured: the program was interrupted"
            self._emit(WarningRaised(code="function_not_measured", message=message))
        elif self._tap is not None:
            self._safely("measuring the function", self._tap.measure)

    def abandon(self) -> None:
        """Ends where nobody listens any more: the program is freed of what recording costs it, and nothing is told."""
        if not self._over and os.getpid() == self._owner:
            self._over = True
            self._finder.remove()
            for what, step in self._endings(interrupted=True):
                self._safely(what, step)

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Asks for a window in which JAX's profiler is on: for so many seconds or steps, or until `end_capture`."""
        self._waiting.append((seconds, steps))

    def end_capture(self) -> None:
        """Ends the window that is on, or waited for."""
        self._waiting.clear()
        if self._window is not None:
            self._safely("the capture window", self._window.end)

    def _jax_is_there(self, seconds: float | None) -> None:
        if self._over or self._watching or os.getpid() != self._owner:
            return
        self._watching = True
        version = str(getattr(sys.modules["jax"], "__version__", ""))
        self._emit(JaxImported(seconds=seconds, version=version))
        for what, step in (
            ("the transfer guard", self._start_guard),
            ("the ledger", self._start_ledger),
            ("the capture window", self._start_window),
            ("the function", self._start_tap),
            ("the samples", self._start_sampler),
        ):
            self._safely(what, step)

    def _start_guard(self) -> None:
        if self._options.transfers:
            from jaxprof.program.transfer_guard import log_transfers

            if reason := log_transfers():
                message = f"implicit copies are not counted: {reason}, which is left as it is"
                self._emit(WarningRaised(code="transfers_not_counted", message=message))

    def _start_ledger(self) -> None:
        from jaxprof.program.compiles.ledger import Ledger

        self._ledger = Ledger(self._take, main_thread=threading.main_thread().ident)
        self._ledger.attach()

    def _start_window(self) -> None:
        from jaxprof.program.window import Window

        self._window = Window(self._emit)

    def _start_tap(self) -> None:
        if self._options.function:
            from jaxprof.program.calls.function_tap import FunctionTap

            self._tap = FunctionTap(
                self._options.function,
                self._emit,
                values=self._options.values,
                keep_constants=self._options.keep_constants,
            )
            self._ledger.on_call = self._tap.offer

    def _start_sampler(self) -> None:
        from jaxprof.program.samples.sampler import Sampler

        self._sampler = Sampler(
            self._take, self._ledger, main_thread=threading.main_thread().ident or 0, began_seconds=self._began
        )
        self._sampler.on_tick.append(self._tick)
        self._sampler.start()

    def _take(self, event: Event) -> None:
        """An event of the ledger or the sampler on its way out."""
        self._emit(event)
        if isinstance(event, Compiled) and event.compile_seconds is not None:
            self._compiled = True
            if self._sampler is not None:
                self._sampler.compiled(event)
        if self._window is not None:
            self._window.take(event)

    def _tick(self, now: float) -> None:
        self._safely("the environment", self._prepare)
        self._safely("the environment", self._read_environment)
        self._safely("the capture window", lambda: self._tick_window(now))
        for listener in list(self.on_tick):
            self._safely("a request", lambda listener=listener: listener(now))  # type: ignore[misc]

    def _tick_window(self, now: float) -> None:
        if self._window is None:
            return
        if self._window_due and now - self._began >= (self._options.capture_after_seconds or 0.0):
            self._window_due = False
            self._window.begin(self._options.capture_seconds, self._options.capture_steps)
        while self._waiting:
            self._window.begin(*self._waiting.popleft())
        self._window.tick(now)

    def _prepare(self) -> None:
        """Imports, on the recorder's own thread, what would otherwise be imported at the program's end."""
        if not self._prepared:
            import jaxprof.measure.devices
            import jaxprof.measure.environment  # noqa: F401

            self._prepared = True

    def _read_environment(self) -> None:
        """Versions, devices and settings, once the program itself has brought up its backends."""
        if self._environment_read or not self._compiled:
            return
        self._environment_read = True
        from jaxprof.measure.devices import describe
        from jaxprof.measure.environment import load_average, read_environment

        self._emit(
            read_environment([describe(device) for device in sys.modules["jax"].local_devices()], load_average())
        )

    def _endings(self, *, interrupted: bool) -> list[tuple[str, Callable[[], object]]]:
        """What is to be done at the end, in order: the samples stop before the ledger that they ask."""
        steps: list[tuple[str, Callable[[], object]]] = []
        if self._prepared or not interrupted:
            steps.append(("the environment", self._read_environment))
        if self._window is not None:
            steps.append(("the capture window", self._window.end))
        if self._sampler is not None:
            steps.append(("the samples", self._sampler.stop))
        if self._ledger is not None:
            steps += [("the ledger", self._ledger.finish), ("the ledger", self._ledger.detach)]
        return steps

    def _safely(self, what: str, step: Callable[[], object]) -> None:
        """Does a part of the work; where it fails, that is told, once for each part, and the program goes on."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the program comes first
            if what not in self._failed:
                self._failed.add(what)
                message = f"recording {what} failed: {type(error).__name__}: {error}"
                self._emit(WarningRaised(code="recorder_failed", message=message))


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
