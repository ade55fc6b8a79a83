"""The difference of two programs or sessions, fact by fact, and limits on it.

The code of a figure is the key of its fact, which has the unit and the title (`facts.comparisons`). Things of two sides
are paired by `pairs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from jaxprof.base.values import frozen

Value = TypeVar("Value")


@frozen
class Difference(Generic[Value]):
    """One property of both sides, such as an entry of the environment or the dtype of a kernel; None if a side does not
    have it."""

    code: str
    """Name of the property."""
    before: Value | None
    after: Value | None

    @property
    def differs(self) -> bool | None:
        """Whether the sides differ; a property that only one side has differs."""
        return self.before != self.after


@frozen
class FigureDifference(Difference[float]):
    """One figure of both sides; None is unknown. Its code is an exact fact (`flops`), a phase of a call, a stage of a
    compilation, or a state of a program."""

    estimate: bool = False
    """Whether the figure was derived from the schedule, because the executable's own figure is missing."""

    @property
    def differs(self) -> bool | None:
        """Whether the sides differ; None if a side is unknown."""
        return None if self.before is None or self.after is None else self.before != self.after

    @property
    def growth(self) -> float | None:
        """Difference as a share of the first side: 0.1 is 10 % more. None if unknown, or if that side is 0."""
        if self.before is None or self.after is None:
            return None
        if self.before == self.after:
            return 0.0
        return self.after / self.before - 1 if self.before else None


def figures(
    before: Mapping[str, float | None], after: Mapping[str, float | None], *, estimate: bool = False
) -> tuple[FigureDifference, ...]:
    """Return the figures that either side has, in the order of the first side."""
    return tuple(FigureDifference(code, before.get(code), after.get(code), estimate) for code in {**before, **after})


def exact_facts(
    before: Mapping[str, float | None], after: Mapping[str, float | None], *, estimate: bool = False
) -> dict[str, FigureDifference]:
    """Return the facts that either side knows, by code."""
    rows = figures(before, after, estimate=estimate)
    return {row.code: row for row in rows if row.before is not None or row.after is not None}


def environments(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference[str], ...]:
    """Return everything that either side reported, differences first."""
    rows = [Difference(name, before.get(name), after.get(name)) for name in {**before, **after}]
    return tuple(sorted(rows, key=lambda row: not row.differs))
