"""The compile ledger of a running program: one row for each compilation, with the call that caused it and the reason.

It listens to JAX's monitoring events in the threads where they happen. It keeps none of the user's arrays, functions or
frames, raises nothing into JAX, and warns once if it fails to record something.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from jaxprof.events import NOWHERE, Compiled, Event, SourceLocation, StageRunning, WarningRaised
from jaxprof.recorder.compiles import monitoring
from jaxprof.recorder.compiles.call_site import ObservedCall, factory_of, in_later_calls, read_call
from jaxprof.recorder.compiles.functions import code_of, function_in_closure, outer_code, primitive_parameters
from jaxprof.recorder.compiles.module_size import read_module_size
from jaxprof.recorder.compiles.monitoring import CacheClears
from jaxprof.recorder.compiles.reasons import FunctionKey, History, explain, nearest
from jaxprof.recorder.compiles.rows import (
    BEFORE,
    CompilationRow,
    ExclusiveClock,
    OpenStage,
    RowWriter,
    Threads,
    ThreadStages,
)
from jaxprof.recorder.compiles.signature import SignatureReader, arguments_of
from jaxprof.recorder.frame_owner import JAX, USER, definition, file_kind, user_call
from jaxprof.recorder.guest import raised_by_program
from jaxprof.recorder.samples.states import WORTH_COPYING_BYTES

ROWS_WAITING_AT_MOST = 64
ROWS_A_SECOND = 10
"""Number of compilations in a second from which on they are explained and emitted beside the program: a kill then loses
at most those of the last quarter of a second."""
_ROOT = re.compile(r"[.\[]")
"""Separates the name of an argument from the path of a leaf in it."""


class Ledger:
    """Watches the compilations of this process from `attach` on, and emits `Compiled` for each."""

    def __init__(self, emit: Callable[[Event], None], *, main_thread: int | None = None) -> None:
        self.on_call: Callable[[object, str, tuple[Any, ...], dict[str, Any]], None] | None = None
        """Called with (callable, name, args, kwargs) at the start of each outermost trace."""
        self.on_row: Callable[[FunctionKey, Compiled], None] | None = None
        """Called with each compilation and the key of its function, before the compilation is emitted."""
        self.problems = 0
        self._emit = emit
        self._process = os.getpid()
        self._threads = Threads(main_thread if main_thread is not None else threading.main_thread().ident or 0)
        self._clock = ExclusiveClock()
        self._reader = SignatureReader()
        self._history = History()
        self._clears = CacheClears()
        self._writer = RowWriter(emit)
        self._waiting: list[tuple[int, CompilationRow, str]] = []
        """Thread, row, and the row's last stage (trace or lower), for rows that may still be compiled."""
        self._definitions: dict[str, tuple[SourceLocation, bool, bool] | None] = {}
        """Definitions by name; None if several functions have the name. For programs derived from a function (its
        transpose), whose events do not show the definition."""
        self._lock = threading.RLock()
        """Guards `_waiting`. The program's threads take it."""
        self._over: deque[tuple[CompilationRow, int, SourceLocation]] = deque()
        """Rows that are over and not emitted, each with number and location of the cache clears before its end."""
        self._emitting = threading.RLock()
        """Only ever tried, never waited for: the thread that holds it explains and emits what is over. If a signal
        handler of the program raises before the lock can be given back, its thread can still take it again."""
        self._ends: deque[float] = deque([0.0] * ROWS_A_SECOND, ROWS_A_SECOND)

    def attach(self) -> None:
        """Begin to listen. Raises RuntimeError if jax has not been imported yet."""
        monitoring.watch(self)
        self._clears.attach()

    def detach(self) -> None:
        monitoring.unwatch(self)
        self._clears.detach()

    def stage_seconds(self) -> dict[str, float]:
        """Return the main thread's seconds in trace, lower and compile, each without the stages nested in it."""
        return self._clock.read(time.monotonic())

    def running(self) -> list[StageRunning]:
        """Return the running stages, one for each thread: the innermost one that has a row of its own."""
        now = time.monotonic()
        rows = []
        for thread in self._threads.all():
            item = next((item for item in reversed(list(thread.open)) if item.row is not None), None)
            if item is not None and (row := item.row) is not None:
                rows.append(
                    StageRunning(
                        monotonic_seconds=now,
                        function=row.function,
                        stage=item.stage,
                        began_seconds=item.began,
                        called_from=row.called_from,
                        thread=thread.name,
                        defined_at=row.defined_at,
                        operations=row.size.operations,
                        made_by=row.size.made_by,
                    )
                )
        return rows

    def finish(self) -> None:
        """Emit what is pending: programs that were lowered but not compiled, and folded rows."""
        with self._lock:
            for _, row, stage in self._waiting:
                if stage == "lower":
                    self._end(row)
            self._waiting.clear()
        self.settle()
        self._writer.flush()

    def settle(self) -> None:
        """Explain and emit the compilations that are over. A thread of ours calls it often: where a program compiles
        one function after the other, it need not wait for that."""
        while self._over and self._emitting.acquire(blocking=False):
            try:
                row, clears, cleared_at = self._over.popleft()  # the clears of JAX's caches by then
                signature = row.signature
                if signature.aligned and "compile" in row.seconds and sys.modules["jax"].default_backend() == "cpu":
                    signature.shared = signature.aligned  # only now is the backend certain to be up
                before = nearest(signature, self._history.earlier(row.key, signature))
                location_before, cleared = NOWHERE, False
                if before is not None:
                    location_before, clears_before = self._history.last_call(row.key, before)
                    cleared = clears_before < clears
                explanation = explain(
                    signature,
                    before,
                    same_line=row.called_from == location_before,
                    traced="trace" in row.seconds or row.op_by_op or row.nested,
                    cleared_at=cleared_at if cleared else None,
                )
                self._history.add(row.key, signature, row.called_from, clears)
                compiled = row.event(explanation)
                if self.on_row is not None:
                    self.on_row(row.key, compiled)
                self._writer.write(compiled)
            except IndexError:  # another thread was faster
                return
            except Exception as error:  # the program must not be affected
                if raised_by_program(error):
                    raise
                self.problem(error)
            finally:
                self._emitting.release()

    # `monitoring` calls the following methods in the thread that compiles.

    def stage_began(self, stage: str, function: str, frame: FrameType) -> None:
        """Begin a stage: find its row, or begin one with the call read from `frame`, JAX's innermost."""
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
            row.cache = "off"
            row.size = read_module_size(frame, arguments=bool(row.signature.donated or row.signature.numbers))
        if call is not None and stage == "trace" and call.found and self.on_call is not None:
            call = call.written or call
            self.on_call(call.function, _plain_name(function), call.args, call.kwargs)

    def stage_ended(self, stage: str, function: str) -> None:
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
        row = thread.last = ended.row
        row.ended = stage, now
        row.seconds[stage] = max(0.0, seconds - ended.apart)
        error = sys.exc_info()[1]
        failed = type(error).__name__ if error is not None and id(error) != ended.handled else ""
        del error
        if failed and stage == "trace":
            return
        with self._lock:
            if failed or stage == "compile":
                row.failed = failed
                self._end(row)
            else:  # it waits for its next stage
                self._waiting.append((threading.get_ident(), row, stage))
                oldest = self._waiting.pop(0) if len(self._waiting) > ROWS_WAITING_AT_MOST else None
                if oldest is not None and oldest[2] == "lower":
                    self._end(oldest[1])
        if self._ends[-1] - self._ends[0] > 1.0 or len(self._over) > ROWS_WAITING_AT_MOST:
            self.settle()  # else there are so many that the program would wait for it

    def cache_event(self, what: str) -> None:
        """Note that the persistent cache was `asked`, or answered `hit` or `miss`."""
        row = self._compiling()
        if row is not None:
            # JAX asks even if no cache is set up
            used = what != "asked" or getattr(sys.modules["jax"].config, "jax_compilation_cache_dir", None)
            if row.cache != "hit" and what != "hit":
                row.cache = "miss" if used else "off"
            else:
                row.cache = "hit"

    def cache_saved(self, seconds: float) -> None:
        """Note the seconds that a hit saved, as JAX estimates them."""
        row = self._compiling()
        if row is not None:
            row.saved_seconds = seconds

    def problem(self, error: Exception) -> None:
        """Count a failure to record, and warn at the first one. Raises nothing."""
        self.problems += 1
        if self.problems > 1:
            return
        text = f"{type(error).__name__}: {error}"[:500]
        try:
            self._emit(WarningRaised(monotonic_seconds=time.monotonic(), code="ledger_problem", values={"error": text}))
        except Exception:  # noqa: BLE001 nothing is left to report to, and the program must not be affected
            self.problems += 1

    def _compiling(self) -> CompilationRow | None:
        if os.getpid() != self._process:
            return None
        stages = self._threads.current().open
        return stages[-1].row if stages and stages[-1].stage == "compile" else None

    def _row(
        self, stage: str, function: str, frame: FrameType, thread: ThreadStages, now: float
    ) -> tuple[CompilationRow, ObservedCall | None]:
        """Return the row of a stage, one that waits for it or a new one, and the call if it was read."""
        name = _plain_name(function)
        last = thread.last
        follows = last is not None and last.leads_to(stage, name, now)
        location, through = (last.called_from, last.through) if last is not None and follows else user_call(frame)
        if stage != "trace":
            row = self._take_waiting(name, stage, location)
            if row is not None and not (stage == "lower" and row.signature.under):
                return row, None
            call = read_call(frame, name)
            if row is None and not call.found:
                row = self._take_waiting(name, stage, None)
            if row is not None:
                if call.found:  # under vmap or grad the program's arguments are only known now
                    self._describe(row, call, frame)
                return row, None
        else:
            call = read_call(frame, name)
        row = CompilationRow(name, now, name, thread.name, location, through)
        self._describe(row, call, frame)
        outer = thread.open[-1] if thread.open else None
        row.nested = outer is not None
        if stage == "lower" and outer is not None and outer.nested_trace is not None:
            traced, seconds = outer.nested_trace
            if traced == name:
                row.seconds["trace"] = seconds
                outer.apart += seconds
                outer.nested_trace = None
        return row, call

    def _take_waiting(self, name: str, stage: str, location: SourceLocation | None) -> CompilationRow | None:
        """Take the newest row waiting for this stage: of this thread and called from `location`, else of any thread."""
        with self._lock:
            for index in range(len(self._waiting) - 1, -1, -1):
                thread, row, last = self._waiting[index]
                here = location is None or (thread == threading.get_ident() and row.called_from == location)
                if row.announced == name and last == BEFORE[stage] and here:
                    del self._waiting[index]
                    return row
        return None

    def _describe(self, row: CompilationRow, call: ObservedCall, frame: FrameType) -> None:
        row.signature = self._reader.read(call)
        if not call.found:
            row.key = FunctionKey(row.announced, under="derived")
            row.defined_at, row.op_by_op, row.library = self._definitions.get(row.announced) or (NOWHERE, False, False)
            return
        defined, outer = self._definition(row, call.function), outer_code(call.function)
        if call.written is not None:
            defined, outer = code_of(call.written.function), outer_code(call.written.function)
        kind = file_kind(defined.co_filename) if defined is not None else USER
        row.defined_at, row.op_by_op, row.library = definition(defined), kind == JAX, kind != USER
        row.key = FunctionKey(
            row.function,
            row.defined_at.file,
            row.defined_at.line or 0,
            (outer.co_filename, outer.co_firstlineno) if outer is not None and outer is not defined else ("", 0),
            row.signature.under,
        )
        if kind == USER:
            again = self._history.is_known(row.key) or any(over.key == row.key for over, *_ in list(self._over))
            row.signature.made = factory_of((call.written or call).function, frame, find_location=again)
        if not row.announced.startswith("<"):
            if len(self._definitions) >= 4_000:
                self._definitions.clear()
            entry = (row.defined_at, row.op_by_op, row.library)
            if self._definitions.setdefault(row.announced, entry) != entry:
                self._definitions[row.announced] = None
        signature = row.signature
        if signature.numpy_bytes >= WORTH_COPYING_BYTES:
            # Mark the NumPy leaves that only the first call gets. Keep those of the aligned ones that are
            # the same array in every call: a device on the host uses them in place.
            by_user = call.written or call
            names = [name for name, _, _ in arguments_of(by_user)][: len(by_user.args)]
            first, same = in_later_calls(names, tuple(by_user.kwargs), frame)
            root = {at: _ROOT.split(signature.names[at], maxsplit=1)[0] for at in signature.numpy}
            signature.replaced = frozenset(at for at, name in root.items() if name in first)
            signature.aligned = frozenset(at for at in signature.aligned if root[at] in same)

    def _definition(self, row: CompilationRow, function: Any) -> CodeType | None:
        """Return the code that is compiled. The row is named after it if JAX's name is only a placeholder."""
        code = code_of(function)
        if not isinstance(function, FunctionType):
            if row.function.startswith("<unnamed"):
                row.function = type(function).__name__
            return code
        if code is not None and file_kind(code.co_filename) == JAX and primitive_parameters(function) is None:
            held = function_in_closure(function)
            if held is not None:
                row.function = held.__name__
                return code_of(held)
        return code

    def _end(self, row: CompilationRow) -> None:
        self._over.append((row, self._clears.count, self._clears.location))
        self._ends.append(time.monotonic())


def _plain_name(function: str) -> str:
    """Return `f` for `jit(f)`."""
    wrapper, bracket, inside = function.partition("(")
    return inside[:-1] if bracket and wrapper.isidentifier() and inside.endswith(")") else function
