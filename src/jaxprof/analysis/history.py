"""What the kept sessions say about one measurement over time: its points, and where it changed for good.

The sessions were measured at different times, beside whatever else the machine did: a slower machine looks the same as
a slower program. So a change is named with what else changed there, and its cause is left to `jaxprof compare`, which
measures both in turns.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from jaxprof.analysis.difference import FACTS, EnvironmentDifference, Unit, environments
from jaxprof.analysis.memory import peak_memory
from jaxprof.analysis.run_difference import measurement
from jaxprof.analysis.run_result import COUNTED_FACTS, run_cost, summaries_over_launches
from jaxprof.analysis.session_difference import environment_facts
from jaxprof.errors import FileRefusedError, unknown_name
from jaxprof.events import RunSpec, Scalar
from jaxprof.session import Run, Session
from jaxprof.session.log.reader import OUTLINE, read_outline
from jaxprof.session_names import EXTENSION
from jaxprof.stats import change_points
from jaxprof.stats.changes import SHORTEST
from jaxprof.stats.turns import middle

PHASES_KEPT: Final = ("run", "trace", "lower", "compile", "first_run")
"""The phases that have a history; the first is the steady call."""
FACTS_KEPT: Final = ("flops", "bytes", "peak")
"""The exact facts that have one."""
FEWEST: Final = 2 * SHORTEST
"""In fewer points no change is looked for."""
TOGETHER: Final = "neighbouring sessions move together"
BETWEEN_VISITS: Final = "the difference is one between days, and there are too few days to tell"
"""Why nothing is said of a difference that sessions have: see `MeasurementHistory.unclear`."""
_VISIT_SECONDS: Final = 6 * 3600.0
"""After so long without a session the machine counts as visited anew."""
_LAST_DATE: Final = 253_402_300_799.0
"""The Unix time at which the year 9999 ends: a damaged file may hold any number."""


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """What one run of one session says."""

    path: Path
    session: str
    """The session's id."""
    run: str
    wall_seconds: float
    """Unix time of the run's end; of the session's start where that is not known."""
    value: float
    """The median in seconds, or the fact in its unit."""
    low: float | None
    """The median's 95 % interval; None where there were too few samples or launches for one, and for a fact."""
    high: float | None
    launches: int
    wrong: bool
    """Whether its check failed: shown, and not looked at for changes, because it is the time of something else."""
    environment: Mapping[str, str]
    """Versions, devices, settings, the driver, the host and the function's source, in words."""
    changed: tuple[EnvironmentDifference, ...] = ()
    """What is not as it was at the point before."""

    @property
    def name(self) -> str:
        """The session's file without its extension."""
        return self.path.name.removesuffix(EXTENSION)


@dataclass(frozen=True, slots=True)
class LastingChange:
    """Where a history changed for good."""

    last: HistoryPoint
    """The last point before it, of those that are looked at."""
    first: HistoryPoint
    """The first point after it."""
    before: float
    """The median of the points from the change before it to this one; an exact fact as it was."""
    after: float
    """Likewise of those from this change to the next one."""
    p_value: float | None
    """The share of permuted histories with as large a change; None for an exact fact, which has no noise."""
    changed: tuple[EnvironmentDifference, ...]
    """What changed around it at the same place."""

    @property
    def ratio(self) -> float | None:
        """`before` over `after`, as for a comparison: above 1, it became faster, or less. None where `after` is 0."""
        return self.before / self.after if self.after else None


@dataclass(frozen=True, slots=True)
class MeasurementHistory:
    """The history of one measurement: the same workload, variant, kind of device, parameters, arguments and precision
    on the same hardware."""

    workload: str
    variant: str
    target: str
    """Of a user's function, its file and name; else empty."""
    device_kind: str
    machine: str
    """The host's processor and cores, in words."""
    parameters: Mapping[str, Scalar]
    arguments: tuple[str, ...]
    precision: str
    points: tuple[HistoryPoint, ...]
    """The newest last; at least one."""
    changes: tuple[LastingChange, ...]
    unclear: str = ""
    """Why there is no verdict where the points differ: `TOGETHER` or `BETWEEN_VISITS`; empty where there is one."""

    @property
    def searched(self) -> bool:
        """Whether there were enough points to look for a change of a time."""
        return sum(not point.wrong for point in self.points) >= FEWEST


@dataclass(frozen=True, slots=True)
class LibraryHistory:
    """The histories of a folder."""

    measure: str
    """One of `PHASES_KEPT` or `FACTS_KEPT`."""
    series: tuple[MeasurementHistory, ...]
    """The one that was measured last first."""
    sessions: int
    """How many were read."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many runs are no points, by the reason in words."""
    copies: int = 0
    """Files of a session that another file holds, too."""
    refused: tuple[str, ...] = ()
    """Files that are no sessions, or of a newer version, each with the reason."""
    notices: Mapping[str, int] = field(default_factory=dict)
    """What could not be read of sessions, with the number of them."""

    @property
    def unit(self) -> Unit:
        """The unit of the points."""
        return FACTS[self.measure].unit if self.measure in FACTS_KEPT else "second"

    @property
    def title(self) -> str:
        """What the points are, in words."""
        if self.measure in FACTS_KEPT:
            return FACTS[self.measure].title
        return {"run": "steady call, median", "first_run": "first run"}.get(self.measure, self.measure)


def read_history(
    paths: Iterable[Path],
    measure: str = "run",
    word: str = "",
    *,
    last: int | None = None,
    since: float | None = None,
) -> LibraryHistory:
    """The histories of the sessions in these files, of all workloads or of those that `word` names.

    `word` is a workload, `workload:variant`, or a function of the user's as `run` takes it; `since` is a Unix time;
    `last` keeps the newest points of each series. Reads every file, so call it in a thread. Raises UsageError where no
    session measured `word`, and KeyError for an unknown `measure`.
    """
    if measure not in PHASES_KEPT and measure not in FACTS_KEPT:
        raise KeyError(measure)
    read = _Read(measure)
    for path in paths:
        read.take(path, word, since)
    if word and not read.found:
        raise unknown_name("measured workload", word, read.names)
    grouped: dict[Any, list[tuple[Session, Run, HistoryPoint]]] = {}
    left_out: Counter[str] = Counter()
    for path, session in read.sessions.values():
        for run in session.runs.values():
            if run.plan.how in ("imported", "program") or (word and not _named(run.plan, word)):
                continue
            point = _point(path, session, run, measure)
            if isinstance(point, str):
                left_out[point] += bool(point)
            elif since is None or point.wall_seconds >= since:
                key = _machine(session), run.plan.workload, run.plan.target, measurement(run)
                grouped.setdefault(key, []).append((session, run, point))
    series = [_series(members, measure, last) for members in grouped.values()]
    series.sort(key=lambda one: -one.points[-1].wall_seconds)
    return LibraryHistory(
        measure, tuple(series), len(read.sessions), +left_out, read.copies, tuple(read.refused), read.notices
    )


class _Read:
    """The sessions of a folder, each once."""

    def __init__(self, measure: str) -> None:
        self._types = (*OUTLINE, "text_chunk") if measure in COUNTED_FACTS else OUTLINE
        self.sessions: dict[tuple[str, int], tuple[Path, Session]] = {}
        self.names: set[str] = set()
        self.found = False
        self.copies = 0
        self.refused: list[str] = []
        self.notices: Counter[str] = Counter()

    def take(self, path: Path, word: str, since: float | None) -> None:
        """Reads a file, if it may hold something of what is wanted."""
        try:
            if since is not None and path.stat().st_mtime < since and not word:
                return
            if word and not self._wanted(read_outline(path, ("run_planned",)), word):
                return
            session = read_outline(path, self._types)
        except FileNotFoundError:  # deleted meanwhile
            return
        except FileRefusedError as error:
            self.refused.append(error.what)
            return
        key = session.header.session, session.header.process_index
        known = self.sessions.get(key)
        if known is not None:
            self.copies += 1
            if known[1].complete or not session.complete:
                return
        else:
            self.notices.update(set(session.notices))
        self.sessions[key] = path, session

    def _wanted(self, planned: Session, word: str) -> bool:
        specs = [run.plan for run in planned.runs.values() if run.plan.how not in ("imported", "program")]
        self.names.update(spec.workload for spec in specs)
        wanted = any(_named(spec, word) for spec in specs)
        self.found |= wanted
        return wanted


def _named(spec: RunSpec, word: str) -> bool:
    names = {spec.workload, f"{spec.workload}:{spec.variant}", spec.target}
    file, colon, function = word.rpartition(":")
    return word in names or bool(colon and spec.target and f"{os.path.abspath(file)}:{function}" == spec.target)


def _machine(session: Session) -> str:
    """The processor and its cores. Not the name of the host, which a container has anew at each start."""
    found = session.header.environment
    cores = found.get("machine_cores") or found.get("cores")
    return ", ".join(str(part) for part in (found.get("cpu_model"), cores and f"{cores} cores") if part)


def _series(members: list[tuple[Session, Run, HistoryPoint]], measure: str, last: int | None) -> MeasurementHistory:
    members.sort(key=lambda member: member[2].wall_seconds)
    session, run, _ = members[-1]
    points = [point for *_, point in members][-last if last else None :]
    points = [
        point if number == 0 else replace(point, changed=_changed(points[number - 1], point))
        for number, point in enumerate(points)
    ]
    used = [point for point in points if not point.wrong]
    changes, unclear = (list(_exact_changes(used)), "") if measure in FACTS_KEPT else _lasting_changes(used)
    plan = run.plan
    return MeasurementHistory(
        plan.workload,
        plan.variant,
        plan.target,
        run.device_kind,
        _machine(session),
        dict(plan.parameters),
        plan.arguments,
        plan.precision,
        tuple(points),
        tuple(changes),
        unclear,
    )


def _lasting_changes(points: list[HistoryPoint]) -> tuple[list[LastingChange], str]:
    """The changes, and why there is no verdict where none can be told from what varies anyway.

    A change between two visits of the machine has to hold among visits, each with its median: sessions of one day
    resemble each other more than those of another do. So has one that fewer than `SHORTEST` sessions lie beside within
    its visit."""
    if len(points) < FEWEST:
        return [], ""
    begins = [0, *(at for at, (last, point) in enumerate(pairwise(points), 1) if _is_later_visit(last, point))]
    by_session = change_points([point.value for point in points])
    unclear = TOGETHER if by_session.move_together else ""
    between: set[int] = set()
    if len(begins) >= FEWEST:
        visits = (points[low:high] for low, high in pairwise([*begins, len(points)]))
        by_visit = change_points([middle([point.value for point in visit]) for visit in visits])
        between = {begins[change.index] for change in by_visit.found}
    changes = []
    for change in by_session.found:
        near = [begin for begin in begins if abs(begin - change.index) < SHORTEST]
        if near and not between.intersection(near):
            unclear = unclear or BETWEEN_VISITS
            continue
        last, first = points[change.index - 1], points[change.index]
        changes.append(LastingChange(last, first, change.before, change.after, change.p_value, _changed(last, first)))
    return changes, unclear


def _is_later_visit(last: HistoryPoint, point: HistoryPoint) -> bool:
    return point.wall_seconds - last.wall_seconds > _VISIT_SECONDS


def _exact_changes(points: list[HistoryPoint]) -> Iterator[LastingChange]:
    for last, first in pairwise(points):
        if last.value != first.value:
            yield LastingChange(last, first, last.value, first.value, None, _changed(last, first))


def _changed(before: HistoryPoint, after: HistoryPoint) -> tuple[EnvironmentDifference, ...]:
    return tuple(row for row in environments(before.environment, after.environment) if row.differs)


def _point(path: Path, session: Session, run: Run, measure: str) -> HistoryPoint | str:
    """The point of a run; else why it has none, in words; empty for a run that the measure does not apply to."""
    header = session.header
    if run.plan.side:
        return "side of a measured comparison"
    if run.closed is None:
        return "not ended"
    if run.status != "ok":
        return run.status
    value = _fact(session, run, measure) if measure in FACTS_KEPT else _time(run, measure)
    if isinstance(value, str):
        return value
    median, low, high = value
    ended = run.closed.monotonic_seconds
    since_start = max(0.0, ended - header.monotonic_seconds) if ended else 0.0
    return HistoryPoint(
        path,
        header.session,
        run.id,
        min(max(0.0, header.wall_seconds + since_start), _LAST_DATE),
        median,
        low,
        high,
        max(1, len(run.launches)),
        run.check is not None and run.check.passed is False,
        _environment(session, run, measure),
    )


_Value = tuple[float, float | None, float | None]


def _time(run: Run, phase: str) -> _Value | str:
    if phase == "run":
        return _steady(run)
    if phase not in run.phases:
        return ""
    summary = summaries_over_launches(run).get(phase)
    seconds = summary.median if summary is not None else run.phases[phase].seconds
    if seconds is None:
        return f"without a time of {phase}"
    return _usable(seconds, (summary.low, summary.high) if summary is not None else None)


def _steady(run: Run) -> _Value | str:
    """The summary that closed the run: its samples are counted only."""
    samples = run.samples("run")
    if not samples:
        return ""
    if "run" in run.phases and run.phases["run"].zero_copy:
        return "without work: the result shares the memory of the arguments"
    if len(samples) < 2 or run.closed is None or run.closed.median_seconds is None:
        return "with fewer than two samples"
    interval = run.closed.ci95_seconds
    return _usable(run.closed.median_seconds, (interval[0], interval[1]) if interval and len(interval) == 2 else None)


def _usable(seconds: float, interval: tuple[float | None, float | None] | None) -> _Value | str:
    if not (math.isfinite(seconds) and seconds > 0):
        return "with a time of zero"
    return seconds, *(interval or (None, None))


def _fact(session: Session, run: Run, code: str) -> _Value | str:
    read: dict[str, Callable[[], float | None]] = {
        "flops": lambda: run_cost(session, run).flops,
        "bytes": lambda: run_cost(session, run).bytes_accessed,
        "peak": lambda: peak_memory(run),
    }
    value = read[code]()
    if value is None and code in COUNTED_FACTS and run_cost(session, run).note:
        return f"whose {FACTS[code].title} are unknown"
    return "" if value is None else (float(value), None, None)


def _environment(session: Session, run: Run, measure: str) -> dict[str, str]:
    """All that may explain a change, and that the session holds."""
    header, plan = session.header, run.plan
    facts: dict[str, Any] = environment_facts(run)
    facts |= {
        "NVIDIA driver": header.environment.get("nvidia_driver"),
        "host": header.host,
        "jaxprof": header.jaxprof,
        "compilation cache": plan.compilation_cache,
        "constants kept": plan.keep_constants,
        "seed": plan.seed,
    }
    if measure in COUNTED_FACTS:
        facts["counted by"] = run_cost(session, run).source
    source = run.texts.get("source")
    if source is not None:
        facts["source"] = (source.digest or hashlib.sha256(source.text.encode(errors="replace")).hexdigest())[:8]
    return {name: str(value) for name, value in facts.items() if value is not None and value != ""}
