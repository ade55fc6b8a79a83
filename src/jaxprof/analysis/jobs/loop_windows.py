"""The sample windows of a hot loop, kept by column.

Of a job of a thousand processes there are tens of thousands: as objects, one for each, they took more time than all
that was asked of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, overload

import numpy as np

from jaxprof.analysis.programs.verdict import PARTS

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True)
class LoopWindow:
    """The hot loop in one sample window."""

    began_seconds: float
    """Monotonic, of the window."""
    seconds: float
    """Spent in the loop, first compilations included: `parts` add up to it without those."""
    samples: float
    """Number of samples that `parts` rest on."""
    parts: Mapping[str, float]
    """Seconds that go to each of `PARTS`, from samples."""
    own_seconds: float | None = None
    """Seconds in which its main thread worked, or waited for something else than the device, by its CPU clock; None if
    the system has none."""
    first_step: int | None = None
    """Number of the first step that began in it; None if its steps were not numbered."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopWindows(Sequence[LoopWindow]):
    """W windows in the order of time: each column as `LoopWindow` has it."""

    began_seconds: Array
    seconds: Array
    samples: Array
    parts: Array
    """W x P, in the order of `PARTS`."""
    own_seconds: Array
    """NaN where it is not known."""
    first_steps: Array
    """NaN where it is not known."""

    @classmethod
    def of(cls, windows: Iterable[LoopWindow]) -> LoopWindows:
        """The columns of these windows; of what has columns, itself."""
        if isinstance(windows, LoopWindows):
            return windows
        rows = tuple(windows)
        return cls(
            _column(row.began_seconds for row in rows),
            _column(row.seconds for row in rows),
            _column(row.samples for row in rows),
            np.asarray([[row.parts[part] for part in PARTS] for row in rows], dtype="f8").reshape(-1, len(PARTS)),
            _column(row.own_seconds for row in rows),
            _column(row.first_step for row in rows),
        )

    def part(self, name: str) -> Array:
        """The column of one of `PARTS`."""
        found: Array = self.parts[:, PARTS.index(name)]
        return found

    def chosen(self, rows: Array | slice) -> LoopWindows:
        """Some of them: a slice, or those for which an array of truths is true."""
        return LoopWindows(
            self.began_seconds[rows],
            self.seconds[rows],
            self.samples[rows],
            self.parts[rows],
            self.own_seconds[rows],
            self.first_steps[rows],
        )

    def __eq__(self, other: object) -> bool:
        """Whether they hold the same windows; in a comparison of arrays, what is unknown would differ from itself."""
        if not isinstance(other, LoopWindows):
            return NotImplemented
        names = [field.name for field in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name), equal_nan=True) for name in names)

    __hash__ = None  # type: ignore[assignment]  # arrays can be written to

    def __len__(self) -> int:
        return len(self.seconds)

    @overload
    def __getitem__(self, at: int) -> LoopWindow: ...
    @overload
    def __getitem__(self, at: slice) -> LoopWindows: ...
    def __getitem__(self, at: int | slice) -> LoopWindow | LoopWindows:
        if isinstance(at, slice):
            return self.chosen(at)
        own, step = float(self.own_seconds[at]), float(self.first_steps[at])
        return LoopWindow(
            float(self.began_seconds[at]),
            float(self.seconds[at]),
            float(self.samples[at]),
            dict(zip(PARTS, self.parts[at].tolist(), strict=True)),
            None if np.isnan(own) else own,
            None if np.isnan(step) else int(step),
        )


def _column(values: Iterable[float | None]) -> Array:
    """NaN for what is not known."""
    return np.asarray([np.nan if value is None else value for value in values], dtype="f8")
