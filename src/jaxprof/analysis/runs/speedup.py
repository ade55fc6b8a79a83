"""How many times as fast a run is as its baseline: from the turns of both, launch by launch, with a verdict.

Each launch of runs in turns also samples each run alone, before any turns (`RunLaunch.alone`). If that differs from the
turns by more than its interval, the other runs disturb this one: its figures are then those of the run alone. So is its
speed-up, unless both runs are disturbed alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from jaxprof.base.values import frozen
from jaxprof.events import DeviceReading
from jaxprof.session import Run, Session
from jaxprof.session.run import UNLIKE_RESULTS, RunLaunch
from jaxprof.stats.blocks import BLOCK_SECONDS, Block, LaunchBlocks, in_blocks, middle
from jaxprof.stats.comparison import TimeComparison, compare, compare_apart, correct_for_family, refuse
from jaxprof.stats.summary import ALONE_MARGIN, ALONE_MARGIN_OF_ONE, Summary, summarise_run, turns_over_alone

Derived = TypeVar("Derived")
_MOST_KEPT = 512
BUSY_SHARE = 0.15
"""Share of the cores used by other processes during the run above which the machine is called busy."""


class Memo(Generic[Derived]):
    """Results derived from objects that only grow, such as samples; derived again only after one of them has grown."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[tuple[object, ...], Derived]] = {}

    def of(self, grown: tuple[object, ...], size: object, derive: Callable[[], Derived]) -> Derived:
        """Return what was derived from these objects at that size."""
        key = (*map(id, grown), size)
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[key] = grown, derive()  # which keeps the objects, so that no other has their ids
        return kept[1]


_disturbed: Memo[tuple[float, float] | None] = Memo()
_times_of: Memo[TimeComparison] = Memo()


def disturbance(run: Run) -> tuple[float, float] | None:
    """Return the seconds of a call in turns, and alone, if they differ; None if they agree, or if it is unknown."""
    launches = [launch for launch in run.launches if launch.turns and launch.alone]
    samples = sum(len(turn.seconds) for launch in launches for turn in launch.turns)
    return _disturbed.of((run,), (len(launches), samples), lambda: _turns_or_alone(run, launches))


def _turns_or_alone(run: Run, launches: Sequence[RunLaunch]) -> tuple[float, float] | None:
    compared = turns_over_alone(turn_launches(launches), alone_launches(run))
    summary = summary_alone(run) if compared is not None and compared[1] else None
    return (summary.median * compared[0], summary.median) if compared is not None and summary is not None else None


def summary_alone(run: Run) -> Summary | None:
    """Summarise the calls of a run alone, as its figures are shown if it is disturbed; None if there are none."""
    series = run.series.get("alone")
    return None if series is None else summarise_run(run.samples("alone"), alone_launches(run), series.calls_per_sample)


def turn_launches(launches: Sequence[RunLaunch]) -> list[LaunchBlocks]:
    """Return the calls of each launch in its turns, a block each; launches without turns are left out."""
    return [LaunchBlocks(tuple(Block(0, turn.seconds) for turn in launch.turns)) for launch in launches if launch.turns]


def steady_samples(run: Run) -> list[float]:
    """Return the samples of the steady run's figures, in seconds per call. These are the samples of its turns, or of
    the run alone if the others disturb it."""
    return run.samples("alone" if disturbance(run) else "run")


def calls_figure(run: Run, figure: str) -> float | None:
    """Return the median over launches of a figure of the steady run's calls; None if it is unknown."""
    launches = [launch.phases for launch in run.launches] or [run.phases]
    known = [value for phases in launches if "run" in phases and (value := getattr(phases["run"], figure)) is not None]
    return middle(known) if known else None


def alone_launches(run: Run, side: int = 0) -> list[LaunchBlocks]:
    """Return the calls of each launch alone, cut into blocks as short as those of turns."""
    calls = run.series["alone"].calls_per_sample if "alone" in run.series else 1
    return [
        LaunchBlocks(in_blocks(launch.alone, side, BLOCK_SECONDS / calls), in_turns=False)
        for launch in run.launches
        if launch.turns and launch.alone
    ]


def compare_times(session: Session, baseline: Run, run: Run) -> TimeComparison:
    """Return how many times as fast `run` is as `baseline`, with the verdict. Runs with the same baseline are one
    family, whose intervals hold together. Computed again only after one of the two series has grown. Refused if one of
    the sides does not count, or if the two cannot be compared with each other."""
    theirs, ours = baseline.samples("run"), run.samples("run")
    comparison = _times_of.of((theirs, ours), (len(theirs), len(ours)), lambda: _compare_runs(baseline, run))
    if baseline.comparison is not None:
        comparison = replace(comparison, margin=baseline.comparison.margin)
    comparison = replace(comparison, family=max(1, session.family[baseline.id]))
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


def compare_once(run_a: Run, run_b: Run, phases: Container[str]) -> dict[str, TimeComparison]:
    """Compare phases that are not measured in turns, for two runs of one group.

    These are phases that happen once per process, over the launches that both runs have, and the transfers, which the
    first launch samples. The verdicts of all phases hold together.
    """
    blocks: dict[str, list[LaunchBlocks]] = {}
    for first, second in zip(run_a.launches, run_b.launches, strict=False):
        for phase in first.phases:
            ours = first.phases[phase].seconds
            theirs = second.phases[phase].seconds if phase in second.phases else None
            if phase in phases and phase not in run_a.series and ours and theirs:
                blocks_of_both = Block(0, (ours,)), Block(1, (theirs,))
                blocks.setdefault(phase, []).append(LaunchBlocks(blocks_of_both, in_turns=False))
    for phase in ("transfer_in", "transfer_out"):
        if phase in phases and (before := run_a.samples(phase)) and (after := run_b.samples(phase)):
            blocks_of_both = Block(0, tuple(before)), Block(1, tuple(after))
            blocks[phase] = [LaunchBlocks(blocks_of_both, in_turns=False)]
    comparisons = {phase: compare(launches) for phase, launches in blocks.items()}
    return dict(zip(comparisons, correct_for_family(list(comparisons.values())), strict=True))


@frozen
class AbVersus:
    """One side compared with A."""

    run: Run
    times: TimeComparison
    compiling: TimeComparison | None = None
    """The compiles of both; None if unknown."""
    uncompiled_seconds: float | None = None
    """How long A had been compiling when it was ended; None if its compile ended."""

    @property
    def label(self) -> str:
        """Label of the side, such as `B`."""
        return self.run.plan.side


def side_versus(session: Session, before: Run, after: Run) -> AbVersus | None:
    """Return `after` compared with A, if `before` is that A; None for all other runs of the session."""
    is_side = after.plan.side and after.plan.baseline == before.id
    return ab_versus(session, before, after) if is_side else None


def ab_versus(session: Session, baseline: Run, run: Run) -> AbVersus:
    """Return a side compared with A, `baseline`."""
    compiling = compare_once(baseline, run, ("compile",)).get("compile")
    return AbVersus(run, compare_times(session, baseline, run), compiling, baseline.cut_compile_seconds)


def _compare_runs(baseline: Run, run: Run) -> TimeComparison:
    by_width = run.plan.until_half_width is not None
    pairs = zip(baseline.launches, run.launches, strict=False)
    launches = [launch for theirs, ours in pairs if (launch := _turn_blocks(theirs, ours)) is not None]
    busy = any(others > BUSY_SHARE * cores for others, cores in map(others_cores, (baseline, run)))
    in_turns = compare(launches, by_width=by_width, beside_others=busy) if launches else None
    if disturbance(baseline) or disturbance(run):
        # What disturbs both alike, as in a program beside itself, leaves the ratio as it is; pairs show that best.
        pairs_alone = zip(alone_launches(baseline), alone_launches(run, side=1), strict=False)
        both = [LaunchBlocks((*theirs.blocks, *ours.blocks), in_turns=False) for theirs, ours in pairs_alone]
        alone = compare(both, by_width=by_width)
        # They agree if they differ by no more than a run may from itself alone before it is called disturbed.
        launches_of_both = min(in_turns.launches, alone.launches) if in_turns is not None else 1
        margin = ALONE_MARGIN if launches_of_both > 1 else ALONE_MARGIN_OF_ONE
        ratios = (in_turns.ratio if in_turns is not None else None, alone.ratio)
        if ratios[0] is None or ratios[1] is None or abs(math.log(ratios[0] / ratios[1])) > math.log1p(margin):
            return alone
    if in_turns is None:
        samples = baseline.samples("run"), run.samples("run")
        return compare_apart(*(middle(each) if each else None for each in samples))
    return in_turns


def others_cores(run: Run) -> tuple[float, float]:
    """Return the cores that others used during the first launch of a run, and all cores; 0 and 0 if unknown."""
    settings = run.environment.settings if run.environment is not None else {}
    others, cores = settings.get("other_busy_cores"), settings.get("cores")
    if not isinstance(others, int | float) or not isinstance(cores, int | float):
        return 0.0, 0.0
    return others, cores


def _turn_blocks(baseline: RunLaunch, other: RunLaunch) -> LaunchBlocks | None:
    """Return the turns of two runs in one launch, in the order taken; None if one run has no turns."""
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


def readings_during(session: Session, run: Run) -> list[DeviceReading]:
    return [reading for reading in session.readings.get(run.plan.device, []) if reading.run == run.id]
