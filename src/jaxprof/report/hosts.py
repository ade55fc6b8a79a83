"""A job as text, JSON and CSV: its processes beside each other, who is late, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from jaxprof.analysis.arrivals import Arrivals
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


@dataclass(frozen=True, slots=True)
class _Arrival:
    """One process at the collectives."""

    index: int
    last_count: int
    last_share: float
    waited_seconds: float
    caused_seconds: float
    offset_seconds: float


ARRIVALS: Final[tuple[Column[_Arrival], ...]] = (
    Column("index", "process", right=True),
    Column("last_count", "arrives last", show=integer),
    Column("last_share", "share", show=percent),
    Column("caused_wait_seconds", "others wait for it", at("caused_seconds"), seconds),
    Column("waited_seconds", "waits for others", show=seconds),
    Column("clock_offset_seconds", "its clock", at("offset_seconds"), seconds),
)


def arrival_table(seen: Arrivals) -> Table[_Arrival]:
    """One row for each process whose capture holds the collective."""
    columns = (seen.last_count, seen.waited_seconds, seen.caused_seconds, seen.offset_seconds)
    return Table(
        ARRIVALS,
        [
            _Arrival(index, last, last / seen.instances, waited, caused, offset)
            for index, last, waited, caused, offset in zip(seen.indices, *columns, strict=True)
        ],
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
    if job.arrivals is not None:
        lines += ["", *_arrival_lines(job.arrivals)]
    return "\n".join(lines)


def _arrival_lines(seen: Arrivals) -> Iterator[str]:
    yield (
        f"  {safe(seen.name)}: {counted(seen.instances, 'execution')} in {seconds(seen.span_seconds)}, "
        f"the exchange itself {seconds(seen.exchange_seconds)}"
    )
    yield ""
    yield from text_lines(arrival_table(seen))
    yield f"  its clock: ahead of the first one's, estimated from the ends to ± {seconds(seen.uncertain_seconds)}"


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
            "compilations"
        )
        if job.arrivals is not None:
            text += (
                f", {counted(job.arrivals.instances, 'execution')} of {safe(job.arrivals.name)} by who arrives last."
            )
        else:
            text += (
                ". A device that computes slowly is told only by captures: the others wait for it in the same call. "
                "`jaxprof script --capture-steps 100` takes them."
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
        "arrivals": None if job.arrivals is None else _arrivals(job.arrivals),
    }


def _arrivals(seen: Arrivals) -> dict[str, Any]:
    return {
        "name": seen.name,
        "instances": seen.instances,
        "span_seconds": seen.span_seconds,
        "exchange_seconds": seen.exchange_seconds,
        "clock_uncertain_seconds": seen.uncertain_seconds,
        "processes": list(records(arrival_table(seen))),
    }
