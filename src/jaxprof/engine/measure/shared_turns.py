"""Runs in one process that take turns: the variants of one `jaxprof.profile` call.

There is one thread, the caller's, whose settings of JAX hold. So the runs are nested: a run that is warm begins the
next one, and the last one, inside all others, has every run take its blocks in the order of `stats.turns`. Then the
runs end from the inside out. All blocks are made at the same depth of the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxprof.engine.measure.control import RunControl
from jaxprof.engine.protocol.request import TurnRequest
from jaxprof.stats import plan_turns

if TYPE_CHECKING:
    from jaxprof.engine.measure.stages import CompileLedger


@dataclass(slots=True)
class _Waiting:
    call_seconds: float
    take: Callable[[TurnRequest], None]
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

    def join(self, call_seconds: float, take: Callable[[TurnRequest], None], settle: Callable[[], object]) -> None:
        """Returns when this run, which is warm, has taken all its blocks. Raises what a block of it raised."""
        from jaxprof.engine.measure.stages import only_ledgers

        own = _Waiting(call_seconds, take)
        self._waiting.append(own)
        with only_ledgers() as own.ledgers:
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
        from jaxprof.engine.measure.stages import only_ledgers

        plan = plan_turns([each.call_seconds for each in self._waiting], self._budget_seconds)
        for block, index in enumerate(plan.order, start=1):
            waiting = self._waiting[index]
            if waiting.error is None:
                try:
                    with only_ledgers(waiting.ledgers):
                        waiting.take(
                            TurnRequest(block=block, seconds=plan.block_seconds, most_samples=plan.most_samples)
                        )
                except Exception as error:  # noqa: BLE001 - it is raised again in its own run, and ends that
                    waiting.error = error


class TurnsControl(RunControl):
    """Steers one of the runs that share turns; while it waits, neither its hard cap nor its meters run."""

    def __init__(self, turns: SharedTurns) -> None:
        super().__init__()
        self._shared = turns

    def take_turns(
        self, call_seconds: float, take: Callable[[TurnRequest], object], settle: Callable[[], object]
    ) -> None:
        """As `RunControl.take_turns`, without a client that gives the turns."""
        left = self._pause()

        def one(turn: TurnRequest) -> None:
            nonlocal left
            self._go_on(left)
            try:
                self.check()
                take(turn)
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
