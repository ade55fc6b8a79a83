"""Rows of the ledger on their way out: single ones at first, put together once there are very many."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from jaxprof.events import Compiled, Event, WarningRaised
from jaxprof.program.compiles.signature import LEAVES_SHOWN, Signature

ROWS_IN_FULL: Final = 2_000
FOLDED_EVERY_SECONDS: Final = 1.0


@dataclass(slots=True)
class Row:
    """One compilation while it goes through its stages."""

    announced: str
    """The function as JAX names it."""
    began: float
    function: str = ""
    """As it is told: the same, but where JAX's name says nothing."""
    thread: str = ""
    called_from: dict[str, Any] = field(default_factory=dict)
    defined_at: dict[str, Any] = field(default_factory=dict)
    signature: Signature = field(default_factory=Signature)
    key: Any = None
    seconds: dict[str, float] = field(default_factory=dict)
    """Of each stage that is over, without the compilations nested in it."""
    cache: str | None = None
    saved_seconds: float | None = None
    operations: int | None = None
    constants: list[dict[str, Any]] = field(default_factory=list)
    op_by_op: bool = False
    library: bool = False
    nested: bool = False
    """Compiled while something else was traced: JAX announces no trace of its own then."""
    failed: str = ""
    """Kind of the exception that ended a stage."""

    def event(self, reason_code: str, reason: str) -> Compiled:
        """The row as it is told."""
        shown = self.signature.rows()
        return Compiled(
            monotonic_seconds=time.monotonic(),
            function=self.function,
            began_seconds=self.began,
            called_from=self.called_from,
            defined_at=self.defined_at,
            thread=self.thread,
            trace_seconds=self.seconds.get("trace"),
            lower_seconds=self.seconds.get("lower"),
            compile_seconds=self.seconds.get("compile"),
            cache=self.cache,
            saved_seconds=self.saved_seconds,
            operations=self.operations,
            constants=self.constants,
            signature=shown,
            signature_more=max(0, len(self.signature.leaves) - LEAVES_SHOWN),
            reason=reason,
            reason_code=reason_code,
            op_by_op=self.op_by_op,
            library=self.library,
        )


class RowWriter:
    """Emits rows; from `ROWS_IN_FULL` on those of one function, line and reason are emitted as one, now and then."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._written = 0
        self._folded: dict[tuple[Any, ...], Compiled] = {}
        self._flushed_at = 0.0

    def write(self, row: Compiled) -> None:
        """Tells one row, at once or later."""
        self._written += 1
        if self._written <= ROWS_IN_FULL:
            self._emit(row)
            return
        if self._written == ROWS_IN_FULL + 1:
            self._flushed_at = time.monotonic()
            self._emit(
                WarningRaised(
                    monotonic_seconds=time.monotonic(),
                    code="ledger_folded",
                    message=f"more than {ROWS_IN_FULL} compilations: from here on those of one function, line and"
                    " reason are one row with their count",
                    advice="look at the functions with the most compilations first",
                )
            )
        key = (
            row.function, row.called_from.get("file"), row.called_from.get("line"), row.reason_code, row.thread,
            row.cache,
        )  # fmt: skip
        known = self._folded.get(key)
        self._folded[key] = row if known is None else _together(known, row)
        if time.monotonic() - self._flushed_at >= FOLDED_EVERY_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Tells what waits."""
        waiting, self._folded = list(self._folded.values()), {}
        self._flushed_at = time.monotonic()
        for row in waiting:
            self._emit(row)


def _together(first: Compiled, second: Compiled) -> Compiled:
    """Two rows as one: seconds and counts are summed, the rest is of the later one."""
    return replace(
        second,
        began_seconds=first.began_seconds,
        trace_seconds=_sum(first.trace_seconds, second.trace_seconds),
        lower_seconds=_sum(first.lower_seconds, second.lower_seconds),
        compile_seconds=_sum(first.compile_seconds, second.compile_seconds),
        saved_seconds=_sum(first.saved_seconds, second.saved_seconds),
        count=first.count + second.count,
    )


def _sum(first: float | None, second: float | None) -> float | None:
    return second if first is None else first if second is None else first + second
