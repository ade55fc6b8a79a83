"""Which functions JAX traced, lowered and compiled, and when: its public monitoring events, kept as spans.

The listener is registered once a process and forwards to the ledgers that are open: older versions of JAX cannot
take a listener back.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax.monitoring

_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_CACHE_HIT = "/jax/compilation_cache/cache_hits"
_CACHE_MISS = "/jax/compilation_cache/cache_misses"


@dataclass(frozen=True, slots=True)
class Span:
    """One stage of one compilation, on the clock of `time.perf_counter`."""

    stage: str
    function: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """How long it took, with what was nested in it."""
        return self.ended - self.began


@dataclass(slots=True)
class CompileLedger:
    """What was announced while it was open."""

    spans: list[Span] = field(default_factory=list)
    cache_hits: int = 0
    cache_misses: int = 0

    def count(self, stage: str) -> int:
        """How many times a stage was gone through."""
        return sum(span.stage == stage for span in self.spans)

    def seconds_by_stage(self) -> dict[str, float]:
        """Time of each stage that occurred, without the stages nested in it: the parts of a whole."""
        return exclusive_seconds(self.spans)


def exclusive_seconds(spans: list[Span]) -> dict[str, float]:
    """Time of each stage without what is nested, so that the stages add up to the time that they cover.

    Tracing a function traces the functions that it calls, and may compile one whose value it needs.
    """
    seconds: dict[str, float] = defaultdict(float)
    enclosing: list[Span] = []
    for span in sorted(spans, key=lambda item: (item.began, -item.ended)):
        while enclosing and enclosing[-1].ended <= span.began:
            enclosing.pop()
        if enclosing:
            seconds[enclosing[-1].stage] -= min(span.ended, enclosing[-1].ended) - span.began
        seconds[span.stage] += span.seconds
        enclosing.append(span)
    return {stage: max(0.0, total) for stage, total in seconds.items()}


_open: list[CompileLedger] = []
_registered: list[bool] = []


@contextmanager
def compile_ledger() -> Iterator[CompileLedger]:
    """A ledger of the compilations inside the block."""
    if not _registered:
        jax.monitoring.register_event_duration_secs_listener(_on_duration)
        jax.monitoring.register_event_listener(_on_event)
        _registered.append(True)
    ledger = CompileLedger()
    _open.append(ledger)
    try:
        yield ledger
    finally:
        _open.remove(ledger)


def _on_duration(event: str, duration_secs: float, **details: Any) -> None:
    stage = _STAGES.get(event)
    if stage is None or not _open:
        return
    ended = time.perf_counter()
    span = Span(stage, str(details.get("fun_name") or "unknown"), ended - duration_secs, ended)
    for ledger in _open:
        ledger.spans.append(span)


def _on_event(event: str, **details: Any) -> None:
    for ledger in _open:
        ledger.cache_hits += event == _CACHE_HIT
        ledger.cache_misses += event == _CACHE_MISS
