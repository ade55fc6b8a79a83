"""Differences between two jobs: exact facts, then times over processes, then findings of only one job.

A job is one launch. Its processes wait for each other in every step, so their times per step are one observation,
whatever the number of processes. Two jobs that ran one after the other were also not measured in turns. Wall time and
steps per second therefore have no verdict. A process's own work (data, Python, dispatch, copies, compiling) does not
depend on the others: for this work the processes are the units, and the verdict is about these two launches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean, median, variance
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from jaxprof.analysis.finding import Finding
from jaxprof.analysis.jobs.late import LEAST_DIFFERENCE, OWN
from jaxprof.analysis.programs.loop_time import DEVICE, part_key
from jaxprof.pairs import paired
from jaxprof.stats.student import t_quantile

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.job import JobFigures

LEAST_PROCESSES: Final = 3
"""Smallest number of processes of each job; fewer give no usable spread."""
Verdict: TypeAlias = Literal["same", "differs", "more", "less", "undecided"]
"""Verdict on a figure: exact facts are `same` or `differs`; shares are `more`, `less` or `same` (within
`LEAST_DIFFERENCE`); otherwise `undecided`."""
Measure: TypeAlias = Literal["count", "seconds", "rate", "share"]
_ONE_LAUNCH: Final = "each job is one launch: its processes wait for each other"


@dataclass(frozen=True, slots=True)
class OverProcesses:
    """A figure over the processes of a job."""

    middle: float
    low: float
    high: float
    """Largest value; `low` is the smallest."""
    count: int
    """Number of processes that have the figure."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One figure of both jobs."""

    key: str
    measure: Measure
    before: OverProcesses | None
    after: OverProcesses | None
    """Figure of the second job; as for `before`, None if no process has it."""
    verdict: Verdict
    reason: str = ""
    """Why there is no verdict."""
    difference: float | None = None
    """Difference of the means over processes, after minus before, if it has or could have a verdict."""
    low: float | None = None
    high: float | None = None
    """Upper end of the difference's 95 % interval over processes."""


@dataclass(frozen=True, slots=True)
class JobDifference:
    """Comparison of two jobs."""

    before: JobFigures
    after: JobFigures
    rows: tuple[JobRow, ...]
    gone: tuple[Finding, ...]
    """Findings of the first job only."""
    new: tuple[Finding, ...]
    """Findings of the second job only."""
    notices: tuple[str, ...]
    """Why the jobs are not alike, a line each."""


def job_difference(before: JobFigures, after: JobFigures) -> JobDifference:
    """Compare the second job with the first."""
    matches = paired(before.findings, after.findings, [lambda finding: (finding.code, finding.index, finding.part)])
    return JobDifference(
        before,
        after,
        tuple(_rows(before, after)),
        tuple(ours for ours, theirs in matches if ours is not None and theirs is None),
        tuple(theirs for ours, theirs in matches if theirs is not None and ours is None),
        tuple(_notices(before, after)),
    )


def _notices(before: JobFigures, after: JobFigures) -> Iterator[str]:
    if before.count != after.count:
        yield f"{before.count} and {after.count} processes: the work is divided differently"
    for job in (before, after):
        if len(job.processes) < job.count:
            yield f"{job.folder}: {len(job.processes)} of {job.count} processes could be read"
        failed = [each for each in job.processes if each.status in ("failed", "crashed", "interrupted")]
        if failed:
            yield f"{job.folder}: {len(failed)} of its processes failed, so its times cover only part of the work"
        running = [each for each in job.processes if each.status == "running"]
        if running:
            yield f"{job.folder}: {len(running)} of its processes still run"
    machines = [sorted({each.host for each in job.processes}) for job in (before, after)]
    if machines[0] != machines[1]:
        yield "they ran on different hosts"


def _rows(before: JobFigures, after: JobFigures) -> Iterator[JobRow]:
    for key in ("compile_count", "compiled_again"):
        yield _exact(key, *(_values(job, attrgetter(key)) for job in (before, after)))
    timed: tuple[tuple[str, Measure], ...] = (
        ("compile_seconds", "seconds"), ("wall_seconds", "seconds"), ("steps_per_second", "rate"),
        ("step_median_seconds", "seconds"),
    )  # fmt: skip
    for key, measure in timed:
        ours, theirs = (_values(job, attrgetter(key)) for job in (before, after))
        if ours or theirs:
            yield JobRow(key, measure, _over(ours), _over(theirs), "undecided", _ONE_LAUNCH)
    for part in (DEVICE, *OWN):
        ours, theirs = ([each.shares[part] for each in job.processes if each.shares] for job in (before, after))
        if part == DEVICE and (ours or theirs):
            reason = "includes waiting for other processes"
            yield JobRow(f"{part_key(part)}_share", "share", _over(ours), _over(theirs), "undecided", reason)
        elif ours or theirs:
            yield _share(part, ours, theirs)


def _values(job: JobFigures, read: Callable[[ProcessFigures], float | None]) -> list[float]:
    return [value for process in job.processes if (value := read(process)) is not None]


def _over(values: Sequence[float]) -> OverProcesses | None:
    return OverProcesses(median(values), min(values), max(values), len(values)) if values else None


def _exact(key: str, ours: Sequence[float], theirs: Sequence[float]) -> JobRow:
    """Compare a count of each process, which has no noise."""
    if not ours or not theirs:
        return JobRow(key, "count", _over(ours), _over(theirs), "undecided", "not known of both")
    is_same = (min(ours), max(ours), median(ours)) == (min(theirs), max(theirs), median(theirs))
    return JobRow(key, "count", _over(ours), _over(theirs), "same" if is_same else "differs")


def _share(part: str, ours: Sequence[float], theirs: Sequence[float]) -> JobRow:
    """Compare a part's share of the loop, with the processes as units. The interval is that of Welch's t test (B. L.
    Welch, "The generalization of Student's problem when several different population variances are involved", 1947)."""
    key, before, after = f"{part_key(part)}_share", _over(ours), _over(theirs)
    if min(len(ours), len(theirs)) < LEAST_PROCESSES:
        reason = f"fewer than {LEAST_PROCESSES} processes of each were seen in their loop for long enough"
        return JobRow(key, "share", before, after, "undecided", reason)
    difference = fmean(theirs) - fmean(ours)
    parts = [variance(values) / len(values) for values in (ours, theirs)]
    half = 0.0
    if sum(parts) > 0:
        degrees = sum(parts) ** 2 / sum(
            part**2 / (len(values) - 1) for part, values in zip(parts, (ours, theirs), strict=True)
        )
        half = t_quantile(0.975, degrees) * math.sqrt(sum(parts))
    low, high = difference - half, difference + half
    verdict: Verdict = "undecided"
    reason = "the processes differ among themselves by more than that"
    if low > -LEAST_DIFFERENCE and high < LEAST_DIFFERENCE:
        verdict, reason = "same", ""
    elif low > 0 and difference >= LEAST_DIFFERENCE:
        verdict, reason = "more", ""
    elif high < 0 and difference <= -LEAST_DIFFERENCE:
        verdict, reason = "less", ""
    return JobRow(key, "share", before, after, verdict, reason, difference, low, high)
