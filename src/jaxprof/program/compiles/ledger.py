"""The compile ledger of a running program: one row for each compilation, with where it was called from and why.

It listens to JAX's monitoring events in the threads where they happen. It keeps no array, function or frame of the
user's, raises nothing into JAX, and says so once when it could not do its work.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

from jaxprof.events import Event, StageRunning, WarningRaised
from jaxprof.program.compiles import monitoring
from jaxprof.program.compiles.call_site import Call, read_call
from jaxprof.program.compiles.functions import code_of, held_function, outer_code, primitive_parameters
from jaxprof.program.compiles.history import FunctionKey, History
from jaxprof.program.compiles.module_size import read_module_size
from jaxprof.program.compiles.reasons import explain, nearest
from jaxprof.program.compiles.rows import Row, RowWriter
from jaxprof.program.compiles.signature_reader import SignatureReader
from jaxprof.program.compiles.stages import ExclusiveClock, OpenStage, Threads, ThreadStages
from jaxprof.program.places import JAX, USER, called_from, definition, file_kind

ROWS_WAITING_AT_MOST: Final = 64
_NAMES_REMEMBERED = 4_000


class Ledger:
    """Watches the compilations of this process from `attach` on, and emits `Compiled` for each."""

    def __init__(self, emit: Callable[[Event], None], *, main_thread: int | None = None) -> None:
        self.on_call: Callable[[object, str, tuple[Any, ...], dict[str, Any]], None] | None = None
        """Told of the call (callable, name, args, kwargs) at the start of each outermost trace."""
        self.problems = 0
        """How often something could not be recorded."""
        self._emit = emit
        self._process = os.getpid()
        self._threads = Threads(main_thread if main_thread is not None else threading.main_thread().ident or 0)
        self._clock = ExclusiveClock()
        self._reader = SignatureReader()
        self._history = History()
        self._writer = RowWriter(emit)
        self._waiting: list[tuple[int, Row, str]] = []
        """Thread, row, and its last stage: traced or lowered, and perhaps compiled later."""
        self._definitions: dict[str, tuple[dict[str, Any], bool, bool] | None] = {}
        """By name, None where several have it: for programs derived from a function (its transposed one), which do not
        show it."""
        self._lock = threading.RLock()

    def attach(self) -> None:
        """Begins to listen; jax must be imported already, else RuntimeError."""
        monitoring.watch(self)

    def detach(self) -> None:
        """From now on it is silent."""
        monitoring.unwatch(self)

    def stage_seconds(self) -> dict[str, float]:
        """Seconds that the main thread has spent in trace, lower and compile, without what was nested in each."""
        return self._clock.read(time.monotonic())

    def running(self) -> list[StageRunning]:
        """The stages that are going on now, one for each thread: the innermost with a row of its own."""
        now = time.monotonic()
        found = []
        for thread in self._threads.all():
            stages = list(thread.open)
            with_row = [item for item in stages if item.row is not None]
            if with_row and (row := with_row[-1].row) is not None:
                item = with_row[-1]
                found.append(
                    StageRunning(
                        monotonic_seconds=now,
                        function=row.function,
                        stage=item.stage,
                        began_seconds=item.began,
                        called_from=row.called_from,
                        thread=thread.name,
                    )
                )
        return found

    def finish(self) -> None:
        """Emits what waits: programs that were lowered and not compiled, rows that are put together."""
        with self._lock:
            for _, row, stage in self._waiting:
                if stage == "lower":
                    self._close(row)
            self._waiting.clear()
            self._writer.flush()

    # What jaxprof.program.compiles.monitoring tells, in the thread that compiles.

    def stage_began(self, stage: str, function: str, frame: FrameType) -> None:
        """A stage begins; the row is found, or begun with the call that is read from JAX's frames."""
        if os.getpid() != self._process:
            return
        now = time.monotonic()
        thread = self._threads.current()
        row = None
        call = None
        try:
            if stage != "trace" or not any(item.stage == "trace" for item in thread.open):
                row, call = self._row(stage, function, frame, thread, now)
        finally:
            thread.open.append(OpenStage(stage, function, now, row, id(sys.exc_info()[1])))
            if thread.main:
                self._clock.switch(stage, now)
        if row is not None and stage == "compile":
            size = read_module_size(frame)
            row.operations, row.constants, row.cache = size.operations, size.constants, "off"
        if call is not None and stage == "trace" and call.found and self.on_call is not None:
            self.on_call(call.function, _plain_name(function), call.args, call.kwargs)

    def stage_ended(self, stage: str, function: str) -> None:
        """A stage is over."""
        if os.getpid() != self._process:
            return
        now = time.monotonic()
        thread = self._threads.current()
        ended = thread.close(stage, function)
        outer = thread.open[-1] if thread.open else None
        if thread.main:
            self._clock.switch(outer.stage if outer is not None else "", now)
        if ended is None:
            return
        seconds = now - ended.began
        if ended.row is None:
            if outer is not None:
                outer.nested_trace = (function, seconds - ended.apart)
                outer.apart += ended.apart
            return
        if outer is not None:
            outer.apart += seconds
        row = ended.row
        row.seconds[stage] = max(0.0, seconds - ended.apart)
        error = sys.exc_info()[1]
        failed = type(error).__name__ if error is not None and id(error) != ended.handled else ""
        del error
        self._advance(row, stage, failed)

    def cache_told(self, what: str) -> None:
        """The persistent cache was asked, or answered."""
        row = self._compiling()
        if row is not None:
            # JAX asks also where no cache is set up
            used = what != "asked" or getattr(sys.modules["jax"].config, "jax_compilation_cache_dir", None)
            row.cache = "hit" if "hit" in (what, row.cache) else "miss" if used else "off"

    def cache_saved(self, seconds: float) -> None:
        """What a hit saved."""
        row = self._compiling()
        if row is not None:
            row.saved_seconds = seconds

    def problem(self, error: Exception) -> None:
        """Counts what went wrong in recording; tells it once."""
        self.problems += 1
        if self.problems == 1:
            message = f"a compilation could not be recorded: {type(error).__name__}: {error}"
            self._tell_problem(message[:500])

    def _tell_problem(self, message: str) -> None:
        try:
            self._emit(
                WarningRaised(
                    monotonic_seconds=time.monotonic(),
                    code="ledger_problem",
                    message=message,
                    advice="the program is not affected; the ledger may miss rows",
                )
            )
        except Exception:  # noqa: BLE001 nobody is left to tell, and the program must not feel it
            self.problems += 1

    def _compiling(self) -> Row | None:
        if os.getpid() != self._process:
            return None
        stages = self._threads.current().open
        return stages[-1].row if stages and stages[-1].stage == "compile" else None

    def _row(
        self, stage: str, function: str, frame: FrameType, thread: ThreadStages, now: float
    ) -> tuple[Row, Call | None]:
        """The row that a stage belongs to: one that waits for it, or a new one."""
        name = _plain_name(function)
        place = called_from(frame)
        if stage != "trace":
            row = self._take_waiting(name, stage, lambda row: row.called_from == place, threading.get_ident())
            if row is not None and not (stage == "lower" and row.signature.under):
                return row, None
            call = read_call(frame, name)
            if row is None and not call.found:
                row = self._take_waiting(name, stage, lambda row: True, None)
            if row is not None:
                if call.found:  # under vmap or grad the arguments of the program are known only now
                    self._describe(row, call)
                return row, None
        else:
            call = read_call(frame, name)
        row = Row(name, now, name, thread.name, place)
        self._describe(row, call)
        outer = thread.open[-1] if thread.open else None
        row.nested = outer is not None
        if stage == "lower" and outer is not None and outer.nested_trace is not None:
            traced, seconds = outer.nested_trace
            if traced == name:
                row.seconds["trace"] = seconds
                outer.apart += seconds
                outer.nested_trace = None
        return row, call

    def _take_waiting(self, name: str, stage: str, matches: Callable[[Row], bool], thread: int | None) -> Row | None:
        before = {"lower": "trace", "compile": "lower"}[stage]
        with self._lock:
            for index in range(len(self._waiting) - 1, -1, -1):
                waiting_thread, row, last = self._waiting[index]
                if row.announced == name and last == before and thread in (None, waiting_thread) and matches(row):
                    del self._waiting[index]
                    return row
        return None

    def _describe(self, row: Row, call: Call) -> None:
        """What is compiled, and with what arguments."""
        row.signature = self._reader.read(call)
        if not call.found:
            row.key = FunctionKey(row.announced, under="derived")
            row.defined_at, row.op_by_op, row.library = self._definitions.get(row.announced) or ({}, False, False)
            return
        defined, outer = self._definition(row, call.function), outer_code(call.function)
        kind = file_kind(defined.co_filename) if defined is not None else USER
        row.defined_at, row.op_by_op, row.library = definition(defined), kind == JAX, kind != USER
        row.key = FunctionKey(
            row.function,
            row.defined_at.get("file", ""),
            row.defined_at.get("line", 0),
            (outer.co_filename, outer.co_firstlineno) if outer is not None and outer is not defined else ("", 0),
            row.signature.under,
        )
        self._remember(row)

    def _remember(self, row: Row) -> None:
        if row.announced.startswith("<"):
            return
        if len(self._definitions) >= _NAMES_REMEMBERED:
            self._definitions.clear()
        known = (row.defined_at, row.op_by_op, row.library)
        if self._definitions.setdefault(row.announced, known) != known:
            self._definitions[row.announced] = None

    def _definition(self, row: Row, function: Any) -> CodeType | None:
        """The code that is compiled; the row is named after it where JAX's name says nothing."""
        code = code_of(function)
        if not isinstance(function, FunctionType):
            if row.function.startswith("<unnamed"):
                row.function = type(function).__name__
            return code
        if code is not None and file_kind(code.co_filename) == JAX and primitive_parameters(function) is None:
            held = held_function(function)
            if held is not None:
                row.function = held.__name__
                return code_of(held)
        return code

    def _advance(self, row: Row, stage: str, failed: str) -> None:
        """A row has gone through a stage: it is told after the last one, and waits before."""
        if failed and stage == "trace":
            return
        with self._lock:
            if failed or stage == "compile":
                row.failed = failed
                self._close(row)
                return
            self._waiting.append((threading.get_ident(), row, stage))
            if len(self._waiting) > ROWS_WAITING_AT_MOST:
                _, oldest, last = self._waiting.pop(0)
                if last == "lower":
                    self._close(oldest)

    def _close(self, row: Row) -> None:
        before = nearest(row.signature, self._history.earlier(row.key, row.signature))
        place_before = self._history.place(row.key, before) if before is not None else {}
        traced = "trace" in row.seconds or row.op_by_op or row.nested
        reason = explain(row.signature, before, row.called_from, row.defined_at, place_before, traced=traced)
        words = reason.words
        if row.failed:
            words = "; ".join(filter(None, [words, f"failed: {row.failed}"]))
        self._history.add(row.key, row.signature, row.called_from)
        self._writer.write(row.event(reason.code, words))


def _plain_name(function: str) -> str:
    """`jit(f)` as `f`."""
    wrapper, bracket, inside = function.partition("(")
    return inside[:-1] if bracket and wrapper.isidentifier() and inside.endswith(")") else function
