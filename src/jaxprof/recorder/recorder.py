"""One recording of one program: what is watched, from when to when, and how the parts work together.

The recorder knows no pipe and no file: it calls `emit`. It works the same for a program that was launched for recording
and for one that records itself. It starts with jax, which is what it watches; before that it only waits for the import.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jaxprof.engine.protocol import RecordingOptions
from jaxprof.events import (
    Compiled,
    Event,
    JaxImported,
    LineArrays,
    Note,
    ProcessIdentified,
    ProgramEnded,
    ProgramStarted,
    WarningRaised,
)
from jaxprof.recorder.frame_owner import error_location, shadowing_file
from jaxprof.recorder.guest import raised_by_program
from jaxprof.recorder.jax_import import JaxFinder

if TYPE_CHECKING:  # each part is imported where it begins
    from jaxprof.recorder.calls.call_capture import CallCapture
    from jaxprof.recorder.capture_window import CaptureWindows
    from jaxprof.recorder.compiles.ledger import Ledger
    from jaxprof.recorder.profiler_use import ProfilerUse
    from jaxprof.recorder.samples.sampler import StackSampler

_TRACEBACK = "Traceback (most recent call last):"
_STACK = '  File "'
_NO_MEMORY = "RESOURCE_EXHAUSTED"
_LONGEST_DETAILS = 1 << 15  # characters: XLA lists 20 buffers


class Recorder:
    """Records one program: call `start`, then `stop`; the program runs in between. Nothing here raises into it."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        options: RecordingOptions,
        *,
        began_seconds: float | None = None,
        how: str = "record",
        argv: list[str] | None = None,
    ) -> None:
        """`emit` is called from several threads. `began_seconds`: monotonic time at which the program was started.
        `how`: as in `ProgramStarted`; empty if the program's start has been reported already. `argv`: the arguments to
        report, if they are not `sys.argv`."""
        self._emit = emit
        self._options = options
        self._began = time.monotonic() if began_seconds is None else began_seconds
        self._is_within = began_seconds is None
        """Whether the recording begins within a program, whose time does not include the recorder's set-up."""
        self._how, self._argv = how, argv
        self._owner = os.getpid()
        self._finder = JaxFinder(self._jax_imported)
        self._watching = False
        self._over = False
        self._failed: set[str] = set()
        self._compiled = False
        self._environment_read = False
        self._prepared = False
        self._window_due = options.wants_window
        self._ledger: Ledger | None = None
        self._sampler: StackSampler | None = None
        self._window: CaptureWindows | None = None
        self._profiler: ProfilerUse | None = None
        self._call_capture: CallCapture | None = None
        self._requests: deque[tuple[float | None, int | None]] = deque()
        self.on_tick: Callable[[float], object] = lambda now: None
        """Called by the recorder's thread several times a second, with the monotonic time, once jax is imported."""

    def start(self, import_seconds: float | None = None) -> None:
        """Begin. `import_seconds`: duration of jax's import, if the caller has just seen it."""
        if self._how:
            from jaxprof.base.redaction import redact_words  # not in programs that the client started

            try:
                directory = os.getcwd()
            except OSError:  # the folder was removed
                directory = ""
            self._emit(
                ProgramStarted(
                    argv=redact_words(sys.argv if self._argv is None else self._argv),
                    how=self._how,
                    directory=directory,
                    options=asdict(self._options),
                )
            )
        if "jax" in sys.modules:
            self._jax_imported(import_seconds)
        else:
            self._finder.install()
            self._begin_within()

    def stop(
        self, exit_code: int | None = None, notes: Sequence[Note] = (), *, error: BaseException | None = None
    ) -> None:
        """End, and emit everything that is pending; then measure the requested function. A second call does nothing.

        `error`: the unhandled exception that is ending the process. After a KeyboardInterrupt, Python ends itself by
        SIGINT, but not if code is compiled from text meanwhile (as at the definition of a dataclass). So nothing that
        might do that is begun any more.
        """
        if self._over or os.getpid() != self._owner:
            return
        self._over = True
        interrupted, raised_seconds = isinstance(error, KeyboardInterrupt), time.monotonic()
        self._finder.remove()
        notes_seen = list(notes)
        if self._watching:
            for what, step in self._endings(interrupted=interrupted):
                self._safely(what, step)
        else:
            notes_seen.append(Note(code="no_jax"))
        ended = failure(error, raised_seconds)
        arrays: list[LineArrays] = []
        # Asking JAX would start a backend; an error of another service, such as gRPC, has the same name.
        uses_device = self._ledger is not None and self._ledger.stage_seconds().get("compile", 0.0) > 0
        if uses_device and _NO_MEMORY in ended.get("error", ""):
            self._safely("the live arrays", lambda: arrays.extend(_live_arrays()))
        wall = time.monotonic() - self._began
        self._emit(ProgramEnded(exit_code=exit_code, wall_seconds=wall, notes=notes_seen, arrays=arrays, **ended))
        if self._call_capture is not None and interrupted:
            self._emit(WarningRaised(code="function_not_measured", values={"function": self._options.function}))
        elif self._call_capture is not None:
            self._safely("the measurement of the function", self._call_capture.measure)

    def abandon(self) -> None:
        """End the recording when the client has gone, so that the program no longer pays for it. Emits nothing."""
        if not self._over and os.getpid() == self._owner:
            self._over = True
            self._finder.remove()
            for what, step in self._endings(interrupted=True):
                self._safely(what, step)

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Request a window with JAX's profiler on, for some seconds or steps, or until the end."""
        self._requests.append((seconds, steps))

    @property
    def last_iteration(self) -> tuple[float | None, float, int | None]:
        """When the last iteration was seen to end (monotonic; None before a few have), the usual time between two, and
        the number of that one."""
        watch = self._sampler.standstill if self._sampler is not None else None
        return (watch.usual_end, watch.usual_seconds, watch.step) if watch is not None else (None, 0.0, None)

    def _jax_imported(self, seconds: float | None) -> None:
        if self._over or self._watching or os.getpid() != self._owner:
            return
        self._watching = True
        version = str(getattr(sys.modules["jax"], "__version__", ""))
        self._emit(JaxImported(seconds=seconds, version=version))
        for what, step in (
            ("the ledger", self._start_ledger),
            ("the profiler's use", self._start_profiler_use),
            ("the capture window", self._start_window),
            ("the function", self._start_call_capture),
            ("the samples", self._start_sampler),
        ):
            self._safely(what, step)

    def _start_ledger(self) -> None:
        from jaxprof.recorder.compiles.ledger import Ledger

        self._ledger = Ledger(self._take, main_thread=threading.main_thread().ident)
        self._ledger.attach()

    def _start_window(self) -> None:
        from jaxprof.recorder.capture_window import CaptureWindows

        self._window = CaptureWindows(
            self._emit,
            compiles_now=lambda: self._ledger is not None and bool(self._ledger.running()),
            still_since=lambda: self._sampler.standstill.still_since if self._sampler is not None else math.inf,
            steps_ended=lambda: self._sampler.steps_ended if self._sampler is not None else None,
        )

    def _start_profiler_use(self) -> None:
        from jaxprof.recorder.profiler_use import ProfilerUse

        self._profiler = ProfilerUse()
        self._profiler.attach()

    def _start_call_capture(self) -> None:
        if self._options.function:
            from jaxprof.recorder.calls.call_capture import CallCapture

            self._call_capture = CallCapture(
                self._options.function,
                self._emit,
                values=self._options.values,
                keep_constants=self._options.keep_constants,
            )
            assert self._ledger is not None, "the ledger, which sees the calls, could not begin"
            self._ledger.on_call = self._call_capture.offer

    def _begin_within(self) -> None:
        if self._is_within:
            self._began, self._is_within = time.monotonic(), False

    def _start_sampler(self) -> None:
        from jaxprof.recorder.samples.sampler import StackSampler

        self._begin_within()
        assert self._ledger is not None, "the ledger, which times the stages, could not begin"
        self._sampler = StackSampler(
            self._take, self._ledger, main_thread=threading.main_thread().ident or 0, began_seconds=self._began
        )
        self._sampler.on_tick = self._tick
        self._sampler.turns = lambda: self._window.turns if self._window is not None else 0
        self._sampler.profiler = self._profiler
        self._sampler.start()

    def _take(self, event: Event) -> None:
        """Emit an event of the ledger or the sampler, and pass it to the parts that follow such events."""
        self._emit(event)
        if isinstance(event, Compiled) and event.compile_seconds is not None:
            self._compiled = True
            if self._sampler is not None:
                self._sampler.note_compiled(event)
        if self._window is not None:
            self._window.take(event)

    def _tick(self, now: float) -> None:
        if self._ledger is not None:
            self._safely("the ledger", self._ledger.settle)
        self._safely("the environment", self._prepare)
        self._safely("the environment", self._read_environment)
        self._safely("the capture window", lambda: self._tick_window(now))
        self._safely("a request", lambda: self.on_tick(now))

    def _tick_window(self, now: float) -> None:
        if self._window is None:
            return
        if self._window_due and now - self._began >= (self._options.capture_after_seconds or 0.0):
            self._window_due = False
            self._window.begin(self._options.capture_seconds, self._options.capture_steps)
        while self._requests:
            self._window.begin(*self._requests.popleft())
        self._window.tick(now)
        if self._sampler is not None:
            self._sampler.longest_tick = self._window.tick_seconds

    def _prepare(self) -> None:
        """Import, on the recorder's own thread, what the program's end would otherwise have to import: an end by an
        interrupt must not import (`stop` says why)."""
        if not self._prepared:
            for module in ("jaxprof.engine.measure.environment", "jaxprof.engine.measure.jax_devices"):
                import_module(module)
            self._prepared = True

    def _read_environment(self) -> None:
        """Emit versions, devices and settings, once the program itself has started its backends."""
        if self._environment_read or not self._compiled:
            return
        self._environment_read = True
        from jaxprof.engine.measure.environment import read_environment

        jax = sys.modules["jax"]
        self._emit(read_environment(jax.local_devices()))
        if jax.process_count() > 1:
            self._emit(ProcessIdentified(index=jax.process_index(), count=jax.process_count()))

    def _endings(self, *, interrupted: bool) -> list[tuple[str, Callable[[], object]]]:
        """Return the steps at the end, in order: the sampler stops before the ledger, because it reads the ledger."""
        steps: list[tuple[str, Callable[[], object]]] = []
        if self._prepared or not interrupted:
            steps.append(("the environment", self._read_environment))
        if self._window is not None:
            steps.append(("the capture window", self._window.end))
        if self._sampler is not None:
            steps.append(("the samples", self._sampler.stop))
        if self._profiler is not None:
            steps.append(("the profiler's use", self._profiler.detach))
        if self._ledger is not None:
            steps += [("the ledger", self._ledger.finish), ("the ledger", self._ledger.detach)]
        return steps

    def _safely(self, what: str, step: Callable[[], object]) -> None:
        """Run one part of the work. The first failure of each part is reported, and the program goes on."""
        try:
            step()
        except Exception as error:  # the program comes first
            if not self._over and raised_by_program(error):
                raise
            if what not in self._failed:
                self._failed.add(what)
                text = f"{type(error).__name__}: {error}"
                self._emit(WarningRaised(code="recorder_failed", values={"part": what, "error": text}))


def _live_arrays() -> list[LineArrays]:
    from jaxprof.recorder.live_arrays import arrays_by_line  # may fail as well where memory has run out

    return arrays_by_line()


def failure(error: BaseException | None, seconds: float) -> dict[str, Any]:
    """Return the fields of `ProgramEnded` for the exception that ended the program at `seconds` of the monotonic clock;
    none for an interrupt, and for an exit its line alone."""
    if error is None or isinstance(error, KeyboardInterrupt):
        return {}
    if isinstance(error, SystemExit):
        return {"error_at": error_location(error)}
    kind = type(error)
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
    try:
        first, _, others = str(error).strip().partition("\n")
        if first.endswith(_TRACEBACK):  # a callback's traceback: its last line is the error
            first = first.removesuffix(_TRACEBACK) + others.rpartition("\n")[2].strip()
        elif others.startswith(_STACK):  # below a heading, as equinox writes it: the error is behind the stack
            first = next((line for line in others.splitlines() if line[:1].strip()), first)
        message = first[:300]
        details = others[:_LONGEST_DETAILS] if _NO_MEMORY in first else ""
    except Exception:  # noqa: BLE001 - the program's own method
        message = details = ""
    text = f"{name}: {message}" if message else name
    return {
        "error": text,
        "error_at": error_location(error),
        "error_seconds": seconds,
        "error_details": details,
        "shadowed_by": shadowing_file(error),
    }
