"""Say how long runs will take, before they begin and while they go on: as long as the last time.

Nothing is stored for it: the log of every session says when its runs began and ended. Of what was never measured here,
only the time that is known is given: starting the processes, and the budget.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from jaxprof.events import RunSpec
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.requests import spec_in_log
from jaxprof.session import Run
from jaxprof.session.log import Entry, Library
from jaxprof.units import seconds

LOOKED_AT = 40
"""Number of kept sessions, from the newest on, that are searched for the same runs."""
_START_SECONDS, _START_SECONDS_NUMPY = 1.0, 0.2
"""Time from the start of a process to its first call."""


class Basis(IntEnum):
    """Basis of an estimate, the best first."""

    LAST_TIME = 0
    """The same runs, measured the same way on this machine."""
    LEAST = 1
    """Start-up and time budget alone."""
    UNKNOWN = 2


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
        return "time unknown" if self.basis == Basis.UNKNOWN else f"≈ {seconds(self.seconds, 2)}, as last time"


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
    wanted = _measured_alike(specs)
    last = next((group for group in before if _measured_alike(group.specs) == wanted), None)
    if last is not None:
        return ExpectedTime(last.seconds, Basis.LAST_TIME)
    if any(spec.how not in ("numpy", "eager", "jit") or spec.side for spec in specs):
        return ExpectedTime(None, Basis.UNKNOWN)
    return ExpectedTime(math.fsum(map(_least_seconds, specs)), Basis.LEAST)


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
    weakest = max((each.basis for each in expected.values()), default=Basis.UNKNOWN)
    total = math.fsum(known.values()) if weakest < Basis.UNKNOWN else None
    return Expectation(ExpectedTime(total, weakest), known)


def measured_before() -> list[MeasuredGroup]:
    """Return the groups in the newest kept sessions. Reads files, so the app calls it only in threads."""
    return measured_groups(Library().entries(LOOKED_AT))


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


def _measured_alike(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """Return the specs in comparable form: presets' names, seeds and the ids of runs do not matter."""
    alike = [replace(spec, baseline="", preset="", seed=0) for spec in specs]
    return sorted(alike, key=lambda spec: (spec.side, spec.variant, spec.device))


def _least_seconds(spec: RunSpec) -> float:
    """Return what starting its processes and its budget take, however short a call is."""
    starts = spec.launches * (_START_SECONDS_NUMPY if spec.how == "numpy" else _START_SECONDS)
    most = math.inf if spec.max_seconds is None else spec.max_seconds
    return starts + min(spec.timing_seconds, most)
