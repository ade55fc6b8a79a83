"""Runs in one process that take turns: the variants of one `jaxprof.profile` call.

There is one thread, the caller's, whose settings of JAX hold. So the runs are nested: a run that is warm begins the
next one, and the last one, inside all others, has every run take its blocks in the order of `stats.turns`. Then the
runs end from the inside out. All blocks are made at the same depth of the stack.

No run of one process can be frozen. So each block waits until the threads of the process have come to rest: those of
NumPy's OpenBLAS spin for some hundredths of a second after a call, and would take a core from the next run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxprof.engine.measure.control import RunControl
from jaxprof.engine.protocol.request import TurnRequest
from jaxprof.stats import plan_turns
from jaxprof.stats.turns import (
    ALONE_SAMPLES,
    ALONE_SECONDS,
    ALONE_SHARE,
    ALONE_WARM_IN_SECONDS,
    UNPROBED_WARM_IN_SECONDS,
    plan_probes,
    settling_seconds,
)

if TYPE_CHECKING:
    from jaxprof.engine.measure.stages import CompileLedger


REST_SECONDS = 0.002
"""For so long the process must hardly work, before a block begins."""
REST_SHARE = 0.1
"""Of a core, that a process at rest may use."""
LONGEST_REST_SECONDS = 0.25
"""A program whose own threads never rest is measured beside them."""


@dataclass(slots=True)
class _Waiting:
    call_seconds: float
    take: Callable[[TurnRequest], list[float]]
    ledgers: list[CompileLedger] = field(default_factory=list)
    """Where what it compiles is written down."""
    error: Exception | None = None
    """Why it takes no further block."""


class SharedTurns:
    """The turns of several runs. `begin_next` measures the next one whole; it returns False if there is none."""

    def __init__(self, budget_seconds: float, begin_next: Callable[[], bool]) -> None:
        self._budget_seconds = budget_seconds
        self._begin_next = begin_next
        self._waiting: list[_Waiting] = []
        self._over = False
        self._blocks = 0

    def join(
        self, call_seconds: float, take: Callable[[TurnRequest], list[float]], settle: Callable[[], object]
    ) -> None:
        """Returns when this run, which is warm, has taken all its blocks. Raises what a block of it raised."""
        from jaxprof.engine.measure.stages import only_ledgers

        own = _Waiting(call_seconds, take)
        self._waiting.append(own)
        with only_ledgers() as own.ledgers:
            self._alone(own)
            while self._begin_next():
                pass
            if self._over and own.error is None:
                settle()  # the runs inside have compiled theirs again for the capture, from empty caches
        if not self._over:
            self._over = True
            self._take_all()
        if own.error is not None:
            raise own.error

    def _take_all(self) -> None:
        calls = [each.call_seconds for each in self._waiting]
        warm_in = self._probe(calls)
        plan = plan_turns(calls, self._budget_seconds, warm_in_seconds=warm_in)
        for index in plan.order:
            self._block(self._waiting[index], "run", plan.block_seconds, plan.most_samples, warm_in[index])

    def _alone(self, waiting: _Waiting) -> None:
        """Its calls in one go, with nobody's turn before them."""
        budget = min(ALONE_SECONDS, ALONE_SHARE * self._budget_seconds)
        self._block(waiting, "alone", budget, ALONE_SAMPLES, ALONE_WARM_IN_SECONDS)

    def _probe(self, calls: list[float]) -> list[float]:
        """How soon the calls of each run settle after the turn of another."""
        plan = plan_probes(calls)
        blocks: list[list[list[float]]] = [[] for _ in calls]
        for index in plan.order:
            took = self._block(self._waiting[index], "settling", plan.block_seconds, plan.most_samples)
            blocks[index].append(took)
        if not plan.order and len(calls) > 1:
            return [UNPROBED_WARM_IN_SECONDS * (call < UNPROBED_WARM_IN_SECONDS) for call in calls]
        return [settling_seconds(own) for own in blocks]

    def _block(
        self, waiting: _Waiting, series: str, block_seconds: float, most: int, warm_in_seconds: float = 0.0
    ) -> list[float]:
        """One block of a run, once the process is at rest; its samples, or none where it has failed."""
        if waiting.error is not None:
            return []
        from jaxprof.engine.measure.stages import only_ledgers

        await_rest()
        self._blocks += 1
        turn = TurnRequest(
            block=self._blocks,
            seconds=block_seconds,
            most_samples=most,
            warm_in_seconds=warm_in_seconds,
            series=series,
        )
        try:
            with only_ledgers(waiting.ledgers):
                return waiting.take(turn)
        except Exception as error:  # noqa: BLE001 - it is raised again in its own run, and ends that
            waiting.error = error
            return []


def await_rest() -> None:
    """Returns when the threads of this process hardly work any more, or after `LONGEST_REST_SECONDS`."""
    for _ in range(round(LONGEST_REST_SECONDS / REST_SECONDS)):
        used, began = time.process_time(), time.monotonic()
        time.sleep(REST_SECONDS)
        if time.process_time() - used <= REST_SHARE * (time.monotonic() - began):
            return


class TurnsControl(RunControl):
    """Steers one of the runs that share turns; while it waits, neither its hard cap nor its meters run."""

    def __init__(self, turns: SharedTurns) -> None:
        super().__init__()
        self._shared = turns

    def take_turns(
        self, call_seconds: float, take: Callable[[TurnRequest], list[float]], settle: Callable[[], object]
    ) -> None:
        """As `RunControl.take_turns`, without a client that gives the turns."""
        left = self._pause()

        def one(turn: TurnRequest) -> list[float]:
            nonlocal left
            self._go_on(left)
            try:
                self.check()
                return take(turn)
            finally:
                left = self._pause()

        try:
            self._shared.join(call_seconds, one, settle)
        finally:
            self._go_on(left)
        self.check()

    def _pause(self) -> float | None:
        """The seconds that are left until the hard cap."""
        left = self.remaining_seconds()
        self.stop_clock()
        self.on_wait(begins=True)
        return left

    def _go_on(self, left: float | None) -> None:
        self.on_wait(begins=False)
        self.start_clock(left)
