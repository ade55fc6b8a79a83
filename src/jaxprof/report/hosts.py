"""A job as text, JSON and CSV: its processes beside each other, who is late, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from jaxprof.analysis.jobs import JobFigures, JobFinding, ProcessFigures
from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST
from jaxprof.report.renderers import records, text_lines, wrap
from jaxprof.report.table import Column, Table, at
from jaxprof.text import safe
from jaxprof.units import counted, integer, percent, scaled, seconds

_WIDTH: Final = 100


def _share(part: str) -> Callable[[ProcessFigures], float | None]:
    def read(process: ProcessFigures) -> float | None:
        return process.shares[part] if process.shares is not None else None

    return read


_PARTS: Final = (DEVICE, DATA, HOST, DISPATCH, COPY, COMPILE)

PROCESSES: Final[tuple[Column[ProcessFigures], ...]] = (
    Column("index", "process", right=True),
    Column("host", "host"),
    Column("status", "status"),
    Column("wall_seconds", "wall", at("result.wall_seconds"), seconds),
    Column("steps_per_second", "steps/s", at("result.steps.per_second"), scaled),
    Column("step_median_seconds", "median step", at("result.steps.median_seconds"), seconds),
    *(Column(f"loop_shares.{part}", part, _share(part), percent) for part in _PARTS),
    Column("compile_count", "compiled", at("result.compile_count"), integer),
    Column("compiled_again", "again", show=integer),
    Column("compile_seconds", "in", at("result.compile_seconds"), seconds),
    Column("error"),
    Column("advice"),
    Column("path"),
)

FINDINGS: Final[tuple[Column[JobFinding], ...]] = (
    Column("code"),
    Column("process", value=at("index")),
    Column("message"),
    Column("advice"),
    Column("part"),
    Column("seconds"),
    Column("file", value=at("where.file")),
    Column("line", value=at("where.line")),
)


def process_table(job: JobFigures) -> Table[ProcessFigures]:
    """One row for each process that could be read."""
    return Table(PROCESSES, job.processes)


def to_text(job: JobFigures) -> str:
    """What is missing first, then what was found, then the processes."""
    heading = f"{job.folder}  ·  {counted(job.count, 'process', 'processes')}" + (f"  ·  {job.job}" if job.job else "")
    lines = [safe(heading), "─" * min(_WIDTH, len(heading))]
    for notice in job.notices:
        lines += wrap(safe(notice), width=_WIDTH, indent="    ", first="  ! ")
    lines += ["", *summary_lines(job), ""]
    lines += text_lines(process_table(job))
    lines.append("  device, data, host, dispatch, copy, compile: shares of the time of its loop, from samples")
    return "\n".join(lines)


def summary_lines(job: JobFigures) -> list[str]:
    """What was found, whole; or that nothing was, and what could not have been."""
    lines: list[str] = []
    for finding in job.findings:
        cost = f" ({seconds(finding.seconds)})" if finding.seconds is not None else ""
        where = f", at {finding.where.short()}" if finding.where else ""
        lines += wrap(safe(finding.message + where + cost), width=_WIDTH, indent="    ", first="  ✗ ")
        lines += wrap(safe(finding.advice), width=_WIDTH, indent="    ")
    return lines or list(_nothing(job))


def _nothing(job: JobFigures) -> Iterator[str]:
    compared = [process for process in job.processes if process.shares is not None]
    if len(compared) > 1:
        text = (
            f"No process stands out: {counted(len(compared), 'loop')} compared by data, host, dispatch, copies and "
            "compilations. A device that computes slowly is not told so: the others wait for it in the same call."
        )
        yield from wrap(text, width=_WIDTH, indent="  ")


def to_dict(job: JobFigures) -> dict[str, Any]:
    """For programs."""
    return {
        "folder": job.folder,
        "job": job.job,
        "process_count": job.count,
        "notices": list(job.notices),
        "findings": list(records(Table(FINDINGS, job.findings))),
        "processes": list(records(process_table(job))),
    }
