"""Report a job: its processes side by side, which of them are late, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

from jaxprof.base.text import safe
from jaxprof.base.units import counted, percent, scaled, seconds
from jaxprof.facts import SENTENCE, Fact, Facts
from jaxprof.facts.processes import FIGURES, PART_SECONDS
from jaxprof.facts.units import BYTES, COUNT, INDEX, LIST, OBJECT, ROWS, SECONDS, SHARE, TEXT
from jaxprof.finding import Finding
from jaxprof.jobs.arrivals import Arrival, Arrivals
from jaxprof.jobs.figures import UNSEEN, ProcessFigures
from jaxprof.jobs.findings import Goodput, JobFigures
from jaxprof.jobs.late import shared
from jaxprof.report.renderers import Headline, Piece, Prose, Table, report_lines

FINDINGS: Facts[Finding] = (
    *SENTENCE,
    Fact("process", INDEX, "The process that it is about; null of the whole job", "index"),
    Fact("part", TEXT, "What makes a process late: a part of its loop"),
    Fact("seconds", SECONDS, "What it cost"),
    Fact("since_seconds", SECONDS, "Time in its loop at which it became late; 0 if from the start"),
    Fact("until_seconds", SECONDS, "Time in its loop at which it was no longer late; null if late to the end"),
    Fact("since_step", INDEX, "Number of the first step from which it is late; null if steps were not numbered"),
    Fact("place", TEXT, "file:line", "where.text"),
)


ARRIVALS: Facts[Arrival] = (
    Fact("process", INDEX, "Index of the process in its job", title="process"),
    Fact("last_count", COUNT, "Executions at which it arrived last", title="arrives last"),
    Fact("last_share", SHARE, "Share of the executions at which it arrived last", title="share"),
    Fact("late_seconds", SECONDS,
         "Typical delay after the median arrival of the other processes; negative if earlier",
         title="after the others"),
    Fact("caused_wait_seconds", SECONDS, "What the median process of the others waited for it",
         title="others wait for it"),
    Fact("waited_seconds", SECONDS, "What it waited for others", title="waits for others"),
    Fact("clock_offset_seconds", SECONDS, "By how much its clock is ahead of the first one's", title="its clock"),
)  # fmt: skip


COLLECTIVES: Facts[Arrivals] = (
    Fact("name", TEXT, "Name of the HLO instruction", title="collective"),
    Fact("opcode", TEXT, "The HLO operation", "exchanged.opcode", "opcode"),
    Fact("bytes", BYTES, "Size of what is exchanged", "exchanged.bytes", "bytes"),
    Fact("group_size", COUNT, "Devices that take part", "exchanged.devices", "devices"),
    Fact("instances", COUNT, "Executions that all captures hold", title="times"),
    Fact("exposed_seconds", SECONDS,
         "Time of the exchange in which the device of the median process ran no other kernel",
         title="alone"),
    Fact("exposed_share", SHARE, "Share of the captured time in which it ran alone", title="share"),
    Fact("exchange_median_seconds", SECONDS, "The median exchange, without waiting for a late process",
         title="exchange"),
)  # fmt: skip


def process_table(job: JobFigures) -> Table[ProcessFigures]:
    """Return the table with a row for each process that could be read."""
    return Table(FIGURES, job.processes, is_wide=True)


def to_text(job: JobFigures) -> str:
    """Return the report as text."""
    return "\n".join(report_lines(_report(job)))


def _report(job: JobFigures) -> Iterator[Piece]:
    """Yield first what is missing, then what was found, then the processes."""
    parts = [job.folder, counted(job.count, "process", "processes"), *([job.job] if job.job else [])]
    yield Headline("  ·  ".join(parts))
    yield from (Prose(notice, "  ! ") for notice in job.notices)
    yield from ("", *summary(job), "", process_table(job))
    if any(process.shares is not None for process in job.processes):
        yield Prose(f"{', '.join(PART_SECONDS)}: shares of the time of its loop, from samples")
    if job.goodput is not None:
        yield from ("", *_goodput(job.goodput))
    if job.arrivals is not None:
        yield from ("", *_arrivals(job.arrivals), "", *_collectives(job.collectives))


CAUSE_WORDS = {
    "useful": "useful: compiled functions of the loop",
    "waiting": "waiting for other processes in compiled functions",
    "data": "making or fetching input",
    "host": "Python on the host",
    "dispatch": "calling JAX",
    "copy": "copies between host and device",
    "recompile": "compiling again",
    "first_compile": "first compilations",
    "start": "start and imports",
    "outside_loop": "outside the loop",
    "paused": "paused, not running",
    "after_failure": "after the first failure",
    "not_seen": "not seen",
}
_Cause = tuple[str, float, float]
CAUSES: Facts[_Cause] = (
    Fact("cause", TEXT, "What the time went to, as the documents list it", itemgetter(0), "wall time of all processes",
         show=lambda cause: CAUSE_WORDS[cause], right=False),
    Fact("share", SHARE, "Share of the wall time of all processes", itemgetter(1), "share"),
    Fact("seconds", SECONDS, "Time of all processes together", itemgetter(2), "time"),
)  # fmt: skip


def _causes(goodput: Goodput) -> list[_Cause]:
    """Return each cause with its share and its seconds, in their fixed order, also those that took no time."""
    return [(cause, goodput.shares[cause], took) for cause, took in goodput.causes.items()]


def _goodput(goodput: Goodput) -> Iterator[Piece]:
    """Yield what the wall time went to: the causes that took time, and the goodput."""
    yield Table(CAUSES, [row for row in _causes(goodput) if row[-1] > 0])
    yield Prose(
        f"goodput ≈ {percent(goodput.shares['useful'])} of {seconds(goodput.seconds)} "
        f"({counted(goodput.processes, 'process', 'processes')} together), from samples; upper bound: time that all "
        "processes wait together counts as useful",
    )


def _arrivals(arrivals: Arrivals) -> Iterator[Piece]:
    yield Prose(
        f"{arrivals.name}: {counted(arrivals.instances, 'execution')} in {seconds(arrivals.span_seconds)}, "
        f"the exchange itself {seconds(arrivals.exchange_seconds)}",
    )
    yield from ("", Table(ARRIVALS, arrivals.processes, is_wide=True))
    yield Prose("after the others: typical delay after the median arrival of the other processes; negative: earlier")
    yield Prose(
        f"its clock: ahead of the first one's, estimated from the ends to ± {seconds(arrivals.clock_uncertain_seconds)}"
    )


def _collectives(figures: Sequence[Arrivals]) -> Iterator[Piece]:
    yield Table(COLLECTIVES, figures, is_wide=True)
    yield Prose("alone: estimate of the exchange in which the device of the median process ran no other kernel")


def answer_lines(job: JobFigures) -> list[str]:
    """Return what is known of the whole: processes, hosts, steps; and that no process stands out, if that is known."""
    hosts = len({process.host for process in job.processes})
    seen = len(job.processes)
    processes = counted(job.count, "process", "processes") + (f", {seen} of them seen," if seen < job.count else "")
    rates = [process.steps_per_second for process in job.processes if process.steps_per_second is not None]
    walls = [process.wall_seconds for process in job.processes if process.wall_seconds is not None]
    title = f"job of {processes} on {counted(hosts, 'host')}"
    title += f"  ·  {seconds(max(walls))}" if walls else ""
    title += f"  ·  {scaled(min(rates))} to {scaled(max(rates))} steps/s" if rates else ""
    words = "" if job.names_somebody else nothing_found(job)
    return [title, words] if words else [title]


def summary(job: JobFigures) -> Iterator[Piece]:
    """Yield all findings; or that no process stands out, what was compared, and what was not."""
    if not job.names_somebody:
        yield Prose(nothing_found(job))
    for finding in job.findings:
        cost = f" ({seconds(finding.seconds)})" if finding.seconds is not None else ""
        where = f", at {finding.where.short()}" if finding.where else ""
        yield Prose(finding.message + where + cost, "  ✗ ")
        yield Prose(finding.fix, "    ")


def nothing_found(job: JobFigures) -> str:
    """Return that no process stands out, what was compared, and what was not; an empty text if nothing was compared and
    the processes have no large part in common."""
    compared = []
    if job.compared:
        compared.append(f"{counted(job.compared, 'loop')} by data, host, dispatch and copies")
    ledgers = sum(process.again is not None for process in job.processes)
    if ledgers > 1:
        compared.append(f"{counted(ledgers, 'ledger')} by what was compiled again")
    if job.arrivals is not None:
        compared.append(
            f"{counted(job.arrivals.instances, 'execution')} of {safe(job.arrivals.name)} by who arrives last"
        )
    common = "; ".join(f"{what}: {percent(least)} to {percent(most)}" for what, least, most in shared(job.processes))
    all_do = f" All {len(job.processes)} processes: {common}." if common else ""
    if not compared:
        return all_do.strip()
    unseen = job.goodput.shares[UNSEEN] if job.goodput is not None else 0.0
    seen = f" in what was seen; {percent(unseen)} of the time was not" if unseen >= _MUCH_UNSEEN else ""
    text = f"No process stands out{seen}. Compared: {', '.join(compared)}.{all_do}"
    if job.arrivals is not None:
        return text
    return (
        f"{text} A slow device shows only in captures, because the others wait inside the same call. "
        "`jaxprof script --capture-steps 100` takes them."
    )


_MUCH_UNSEEN = 0.1
"""Share of the time that was not seen from which a conclusion says so."""
_GOODPUT: Facts[Goodput] = (
    Fact("share", SHARE, "Share that was useful: an upper bound", lambda goodput: goodput.shares["useful"]),
    Fact("seconds", SECONDS, "Wall time of these processes together"),
    Fact("process_count", COUNT, "Processes that were seen in a loop, and are in it", "processes"),
    Fact("causes", ROWS, "The wall time by cause", _causes, inside=CAUSES),
)
_ARRIVALS: Facts[Arrivals] = (
    Fact("name", TEXT, "Name of the collective"),
    Fact("instances", COUNT, "Executions that all captures hold"),
    Fact("span_seconds", SECONDS, "From the first execution to the last"),
    Fact("exchange_seconds", SECONDS, "The exchange itself, of all executions together"),
    Fact("clock_uncertain_seconds", SECONDS, "How far the ends differ on the clocks as estimated"),
    Fact("processes", ROWS, "The processes whose captures hold it", inside=ARRIVALS),
)  # fmt: skip
JOB: Facts[JobFigures] = (
    Fact("folder", TEXT, "Its folder"),
    Fact("job", TEXT, "Its id, from its launcher"),
    Fact("process_count", COUNT, "Processes of the job; null where it is not known", "count"),
    Fact("notices", LIST, "What could not be read or seen"),
    Fact("findings", ROWS, "What is worth changing", inside=FINDINGS),
    Fact("processes", ROWS, "The processes of the job, by index", inside=FIGURES),
    Fact("goodput", OBJECT, "What the wall time of the processes went to; null where no loop was seen",
         inside=_GOODPUT),
    Fact("collectives", ROWS, "Collectives of the captures that took most time", inside=COLLECTIVES),
    Fact("arrivals", OBJECT, "Who arrives last at the collective that takes most time; null without captures of it",
         inside=_ARRIVALS),
)  # fmt: skip
