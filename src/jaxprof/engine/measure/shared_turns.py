"""Runs in one process that take turns: the variants of one `jaxprof.profile` call.

There is one thread, the caller's, which has the caller's settings of JAX. So the runs are nested: a run that is warm
begins the next one, and the last one, inside all others, has every run take its blocks in the order of `stats.turns`.
Then the runs end from the inside out. All blocks are made at the same depth of the stack.

A run in the same process cannot be paused. So each block waits until the threads of the process are at rest: those of
NumPy's OpenBLAS spin for some hundredths of a second after a call, and would take a core from the next run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxprof.engine.measure.control import RunControl
from jaxprof.engine.protocol.request import TurnRequest
from jaxprof.stats.turns import (
    ALONE_SAMPLES,
    ALONE_SECONDS,
    ALONE_SHARE,
    ALONE_WARM_IN_SECONDS,
    UNPROBED_WARM_IN_SECONDS,
    plan_probes,
    plan_turns,
    settling_seconds,
)

if TYPE_CHECKING:
    from jaxprof.engine.measure.stages import CompileLedger


REST_SECONDS = 0.002
"""How long the process must hardly work before a block begins."""
REST_SHARE = 0.1
"""Share of a core that a process at rest may use."""
LONGEST_REST_SECONDS = 0.25
"""Longest wait for rest: a program whose own threads never rest is measured while they run."""


@dataclass(slots=True)
class _WaitingRun:
    call_seconds: float
    take: Callable[[TurnRequest], list[float]]
    ledgers: list[CompileLedger] = field(default_factory=list)
    """Ledgers of the compilations of this run."""
    error: Exception | None = None
    """Why the run takes no further block; None if it does."""


class SharedTurns:
    """The turns of several runs. `begin_next` measures the next run completely; it returns False if there is none."""

    def __init__(self, budget_seconds: float, begin_next: Callable[[], bool]) -> None:
        self._budget_seconds = budget_seconds
        self._begin_next = begin_next
        self._waiting: list[_WaitingRun] = []
        self._over = False
        self._blocks = 0

    def join(
        self, call_seconds: float, take: Callable[[TurnRequest], list[float]], settle: Callable[[], object]
    ) -> None:
        """Return when this run, which is warm, has taken all its blocks. Raises what a block of it raised."""
        from jaxprof.engine.measure.stages import only_ledgers

        run = _WaitingRun(call_seconds, take)
        self._waiting.append(run)
        with only_ledgers() as run.ledgers:
            self._alone(run)
            while self._begin_next():
                pass
            if self._over and run.error is None:
                settle()  # the runs inside have compiled theirs again for the capture, from empty caches
        if not self._over:
            self._over = True
            self._take_all()
        if run.error is not None:
            raise run.error

    def _take_all(self) -> None:
        calls = [run.call_seconds for run in self._waiting]
        warm_in = self._probe(calls)
        plan = plan_turns(calls, self._budget_seconds, warm_in_seconds=warm_in)
        for index in plan.order:
            self._block(self._waiting[index], "run", plan.block_seconds, plan.most_samples, warm_in[index])

    def _alone(self, waiting: _WaitingRun) -> None:
        """Take the run's calls in one go, with no other run's turn before them."""
        budget = min(ALONE_SECONDS, ALONE_SHARE * self._budget_seconds)
        self._block(waiting, "alone", budget, ALONE_SAMPLES, ALONE_WARM_IN_SECONDS)

    def _probe(self, calls: list[float]) -> list[float]:
        """Return how soon the calls of each run settle after the turn of another."""
        plan = plan_probes(calls)
        blocks: list[list[list[float]]] = [[] for _ in calls]
        for index in plan.order:
            took = self._block(self._waiting[index], "settling", plan.block_seconds, plan.most_samples)
            blocks[index].append(took)
        if not plan.order and len(calls) > 1:
            return [UNPROBED_WARM_IN_SECONDS * (call < UNPROBED_WARM_IN_SECONDS) for call in calls]
        return [settling_seconds(run_blocks) for run_blocks in blocks]

    def _block(
        self, waiting: _WaitingRun, series: str, block_seconds: float, most: int, warm_in_seconds: float = 0.0
    ) -> list[float]:
        """Take one block of a run, once the process is at rest; return its samples, or none if the run has failed."""
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
        except Exception as error:  # noqa: BLE001 - it is raised again in its own run, and ends that run
            waiting.error = error
            return []


def await_rest() -> None:
    """Return when the threads of this process hardly work any more, or after `LONGEST_REST_SECONDS`."""
    for _ in range(round(LONGEST_REST_SECONDS / REST_SECONDS)):
        used, began = time.process_time(), time.monotonic()
        time.sleep(REST_SECONDS)
        if time.process_time() - used <= REST_SHARE * (time.monotonic() - began):
            return


class TurnsControl(RunControl):
    """Controls one of the runs that share turns; while it waits, neither its hard cap nor its meters run."""

    def __init__(self, turns: SharedTurns) -> None:
        super().__init__()
        self._shared = turns

    def take_turns(
        self, call_seconds: float, take: Callable[[TurnRequest], list[float]], settle: Callable[[], object]
    ) -> None:
        """As `RunControl.take_turns`, without a client that gives the turns."""
        left = self._pause()

        def take_block(turn: TurnRequest) -> list[float]:
            nonlocal left
            self._resume(left)
            try:
                self.check()
                return take(turn)
            finally:
                left = self._pause()

        try:
            self._shared.join(call_seconds, take_block, settle)
        finally:
            self._resume(left)
        self.check()

    def _pause(self) -> float | None:
        """Stop the clock and the meters; return the seconds that are left until the hard cap."""
        left = self.remaining_seconds()
        self.stop_clock()
        self.on_wait(begins=True)
        return left

    def _resume(self, left: float | None) -> None:
        self.on_wait(begins=False)
        self.start_clock(left)
