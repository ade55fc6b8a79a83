"""The figures of a job: its processes, their findings, what their wall time went to, and what is missing.

The findings other than being late by own work (`late`) are failures, pauses, compilations that one process or several
repeat, throttled and slow devices, and exchanges that no other work hides.

Useful wall time is the device part of the hot loop: compiled functions, and waiting for their results. It is an
estimate from samples, and an upper bound. A collective in which a process waits for another one is inside a compiled
function. This waiting is subtracted as the excess of a process's device part over the smallest device part, if all
processes are in the loop equally long. Time that all processes wait together counts as useful, and so does time that a
device computes more slowly than it could.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from jaxprof.analysis.kernels.out_of_memory import read_out_of_memory
from jaxprof.analysis.programs import COMPILE, DEVICE, PARTS
from jaxprof.analysis.programs.functions import RECOMPILED_SHARE
from jaxprof.analysis.programs.pauses import CAPTURE, SIGNAL, SUSPENDED, UNKNOWN, pause_times
from jaxprof.base.grouping import grouped
from jaxprof.base.units import bytes_, counted, percent, scaled, seconds
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.findings.jobs import with_fix
from jaxprof.jobs.arrivals import Arrivals, CollectiveEvents, arrivals
from jaxprof.jobs.figures import (
    AFTER,
    AGAIN,
    CAUSES,
    ENDED_BY_OTHERS,
    IN_LOOP,
    OUTSIDE,
    PAUSED,
    STANDING,
    UNSEEN,
    USEFUL,
    WAITING,
    CompiledAgain,
    DeviceClock,
    ProcessFigures,
    processes_named,
    same_loop,
)
from jaxprof.jobs.late import (
    FALSE_ALARM_RATE,
    IN_STEP,
    LEAST_DIFFERENCE,
    clearly_late,
    comparable,
    inflation_of,
    spread_of,
    stragglers,
)
from jaxprof.jobs.standstill import STANDS, find_awaited, standing, standstills, with_status
from jaxprof.session.files import with_urls
from jaxprof.stats.blocks import t_quantile

_LEAST_WAITING = 0.05
"""Share of the loop by which device parts differ by chance; a smaller difference does not count as waiting."""


@frozen
class Goodput:
    """Wall time of the processes of a job by cause, over the processes whose time is known."""

    seconds: float
    """Seconds of wall time, summed over the processes."""
    processes: int
    """Number of processes that were seen in a loop; the others are left out."""
    causes: Mapping[str, float]
    """Seconds by each of `CAUSES`, which add up to `seconds`."""

    @property
    def shares(self) -> Mapping[str, float]:
        """Shares of the wall time by cause, which add up to 1."""
        return {cause: took / self.seconds for cause, took in self.causes.items()}


def goodput(
    processes: Sequence[ProcessFigures], failed_at: float | None, stands: Collection[int] = ()
) -> Goodput | None:
    """Return the job's goodput; None if no process was seen in a loop.

    `failed_at` is the Unix time at which the first process failed; time of the others after that is not useful. If the
    clocks of hosts differ, they shift that moment. `stands`: processes that stand still, whose time since then is not
    useful, though most of them wait in a compiled function.
    """
    known = [process for process in processes if process.time is not None and process.wall_seconds]
    if not known:
        return None
    times = []
    for process in known:
        state = process.standstill
        if process.index in stands and state is not None:
            since = state.since_seconds + process.clock_offset_seconds
            times.append(_split_time(process, since, since + state.seconds, STANDING))
        else:
            times.append(_split_time(process, failed_at, process.ended_seconds, AFTER))
    # A process waits for the others inside compiled functions, as far as its device part is longer than the shortest
    # one. This shows only where all are in one loop, and for equally long.
    loops = [sum(time[part] for part in (*IN_LOOP, AGAIN)) + time[PAUSED] for time in times]
    lines = {process.loop.where for process in known if process.loop is not None}
    together = len(known) > 1 and len(lines) == 1 and max(loops) <= IN_STEP * min(loops)
    least = min(time[DEVICE] for time in times)
    causes = dict.fromkeys(CAUSES, 0.0)
    for time, loop in zip(times, loops, strict=True):
        for cause, took in time.items():
            causes[USEFUL if cause == DEVICE else cause] += took
        waited = time[DEVICE] - least
        if together and waited >= _LEAST_WAITING * loop:
            causes[USEFUL] -= waited
            causes[WAITING] += waited
    return Goodput(sum(causes.values()), len(known), causes)


def _split_time(
    process: ProcessFigures, since: float | None, ended: float | None, cause_then: str
) -> Mapping[str, float]:
    """Return the time of a process by cause, with everything from the Unix time `since` to `ended` under a cause of its
    own."""
    time = dict(process.time or {})
    if since is None or ended is None or ended <= since:
        return time
    whole = sum(time.values())
    after = min(whole, ended - since)
    windows = process.windows
    began = windows.began_seconds + process.clock_offset_seconds
    until = np.append(began[1:], ended)[: len(began)]
    left = until - np.maximum(began, since)
    shares = np.divide(left, until - began, out=np.zeros(len(began)), where=left > 0)
    parts = dict(zip(PARTS, (shares @ windows.parts).tolist(), strict=True))
    after_failure = {**{part: parts[part] for part in IN_LOOP}, AGAIN: parts[COMPILE]}
    taken = 0.0
    for cause in (*after_failure, UNSEEN, OUTSIDE):  # first the time seen in the loop, then the time not seen there
        moved = min(time[cause], after_failure.get(cause, after), after - taken)
        time[cause] -= moved
        taken += moved
    return time | {cause_then: taken}


_STARTED_TOGETHER_SECONDS = 10.0
"""Processes of a job start within this time of each other."""
_NOTICED_SECONDS = 1.0
"""Largest time in seconds by which the recorded end of a process may be later than the others notice it."""


def failures(processes: Sequence[ProcessFigures], apart: float = 0.0) -> Iterator[Finding]:
    """Yield the process that failed first, then the other failed processes, grouped by error.

    `apart` is the number of seconds by which the clocks of the hosts differ; the finding says so if this leaves open
    which process failed first. A process that raised failed when it raised: in a job it may then hang for minutes,
    until JAX's runtime ends all processes in any order. A process that was killed has no exception of its own, and the
    others' exceptions come after its end.
    """
    failed = _failures(processes)
    if not failed:
        return
    first = failed[0]
    fix = "" if first.exception is not None else first.advice
    may_be_first = [
        each.index
        for each in failed[1:]
        if each.host != first.host
        and apart
        and _failure_key(each)[0] == _failure_key(first)[0]
        and not _failure_key(each)[1] - _failure_key(first)[1] > apart
    ]
    message = f"process {first.index} on {first.host}: {_failure_text(first)}"
    if may_be_first:
        message += (
            f" (which one failed first is not certain: the clocks of the hosts are {seconds(apart)} apart, and "
            f"{processes_named(may_be_first)} may have failed before it)"
        )
    memory = read_out_of_memory(_failure_text(first))
    if memory is not None:
        fix = "Its session names what was alive then, by line, and what needs less."
    size = memory.bytes["asked"] if memory is not None else None
    yield Finding(message, own_fix=fix, bytes=size, held=size is not None, index=first.index, code="process_failed")
    for error, group in grouped((_failure_text(process), process) for process in failed[1:]).items():
        which = processes_named([process.index for process in group])
        after = "ended" if may_be_first else "ended after that"
        yield Finding(f"{which} {after}: {error}", own_fix="", index=group[0].index, code="failed_after")


def first_failure_time(processes: Sequence[ProcessFigures]) -> float | None:
    """Return the Unix time of the first failure by its host's clock; None without one, or if it is unknown."""
    first = next(iter(_failures(processes)), None)
    if first is None:
        return None
    return first.exception[0] if first.exception is not None else first.ended_seconds


def _failures(processes: Sequence[ProcessFigures]) -> list[ProcessFigures]:
    return sorted((each for each in processes if each.status in ("failed", "crashed", "interrupted")), key=_failure_key)


def _failure_text(process: ProcessFigures) -> str:
    return process.exception[1] if process.exception is not None else process.error or process.status


def _failure_key(process: ProcessFigures) -> tuple[bool, float, int]:
    """Return a sort key: whether it is clearly a consequence, the time of the failure by the clock of its host, and the
    process index.

    A process that was killed, or ended with a code and without an exception, counts as earlier than its recorded end:
    the others notice within a millisecond that it is gone, before its end is recorded. Nobody kills a process because
    another one is gone.
    """
    if process.exception is not None:
        at, text = process.exception
        return _PEER_LOST.search(text) is not None, at, process.index
    by_others = process.exit_code in ENDED_BY_OTHERS
    at = math.inf if process.ended_seconds is None else process.ended_seconds
    return by_others, at - (0.0 if by_others else _NOTICED_SECONDS), process.index


_PEER_LOST = re.compile(r"(?:Jax|Xla)RuntimeError.*(?:by peer|heartbeat|coordination)", re.IGNORECASE)
"""Exceptions of JAX's runtime in a process whose peer is gone."""


_LONGER = 0.5
"""Share of a pause by which the loops of the others must be longer to be reported."""
_UNCOUNTED, _UNCOUNTED_SHARE = 3, 0.02
"""Steps, and share of the steps, by which the counts of two processes may differ that are at the same step."""
_CAUSE_TEXTS = {
    SIGNAL: "was paused by a signal",
    UNKNOWN: "was paused (with its container, or by a signal that also paused its recorder)",
    SUSPENDED: "did not run while its machine was suspended",
    CAPTURE: "was held by the profiler of its capture",
}


def pause_findings(processes: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """Yield a finding for each process that was paused, or a single one if all were."""
    affected = [process for process in processes if process.pauses]
    if len(affected) == len(processes) > 1:
        first = affected[0]
        took = median(_pause_seconds(process) for process in affected)
        message = (
            f"all {len(affected)} processes were paused for {seconds(took)}: "
            f"process {first.index} {_cause_text(first)}, " + pause_times(first.pauses)
        )
        yield Finding(message, seconds=took, index=first.index, code="process_paused")
        return
    for process in affected:
        took = _pause_seconds(process)
        longer = _longer(process, [other for other in processes if not other.pauses])
        message = (
            f"process {process.index} on {process.host} {_cause_text(process)} for {seconds(took)}, "
            + pause_times(process.pauses)
            + (f"; the others took {seconds(longer)} longer for as many steps" if longer is not None else "")
        )
        yield Finding(message, seconds=took, index=process.index, code="process_paused")


def _pause_seconds(process: ProcessFigures) -> float:
    return sum(pause.seconds for pause in process.pauses)


def _cause_text(process: ProcessFigures) -> str:
    cause = max(process.pauses, key=lambda pause: pause.seconds).cause
    return _CAUSE_TEXTS.get(cause, _CAUSE_TEXTS[UNKNOWN])


def _longer(process: ProcessFigures, others: Sequence[ProcessFigures]) -> float | None:
    """Return how much longer the others were in the same loop, for as many steps, than the paused process without its
    pause. Processes that wait for each other take the pause longer; those that do not, and go on for a given time, have
    more steps. None if this is far less than the pause, or if the steps were not counted."""
    loops = [
        other.loop.seconds
        for other in others
        if same_loop(process, other)
        and other.loop is not None
        and process.step_count is not None
        and other.step_count is not None
        # The first steps and the last one may not have been counted.
        and abs(process.step_count - other.step_count) <= max(_UNCOUNTED, _UNCOUNTED_SHARE * process.step_count)
    ]
    if process.loop is None or process.loop.where is None or not loops:
        return None
    took = _pause_seconds(process)
    more = median(loops) - process.loop.seconds
    return more if more >= _LONGER * took else None


def recompiles(processes: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """Yield functions that one process compiled again at least twice as often as any other, and at least two times
    more; else those that several compiled again, each at a cost that is a finding of a single program."""
    known = [process for process in processes if process.again is not None]
    by_function = grouped(
        ((each.function, each.defined_line), (process, each)) for process in known for each in process.again or ()
    )
    for (function, _), found in by_function.items():
        process, mine = max(found, key=lambda pair: pair[1].count)
        most = max((each.count for other, each in found if other is not process), default=0)
        if len(known) > 1 and mine.count >= 2 * most + 2:
            usual = "none of the others" if not most else f"the others at most {most} times"
            times = f"process {process.index} compiled {function} again {mine.count} times, {usual}"
            yield _recompile_finding("recompiles_alone", times, mine, mine.seconds, process.index)
            continue
        costly = [
            (other, each) for other, each in found if each.seconds >= RECOMPILED_SHARE * (other.wall_seconds or 0.0)
        ]
        if len(costly) > 1:
            counts = sorted(each.count for _, each in costly)
            times = f"{counts[0]} to {counts[-1]} times" if counts[0] < counts[-1] else counted(counts[0], "time")
            every = len(costly) == len(processes)
            which = f"all {len(costly)} processes" if every else processes_named([other.index for other, _ in costly])
            took = median(each.seconds for _, each in costly)
            yield _recompile_finding(
                "recompiles", f"{which} compiled {function} again {times} each", costly[0][1], took
            )


def _recompile_finding(code: str, times: str, again: CompiledAgain, took: float, index: int | None = None) -> Finding:
    return Finding(
        times + (f": {again.reason}" if again.reason else ""),
        (again.called_from,),
        seconds=took,
        function=again.function,
        index=index,
        part=COMPILE,
        code=code,
    )


SLOWER = 0.10
"""Relative difference of a clock below the others' median from which it is slow."""
ACTIVE = 0.5
"""Share of a clock's readings with a throttling reason; an occasional one does not hold a clock down."""


def throttle_findings(processes: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """Yield the devices whose clock is below that of the others, with the reason that they report."""
    seen: dict[tuple[str, str], tuple[ProcessFigures, DeviceClock]] = {}
    for process in processes:
        for clock in process.clocks:
            seen.setdefault((process.host, clock.device), (process, clock))  # processes of a host share devices
    for key, (process, clock) in seen.items():
        others = [other.hertz for at, (_, other) in seen.items() if at != key]
        if not others or clock.hertz >= (1 - SLOWER) * median(others) or clock.throttled < ACTIVE:
            continue
        message = (
            f"{clock.device} on {process.host} is throttled ({', '.join(clock.reasons)}): its clock is at "
            f"{scaled(clock.hertz)}Hz, that of the others at {scaled(median(others))}Hz"
        )
        yield Finding(message, index=process.index, part=DEVICE, code="throttled_device")


LEAST_SECTIONS = 8
"""Sections in which a process must arrive late: a burst over two thirds of the time is not the device's."""


def last_to_arrive(
    seen: Arrivals, processes: Sequence[ProcessFigures], explained: Collection[int], compared: Collection[int]
) -> Iterator[Finding]:
    """Yield the process that the others wait for at a collective, if nothing on its host explains the wait.

    `explained` holds the processes that are late by their own work or by compiling; `compared` holds those whose own
    work could be compared. A late process arrives late by at least `LEAST_DIFFERENCE` of the time, nearly all of the
    time.
    """
    hosts = {process.index: process.host for process in processes}
    late = np.asarray([arrival.by_section for arrival in seen.processes]) * seen.instances / seen.span_seconds
    means, sections = late.mean(axis=1), late.shape[1]
    for row, arrival in enumerate(seen.processes):
        index, sections_late = arrival.process, (late[row] >= LEAST_DIFFERENCE).sum()
        if index in explained or means[row] < LEAST_DIFFERENCE or sections_late < LEAST_SECTIONS:
            continue
        # The delay must also exceed the variation between sections of time (successive ones may be alike), and
        # between the other processes.
        others = np.delete(means, row)
        variance = inflation_of(late - means[:, None]) * late[row].var(ddof=1) / sections
        error = math.sqrt(variance + spread_of(others, float(np.median(others))))
        if means[row] <= t_quantile(1 - FALSE_ALARM_RATE / len(means), sections - 1) * error:
            continue
        excluded = (
            "data, host, dispatch, copies and compilations do not explain that"
            if index in compared
            else "its own work on the host was not seen for long enough to exclude that"
        )
        message = (
            f"process {index} on {hosts[index]} is late: it arrives {seconds(arrival.late_seconds)} after the others "
            f"at {seen.name}, last at {percent(arrival.last_share)} of {seen.instances} executions, and the others "
            f"wait {seconds(arrival.caused_wait_seconds)} of {seconds(seen.span_seconds)} for it; {excluded}"
        )
        yield Finding(message, seconds=arrival.caused_wait_seconds, index=index, part=DEVICE, code="slow_device")


LEAST_EXPOSED = 0.1
"""Share of the captured time from which exposed exchange is reported, as for the steps of one capture."""


def exchange_findings(collectives: Sequence[Arrivals]) -> Iterator[Finding]:
    """Yield a finding if the devices of a job only exchange for a considerable part of the captured time."""
    if not collectives:
        return
    most = max(collectives, key=lambda each: each.exposed_seconds)
    took = sum(each.exposed_seconds for each in collectives)
    if took < LEAST_EXPOSED * most.span_seconds:
        return
    exchanged, what = most.exchanged, most.name
    if exchanged is not None:
        what += f", {exchanged.opcode} of {bytes_(exchanged.bytes)}"
        if exchanged.devices is not None:
            what += f" over {exchanged.devices} devices"
    what += f", {counted(most.instances, 'time')}"
    if len(collectives) > 1:
        what += f", {counted(len(collectives) - 1, 'more collective')}"
    if exchanged is None:
        what += "; how many bytes that are is not known"
    message = (
        f"exchanging takes about {seconds(took)} of {seconds(most.span_seconds)} "
        f"({percent(took / most.span_seconds)}), in which the devices run no other kernel and do not wait: {what}"
    )
    yield Finding(message, seconds=took, code="exposed_exchange")


@frozen
class JobFigures:
    folder: str
    job: str
    count: int
    processes: tuple[ProcessFigures, ...]
    findings: tuple[Finding, ...]
    notices: tuple[str, ...]
    """What is missing, or could not be compared."""
    goodput: Goodput | None = None
    """Wall time of the processes by cause; None if no process was seen in a loop."""
    compared: int = 0
    """Number of processes whose own work could be compared with that of the others."""
    collectives: tuple[Arrivals, ...] = ()
    """Arrivals at the collectives with the most total time, if several processes captured them."""

    @property
    def condition(self) -> str:
        """What became of the job: `running`, `standing still`, `ended well`, `failed`, `cancelled`, or `cut off` where
        without a recorded end."""
        statuses = {process.status for process in self.processes}
        codes = {finding.code for finding in self.findings}
        if STANDS in statuses:
            return STANDS
        if statuses & {"failed", "crashed"}:
            return "failed"
        if "running" in statuses:
            return "running"
        if "process_failed" in codes:
            return "cut off"
        return "cancelled" if "cancelled" in statuses else "ended well"

    @property
    def arrivals(self) -> Arrivals | None:
        """Arrivals at the collective with the most total time; None if fewer than two processes captured it."""
        return self.collectives[0] if self.collectives else None

    @property
    def names_somebody(self) -> bool:
        return any(finding.index is not None for finding in self.findings)


def figures_of(
    folder: str,
    job: str,
    count: int,
    processes: tuple[ProcessFigures, ...],
    captures: Iterable[Mapping[str, CollectiveEvents]],
    began: Iterable[tuple[str, float]],
    missing: Iterable[str],
) -> JobFigures:
    """Return all figures of a job from those of its processes and the collectives in their `captures`. `began` holds
    the host and the Unix start time of each process; `missing` holds a line for each part that could not be read."""
    notices = list(missing)
    notices += (f"process {each.index}: {each.error}" for each in processes if each.status == "unknown")
    notices += (f"process {each.index}: {notice}" for each in processes for notice in each.notices)
    compared = comparable(processes, notices)
    again, late = list(recompiles(processes)), list(stragglers(compared))
    late += clearly_late(processes, {finding.index for finding in late})
    collectives = tuple(arrivals(captures, notices))
    if collectives:
        explained = {finding.index for finding in (*again, *late) if finding.index is not None}
        late += last_to_arrive(collectives[0], processes, explained, {process.index for process in compared})
    # The processes of one job start together: hosts that differ by more than starting takes have clocks apart.
    middles = [median(times) for times in grouped(began).values()]
    apart = max(middles, default=0.0) - min(middles, default=0.0)
    apart = apart if apart >= _STARTED_TOGETHER_SECONDS else 0.0
    stands = standing(processes)
    if stands is not None:  # what else differs follows from that
        late = []
    waits = standstills(stands, count) if stands is not None else find_awaited(processes, count)
    processes = with_status(processes, stands)
    found = (
        *failures(processes, apart), *waits, *pause_findings(processes), *again, *late,
        *throttle_findings(processes),
    )  # fmt: skip
    return JobFigures(
        with_urls(folder),
        job,
        count,
        processes,
        tuple(map(with_fix, (*found, *exchange_findings(collectives)))),
        tuple(map(with_urls, notices)),
        goodput(
            processes,
            None if apart else first_failure_time(processes),
            [each.index for each in (*stands.blamed, *stands.waiting)] if stands is not None else (),
        ),
        len(compared),
        collectives,
    )
