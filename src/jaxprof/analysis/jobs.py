"""The processes of one job beside each other: which one is late, and what takes its time.

A job is as fast as its slowest process: in every step the others wait for it in a collective, inside a compiled
function. So all processes spend the same time in the loop, and the late one is that whose own work (data, Python,
copies, compiling) takes more of its loop than of theirs. Where its loop also takes longer than theirs, nobody waits.
What a slow device costs cannot be told so, because its own work happens where the others wait: that takes captures, in
which it arrives last at the collectives.

Shares come from samples of the stack. A difference is named where it is at least `LEAST_DIFFERENCE` of the loop and
`CERTAIN` standard errors; what was compiled is exact.
"""

from __future__ import annotations

import math
import signal
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from jaxprof.analysis.arrivals import Arrivals, arrivals
from jaxprof.analysis.programs.derive import ProgramResult, program_result, programs
from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, LEAST_SAMPLES, PARTS
from jaxprof.events import SourceLocation
from jaxprof.last_words import raised_at
from jaxprof.session import Run, Session
from jaxprof.session.log.job_folder import JobMember, RecordedJob
from jaxprof.units import seconds

LEAST_DIFFERENCE: Final = 0.05
"""Of the loop's time."""
CERTAIN: Final = 4.0
"""Standard errors. Samples a few milliseconds apart are not independent, and several parts of many processes are looked
at."""
_IN_STEP: Final = 1.15
"""Processes that wait for each other are in the loop for as long as each other, up to this factor."""
_MOST_NAMED: Final = 8
_SIGNALLED: Final = 128
_LEFT_OVER: Final = tuple(_SIGNALLED + number for number in (signal.SIGINT, signal.SIGABRT, signal.SIGTERM))
"""Exit codes of processes that are ended because another one has failed."""
_NOTICED_SECONDS: Final = 1.0
"""By how much the end of a process may be known later than the others notice it."""
_WORDS_KEPT: Final = 300
_SLOW_DEVICE: Final = (
    "Its device has more to compute, or computes more slowly: look at the sizes of its shards, and at its clock, "
    "temperature and neighbours."
)
OWN: Final = (DATA, HOST, DISPATCH, COPY, COMPILE)
_WORDS: Final = {
    DATA: "making or fetching its input",
    HOST: "Python on the host",
    DISPATCH: "calling JAX",
    COPY: "copies between host and device",
    COMPILE: "compiling again",
}
_ADVICE: Final = {
    DATA: "Look at its input: the shard, the disk or the network of that host. Its session has the lines.",
    HOST: "Its session has the lines: logging, checkpoints or metrics of one process, or a busy host.",
    DISPATCH: "Its session has the lines: operations outside jit, or a host with slower processors.",
    COPY: "Its session has the lines that copy.",
    COMPILE: "The ledger of its session says why: mostly shapes that only its data have.",
}


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """One process of a job."""

    index: int
    host: str
    path: str
    """Of its session."""
    status: str
    """As of a run: `ok`, `failed`, `crashed`, `cancelled`; `running`, or `interrupted` where its session has no end."""
    error: str
    advice: str
    """With its last words, if it failed."""
    result: ProgramResult | None
    """None if the session has no program."""
    ended_seconds: float | None
    """Unix time of its end by the clock of its host; None if it is not known."""
    exception: tuple[float, str] | None
    """When it wrote the traceback of its last exception, in Unix time, and the line that names it, if it failed; None
    without one."""

    @property
    def was_killed(self) -> bool:
        """Whether it ended without having had a say: by a signal that neither JAX nor a launcher sends to those that
        are left over, or together with what recorded it."""
        code = self.result.exit_code if self.result is not None else None
        return self.status == "interrupted" or (code is not None and code > _SIGNALLED and code not in _LEFT_OVER)

    @property
    def shares(self) -> Mapping[str, float] | None:
        """What its loop's time goes to, by `PARTS`; None with too few samples."""
        if self.result is None or self.result.hot.samples < LEAST_SAMPLES or self.result.hot.seconds <= 0:
            return None
        hot = self.result.hot
        return {part: hot.parts[part] / hot.seconds for part in PARTS}

    @property
    def compiled_again(self) -> int | None:
        """How many compilations on its main thread were not the first of their function; JAX's own functions and those
        of libraries left out."""
        if self.result is None:
            return None
        rows = self.result.compiles
        return sum(row.count for row in rows if row.reason_code != "first" and not (row.op_by_op or row.library))


@dataclass(frozen=True, slots=True)
class JobFinding:
    """What is wrong with one process of the job."""

    code: str
    """`process-failed`, `failed-after`, `recompiles-alone`, `straggler` or `slow-device`."""
    index: int
    message: str
    advice: str
    part: str = ""
    """Of a process that is late: one of `OWN`, or `device`."""
    seconds: float | None = None
    """What it cost: by a straggler's own part an estimate, by compilations as JAX announced it; None if unknown."""
    where: SourceLocation | None = None
    """The line that takes most of it."""


@dataclass(frozen=True, slots=True)
class JobFigures:
    """A job in figures."""

    folder: str
    job: str
    count: int
    processes: tuple[ProcessFigures, ...]
    findings: tuple[JobFinding, ...]
    arrivals: Arrivals | None
    """At the collective that took most time; None if fewer than two processes have captured it."""
    notices: tuple[str, ...]
    """What is missing, or could not be compared."""


def job_figures(job: RecordedJob[Session]) -> JobFigures:
    """Everything that can be said of a job from the sessions of its processes."""
    processes = tuple(map(_process, job.members))
    notices = list(job.notices)
    late = list(_stragglers(processes, notices))
    at_collectives = arrivals({member.index: member.session for member in job.members}, notices)
    if at_collectives is not None:
        late += _last_to_arrive(at_collectives, processes, {finding.index for finding in late})
    found = (*_failures(processes), *_recompiles(processes), *late)
    return JobFigures(str(job.folder), job.job, job.count, processes, found, at_collectives, tuple(notices))


def _process(member: JobMember[Session]) -> ProcessFigures:
    session = member.session
    run = next(iter(programs(session)), None)
    if run is None:
        status, error, advice, result = "unknown", "it has recorded no program", "", None
        ended, exception = None, None
    else:
        result = program_result(session, run.id)
        status, error, advice = run.status, run.error, run.advice
        offset = session.header.wall_seconds - session.header.monotonic_seconds
        at = run.ended_seconds
        if not run.over and not member.live:
            status, error = "interrupted", "its session has no end: the process, or its host, was killed"
            at = session.last_seconds
        ended = at + offset if at is not None else None
        exception = _exception(run, offset) if status in ("failed", "crashed", "interrupted") else None
    host, path = session.header.host, str(member.path)
    return ProcessFigures(member.index, host, path, status, error, advice, result, ended, exception)


def _failures(processes: Sequence[ProcessFigures]) -> Iterator[JobFinding]:
    """The process that failed first, and what the others ended with because it had gone.

    One that raised failed when it did: in a job it may hang for minutes, until JAX's runtime ends all of them in any
    order. One that was killed has no exception of its own, and those of the others come after its end.
    """
    failed = sorted((each for each in processes if each.status in ("failed", "crashed", "interrupted")), key=_when)
    if not failed:
        return
    first = failed[0]
    advice = "" if first.exception is not None else first.advice
    yield JobFinding("process-failed", first.index, f"process {first.index} on {first.host}: {_failure(first)}", advice)
    by_error: dict[str, list[ProcessFigures]] = {}
    for process in failed[1:]:
        by_error.setdefault(_failure(process), []).append(process)
    for error, group in by_error.items():
        named = ", ".join(str(process.index) for process in group[:_MOST_NAMED])
        more = f" and {len(group) - _MOST_NAMED} more" if len(group) > _MOST_NAMED else ""
        which = f"{'process' if len(group) == 1 else 'processes'} {named}{more}"
        yield JobFinding("failed-after", group[0].index, f"{which} ended after that: {error}", "")


def _failure(process: ProcessFigures) -> str:
    return process.exception[1] if process.exception is not None else process.error or process.status


def _when(process: ProcessFigures) -> tuple[float, int]:
    """When it failed, by the clock of its host: the earlier, if it was killed.

    The others notice within a millisecond that a process has gone, before its own end is known; and nobody kills a
    process because another one has gone.
    """
    if process.exception is not None:
        return process.exception[0], process.index
    at = math.inf if process.ended_seconds is None else process.ended_seconds
    return at - (_NOTICED_SECONDS if process.was_killed else 0.0), process.index


def _exception(run: Run, offset: float) -> tuple[float, str] | None:
    """When the program wrote the traceback of its last exception, in Unix time, and the line that names it."""
    lines = [line for line in run.log if line.stream == "stderr"]
    number = raised_at([line.text for line in lines])
    return (lines[number].monotonic_seconds + offset, lines[number].text[:_WORDS_KEPT]) if number is not None else None


def _recompiles(processes: Sequence[ProcessFigures]) -> Iterator[JobFinding]:
    """A process that compiled a function again more often than all the others."""
    counts = {process.index: _again_by_function(process) for process in processes if process.result is not None}
    if len(counts) < 2:
        return
    for index, counted in counts.items():
        for (name, line), times in counted.items():
            others = [theirs[name, line] for other, theirs in counts.items() if other != index]
            if times < 2 * max(others) + 2:
                continue
            process = next(each for each in processes if each.index == index)
            rows = [row for row in process.result.compiles if row.function == name] if process.result else []
            took = sum(sum(filter(None, (row.trace_seconds, row.lower_seconds, row.compile_seconds))) for row in rows)
            reason = next((row.reason for row in reversed(rows) if row.reason), "")
            usual = "none of the others" if not max(others) else f"the others at most {max(others)} times"
            yield JobFinding(
                "recompiles-alone",
                index,
                f"process {index} compiled {name} again {times} times, {usual}" + (f": {reason}" if reason else ""),
                _ADVICE[COMPILE],
                COMPILE,
                took,
                rows[-1].called_from if rows else None,
            )


def _again_by_function(process: ProcessFigures) -> Counter[tuple[str, int | None]]:
    again: Counter[tuple[str, int | None]] = Counter()
    for row in process.result.compiles if process.result is not None else ():
        if row.reason_code != "first" and not (row.op_by_op or row.library):
            again[row.function, row.defined_at.line] += row.count
    return again


def _stragglers(processes: Sequence[ProcessFigures], notices: list[str]) -> Iterator[JobFinding]:
    compared = [process for process in processes if process.shares is not None]
    if len(compared) < 2:
        notices.append("which process is late cannot be told: fewer than two were seen in a loop for long enough")
        return
    loops = {process.result.hot.key for process in compared if process.result is not None}
    if len(loops) > 1:
        notices.append("which process is late cannot be told: their loops are at different lines")
        return
    for process in compared:
        others = [other for other in compared if other is not process]
        found = [excess for part in OWN if (excess := _excess(process, others, part)) is not None]
        if found:
            part, share, usual = max(found, key=lambda each: each[1] - each[2])
            yield _straggler(process, others, part, share, usual)


def _last_to_arrive(
    seen: Arrivals, processes: Sequence[ProcessFigures], explained: Collection[int]
) -> Iterator[JobFinding]:
    """The process for which the others wait at a collective, where nothing on its host explains that."""
    hosts = {process.index: process.host for process in processes}
    count = len(seen.indices)
    by_chance = 1 / count + CERTAIN * math.sqrt((1 - 1 / count) / count / seen.instances)
    for place, index in enumerate(seen.indices):
        others = [caused for other, caused in enumerate(seen.caused_seconds) if other != place]
        more = seen.caused_seconds[place] - median(others)
        share = seen.last_count[place] / seen.instances
        if index in explained or share < max(0.5, by_chance) or more < LEAST_DIFFERENCE * seen.span_seconds:
            continue
        message = (
            f"process {index} on {hosts[index]} is late: it arrives last at {share:.0%} of {seen.instances} executions "
            f"of {seen.name}, and the others wait {seconds(seen.caused_seconds[place])} of "
            f"{seconds(seen.span_seconds)} for it; data, host, dispatch and copies do not explain that"
        )
        yield JobFinding("slow-device", index, message, _SLOW_DEVICE, DEVICE, seen.caused_seconds[place])


def _excess(process: ProcessFigures, others: Sequence[ProcessFigures], part: str) -> tuple[str, float, float] | None:
    """The part, its share on this process and the middle one on the others, if it is certainly larger and they wait."""
    shares, samples = _shares(process), _samples(process)
    theirs = [_shares(other)[part] for other in others]
    usual = median(theirs)
    difference = shares[part] - usual
    pooled = sum(_samples(other) for other in others)
    within = shares[part] * (1 - shares[part]) / samples + usual * (1 - usual) / pooled
    between = _spread(theirs)
    if difference < LEAST_DIFFERENCE or difference < CERTAIN * math.sqrt(within + between):
        return None
    return part, shares[part], usual


def _spread(values: Sequence[float]) -> float:
    """The variance between processes, from their median absolute deviation, so that a second late one does not hide
    the first."""
    middle = median(values)
    return (1.4826 * median(abs(value - middle) for value in values)) ** 2


def _shares(process: ProcessFigures) -> Mapping[str, float]:
    shares = process.shares
    assert shares is not None
    return shares


def _samples(process: ProcessFigures) -> float:
    assert process.result is not None
    return process.result.hot.samples


def _straggler(
    process: ProcessFigures, others: Sequence[ProcessFigures], part: str, share: float, usual: float
) -> JobFinding:
    assert process.result is not None
    hot = process.result.hot
    theirs = median(other.result.hot.seconds for other in others if other.result is not None)
    waited = hot.seconds <= _IN_STEP * theirs
    lines: dict[SourceLocation, float] = {}
    for spot in hot.spots:
        if hot.part(spot) == part and spot.place:
            lines[spot.place] = lines.get(spot.place, 0.0) + spot.seconds
    where = max(lines, key=lambda place: lines[place], default=hot.where)
    message = (
        f"process {process.index} on {process.host} is late: {_WORDS[part]} takes {share:.0%} of its loop, "
        f"{usual:.0%} on the others, "
        + (
            "which wait for it"
            if waited
            else f"whose loop takes {seconds(theirs)} where its takes {seconds(hot.seconds)}"
        )
    )
    cost = (share - usual) * hot.seconds
    return JobFinding("straggler", process.index, message, _ADVICE[part], part, cost, where)
