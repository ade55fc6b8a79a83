"""A job as text, JSON and CSV: its processes beside each other, who is late, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from jaxprof.analysis.arrivals import Arrivals
from jaxprof.analysis.jobs.exposed import CollectiveFigures
from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.jobs.goodput import Goodput
from jaxprof.analysis.jobs.job import JobFigures
from jaxprof.analysis.jobs.late import shared
from jaxprof.facts import at
from jaxprof.facts.processes import FIGURES
from jaxprof.report.renderers import records, text_lines, wrap
from jaxprof.report.table import Column, Table, of_facts
from jaxprof.text import safe
from jaxprof.units import bytes_, counted, integer, percent, scaled, seconds

_WIDTH: Final = 100


FINDINGS: Final[tuple[Column[JobFinding], ...]] = (
    Column("code"),
    Column("process", value=at("index")),
    Column("message"),
    Column("advice"),
    Column("part"),
    Column("seconds"),
    Column("since_seconds"),
    Column("until_seconds"),
    Column("since_step"),
    Column("file", value=at("where.file")),
    Column("line", value=at("where.line")),
)


def _rate(value: float | None) -> str:
    return scaled(value, "B/s")


@dataclass(frozen=True, slots=True)
class ArrivalRow:
    """One process at the collectives."""

    index: int
    last_count: int
    last_share: float
    waited_seconds: float
    caused_seconds: float
    late_seconds: float
    offset_seconds: float


ARRIVALS: Final[tuple[Column[ArrivalRow], ...]] = (
    Column("process", "process", at("index"), right=True),
    Column("last_count", "arrives last", show=integer),
    Column("last_share", "share", show=percent),
    Column("late_seconds", "after the others", show=seconds),
    Column("caused_wait_seconds", "others wait for it", at("caused_seconds"), seconds),
    Column("waited_seconds", "waits for others", show=seconds),
    Column("clock_offset_seconds", "its clock", at("offset_seconds"), seconds),
)


COLLECTIVES: Final[tuple[Column[CollectiveFigures], ...]] = (
    Column("name", "collective"),
    Column("opcode", "opcode", at("exchanged.opcode")),
    Column("bytes", "bytes", at("exchanged.bytes"), bytes_),
    Column("devices", "devices", at("exchanged.devices"), integer),
    Column("instances", "times", show=integer),
    Column("exposed_seconds", "alone", show=seconds),
    Column("exposed_share", "share", show=percent),
    Column("exchange_median_seconds", "exchange", show=seconds),
    Column("bus_bytes_per_second", "bus", show=_rate),
    Column("fast_bus_bytes_per_second", "fastest", show=_rate),
    Column("possible_bytes_per_second", "possible", show=_rate),
)


def arrival_table(seen: Arrivals) -> Table[ArrivalRow]:
    """One row for each process whose capture holds the collective."""
    late = [fmean(each) for each in seen.late_seconds]
    columns = (seen.last_count, seen.waited_seconds, seen.caused_seconds, late, seen.offset_seconds)
    return Table(
        ARRIVALS,
        [
            ArrivalRow(index, last, last / seen.instances, waited, caused, after, offset)
            for index, last, waited, caused, after, offset in zip(seen.indices, *columns, strict=True)
        ],
    )


def process_table(job: JobFigures) -> Table[ProcessFigures]:
    """One row for each process that could be read."""
    return Table(of_facts(FIGURES), job.processes)


def to_text(job: JobFigures) -> str:
    """What is missing first, then what was found, then the processes."""
    heading = f"{job.folder}  ·  {counted(job.count, 'process', 'processes')}" + (f"  ·  {job.job}" if job.job else "")
    lines = [safe(heading), "─" * min(_WIDTH, len(heading))]
    for notice in job.notices:
        lines += wrap(safe(notice), width=_WIDTH, indent="    ", first="  ! ")
    lines += ["", *summary_lines(job), ""]
    lines += text_lines(process_table(job))
    lines.append("  device, data, host, dispatch, copy, compile: shares of the time of its loop, from samples")
    if job.goodput is not None:
        lines += ["", *goodput_lines(job.goodput)]
    if job.arrivals is not None:
        lines += ["", *_arrival_lines(job.arrivals), "", *_collective_lines(job.collectives)]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Cause:
    """What a part of the wall time went to."""

    cause: str
    share: float
    seconds: float


CAUSE_WORDS: Final = {
    "useful": "useful: compiled functions of the loop",
    "waiting": "waiting for other processes there",
    "data": "making or fetching input",
    "host": "Python on the host",
    "dispatch": "calling JAX",
    "copy": "copies between host and device",
    "recompile": "compiling again",
    "first_compile": "first compilations",
    "start": "start and imports",
    "outside_loop": "outside the loop",
    "stopped": "stopped, not running",
    "after_failure": "after the first failure",
    "not_seen": "not seen",
}
CAUSES: Final[tuple[Column[_Cause], ...]] = (
    Column("cause", "wall time of all processes", show=lambda cause: CAUSE_WORDS[cause], right=False),
    Column("share", "share", show=percent),
    Column("seconds", "time", show=seconds),
)


def cause_table(found: Goodput) -> Table[_Cause]:
    """One row for each cause, in their order; those that took no time too."""
    shares = found.shares
    return Table(CAUSES, [_Cause(cause, shares[cause], took) for cause, took in found.causes.items()])


def goodput_lines(found: Goodput) -> Iterator[str]:
    """What the wall time went to, the causes that took any."""
    shown = [row for row in cause_table(found).rows if row.seconds > 0]
    yield from text_lines(Table(CAUSES, shown))
    yield (
        f"  goodput ≈ {percent(found.shares['useful'])} of {seconds(found.seconds)} "
        f"({counted(found.processes, 'process', 'processes')} together), from samples; at most that: waiting that all "
        "share is in it"
    )


def _goodput(found: Goodput) -> dict[str, Any]:
    return {
        "share": found.shares["useful"],
        "seconds": found.seconds,
        "process_count": found.processes,
        "causes": list(records(cause_table(found))),
    }


def _arrival_lines(seen: Arrivals) -> Iterator[str]:
    yield (
        f"  {safe(seen.name)}: {counted(seen.instances, 'execution')} in {seconds(seen.span_seconds)}, "
        f"the exchange itself {seconds(seen.exchange_seconds)}"
    )
    yield ""
    yield from text_lines(arrival_table(seen))
    yield "  after the others: by how much later than the middle one of them it mostly arrives; negative before it"
    yield f"  its clock: ahead of the first one's, estimated from the ends to ± {seconds(seen.uncertain_seconds)}"


def _collective_lines(found: Sequence[CollectiveFigures]) -> Iterator[str]:
    yield from text_lines(Table(COLLECTIVES, found))
    yield "  alone: estimate of the exchange in which the device of the median process ran no other kernel"
    yield "  bus: bandwidth of the median exchange (as of nccl-tests), and of the fastest tenth; possible: by its links"


def answer_lines(job: JobFigures) -> list[str]:
    """What is known of the whole: processes, hosts, steps; and that no process stands out, where that can be said."""
    hosts = len({process.host for process in job.processes})
    there = len(job.processes)
    of = counted(job.count, "process", "processes") + (f", {there} of them seen," if there < job.count else "")
    rates = [each.steps_per_second for each in job.processes if each.steps_per_second is not None]
    walls = [each.wall_seconds for each in job.processes if each.wall_seconds is not None]
    title = f"job of {of} on {counted(hosts, 'host')}"
    title += f"  ·  {seconds(max(walls))}" if walls else ""
    title += f"  ·  {scaled(min(rates))} to {scaled(max(rates))} steps/s" if rates else ""
    words = "" if job.names_somebody else nothing_found(job)
    return [title, words] if words else [title]


def _nothing(job: JobFigures) -> list[str]:
    words = nothing_found(job)
    return wrap(words, width=_WIDTH, indent="  ") if words else []


def summary_lines(job: JobFigures) -> list[str]:
    """What was found, whole; or that nothing was, and what could not have been."""
    lines = [] if job.names_somebody else _nothing(job)
    for finding in job.findings:
        cost = f" ({seconds(finding.seconds)})" if finding.seconds is not None else ""
        where = f", at {finding.where.short()}" if finding.where else ""
        lines += wrap(safe(finding.message + where + cost), width=_WIDTH, indent="    ", first="  ✗ ")
        lines += wrap(safe(finding.advice), width=_WIDTH, indent="    ")
    return lines


def nothing_found(job: JobFigures) -> str:
    """That no process stands out, by what they were compared, and what could not be; empty where nothing was."""
    looked = []
    if job.compared:
        looked.append(f"{counted(job.compared, 'loop')} by data, host, dispatch and copies")
    known = sum(process.again is not None for process in job.processes)
    if known > 1:
        looked.append(f"{counted(known, 'ledger')} by what was compiled again")
    if job.arrivals is not None:
        looked.append(
            f"{counted(job.arrivals.instances, 'execution')} of {safe(job.arrivals.name)} by who arrives last"
        )
    common = "; ".join(f"{what}: {percent(least)} to {percent(most)}" for what, least, most in shared(job.processes))
    all_do = f" All {len(job.processes)} of them: {common}." if common else ""
    if not looked:
        return all_do.strip()
    text = f"No process stands out. Compared were {', '.join(looked)}.{all_do}"
    if job.arrivals is not None:
        return text
    return (
        f"{text} A device that computes slowly is told only by captures: the others wait for it in the same call. "
        "`jaxprof script --capture-steps 100` takes them."
    )


def to_dict(job: JobFigures) -> dict[str, Any]:
    """For programs."""
    return {
        "folder": job.folder,
        "job": job.job,
        "process_count": job.count,
        "notices": list(job.notices),
        "findings": list(records(Table(FINDINGS, job.findings))),
        "processes": list(records(process_table(job))),
        "goodput": None if job.goodput is None else _goodput(job.goodput),
        "collectives": list(records(Table(COLLECTIVES, job.collectives))),
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
