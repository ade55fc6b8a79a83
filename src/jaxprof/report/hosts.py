"""Report a job: its processes side by side, which of them are late, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.base.text import safe
from jaxprof.base.units import counted, percent, scaled, seconds
from jaxprof.facts.jobs import ARRIVALS, CAUSES, COLLECTIVES, causes_of
from jaxprof.facts.processes import FIGURES, PART_SECONDS
from jaxprof.jobs.figures import UNSEEN, ProcessFigures
from jaxprof.jobs.findings import JobFigures
from jaxprof.jobs.late import shared
from jaxprof.report import Headline, Piece, Prose, Table, report_lines


def process_table(job: JobFigures) -> Table[ProcessFigures]:
    return Table(FIGURES, job.processes, is_wide=True)


def to_text(job: JobFigures) -> str:
    """Return first what is missing, then what was found, then the processes."""
    parts = [job.folder, job.condition, counted(job.count, "process", "processes"), *([job.job] if job.job else [])]
    pieces: list[Piece] = [Headline("  ·  ".join(parts)), *(Prose(notice, "  ! ") for notice in job.notices)]
    pieces += ("", *summary(job), "", process_table(job))
    if any(process.shares is not None for process in job.processes):
        pieces.append(Prose(f"{', '.join(PART_SECONDS)}: shares of the time of its loop, from samples"))
    if (goodput := job.goodput) is not None:
        pieces += ("", Table(CAUSES, [row for row in causes_of(goodput) if row[-1] > 0]))
        together = counted(goodput.processes, "process", "processes")
        share = percent(goodput.shares["useful"])
        pieces.append(
            Prose(
                f"goodput ≈ {share} of {seconds(goodput.seconds)} ({together} together), from samples; upper bound: "
                "time that all processes wait together counts as useful"
            )
        )
    if (last := job.arrivals) is not None:
        ran = f"{last.name}: {counted(last.instances, 'execution')} in {seconds(last.span_seconds)}"
        apart = seconds(last.clock_uncertain_seconds)
        after = "after the others: typical delay after the median arrival of the other processes; negative: earlier"
        alone = "alone: estimate of the exchange in which the device of the median process ran no other kernel"
        pieces += ("", Prose(f"{ran}, the exchange itself {seconds(last.exchange_seconds)}"))
        pieces += ("", Table(ARRIVALS, last.processes, is_wide=True), Prose(after))
        pieces.append(Prose(f"its clock: ahead of the first one's, estimated from the ends to ± {apart}"))
        pieces += ("", Table(COLLECTIVES, job.collectives, is_wide=True), Prose(alone))
    return "\n".join(report_lines(pieces))


def answer_lines(job: JobFigures) -> list[str]:
    """Return what is known of the whole: processes, hosts, steps; and that no process stands out, if that is known."""
    hosts = len({process.host for process in job.processes})
    seen = len(job.processes)
    processes = counted(job.count, "process", "processes") + (f", {seen} of them seen," if seen < job.count else "")
    rates = [process.steps_per_second for process in job.processes if process.steps_per_second is not None]
    walls = [process.wall_seconds for process in job.processes if process.wall_seconds is not None]
    title = f"{job.condition}  ·  job of {processes} on {counted(hosts, 'host')}"
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
    """Return that no process stands out, what was compared, and what was not; empty if there is nothing to say."""
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
    # Little time that was not seen does not weaken the conclusion.
    seen = f" in what was seen; {percent(unseen)} of the time was not" if unseen >= 0.1 else ""
    text = f"No process stands out{seen}. Compared: {', '.join(compared)}.{all_do}"
    if job.arrivals is not None:
        return text
    return (
        f"{text} A slow device shows only in captures, because the others wait inside the same call. "
        "`jaxprof script --capture-steps 100` takes them."
    )
