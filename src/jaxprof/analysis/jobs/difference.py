"""What differs between two jobs: exact facts first, then times over processes, then what was found in one alone.

A job is one launch. Its processes wait for each other in every step, so that their times a step are one observation and
not as many as there are processes; and two jobs that ran one after the other were not measured in turns. So wall time
and steps a second have no verdict, whatever the number of processes. What a process does by itself (data, Python,
dispatch, copies, compiling) the others do not touch: there the processes are the units, and the verdict is about these
two launches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean, median, variance
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from jaxprof.analysis.difference import paired
from jaxprof.analysis.finding import Finding
from jaxprof.analysis.jobs.late import LEAST_DIFFERENCE, OWN
from jaxprof.analysis.programs.verdict import DEVICE, part_key
from jaxprof.stats.student import t_quantile

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.job import JobFigures

LEAST_PROCESSES: Final = 3
"""Of each job: with fewer there is no spread to speak of."""
Verdict: TypeAlias = Literal["same", "differs", "more", "less", "undecided"]
"""Of exact facts `same` or `differs`; of shares `more`, `less` or `same` (within `LEAST_DIFFERENCE`); else
`undecided`."""
Measure: TypeAlias = Literal["count", "seconds", "rate", "share"]
_ONE_LAUNCH: Final = "each job is one launch: its processes wait for each other"


@dataclass(frozen=True, slots=True)
class OverProcesses:
    """A figure over the processes of a job."""

    middle: float
    low: float
    high: float
    """The least and the largest of them."""
    count: int
    """How many processes have it."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One figure of both jobs."""

    key: str
    measure: Measure
    before: OverProcesses | None
    after: OverProcesses | None
    """None: no process has it."""
    verdict: Verdict
    reason: str = ""
    """Why there is no verdict."""
    difference: float | None = None
    """Of the means over processes, after minus before, where that has a verdict or could have one."""
    low: float | None = None
    high: float | None = None
    """Its 95 % interval over processes."""


@dataclass(frozen=True, slots=True)
class JobDifference:
    """Two jobs beside each other."""

    before: JobFigures
    after: JobFigures
    rows: tuple[JobRow, ...]
    gone: tuple[Finding, ...]
    """Found in the first one alone."""
    new: tuple[Finding, ...]
    """Found in the second one alone."""
    notices: tuple[str, ...]
    """Why they are not alike, a line each."""


def job_difference(before: JobFigures, after: JobFigures) -> JobDifference:
    """The second job compared with the first."""
    found = paired(before.findings, after.findings, [lambda finding: (finding.code, finding.index, finding.part)])
    return JobDifference(
        before,
        after,
        tuple(_rows(before, after)),
        tuple(ours for ours, theirs in found if ours is not None and theirs is None),
        tuple(theirs for ours, theirs in found if theirs is not None and ours is None),
        tuple(_notices(before, after)),
    )


def _notices(before: JobFigures, after: JobFigures) -> Iterator[str]:
    if before.count != after.count:
        yield f"{before.count} and {after.count} processes: each has another share of the work"
    for job in (before, after):
        if len(job.processes) < job.count:
            yield f"{job.folder}: {len(job.processes)} of {job.count} processes could be read"
        failed = [each for each in job.processes if each.status in ("failed", "crashed", "interrupted")]
        if failed:
            yield f"{job.folder}: {len(failed)} of its processes failed, so that its times are those of a part"
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
    """A count of each process: no noise is in it."""
    if not ours or not theirs:
        return JobRow(key, "count", _over(ours), _over(theirs), "undecided", "not known of both")
    is_same = (min(ours), max(ours), median(ours)) == (min(theirs), max(theirs), median(theirs))
    return JobRow(key, "count", _over(ours), _over(theirs), "same" if is_same else "differs")


def _share(part: str, ours: Sequence[float], theirs: Sequence[float]) -> JobRow:
    """What a part takes of the loop, with the processes as units: the interval of Welch's t test (B. L. Welch, "The
    generalization of Student's problem when several different population variances are involved", 1947)."""
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
