"""What is wrong with the processes of a job, except being late by its own work (`late`): failures, pauses,
compilations that one process has alone, throttled and slow devices, uneven shards, exchanges that nothing hides.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final

import numpy as np

from jaxprof.analysis.arrivals import Arrivals, Exchanged
from jaxprof.analysis.finding import Finding
from jaxprof.analysis.jobs.figures import DeviceClock, OwnArguments, ProcessFigures, processes_named
from jaxprof.analysis.jobs.late import FALSE_ALARM_RATE, LEAST_DIFFERENCE, inflation_of, spread_of
from jaxprof.analysis.programs.standstills import SIGNAL, SUSPENDED, UNKNOWN
from jaxprof.analysis.programs.verdict import COMPILE, DEVICE
from jaxprof.stats.student import t_quantile
from jaxprof.units import bytes_, counted, percent, scaled, seconds

_STARTED_TOGETHER_SECONDS: Final = 10.0
"""Processes of a job start within this time of each other."""
_NOTICED_SECONDS: Final = 1.0
"""By how much the end of a process may be known later than the others notice it."""


def clocks_apart(began: Iterable[tuple[str, float]]) -> float:
    """By how many seconds the clocks of the hosts differ, from host and Unix time of the begin of each process: those
    of one job begin together. 0 where that is no more than starting takes."""
    by_host: dict[str, list[float]] = {}
    for host, at in began:
        by_host.setdefault(host, []).append(at)
    middles = [median(times) for times in by_host.values()]
    apart = max(middles, default=0.0) - min(middles, default=0.0)
    return apart if apart >= _STARTED_TOGETHER_SECONDS else 0.0


def failures(processes: Sequence[ProcessFigures], apart: float = 0.0) -> Iterator[Finding]:
    """The one that failed first, then the others by what they ended with. `apart`: seconds by which the clocks of the
    hosts differ; where that leaves open which one failed first, it is said.

    One that raised failed when it did: in a job it may hang for minutes, until JAX's runtime ends all of them in any
    order. One that was killed has no exception of its own, and those of the others come after its end.
    """
    failed = _failed(processes)
    if not failed:
        return
    first = failed[0]
    advice = "" if first.exception is not None else first.advice
    may_be_first = [
        each.index
        for each in failed[1:]
        if each.host != first.host and not _when(each)[0] - _when(first)[0] > apart and apart
    ]
    message = f"process {first.index} on {first.host}: {_failure(first)}"
    if may_be_first:
        message += (
            f" (which one failed first is not certain: the clocks of the hosts are {seconds(apart)} apart, and "
            f"{processes_named(may_be_first)} may have failed before it)"
        )
    yield Finding("process-failed", message, advice, index=first.index)
    by_error: dict[str, list[ProcessFigures]] = {}
    for process in failed[1:]:
        by_error.setdefault(_failure(process), []).append(process)
    for error, group in by_error.items():
        which = processes_named([process.index for process in group])
        after = "ended" if may_be_first else "ended after that"
        yield Finding("failed-after", f"{which} {after}: {error}", "", index=group[0].index)


def failed_at(processes: Sequence[ProcessFigures]) -> float | None:
    """When the first of them failed, in Unix time by the clock of its host; None if none did, or it is not known."""
    failed = _failed(processes)
    at = _when(failed[0])[0] if failed else math.inf
    return at if math.isfinite(at) else None


def _failed(processes: Sequence[ProcessFigures]) -> list[ProcessFigures]:
    return sorted((each for each in processes if each.status in ("failed", "crashed", "interrupted")), key=_when)


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


_WAITED: Final = 0.5
"""Share of a stop by which the loops of the others must be longer: then it is the stop that they waited for."""
_HOW: Final = {
    SIGNAL: "stopped by a signal",
    UNKNOWN: "stood still, by a signal that stopped its recording too, or with its container",
    SUSPENDED: "did not run while its machine was suspended",
}
_STOPPED_FIX: Final = (
    "Look for what stops it: SIGSTOP or SIGTSTP, a batch system that suspends, a container that is frozen, a machine "
    "that sleeps. None of its lines takes this time."
)


def stopped(processes: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """A finding for each process that was stopped; one for all of them where none went on."""
    found = [process for process in processes if process.stops]
    if len(found) == len(processes) > 1:
        first = found[0]
        took = median(_stopped_seconds(process) for process in found)
        message = f"all {len(found)} processes did not run for {seconds(took)}: {_how(first)}, {_stopped_when(first)}"
        yield Finding("process-stopped", message, _STOPPED_FIX, seconds=took, index=first.index)
        return
    for process in found:
        took = _stopped_seconds(process)
        waited = _waited(process, [other for other in processes if not other.stops])
        message = (
            f"process {process.index} on {process.host} {_how(process)} for {seconds(took)}, {_stopped_when(process)}"
            + (f"; the others wait {seconds(waited)} for it" if waited is not None else "")
        )
        yield Finding("process-stopped", message, _STOPPED_FIX, seconds=took, index=process.index)


def _stopped_seconds(process: ProcessFigures) -> float:
    return sum(stop.seconds for stop in process.stops)


def _how(process: ProcessFigures) -> str:
    cause = max(process.stops, key=lambda stop: stop.seconds).cause
    return f"was {_HOW[cause]}" if cause == SIGNAL else _HOW.get(cause, _HOW[UNKNOWN])


def _stopped_when(process: ProcessFigures) -> str:
    first = f"{seconds(process.stops[0].began_seconds)} after it began"
    return first if len(process.stops) == 1 else f"{len(process.stops)} times, first {first}"


def _waited(process: ProcessFigures, others: Sequence[ProcessFigures]) -> float | None:
    """By how much longer the others are in the same loop than the process that was stopped, without its stop: an
    estimate of what they waited for it. None if they were not seen to."""
    loops = [other.loop.seconds for other in others if _same_loop(process, other) and other.loop is not None]
    if process.loop is None or not loops:
        return None
    took = _stopped_seconds(process)
    more = median(loops) - process.loop.seconds
    return min(more, took) if more >= _WAITED * took else None


def _same_loop(process: ProcessFigures, other: ProcessFigures) -> bool:
    mine, theirs = process.loop, other.loop
    return mine is not None and theirs is not None and mine.where is not None and mine.where == theirs.where


_RECOMPILES_FIX = "The ledger of its session says why: mostly shapes that only its data have."


def recompiles(processes: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """A process that compiled a function again more often than all the others: twice as often, and two times more."""
    counted = {
        process.index: {(each.function, each.defined_line): each for each in process.again}
        for process in processes
        if process.again is not None
    }
    if len(counted) < 2:
        return
    most_of: dict[object, list[int]] = {}
    """By function, the two largest counts: a process is compared with the largest of the others."""
    for functions in counted.values():
        for key, each in functions.items():
            most_of[key] = sorted((*most_of.get(key, (0, 0)), each.count))[-2:]
    for index, functions in counted.items():
        for key, mine in functions.items():
            second, first = most_of[key]
            most = second if mine.count == first else first
            if mine.count < 2 * most + 2:
                continue
            usual = "none of the others" if not most else f"the others at most {most} times"
            yield Finding(
                "recompiles-alone",
                f"process {index} compiled {mine.function} again {mine.count} times, {usual}"
                + (f": {mine.reason}" if mine.reason else ""),
                _RECOMPILES_FIX,
                (mine.called_from,),
                seconds=mine.seconds,
                index=index,
                part=COMPILE,
            )


SLOWER: Final = 0.10
"""By how much its clock is below the others' median."""
ACTIVE: Final = 0.5
"""Share of its readings in which a reason was active: a reason now and then does not hold a clock down."""
_THROTTLED_FIX: Final = (
    "Look at the cooling, the power limit and the neighbours of that device. The others wait for it in each collective."
)


def throttled(processes: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """The devices whose clock is lower than that of the others, with the reason that they report for it."""
    seen: dict[tuple[str, str], tuple[ProcessFigures, DeviceClock]] = {}
    for process in processes:
        for clock in process.clocks:
            seen.setdefault((process.host, clock.device), (process, clock))  # processes of a host see the same ones
    for key, (process, clock) in seen.items():
        others = [other.hertz for at, (_, other) in seen.items() if at != key]
        if not others or clock.hertz >= (1 - SLOWER) * median(others) or clock.throttled < ACTIVE:
            continue
        message = (
            f"{clock.device} on {process.host} is throttled ({', '.join(clock.reasons)}): its clock is at "
            f"{scaled(clock.hertz)}Hz, that of the others at {scaled(median(others))}Hz"
        )
        yield Finding("throttled-device", message, _THROTTLED_FIX, index=process.index, part=DEVICE)


LEAST_STRETCHES: Final = 8
"""Of the ten in which it has to arrive as late: a burst that lasts for two thirds of the time is not its device."""
_SLOW_DEVICE_FIX: Final = (
    "Its device has more to compute, or computes more slowly: look at the sizes of its shards, and at its clock, "
    "temperature and neighbours."
)


def last_to_arrive(
    seen: Arrivals, processes: Sequence[ProcessFigures], explained: Collection[int], compared: Collection[int]
) -> Iterator[Finding]:
    """The process for which the others wait at a collective, where nothing on its host explains that.

    `explained`: the processes that are late by their own work, or by compiling; `compared`: those whose own work could
    be compared at all.
    """
    hosts = {process.index: process.host for process in processes}
    for place, index in enumerate(seen.indices):
        if index in explained or not _is_late(seen, place):
            continue
        excluded = (
            "data, host, dispatch, copies and compilations do not explain that"
            if index in compared
            else "its own work on the host was not seen for long enough to exclude that"
        )
        after = seconds(fmean(seen.late_seconds[place]))
        message = (
            f"process {index} on {hosts[index]} is late: it arrives {after} after the others at {seen.name}, "
            f"last at {percent(seen.last_count[place] / seen.instances)} of {seen.instances} executions, "
            f"and the others wait {seconds(seen.caused_seconds[place])} of {seconds(seen.span_seconds)} "
            f"for it; {excluded}"
        )
        yield Finding(
            "slow-device", message, _SLOW_DEVICE_FIX, seconds=seen.caused_seconds[place], index=index, part=DEVICE
        )


def _is_late(seen: Arrivals, place: int) -> bool:
    """Whether it arrives later than the others by at least `LEAST_DIFFERENCE` of the time, nearly all of the time, and
    by more than stretches of the time vary by (successive ones may be alike) and the others differ by."""
    late = np.asarray(seen.late_seconds) * seen.instances / seen.span_seconds
    means = late.mean(axis=1)
    if means[place] < LEAST_DIFFERENCE or (late[place] >= LEAST_DIFFERENCE).sum() < LEAST_STRETCHES:
        return False
    count = late.shape[1]
    variance = inflation_of(late - means[:, None]) * late[place].var(ddof=1) / count
    others = np.delete(means, place)
    error = math.sqrt(variance + spread_of(others, float(np.median(others))))
    return bool(means[place] > t_quantile(1 - FALSE_ALARM_RATE / len(means), count - 1) * error)


LEAST_MORE: Final = 0.25
"""Of the bytes on the others."""
LEAST_BYTES: Final = 64 << 10
"""Smallest difference reported; fewer bytes do not delay a device."""
_UNEVEN_FIX: Final = (
    "Give each process as much: the same number of rows, the remainder dropped or padded on all, and long examples "
    "spread by their length."
)


def uneven_shards(processes: Sequence[ProcessFigures]) -> Iterator[Finding]:
    """The processes with a function whose own arguments are larger than on the middle one of the others; of several
    functions the one that differs by most."""
    known = [process for process in processes if process.own_arguments is not None]
    if len(known) < 2 or len(known) < len(processes):
        return
    tables = [{(each.function, each.defined_line): each for each in process.own_arguments or ()} for process in known]
    shared = set.intersection(*(set(table) for table in tables))
    comparable = [key for key in sorted(shared, key=str) if len({_names(table[key]) for table in tables}) == 1]
    in_order = {key: sorted((table[key] for table in tables), key=lambda each: each.bytes) for key in comparable}
    for place, process in enumerate(known):
        most: tuple[int, OwnArguments, OwnArguments] | None = None
        for key, ranked in in_order.items():
            mine, other = tables[place][key], _middle_of_others(ranked, tables[place][key])
            more = mine.bytes - other.bytes
            if more >= max(LEAST_BYTES, LEAST_MORE * other.bytes) and (most is None or more > most[0]):
                most = more, mine, other
        if most is not None:
            _, mine, other = most
            yield Finding(
                "uneven-shards",
                f"process {process.index} on {process.host} has larger shards: {mine.function} is compiled for "
                f"arguments of {bytes_(mine.bytes)} of its own, {bytes_(other.bytes)} on the others "
                f"({_difference(mine, other)})",
                _UNEVEN_FIX,
                (mine.called_from,),
                index=process.index,
                part=DEVICE,
            )


def with_cost(uneven: Sequence[Finding], slow: Sequence[Finding]) -> list[Finding]:
    """Both, where a device that computes for longer and has larger shards is one finding, with what it costs."""
    costs = {finding.index: finding for finding in slow}
    known = {finding.index for finding in uneven}
    return [
        *(_with_cost(finding, costs[finding.index]) if finding.index in costs else finding for finding in uneven),
        *(finding for finding in slow if finding.index not in known),
    ]


def _with_cost(finding: Finding, slow: Finding) -> Finding:
    waited = seconds(slow.seconds)
    message = (
        f"{finding.message}; in the captured time it arrives last at the collectives, and the others wait {waited}"
    )
    return replace(finding, message=message, seconds=slow.seconds)


def _names(arguments: OwnArguments) -> frozenset[str]:
    """What is spread over processes on one of them is not among another's: such functions are not alike."""
    return frozenset(name for name, _, _ in arguments.arguments)


def _middle_of_others(ranked: Sequence[OwnArguments], mine: OwnArguments) -> OwnArguments:
    """Of all but `mine`, which is one of those `ranked` by their bytes: the middle one, of two the larger."""
    middle = (len(ranked) - 1) // 2
    place = bisect_left(ranked, mine.bytes, key=lambda each: each.bytes)
    return ranked[middle + (place <= middle)]


def _difference(mine: OwnArguments, other: OwnArguments) -> str:
    """The argument that differs by most."""
    theirs = {name: (type_, size) for name, type_, size in other.arguments}
    name, type_, _ = max(mine.arguments, key=lambda each: each[2] - theirs[each[0]][1])
    return f"{name}: {type_} against {theirs[name][0]}"


LEAST_EXPOSED: Final = 0.1
"""Share of the captured time from which on it is worth a finding, as of the steps of one capture."""
_EXPOSED_FIX: Final = (
    "Exchange less (reduce-scatter instead of all-reduce, bf16 gradients, one exchange after several small steps), put "
    "many small ones together, or let them run beside work that does not need them (XLA's latency-hiding scheduler)."
)


@dataclass(frozen=True, slots=True)
class CollectiveFigures:
    """One collective of a job, over the processes that captured it."""

    name: str
    """Of its HLO instruction."""
    instances: int
    span_seconds: float
    exposed_seconds: float
    """Of the exchange, in which the device of the median process did nothing else, of all instances together; an
    estimate, and at most that where the profiler has not recorded all kernels."""
    exchange_median_seconds: float
    exchanged: Exchanged | None
    bus_bytes_per_second: float | None
    """`Exchanged.bus_bytes` over the median exchange; None where that is not known."""
    fast_bus_bytes_per_second: float | None
    """The same of the fastest tenth of the exchanges."""
    possible_bytes_per_second: float | None
    """The same at the bandwidth of the links of the devices; None where that is not known, as of CPUs and of
    several hosts."""

    @property
    def exposed_share(self) -> float:
        """Of the captured time."""
        return self.exposed_seconds / self.span_seconds


def collective_figures(seen: Sequence[Arrivals], hosts: Collection[str]) -> tuple[CollectiveFigures, ...]:
    """In the order of `seen`; `hosts`: those of all processes."""
    return tuple(_figures(each, one_host=len(set(hosts)) == 1) for each in seen)


def _figures(seen: Arrivals, *, one_host: bool) -> CollectiveFigures:
    exchanged = seen.exchanged
    moved = exchanged.bus_bytes if exchanged is not None else None
    bound = exchanged.bound_seconds if exchanged is not None and one_host else None

    def rate(took: float | None) -> float | None:
        return moved / took if moved and took else None

    return CollectiveFigures(
        name=seen.name,
        instances=seen.instances,
        span_seconds=seen.span_seconds,
        exposed_seconds=median(seen.exposed_seconds),
        exchange_median_seconds=seen.exchange_median_seconds,
        exchanged=exchanged,
        bus_bytes_per_second=rate(seen.exchange_median_seconds),
        fast_bus_bytes_per_second=rate(seen.exchange_fast_seconds),
        possible_bytes_per_second=rate(bound),
    )


def exposed(found: Sequence[CollectiveFigures]) -> Iterator[Finding]:
    """That the devices of a job do nothing but exchange for a considerable part of the captured time."""
    if not found:
        return
    most = max(found, key=lambda each: each.exposed_seconds)
    took = sum(each.exposed_seconds for each in found)
    if took < LEAST_EXPOSED * most.span_seconds:
        return
    others = f", {counted(len(found) - 1, 'more collective')}" if len(found) > 1 else ""
    message = (
        f"exchanging takes about {seconds(took)} of {seconds(most.span_seconds)} "
        f"({percent(took / most.span_seconds)}), in which the devices run no other kernel and wait for nobody: "
        f"{_what(most)}{others}{_rates(most)}"
    )
    yield Finding("exposed-exchange", message, _EXPOSED_FIX, seconds=took)


def _what(found: CollectiveFigures) -> str:
    given = found.exchanged
    if given is None:
        return f"{found.name}, {counted(found.instances, 'time')}"
    among = f" over {given.devices} devices" if given.devices is not None else ""
    return f"{found.name}, {given.opcode} of {bytes_(given.bytes)}{among}, {counted(found.instances, 'time')}"


def _rates(found: CollectiveFigures) -> str:
    """What it reaches of what."""
    reached, fast, possible = (
        found.bus_bytes_per_second, found.fast_bus_bytes_per_second, found.possible_bytes_per_second
    )  # fmt: skip
    if reached is None:
        return "; how many bytes that are is not known"
    words = f"; its bus bandwidth is {scaled(reached, 'B/s')}"
    if possible is not None:
        return f"{words}, {percent(reached / possible)} of the {scaled(possible, 'B/s')} that the links allow"
    return f"{words}, in the fastest tenth {scaled(fast, 'B/s')}; what the links allow is not known"
