"""The history of a measurement: its runs in the kept sessions, one list with the facts of runs and of their sessions.

The sessions were measured at different times, next to whatever else the machine did, and a slower machine looks the
same as a slower program. Whether a time changed is therefore left to `jaxprof compare`, which measures both in turns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from jaxprof.analysis.run_result import result
from jaxprof.analysis.session_difference import measurement
from jaxprof.errors import FileRefusedError, unknown_name
from jaxprof.events import RunSpec
from jaxprof.facts import Fact, Facts, SessionFile, column, pick, within
from jaxprof.facts.runs import PARAMETERS, RUNS, RunRow, interval_text
from jaxprof.facts.sessions import SESSIONS
from jaxprof.facts.units import LIST, TEXT
from jaxprof.frozen import frozen
from jaxprof.grouping import grouped
from jaxprof.report.renderers import Table
from jaxprof.report.runs import parameters_text
from jaxprof.session import Session
from jaxprof.session.log import load
from jaxprof.units import seconds

_APART = (
    "The sessions were not measured together: a slower machine looks the same as a slower program. jaxprof compare "
    "measures two in turns."
)


@frozen
class KeptRun:
    """A measured run in a kept session."""

    file: SessionFile
    row: RunRow


def _measured(row: KeptRun) -> str:
    """Return what was measured, without variant and device: `matmul · n = 1 000`."""
    plan = row.row.run.plan
    return " · ".join(filter(None, (plan.workload, parameters_text(plan.parameters), *plan.arguments, plan.precision)))


HISTORY: Facts[KeptRun] = (
    Fact("session", TEXT, "Name of the session, as commands take it", "file.name", "session", widest=34),
    *within("file", pick(SESSIONS.facts, "created", "path", "host")),
    column("workload", _measured, gives_way=True),
    *within("row", (
        *pick(RUNS.facts, "run", "workload", "variant", "device", "device_kind"),
        *within("run", (
            PARAMETERS,
            Fact("target", TEXT, "The function, FILE.py:function; null for a workload", "plan.target"),
            Fact("arguments", LIST, "The arguments as they were given, f32[1024,1024]", "plan.arguments"),
            Fact("precision", TEXT, "The effective precision of matrix products", "plan.precision"),
        )),
        *pick(RUNS.facts, "median_seconds", "ci95_low_seconds", "ci95_high_seconds"),
        column("median", "result.summary.median", seconds),
        column("95 %", lambda row: interval_text(row.result), right=True),
        *pick(RUNS.facts, "compile_seconds", "launches", "check_passed"),
        column("check", lambda row: "wrong" if row.run.check and row.run.check.passed is False else None),
        *pick(RUNS.facts, "commit", "dirty"),
    )),
    *within("file", (
        replace(fact, title="jax") if fact.key == "jax" else fact
        for fact in pick(SESSIONS.facts, "jax", "jaxlib", "python")
    )),
)  # fmt: skip


def kept_runs(paths: Iterable[Path], word: str = "") -> tuple[list[KeptRun], list[str]]:
    """Return the measured runs of these sessions, those of one measurement together and the newest first, and what
    could not be read. Sides of a comparison, and runs without a median or without work, are left out.

    `word`: the workload, `workload:variant`, or a user's function as `run` takes it; empty for all. Reads every file,
    so call it in a thread. Raises UsageError if no session measured `word`.
    """
    rows: list[KeptRun] = []
    notices: list[str] = []
    names: set[str] = set()
    for path in paths:
        try:
            session = load(path, Session)
        except FileRefusedError as error:
            notices.append(error.what)
            continue
        file = SessionFile(path, session)
        notices += (f"{file.name}: {notice}" for notice in session.notices)
        for run in session.runs.values():
            if run.status != "ok" or run.plan.side or run.plan.how in ("imported", "program"):
                continue
            names.add(run.plan.workload)
            if word and not _is_named(run.plan, word):  # what a run comes to takes 10 ms
                continue
            row = KeptRun(file, RunRow(run.variant, result(session, run.id), run.shown))
            if row.row.result.summary is not None and not row.row.result.moved_nothing:
                rows.append(row)
    if word and not rows:
        raise unknown_name("measured workload", word, names)
    rows.sort(key=lambda row: row.file.session.header.created, reverse=True)
    runs = ((row, row.row.run) for row in rows)
    alike = grouped(((run.plan.workload, run.plan.target, measurement(run)), row) for row, run in runs)
    return [row for members in alike.values() for row in members], notices


def _is_named(spec: RunSpec, word: str) -> bool:
    file, _, function = word.rpartition(":")
    return word in (spec.workload, f"{spec.workload}:{spec.variant}", spec.target) or (
        bool(spec.target and file) and f"{os.path.abspath(file)}:{function}" == spec.target
    )


def history_table(rows: Sequence[KeptRun], notices: Iterable[str]) -> Table[KeptRun]:
    """Return the runs as a table, with a note on how far their times can be compared."""
    return Table(HISTORY, rows, notes=(_APART if rows else "No kept session has a measured run.", *notices))
