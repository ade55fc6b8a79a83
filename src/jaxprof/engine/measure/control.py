"""Controls a run from outside: cancelling it, the hard cap on its time, and its turns among other runs.

Cancelling and the cap are checked between calls and between phases; a running call is never interrupted. The run's
reporter passes phases with their times, progress and warnings to one listener, as events.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue

from jaxprof.engine.protocol.request import TurnRequest
from jaxprof.events import Event, PhaseEnded, PhaseStarted, ProgressMade, WarningRaised


class Cancelled(Exception):
    """The run was cancelled."""


class CapReached(Exception):
    """The run has reached the hard cap on its time."""


class RunControl:
    """The state of a run that is shared by the thread that measures it and the threads that control it."""

    def __init__(self) -> None:
        self._cancel = threading.Event()
        self._deadline: float | None = None
        self._turns: SimpleQueue[TurnRequest | None] = SimpleQueue()
        """Turns from the thread that reads requests; None ends the turns, or wakes a cancelled run."""
        self.waits_for_turn = False
        """Whether the run does nothing until the next turn."""
        self.on_wait: Callable[..., object] = lambda **_: None
        """Called with `begins=True` and `worked_seconds` before the run waits for a turn, and `begins=False` after."""

    def cancel(self) -> None:
        """Request that the run stop at the next opportunity."""
        self._cancel.set()
        self._turns.put(None)

    def give_turn(self, turn: TurnRequest | None) -> None:
        """Give the next turn to the run; None if there are no more."""
        self._turns.put(turn)

    def next_turn(self, announce: Callable[[], object], worked_seconds: float | None = None) -> TurnRequest | None:
        """Announce that the run waits, wait for its next turn and return it, or None for no more. Raises Cancelled and
        CapReached. `worked_seconds`: how long its last block took.

        From the announcement on the client may freeze this process at any moment, and the others have their turns:
        that time counts neither towards the hard cap nor as the run's own.
        """
        remaining = self.remaining_seconds()
        self.start_clock(None)
        self.on_wait(begins=True, worked_seconds=worked_seconds)
        announce()
        if remaining is not None and remaining <= 0:
            raise CapReached
        self.waits_for_turn = True
        turn = self._turns.get()
        self.waits_for_turn = False
        self.on_wait(begins=False)
        self.start_clock(remaining)
        self.check()
        return turn

    def start_clock(self, max_seconds: float | None) -> None:
        """Set the time that is left from now on, or None for no limit."""
        self._deadline = None if max_seconds is None else time.monotonic() + max_seconds

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the hard cap, negative past it; None without a cap."""
        deadline = self._deadline
        return None if deadline is None else deadline - time.monotonic()

    def check(self) -> None:
        """Raise Cancelled or CapReached if there is a reason to stop."""
        if self._cancel.is_set():
            raise Cancelled
        remaining = self.remaining_seconds()
        if remaining is not None and remaining <= 0:
            raise CapReached


Emit = Callable[[Event], None]


@dataclass(slots=True)
class PhaseReport:
    """What is known about a phase at its end; if `seconds` is None, the measured time is filled in."""

    seconds: float | None = None
    measured: bool = True
    """False if the measured time means nothing: the event's seconds are then None."""
    bytes: int | None = None
    zero_copy: bool | None = None
    page_faults: float | None = None
    kernel_share: float | None = None
    note: str = ""


class Reporter:
    """Emits events, and stops the run if its control requests it."""

    def __init__(self, emit: Emit, control: RunControl) -> None:
        self.emit = emit
        self.control = control
        self.samples = 0
        """Samples of the steady run so far: if there are any, a run that reaches its cap still has a result."""
        self.current_phase = ""
        self.shared_transfers: list[str] = []
        """Directions in which a transfer copied nothing."""

    @contextmanager
    def phase(self, name: str) -> Iterator[PhaseReport]:
        """Report a phase around the block. If it raises, there is no end event: the end of the run explains it."""
        self.control.check()
        self.current_phase = name
        self.emit(PhaseStarted(phase=name))
        phase = PhaseReport()
        began = time.perf_counter()
        yield phase
        took = time.perf_counter() - began
        seconds = phase.seconds if phase.seconds is not None else took
        self.emit(
            PhaseEnded(
                phase=name,
                seconds=seconds if phase.measured else None,
                bytes=phase.bytes,
                zero_copy=phase.zero_copy,
                page_faults=phase.page_faults,
                kernel_share=phase.kernel_share,
                note=phase.note,
            )
        )
        self.current_phase = ""

    def warn(self, code: str, **values: str | int | float) -> None:
        """Report what makes the numbers mean less than they seem to; `session.fold` has the sentence."""
        self.emit(WarningRaised(code=code, values=values))

    def progress(self, note: str = "", fraction: float | None = None, remaining_seconds: float | None = None) -> None:
        self.emit(ProgressMade(fraction=fraction, remaining_seconds=remaining_seconds, note=note))
