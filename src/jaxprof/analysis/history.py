"""The history of one measurement over the kept sessions: its points, and what changed in the environment between them.

The sessions were measured at different times, next to whatever else the machine did, and a slower machine looks the
same as a slower program. Whether a time changed is therefore left to `jaxprof compare`, which measures both in turns.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from jaxprof.analysis.difference import Difference, environments
from jaxprof.analysis.run_result import summaries_over_launches
from jaxprof.analysis.session_difference import environment_facts, measurement
from jaxprof.errors import FileRefusedError, unknown_name
from jaxprof.events import RunSpec
from jaxprof.frozen import frozen
from jaxprof.session import Run, Session
from jaxprof.session.log.reader import OUTLINE, read_outline
from jaxprof.session_names import EXTENSION

PHASES_KEPT = ("run", "trace", "lower", "compile", "first_run")
"""Phases that have a history; the first is the steady call."""
_LAST_DATE = 253_402_300_799.0
"""Unix time at which the year 9999 ends; a damaged file may hold any number."""


@frozen
class HistoryPoint:
    """Result of one run of one session."""

    path: Path
    session: str
    """Id of the session."""
    run: str
    wall_seconds: float
    """Unix time of the run's end; of the session's start if the end is unknown."""
    value: float
    """Median in seconds."""
    low: float | None
    """Lower end of the median's 95 % interval; None with too few samples or launches."""
    high: float | None
    launches: int
    wrong: bool
    """Whether the run's check failed: the point times something else."""
    environment: Mapping[str, str]
    """Versions, devices, settings, driver, host and the function's source, as text."""
    changed: tuple[Difference[str], ...] = ()
    """Differences from the environment of the previous point."""

    @property
    def name(self) -> str:
        """File name of the session, without extension."""
        return self.path.name.removesuffix(EXTENSION)


@frozen
class MeasurementHistory:
    """History of one measurement: one workload, variant, device kind, parameters, arguments and precision on one
    hardware."""

    plan: RunSpec
    """Plan of the newest point."""
    device_kind: str
    machine: str
    """Processor and cores of the host, as text."""
    points: tuple[HistoryPoint, ...]
    """Points in order of time, at least one."""


@frozen
class LibraryHistory:
    """Histories of a folder."""

    measure: str
    """One of `PHASES_KEPT`."""
    series: tuple[MeasurementHistory, ...]
    """Histories, the most recently measured first."""
    sessions: int
    """Number of sessions read."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of runs that are not points, by reason."""
    copies: int = 0
    """Number of files that hold a session that another file holds too."""
    refused: tuple[str, ...] = ()
    """Files that are not sessions or of a newer version, each with the reason."""
    notices: Mapping[str, int] = field(default_factory=dict)
    """What could not be read, with the number of sessions concerned."""

    @property
    def title(self) -> str:
        """Title of the measure."""
        return {"run": "steady call, median", "first_run": "first run"}.get(self.measure, self.measure)


def read_history(
    paths: Iterable[Path],
    measure: str = "run",
    word: str = "",
    *,
    last: int | None = None,
) -> LibraryHistory:
    """Return the histories of the sessions in these files, for all workloads or only for those that `word` names.

    `word` is a workload, `workload:variant`, or a user's function as `run` takes it; `last`
    keeps the newest points of each series. Reads every file, so call it in a thread. Raises UsageError if no session
    measured `word`, and KeyError for an unknown `measure`.
    """
    if measure not in PHASES_KEPT:
        raise KeyError(measure)
    read = _SessionReader()
    for path in paths:
        read.take(path, word)
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
            else:
                key = _machine(session), run.plan.workload, run.plan.target, measurement(run)
                grouped.setdefault(key, []).append((session, run, point))
    series = [_series(members, last) for members in grouped.values()]
    series.sort(key=lambda one: -one.points[-1].wall_seconds)
    return LibraryHistory(
        measure, tuple(series), len(read.sessions), +left_out, read.copies, tuple(read.refused), read.notices
    )


class _SessionReader:
    """Sessions of a folder, each read once."""

    def __init__(self) -> None:
        self.sessions: dict[tuple[str, int], tuple[Path, Session]] = {}
        self.names: set[str] = set()
        self.found = False
        self.copies = 0
        self.refused: list[str] = []
        self.notices: Counter[str] = Counter()

    def take(self, path: Path, word: str) -> None:
        """Read a file if it may hold a matching run."""
        try:
            if word and not self._has_measured(read_outline(path, ("run_planned",)), word):
                return
            session = read_outline(path, OUTLINE)
        except FileNotFoundError:  # deleted in the meantime
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

    def _has_measured(self, planned: Session, word: str) -> bool:
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
    """Return the processor and its cores. The host name is left out, because a container has a new one at each
    start."""
    found = session.header.environment
    cores = found.get("machine_cores") or found.get("cores")
    return ", ".join(str(part) for part in (found.get("cpu_model"), cores and f"{cores} cores") if part)


def _series(members: list[tuple[Session, Run, HistoryPoint]], last: int | None) -> MeasurementHistory:
    members.sort(key=lambda member: member[2].wall_seconds)
    session, run, _ = members[-1]
    points = [point for *_, point in members][-last if last else None :]
    for number, (before, after) in enumerate(pairwise(points), start=1):
        changed = (row for row in environments(before.environment, after.environment) if row.differs)
        points[number] = replace(after, changed=tuple(changed))
    return MeasurementHistory(run.plan, run.device_kind, _machine(session), tuple(points))


def _point(path: Path, session: Session, run: Run, measure: str) -> HistoryPoint | str:
    """Return the point of a run, or the reason why it has none; an empty reason if the measure does not apply."""
    header = session.header
    if run.plan.side:
        return "side of a measured comparison"
    if run.closed is None:
        return "not ended"
    if run.status != "ok":
        return run.status
    value = _time(run, measure)
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
        _environment(session, run),
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
    return _positive_time(seconds, (summary.low, summary.high) if summary is not None else None)


def _steady(run: Run) -> _Value | str:
    """Return the summary that closed the run; in an outline its samples are only counted."""
    samples = run.samples("run")
    if not samples:
        return ""
    if "run" in run.phases and run.phases["run"].zero_copy:
        return "without work: the result shares the memory of the arguments"
    if len(samples) < 2 or run.closed is None or run.closed.median_seconds is None:
        return "with fewer than two samples"
    interval = run.closed.ci95_seconds
    return _positive_time(
        run.closed.median_seconds, (interval[0], interval[1]) if interval and len(interval) == 2 else None
    )


def _positive_time(seconds: float, interval: tuple[float | None, float | None] | None) -> _Value | str:
    if not (math.isfinite(seconds) and seconds > 0):
        return "with a time of zero"
    return seconds, *(interval or (None, None))


def _environment(session: Session, run: Run) -> dict[str, str]:
    """Return everything in the session that may explain a change."""
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
    source = run.texts.get("source")
    if source is not None:
        facts["source"] = (source.digest or hashlib.sha256(source.text.encode(errors="replace")).hexdigest())[:8]
    return {name: str(value) for name, value in facts.items() if value is not None and value != ""}
