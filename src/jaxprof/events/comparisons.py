"""A comparison by `jaxprof ab`: what its sides are, and how far their results are from the first one's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from jaxprof.events.base import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSpec:
    """What distinguishes one side, beside what its run says of itself."""

    label: str
    """`A`, `B`..., as in `RunSpec.side`."""
    title: str
    """What it is, for people: `train.py:step at HEAD~1 (19789fa)`."""
    python: str = ""
    """Path of its interpreter."""
    environment: dict[str, str] = field(default_factory=dict)
    """The variables that were set for it."""
    precision: str = ""
    """The matrix precision that was asked for it; empty: none."""
    revision: str = ""
    """The git revision as it was asked for, `HEAD~1`; empty: the files on disk."""
    commit: str = ""
    """With `--git`, the abbreviated hash of its commit; of the files on disk, that of HEAD."""
    repository: str = ""
    """With `--git`, the repository's folder."""
    dirty: bool | None = None
    """With `--git`, whether its files differ from `commit`; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlanned(Event):
    """Sides are compared. `run` is that of the first one, A; the runs of the others have it as their baseline."""

    type: ClassVar[str] = "comparison_planned"

    sides: list[SideSpec] = field(default_factory=list)
    """A, B... in order; the control A' is A."""
    margin: float
    """Within this share of each other, two sides are called the same."""
    group_seconds: float | None = None
    """How long all sides may be measured together; None: as long as their launches take."""
    inputs: list[str] = field(default_factory=list)
    """Dtype and shape of each array that all sides are called with."""
    same_inputs: bool = False
    """Whether the numbers in them are the same, too."""
    notes: list[str] = field(default_factory=list)
    """What differs between the sides, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsCompared(Event):
    """How far the result of a side is from its baseline's, array by array."""

    type: ClassVar[str] = "results_compared"

    alike: bool
    """Whether the two have the same arrays: number, shapes and dtypes."""
    agree: bool
    """Whether they differ by no more than two ways to compute the same."""
    relative: float | None = None
    """The largest error over the largest magnitude of its array. None if not alike, and where one is NaN or infinite
    and the other is not."""
    ulps: int | None = None
    """The largest error in units of the last place of the largest magnitude of its array; None without floating-point
    arrays, and where `relative` is None."""
    where: str = ""
    """The array of the largest error, if there are several."""
    note: str = ""
    """What is not alike, or why nothing could be compared."""

    @property
    def equal(self) -> bool:
        """Whether they are the same number by number."""
        return self.alike and self.relative == 0

    @property
    def how_far(self) -> str:
        """`by 3.0e-02 in ['w']`, of two results that are alike."""
        where = f" in {self.where}" if self.where else ""
        return f"where one of them is not finite{where}" if self.relative is None else f"by {self.relative:.1e}{where}"
