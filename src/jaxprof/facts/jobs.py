"""Facts of a job besides those of its processes: what was found, what the time of all went to, and who arrives last."""

from __future__ import annotations

from operator import itemgetter

from jaxprof.events.finding import Finding
from jaxprof.facts import SENTENCE, Fact, Facts
from jaxprof.facts.processes import FIGURES
from jaxprof.facts.units import BYTES, COUNT, INDEX, LIST, OBJECT, ROWS, SECONDS, SHARE, TEXT
from jaxprof.jobs.arrivals import Arrival, Arrivals
from jaxprof.jobs.findings import Goodput, JobFigures

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
    "standstill": "the job stood still",
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


def causes_of(goodput: Goodput) -> list[_Cause]:
    """Return each cause with its share and its seconds, in their fixed order, also those that took no time."""
    return [(cause, goodput.shares[cause], took) for cause, took in goodput.causes.items()]


_GOODPUT: Facts[Goodput] = (
    Fact("share", SHARE, "Share that was useful: an upper bound", lambda goodput: goodput.shares["useful"]),
    Fact("seconds", SECONDS, "Wall time of these processes together"),
    Fact("process_count", COUNT, "Processes that were seen in a loop, and are in it", "processes"),
    Fact("causes", ROWS, "The wall time by cause", causes_of, inside=CAUSES),
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
