"""Estimate how long runs will take, before they begin and while they go on: from the last time, or from what a call
needs.

Nothing is stored for it: the log of every session says when its runs began and ended. Each estimate names its basis.
An accelerator's speed is not guessed, nor is a call of a function that was never measured.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from jaxprof.errors import JaxprofError
from jaxprof.events import RunSpec
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.requests import spec_in_log
from jaxprof.session import Run
from jaxprof.session.log import Entry, Library
from jaxprof.stats.turns import LEAST_SAMPLES, least_blocks
from jaxprof.units import counted, seconds

LOOKED_AT = 40
"""Number of kept sessions, from the newest on, that are searched for the same runs."""
_FLOPS_PER_SECOND_OF_A_CORE = 40e9
_BYTES_PER_SECOND = 10e9
"""What a core and memory of these years reach, within a factor of three; only the first run of a workload on a machine
is estimated from it."""
_START_SECONDS, _START_SECONDS_NUMPY = 1.0, 0.2
"""Time from the start of a process to its first call."""
_TURNS_SHARE = 2.0
"""Turns of short calls take twice their budget, because each refills the caches (3.6 to 4.2 s for 2 s)."""
_COLD_CALLS, _LATER_CALLS = 2, 3
"""Calls before the turns of each launch, and after those of the first launch (dispatch, capture, check)."""


class Basis(IntEnum):
    """Basis of an estimate, the best first."""

    LAST_TIME = 0
    """The same runs, measured the same way on this machine."""
    ROUGH = 1
    """What a call needs, corrected by other runs of the same workload here, if there were any."""
    LEAST = 2
    """Start-up and time budget alone: the time of a call is not known."""
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class ExpectedTime:
    """How long runs will take, and what the estimate is based on."""

    seconds: float | None
    basis: Basis

    @property
    def words(self) -> str:
        """The estimate in words: `≈ 23 s, as last time`."""
        if self.basis == Basis.LEAST:
            return f"at least {seconds(self.seconds, 2)}"
        if self.basis == Basis.UNKNOWN:
            return "time unknown"
        return (
            f"≈ {seconds(self.seconds, 2)}, {'as last time' if self.basis == Basis.LAST_TIME else 'a rough estimate'}"
        )


@dataclass(frozen=True, slots=True)
class MeasuredGroup:
    """Runs that were measured together and all succeeded, and how long they took."""

    specs: tuple[RunSpec, ...]
    seconds: float


def measured_groups(entries: Iterable[Entry], host: str | None = None) -> list[MeasuredGroup]:
    """Return the groups measured on this machine, the newest first; `entries` come newest first."""
    here = socket.gethostname() if host is None else host
    measured: list[MeasuredGroup] = []
    for entry in entries:
        if entry.header is None or entry.header.host != here:
            continue
        closed = {event.run: event for event in entry.closed}
        groups: dict[str, list[tuple[str, RunSpec]]] = {}
        for plan in entry.planned:
            groups.setdefault(plan.spec.baseline or plan.run, []).append((plan.run, plan.spec))
        in_session: list[MeasuredGroup] = []
        for members in groups.values():
            ends = [closed[run] for run, _ in members if run in closed]
            if len(ends) == len(members) and all(end.status == "ok" and end.wall_seconds is not None for end in ends):
                began = min(end.monotonic_seconds - (end.wall_seconds or 0.0) for end in ends)
                took = max(end.monotonic_seconds for end in ends) - began
                in_session.append(MeasuredGroup(tuple(spec for _, spec in members), took))
        measured += reversed(in_session)
    return measured


def expected_time(specs: Sequence[RunSpec], before: Sequence[MeasuredGroup]) -> ExpectedTime:
    """Return how long runs measured together take; `before` is what was measured here, the newest first."""
    same = [group for group in before if _work(group.specs[0]) == _work(specs[0])]
    last = next((group for group in same if _measured_alike(group.specs) == _measured_alike(specs)), None)
    if last is not None:
        return ExpectedTime(last.seconds, Basis.LAST_TIME)
    if any(spec.how not in ("numpy", "eager", "jit") or spec.side for spec in specs):
        return ExpectedTime(None, Basis.UNKNOWN)
    least, whole = _model(specs)
    alike = [group for group in same if _size(group.specs[0]) == _size(specs[0])]
    nearest = next(iter(alike or (same if whole else ())), None)
    if nearest is not None:
        return ExpectedTime(least * nearest.seconds / _model(nearest.specs)[0], Basis.ROUGH)
    return ExpectedTime(least, Basis.ROUGH if whole else Basis.LEAST)


@dataclass(frozen=True, slots=True)
class Expectation:
    """How long a plan is expected to take."""

    whole: ExpectedTime
    of_groups: Mapping[PlannedRun, float]
    """Seconds of the runs that are measured together, by the first of them; groups of unknown length are left out."""


def expect(planned: Sequence[PlannedRun], before: Sequence[MeasuredGroup]) -> Expectation:
    """Return how long `planned` will take; `before` is what was measured here, the newest first."""
    groups: dict[PlannedRun, list[PlannedRun]] = {}
    for plan in planned:
        groups.setdefault(plan.baseline or plan, []).append(plan)
    expected = {
        members[0]: expected_time([spec_in_log(plan) for plan in members], before) for members in groups.values()
    }
    known = {first: each.seconds for first, each in expected.items() if each.seconds is not None}
    return Expectation(total_time(list(expected.values())), known)


def measured_before() -> list[MeasuredGroup]:
    """Return the groups in the newest kept sessions. Reads files, so the app calls it only in threads."""
    return measured_groups(Library().entries(LOOKED_AT))


def few_samples(specs: Sequence[RunSpec]) -> list[str]:
    """Return a line for each run that its hard cap will end before it has the least number of samples."""
    calls = [(spec, cap, _call_seconds(spec)) for spec in specs if (cap := spec.max_seconds) is not None]
    return [
        f"{spec.workload} {spec.variant} will get about {counted(max(0, int(cap / call) - 1), 'sample')}, not "
        f"{LEAST_SAMPLES}: one call takes ≈ {seconds(call, 2)}, a rough estimate, and --max-seconds ends the run"
        for spec, cap, call in calls
        if call and (LEAST_SAMPLES + 1) * call > cap
    ]


def total_time(parts: Sequence[ExpectedTime]) -> ExpectedTime:
    """Return the time of all parts one after the other, with the weakest basis among them."""
    known = [part.seconds for part in parts if part.seconds is not None]
    basis = max((part.basis for part in parts), default=Basis.UNKNOWN)
    return ExpectedTime(math.fsum(known) if basis < Basis.UNKNOWN else None, basis)


def seconds_left(runs: Iterable[Run], now_seconds: float) -> float | None:
    """Return the seconds left for measuring these runs, at a monotonic time; None if a part of it is unknown, and 0 if
    nothing is left."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.plan.baseline or run.id, []).append(run)
    left = [_left(group, now_seconds) for group in groups.values() if not all(run.over for run in group)]
    known = [each for each in left if each is not None]
    return math.fsum(known) if len(known) == len(left) else None


def left_in_words(left_seconds: float | None) -> str:
    """Return `≈ 25 s left`, rounded as coarsely as an estimate deserves; empty if it is unknown or nothing."""
    if not left_seconds:
        return ""
    if left_seconds > 110:
        return f"≈ {math.ceil(left_seconds / 60)} min left"
    step = next(step for step, most in ((1, 10), (5, 60), (10, 110)) if left_seconds <= most)
    return f"≈ {math.ceil(left_seconds / step) * step} s left"


def _left(group: Sequence[Run], now_seconds: float) -> float | None:
    expected = group[0].expected_seconds
    began = [run.started_seconds for run in group if run.started_seconds is not None]
    if not began:
        return expected
    left = [expected - (now_seconds - min(began))] if expected is not None else []
    left += [  # from what its turns have taken so far
        run.remaining_seconds - (now_seconds - run.progress_seconds)
        for run in group
        if not run.over and run.remaining_seconds is not None and run.progress_seconds is not None
    ]
    longest = max(left, default=0.0)
    return longest if longest > 0 else None


def _work(spec: RunSpec) -> tuple[str, str]:
    return spec.workload, spec.target


def _size(spec: RunSpec) -> tuple[object, ...]:
    return tuple(sorted(spec.parameters.items())), spec.arguments


def _measured_alike(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """Return the specs in comparable form: presets' names, seeds and the ids of runs do not matter."""
    alike = [replace(spec, baseline="", preset="", seed=0) for spec in specs]
    return sorted(alike, key=lambda spec: (spec.side, spec.variant, spec.device))


def _model(specs: Sequence[RunSpec]) -> tuple[float, bool]:
    """Return the seconds of these runs estimated from what a call needs, and whether that is known for all of them."""
    calls = [_call_seconds(spec) for spec in specs]
    total = 0.0
    for spec, known in zip(specs, calls, strict=True):
        call = known or 0.0
        start = _START_SECONDS_NUMPY if spec.how == "numpy" else _START_SECONDS
        cold = start + _COLD_CALLS * call
        launches = spec.launches if cold <= spec.timing_seconds else 1
        turns = max(_TURNS_SHARE * spec.timing_seconds / launches, least_blocks(launches) * call)
        whole = launches * (cold + turns) + start + _LATER_CALLS * call
        total += whole if spec.max_seconds is None else min(whole, launches * start + spec.max_seconds)
    return total, all(call is not None for call in calls)


def _call_seconds(spec: RunSpec) -> float | None:
    """Return about how long a call takes on this host; None for an accelerator, and for a function of the user's."""
    if spec.target or not spec.device.startswith("cpu:"):
        return None
    from jaxprof.workloads import built_in

    try:
        workload = built_in(spec.workload)
        needs = workload.estimate(spec.parameters)
    except (JaxprofError, LookupError, TypeError, ValueError):  # of another version, whose parameters were others
        return None
    if needs.traffic_bytes is None and needs.flops is None:
        return None
    rate = _FLOPS_PER_SECOND_OF_A_CORE * (os.cpu_count() or 1)
    compute = (needs.flops or 0.0) / rate if workload.has_dots else 0.0
    return max(compute, (needs.traffic_bytes or 0.0) / _BYTES_PER_SECOND)
