"""Compilations while they run and once they are over: the stages of each thread, and the row of each compilation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jaxprof.base.values import dataclass, field
from jaxprof.events import NOWHERE, STAGES, Compiled, CompileReason, Event, SourceLocation, WarningRaised
from jaxprof.recorder.compiles.module_size import ModuleSize
from jaxprof.recorder.compiles.signature import LEAVES_SHOWN, Signature

ROWS_IN_FULL = 2_000
BEFORE = {"lower": "trace", "compile": "lower"}
"""Stage → the one before it."""


@dataclass(slots=True)
class OpenStage:
    """A stage that has begun and not ended."""

    stage: str
    function: str
    began: float
    row: CompilationRow | None
    """Row of the compilation; None for a trace that is part of another trace."""
    handled: int
    """Address of the exception handled when the stage began: another one at its end was raised in the stage."""
    apart: float = 0.0
    """Seconds of the nested compilations, which have their own rows."""
    nested_trace: tuple[str, float] | None = None
    """Name and seconds of the last trace that ended inside this stage, in case it is a program of its own."""


@dataclass(slots=True)
class ThreadStages:
    """The open stages of one thread, innermost last."""

    name: str
    """Name of the thread; empty for the main thread."""
    main: bool
    open: list[OpenStage] = field(default_factory=list)
    last: CompilationRow | None = None

    def close(self, stage: str, function: str) -> OpenStage | None:
        """Remove and return the innermost open stage of that kind and name, with any stages left open inside it."""
        for index in range(len(self.open) - 1, -1, -1):
            closed = self.open[index]
            if closed.stage == stage and closed.function == function:
                del self.open[index:]
                return closed
        return None


class Threads:
    """The stages of every thread that has compiled."""

    def __init__(self, main_thread: int) -> None:
        self._main_thread = main_thread
        self._threads: dict[int, ThreadStages] = {}

    def current(self) -> ThreadStages:
        ident = threading.get_ident()
        stages = self._threads.get(ident)
        if stages is None or (not stages.open and not stages.main and ident not in _names()):
            # A program may start threads for ever, and each leaves its entry behind.
            if len(self._threads) >= 64:
                for idle in [thread for thread, known in list(self._threads.items()) if not known.open]:
                    del self._threads[idle]
            main = ident == self._main_thread
            # threading.current_thread() would register a thread that Python did not start, so only look it up
            stages = self._threads[ident] = ThreadStages("" if main else _names().get(ident, f"thread {ident}"), main)
        return stages

    def all(self) -> list[ThreadStages]:
        """Return the stages of every thread. Any thread may call this."""
        return list(self._threads.values())


def _names() -> dict[int, str]:
    return {thread.ident: thread.name for thread in threading.enumerate() if thread.ident is not None}


class ExclusiveClock:
    """Seconds of each stage without those nested in it, including the running stage up to now.

    Invariant: one thread switches it and any thread may read it without a lock, because the whole state is one tuple
    that is replaced at once.
    """

    def __init__(self) -> None:
        self._state: tuple[dict[str, float], str, float] = (dict.fromkeys(STAGES, 0.0), "", 0.0)

    def switch(self, stage: str, now: float) -> None:
        """Enter `stage`, or none if it is empty."""
        seconds, running, since = self._state
        if running:
            seconds = {**seconds, running: seconds[running] + now - since}
        self._state = (seconds, stage, now)

    def read(self, now: float) -> dict[str, float]:
        seconds, running, since = self._state
        if running:
            return {**seconds, running: seconds[running] + max(0.0, now - since)}
        return dict(seconds)


@dataclass(slots=True)
class CompilationRow:
    """One compilation while it passes through its stages."""

    announced: str
    began: float
    function: str = ""
    """The name that is shown: the announced one, unless that is only a placeholder."""
    thread: str = ""
    called_from: SourceLocation = NOWHERE
    through: str = ""
    defined_at: SourceLocation = NOWHERE
    signature: Signature = field(default_factory=Signature)
    key: Any = None
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds by ended stage, without the compilations nested in it."""
    ended: tuple[str, float] = ("", 0.0)
    """The last stage that ended, and the monotonic time of its end."""
    cache: str | None = None
    saved_seconds: float | None = None
    size: ModuleSize = field(default_factory=ModuleSize)
    op_by_op: bool = False
    library: bool = False
    nested: bool = False
    """Whether this was compiled while something else was traced: JAX then announces no trace of its own for it."""
    failed: str = ""
    """Type of the exception that ended a stage; empty if none did."""

    def leads_to(self, stage: str, function: str, now: float) -> bool:
        """Whether a stage that begins in the same thread is so surely the next one of this compilation that its place
        need not be found on the stack, which takes 10 to 30 µs."""
        # JAX goes from one stage of a compilation to the next at once.
        before, ended = self.ended
        return self.announced == function and BEFORE.get(stage) == before and now - ended < 0.05

    def event(self, explanation: dict[str, Any]) -> Compiled:
        """Return the row as an event. `explanation`: its fields that say why it was compiled."""
        signature, size = self.signature, self.size
        if self.failed:
            failed = CompileReason(kind="failed", now=self.failed)
            explanation = {**explanation, "reasons": [*explanation.get("reasons", ()), failed]}
        takes_all = size.arguments == sum(not leaf.is_static for leaf in signature.leaves)
        return Compiled(
            monotonic_seconds=time.monotonic(),
            function=self.function,
            began_seconds=self.began,
            called_from=self.called_from,
            through=self.through,
            defined_at=self.defined_at,
            thread=self.thread,
            trace_seconds=self.seconds.get("trace"),
            lower_seconds=self.seconds.get("lower"),
            compile_seconds=self.seconds.get("compile"),
            cache=self.cache,
            saved_seconds=self.saved_seconds,
            operations=size.operations,
            checksum=size.checksum,
            callbacks=size.callbacks,
            made_by=size.made_by,
            constants=size.constants,
            signature=signature.rows(),
            signature_more=max(0, len(signature.leaves) - LEAVES_SHOWN),
            numpy_bytes=signature.numpy_bytes,
            numbers=signature.numbers if takes_all else 0,
            unused_donations=signature.unused_donations(size.taken),
            op_by_op=self.op_by_op,
            library=self.library,
            **explanation,
        )


class RowWriter:
    """Emits rows. After `ROWS_IN_FULL`, those of one function, line and reason are folded, and emitted now and then."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._written = 0
        self._folded: dict[tuple[Any, ...], Compiled] = {}
        self._flushed_at = 0.0

    def write(self, row: Compiled) -> None:
        """Emit a row, at once or later."""
        self._written += 1
        if self._written <= ROWS_IN_FULL:
            self._emit(row)
            return
        if self._written == ROWS_IN_FULL + 1:
            self._flushed_at = time.monotonic()
            self._emit(
                WarningRaised(monotonic_seconds=time.monotonic(), code="ledger_folded", values={"most": ROWS_IN_FULL})
            )
        key = (
            row.function, row.called_from.file, row.called_from.line, row.reason_code, row.thread,
            row.cache,
        )  # fmt: skip
        earlier = self._folded.get(key)
        if earlier is not None:  # seconds and counts are added up, everything else comes from the later row
            added: dict[str, Any] = {}
            for name in ("trace_seconds", "lower_seconds", "compile_seconds", "saved_seconds"):
                known = [seconds for each in (earlier, row) if (seconds := getattr(each, name)) is not None]
                added[name] = sum(known) if known else None
            row = replace(row, began_seconds=earlier.began_seconds, count=earlier.count + row.count, **added)
        self._folded[key] = row
        if time.monotonic() - self._flushed_at >= 1.0:
            self.flush()

    def flush(self) -> None:
        waiting, self._folded = list(self._folded.values()), {}
        self._flushed_at = time.monotonic()
        for row in waiting:
            self._emit(row)
