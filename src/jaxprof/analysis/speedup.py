"""How many times as fast a run is as its baseline: from the turns of both, launch by launch, with a verdict.

Each launch of runs in turns also samples each of them in one go, before anybody's turn (`RunLaunch.alone`). Where that
differs from the turns by more than its interval, the others disturb the run: then its figures are those of it alone,
and no verdict stands on the turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from jaxprof.events import DeviceReading
from jaxprof.session import Run, Session
from jaxprof.session.run import UNLIKE_RESULTS, RunLaunch
from jaxprof.stats import (
    BLOCK_SECONDS,
    Block,
    LaunchBlocks,
    TimeComparison,
    Verdict,
    compare,
    compare_apart,
    in_blocks,
    is_rough,
    middle,
    refuse,
    turns_over_alone,
)
from jaxprof.units import counted

Derived = TypeVar("Derived")
_KEPT_LIMIT = 512
BUSY_SHARE = 0.15
"""Share of the cores, used by other processes during the run, above which the machine is called busy."""


class Memo(Generic[Derived]):
    """What was derived of objects that only grow, such as samples: derived again only when one of them has grown."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[tuple[object, ...], Derived]] = {}

    def of(self, grown: tuple[object, ...], size: object, derive: Callable[[], Derived]) -> Derived:
        """What was derived of these objects at that size."""
        key = (*map(id, grown), size)
        kept = self._kept.get(key)
        if kept is None or any(a is not b for a, b in zip(kept[0], grown, strict=True)):  # an id can be reused
            if len(self._kept) >= _KEPT_LIMIT:
                self._kept.clear()
            kept = self._kept[key] = grown, derive()
        return kept[1]


_disturbed: Memo[Disturbed | None] = Memo()
_times_of: Memo[TimeComparison] = Memo()


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A run that takes another time beside the others of its group."""

    turns_seconds: float
    """A call in turns."""
    alone_seconds: float
    """A call alone."""


def disturbed(run: Run) -> Disturbed | None:
    """What the run takes in turns and alone, where these differ; None where they agree, or it is not known."""
    launches = [launch for launch in run.launches if launch.turns and launch.alone]
    samples = sum(len(turn.seconds) for launch in launches for turn in launch.turns)
    return _disturbed.of((run,), (len(launches), samples), lambda: _turns_or_alone(run))


def _turns_or_alone(run: Run) -> Disturbed | None:
    launches = [launch for launch in run.launches if launch.turns and launch.alone]
    turns = [LaunchBlocks(tuple(Block(0, turn.seconds) for turn in launch.turns)) for launch in launches]
    compared = turns_over_alone(turns, alone_launches(run))
    if compared is None or not compared[1]:
        return None
    alone = middle([middle(launch.alone) for launch in launches])
    return Disturbed(alone * compared[0], alone)


def steady_samples(run: Run) -> list[float]:
    """The samples that the figures of the steady run stand on, in seconds a call: those of its turns, or those of it
    alone where the others disturb it."""
    return run.samples("alone" if disturbed(run) else "run")


def alone_launches(run: Run, side: int = 0) -> list[LaunchBlocks]:
    """The calls of each launch alone, cut into blocks as short as those of turns."""
    calls = run.series["alone"].calls_per_sample if "alone" in run.series else 1
    return [
        LaunchBlocks(in_blocks(launch.alone, side, BLOCK_SECONDS / calls), in_turns=False)
        for launch in run.launches
        if launch.turns and launch.alone
    ]


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times as fast a run is as its baseline, and what may be said of it."""

    ratio: float
    """The baseline's time over the run's: above 1, the run is faster."""
    low: float | None
    """The 95 % interval of `ratio`, corrected for the other comparisons with the same baseline; None: unknown."""
    high: float | None
    verdict: Verdict
    reason: str = ""
    """Why the verdict is `inconclusive`; else empty."""
    basis: str = ""
    """What the interval stands on: `3 launches`, `1 launch: holds for these processes`, `not measured together`."""
    launches: int = 1
    launches_to_decide: int | None = None
    """How many more launches would give a verdict; None: unknown."""
    between_share: float | None = None
    """Of the variance of one launch's ratio, the share that differs between processes; None with one launch."""

    @property
    def is_rough(self) -> bool:
        """Whether the interval leaves open how large the difference is."""
        return is_rough(self.low, self.high)

    def words(self, baseline: str) -> str:
        """The verdict as text: `faster than numpy`, or `inconclusive: ...` with its reason and what would decide it."""
        if self.verdict == "inconclusive":
            more = self.launches_to_decide
            decide = f", about {counted(more, 'more launch')} would decide" if more else ""
            return f"inconclusive: {self.reason}{decide}"
        if self.verdict == "same":
            return f"the same as {baseline}"
        rough = ", by how much is uncertain" if self.is_rough else ""
        return f"{self.verdict} than {baseline}{rough}"

    @classmethod
    def of(cls, times: TimeComparison) -> Speedup | None:
        """What a comparison shows; None where a side has no usable samples."""
        if times.ratio is None:
            return None
        return cls(
            ratio=times.ratio,
            low=times.low,
            high=times.high,
            verdict=times.verdict(),
            reason=times.reason(),
            basis=_basis(times),
            launches=times.launches,
            launches_to_decide=times.launches_to_decide(),
            between_share=times.between_share,
        )


def _basis(times: TimeComparison) -> str:
    if not times.together:
        return "not measured together"
    if times.launches == 1:
        return "1 launch: holds for these processes"
    if times.of_fast_calls:
        return f"the fast calls of {counted(times.launches, 'launch')}, beside other processes"
    return counted(times.launches, "launch") + ("" if times.measured == "in turns" else ", one process after the other")


def compared(session: Session, baseline: Run, run: Run) -> TimeComparison:
    """How many times as fast `run` is as `baseline`, with its verdict.

    Runs with the same baseline are one family: their intervals hold together. Computed again only when one of the two
    series has grown.
    """
    times = _times(baseline, run)
    if baseline.comparison is not None:
        times = replace(times, margin=baseline.comparison.margin)
    return _refused(session, replace(times, family=max(1, session.family[baseline.id])), baseline, run)


def _times(baseline: Run, run: Run) -> TimeComparison:
    theirs, ours = baseline.samples("run"), run.samples("run")
    return _times_of.of((theirs, ours), (len(theirs), len(ours)), lambda: _compared(baseline, run))


def _compared(baseline: Run, run: Run) -> TimeComparison:
    if disturbed(baseline) or disturbed(run):
        return compare(_alone(baseline, run), by_width=run.plan.until_half_width is not None)
    pairs = zip(baseline.launches, run.launches, strict=False)
    launches = [launch for theirs, ours in pairs if (launch := _in_order(theirs, ours)) is not None]
    if not launches:
        return compare_apart([baseline.samples("run")], [run.samples("run")])
    return compare(
        launches,
        by_width=run.plan.until_half_width is not None,
        beside_others=any(others > BUSY_SHARE * cores for others, cores in map(others_cores, (baseline, run))),
    )


def others_cores(run: Run) -> tuple[float, float]:
    """How many cores other processes used during the first launch of a run, and how many there are; none of none if
    that is unknown."""
    settings = run.environment.settings if run.environment is not None else {}
    others, cores = settings.get("other_busy_cores"), settings.get("cores")
    if not isinstance(others, int | float) or not isinstance(cores, int | float):
        return 0.0, 0.0
    return others, cores


def _alone(baseline: Run, run: Run) -> list[LaunchBlocks]:
    """Both runs as they are alone, launch by launch."""
    return [
        LaunchBlocks((*theirs.blocks, *ours.blocks), in_turns=False)
        for theirs, ours in zip(alone_launches(baseline), alone_launches(run, side=1), strict=False)
    ]


def _in_order(baseline: RunLaunch, other: RunLaunch) -> LaunchBlocks | None:
    """The turns of two runs in one launch, in the order taken; None where one has none."""
    if not baseline.turns or not other.turns:
        return None
    turns = sorted(
        [(turn.number, 0, turn.seconds) for turn in baseline.turns]
        + [(turn.number, 1, turn.seconds) for turn in other.turns]
    )
    apart = (
        baseline.turns[-1].number < other.turns[0].number or other.turns[-1].number < baseline.turns[0].number
    ) and len(turns) > 2
    return LaunchBlocks(tuple(Block(side, seconds) for _, side, seconds in turns), in_turns=not apart)


def _refused(session: Session, comparison: TimeComparison, baseline: Run, run: Run) -> TimeComparison:
    """The comparison, refused where one of its sides does not count, or the two cannot be compared with each other."""
    for side, whose in ((run, "its"), (baseline, "the baseline's")):
        if side.check is not None and side.check.passed is False:
            return refuse(comparison, f"{whose} result is wrong")
        if side.status not in ("ok", "running", "queued"):
            return refuse(comparison, f"{whose} run {'was cancelled' if side.status == 'cancelled' else side.status}")
    if unlike := next((warning.message for warning in run.warnings if warning.code == UNLIKE_RESULTS), ""):
        return refuse(comparison, unlike)
    # Runs of several devices in one plan are compared on purpose; the sides of a comparison are not.
    if run.plan.side and baseline.plan.side and baseline.device_kind != run.device_kind:
        return refuse(comparison, f"another kind of device ({baseline.device_kind}, {run.device_kind})")
    throttled = [
        any(reading.throttle_reasons for reading in readings_during(session, side)) for side in (baseline, run)
    ]
    if baseline.plan.device == run.plan.device and throttled[0] != throttled[1]:
        which = "its run" if throttled[1] else "the baseline's run"
        return refuse(comparison, f"the device throttled its clocks during {which} only")
    return comparison


def readings_during(session: Session, run: Run) -> list[DeviceReading]:
    """The readings of this run's device that were taken during the run."""
    return [reading for reading in session.readings.get(run.plan.device, []) if reading.run == run.id]
