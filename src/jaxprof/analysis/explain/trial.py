"""What trying a fix showed, as a value: the ratio with its verdict, and whether the numbers are still the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from jaxprof.stats import TimeComparison

Outcome: TypeAlias = Literal["faster", "slower", "same", "inconclusive", "failed", "not tried"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersCompared:
    """Whether the changed side computes what the recorded one does."""

    of: Literal["results", "printed"]
    """What was compared: the arrays that a function returns, or the numbers that a program prints."""
    compared: int | None = None
    """How many numbers were printed, or how many calls were made both ways; None where that was not counted."""
    agree: bool | None = None
    """Whether they differ by no more than two ways to compute the same; None: nothing could be compared."""
    relative: float | None = None
    """The largest difference, relative; 0 where all are equal, None where it is unknown."""
    note: str = ""
    """What is not alike, or why nothing could be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixTrial:
    """A fix beside what it replaces, measured in fresh processes."""

    fix: str
    """What the changed side had."""
    reason: str = ""
    """Why it was not tried, or failed; empty where both sides were measured."""
    failed: bool = False
    """Whether the changed side was started and failed."""
    times: TimeComparison | None = None
    """Of the changed side, beside the recorded one."""
    seconds: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """Of the recorded and of the changed side: how long each launch, or one call in each, took."""
    of: str = ""
    """What the seconds are of: `launch` or `call`."""
    bytes: tuple[int | None, int | None] | None = None
    """What a call of each holds at once, where the fix is one of memory."""
    numbers: NumbersCompared | None = None
    other_numbers: str = ""
    """Why the fix gives other numbers, where it does."""
    session: str = ""
    """Where its comparison is kept; empty: nowhere."""
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What may be said of the time."""
        if self.times is None:
            return "failed" if self.failed else "not tried"
        return self.times.verdict()

    @property
    def differs(self) -> bool:
        """Whether the numbers are others, and the fix does not explain that: a faster side is no gain then."""
        return self.numbers is not None and self.numbers.agree is False and not self.other_numbers

    @property
    def saved_bytes(self) -> int | None:
        """How much less the changed side holds; None where that is unknown, or not what the fix is for."""
        before, after = self.bytes or (None, None)
        return None if before is None or after is None else before - after

    @property
    def gains(self) -> bool:
        """Whether the fix is faster, or holds less memory without being slower, and nothing speaks against it."""
        if self.differs:
            return False
        return self.outcome == "faster" or (self.outcome in ("same", "inconclusive") and (self.saved_bytes or 0) > 0)
