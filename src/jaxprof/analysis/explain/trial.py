"""What trying a fix showed, as a value: the ratio with its verdict, and whether the numbers are still the same."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

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


_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)(?![\w])")
_ACCEPTED: Final = 1e-4
"""Relative: what two ways to compute the same in float32 differ by at most, as in the check of results."""
MOST_CHARACTERS: Final = 1 << 20
"""Of what a launch prints, so much is compared."""


def compare_printed(unchanged: Sequence[str], changed: Sequence[str]) -> NumbersCompared:
    """The numbers that launches of the unchanged and of the changed program printed. What differs between two launches
    of the unchanged one (times, dates, identifiers) is left out, so at least two are needed."""
    if len(unchanged) < 2 or not changed:
        return _unknown_numbers("too few launches")
    before, after = [_printed_lines(text) for text in unchanged], [_printed_lines(text) for text in changed]
    if len({len(lines) for lines in before}) > 1:
        return _unknown_numbers("the program prints another number of lines at each launch")
    if any(len(lines) != len(before[0]) for lines in after):
        return NumbersCompared(of="printed", agree=False, note="another number of lines is printed")
    compared, worst, note = 0, 0.0, ""
    for number, lines in enumerate(zip(*before, strict=True), start=1):
        words, values = lines[0]
        if any(line[0] != words for line in lines):
            continue  # what is printed here differs from launch to launch
        there = [launch[number - 1] for launch in after]
        if any(line[0] != words for line in there):
            return NumbersCompared(of="printed", agree=False, note=f"line {number} of what is printed is another one")
        for at, value in enumerate(values):
            if any(line[1][at] != value for line in lines):
                continue
            compared += 1
            apart = max(_apart(float(value), float(line[1][at])) for line in there)
            if apart > worst:
                worst, note = apart, f"line {number} of what is printed"
    if not compared:
        return _unknown_numbers("the program prints no number that is the same at each launch")
    return NumbersCompared(
        of="printed",
        compared=compared,
        agree=worst <= _ACCEPTED,
        relative=worst if math.isfinite(worst) else None,
        note=note if worst > _ACCEPTED else "",
    )


def _unknown_numbers(note: str) -> NumbersCompared:
    return NumbersCompared(of="printed", note=note)


def _printed_lines(text: str) -> list[tuple[str, list[str]]]:
    """Each line without its numbers, and the numbers."""
    return [(_NUMBER.sub("#", line), _NUMBER.findall(line)) for line in text[:MOST_CHARACTERS].splitlines()]


def _apart(right: float, got: float) -> float:
    if right == got or (math.isnan(right) and math.isnan(got)):
        return 0.0
    if not (math.isfinite(right) and math.isfinite(got)):
        return math.inf
    return abs(right - got) / max(abs(right), abs(got))
