"""Since when a process is late: the stretch of its loop in which its share is most above those of the others.

The processes are laid beside each other by the time since their loops began, which they do together: no clocks are
compared. The stretch is the one that maximises the sum of the differences over the root of its length (the scan
statistic for a change of the mean; see D. Siegmund, "Boundary crossing probabilities and statistical applications",
1988). Whether somebody is late in it, the test of whole loops decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.jobs.blocks import LEAST_DIFFERENCE, OWN_WORK
from jaxprof.analysis.jobs.figures import LoopWindow

if TYPE_CHECKING:
    import numpy as np

    Shares = np.ndarray[Any, np.dtype[np.float64]]

LEAST_CELLS: Final = 10
"""A shorter stretch is none: it may be what any process has now and then."""
MOST_CELLS: Final = 200
"""Of the time of a loop, in which the stretch begins and ends."""


_WORTH_A_TEST: Final = 3.0
"""Standard errors below which the test of a stretch would not call it certain."""


@dataclass(frozen=True, slots=True)
class LateStretch:
    """Some time of a loop, in seconds since it began."""

    began_seconds: float
    """0 for one that holds from the start."""
    ended_seconds: float | None
    """None for one that holds to the end."""

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole loop."""
        return self.began_seconds == 0 and self.ended_seconds is None

    def windows(self, windows: Sequence[LoopWindow], origin: float) -> list[LoopWindow]:
        """The windows of a loop that began at `origin` which lie in it, by their middles."""
        end = float("inf") if self.ended_seconds is None else self.ended_seconds
        return [
            window
            for window in windows
            if self.began_seconds <= window.began_seconds - origin + window.seconds / 2 < end
        ]


WHOLE: Final = LateStretch(0.0, None)


class Differences:
    """By process and cell of time: how much more of its loop goes to something than on the others."""

    def __init__(self, loops: Sequence[Sequence[LoopWindow]], what: str) -> None:
        """`loops`: the windows of each process; at least two of them."""
        import numpy as np

        ends = [windows[-1].began_seconds + windows[-1].seconds - windows[0].began_seconds for windows in loops]
        self.tests = min(MOST_CELLS, max(map(len, loops)))
        self._cell = max(ends) / self.tests
        rows = [self._row(windows, what) for windows in loops]
        shares = np.array(rows)
        if len(shares) == 2:
            self._more = shares - shares[::-1]
        else:
            with np.errstate(all="ignore"):
                self._more = shares - _median(shares)

    def _row(self, windows: Sequence[LoopWindow], what: str) -> Shares:
        import numpy as np

        origin = windows[0].began_seconds
        middles = np.array([window.began_seconds - origin + window.seconds / 2 for window in windows])
        cells = np.minimum((middles / self._cell).astype(int), self.tests - 1)
        took = np.bincount(cells, [window.seconds for window in windows], self.tests)
        part = np.bincount(cells, [_share(window, what) * window.seconds for window in windows], self.tests)
        return np.where(took > 0, part / np.where(took > 0, took, 1.0), np.nan)

    def stretch(self, number: int) -> tuple[LateStretch, LateStretch] | None:
        """Where the process at that place is most above the others, and of that what can be said: with what is as late
        before and after it, or too short to say otherwise. None where nothing lasts for `LEAST_CELLS` cells and is
        worth naming."""
        import numpy as np

        known = np.flatnonzero(np.isfinite(self._more[number]))
        more = self._more[number][known]
        if len(more) < LEAST_CELLS:
            return None
        sums = np.concatenate([[0.0], np.cumsum(more)])
        lengths = np.arange(len(sums))[None, :] - np.arange(len(sums))[:, None]
        scores = np.where(
            lengths >= LEAST_CELLS, (sums[None, :] - sums[:, None]) / np.sqrt(np.maximum(lengths, 1)), -np.inf
        )
        low, high = (int(each) for each in np.unravel_index(int(np.argmax(scores)), scores.shape))
        inside = (sums[high] - sums[low]) / (high - low)
        noise = float(np.std(more[low:high])) / (high - low) ** 0.5
        if inside < LEAST_DIFFERENCE or inside < _WORTH_A_TEST * noise:
            return None
        most = self._between(known, low, high)
        if low < LEAST_CELLS or sums[low] / low > inside / 2:
            low = 0
        rest = len(more) - high
        if rest < LEAST_CELLS or (sums[-1] - sums[high]) / rest > inside / 2:
            high = len(more)
        return most, self._between(known, low, high)

    def _between(self, known: np.ndarray[Any, np.dtype[np.int64]], low: int, high: int) -> LateStretch:
        """From one to before another of the cells that are known."""
        began = float(known[low] * self._cell) if low else 0.0
        return LateStretch(began, float((known[high - 1] + 1) * self._cell) if high < len(known) else None)


def _median(shares: Shares) -> Shares:
    import warnings

    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cells that no process has
        return np.asarray(np.nanmedian(shares, axis=0))


def _share(window: LoopWindow, what: str) -> float:
    if what == OWN_WORK:
        return (window.own_seconds or 0.0) / window.seconds
    return window.parts[what] / window.seconds
