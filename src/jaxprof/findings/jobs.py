"""The entries of findings about jobs, which `jobs/findings.py` finds."""

from __future__ import annotations

from functools import partial

from jaxprof.events.finding import CatalogueEntry, Finding

_job = partial(CatalogueEntry, source="job", page="jobs.md#who-is-late")
ENTRIES = (
    _job(
        "process_failed",
        "the process that failed first",
        "It raised an exception or was killed, and the other processes of the job ended because of that.",
        "The end of its output is in its session: jaxprof open FOLDER/process-00002.jaxprof.",
    ),
    _job(
        "failed_after",
        "processes that ended because another process failed",
        "Their errors are consequences: a collective or the coordinator lost its peer.",
        "Look at the process that failed first.",
    ),
    _job(
        "process_standstill",
        "the job stands still",
        "No process that runs has finished an iteration of its loop for ten usual ones and twenty seconds, or for 45 "
        "seconds where it may compute. Named are those that differ: stopped by a signal, ended, busy with something "
        "other than the collective, at another line, at another step. Before the first steps: one that does nothing, "
        "or compiles three times as long as any other did, for 45 seconds, while all others wait.",
        "Look at the line of the process that is named: what it waits for has to come, or to fail. The stacks of its "
        "threads: jaxprof open FOLDER/process-00002.jaxprof.",
    ),
    _job(
        "process_awaited",
        "one process is elsewhere while the others wait",
        "The others have waited in a compiled call for 45 seconds, and for three times as long as any step took them "
        "before; this one runs something else. One that evaluates or saves alone does that, and so does one that never "
        "comes out of a loop of its own.",
        "If it is meant to work alone there, let all processes share that work, or do it less often. If not, look at "
        "what ends the loop at that line.",
    ),
    _job(
        "process_paused",
        "a process was paused",
        "A signal paused it (SIGSTOP, SIGTSTP), or its container was frozen, or its machine slept. Processes "
        "that exchange data with it wait in the next collective.",
        "Look for what pauses it: a batch system that suspends, ctrl+z, a machine that sleeps. No line of the "
        "program takes this time.",
    ),
    _job(
        "recompiles_alone",
        "one process compiles again what the others do not",
        "It compiled a function again at least twice as often as any other process, and two times more. The others "
        "wait for it meanwhile.",
        "The ledger of its session has the reason for each compilation: mostly shapes that occur only in its data. "
        "Pad its batches, or drop the remainder.",
    ),
    _job(
        "recompiles",
        "several processes compile the same function again",
        "Each spent 3 % of its wall time or more on that.",
        "The ledger of each session has the reason for each compilation, and jaxprof explain of one of them the fix.",
    ),
    _job(
        "straggler",
        "one process is late by its own work",
        "Its own work on the host (data, Python, dispatch, copies) takes at least 5 % of the loop more than on the "
        "others, by the CPU clocks of their main threads if known. The difference is significant in a t test at 1 % "
        "for the whole job. All processes have the same time per step, because the others wait for it in a "
        "collective.",
        "Its session has the lines. Data: the shard, the disk or the network of that host. Python: logging, "
        "checkpoints, metrics of one process, or a busy host.",
    ),
    _job(
        "throttled_device",
        "one device is held back by its temperature or power",
        "Its clock is more than 10 % below the median of the other devices, and in half or more of its readings, taken "
        "twice a second while it was busy, it gave a reason for throttling.",
        "Look at the cooling, the power limit and the neighbours of that device. The other devices wait for it in each "
        "collective.",
    ),
    _job(
        "exposed_exchange",
        "the devices of a job only exchange data for much of the time",
        "In captures of the same steps the exchange of its collectives, without waiting for a late process, takes a "
        "tenth of the time or more in which the devices run no other kernel.",
        "Exchange less (reduce-scatter instead of all-reduce, bf16 gradients, one exchange after several small "
        "steps), put many small ones together, or let them run beside work that does not need them (XLA's "
        "latency-hiding scheduler).",
    ),
    _job(
        "slow_device",
        "one process arrives last at the collectives, and its host does not explain it",
        "In captures of the same steps it mostly arrives at a collective later than the median of the others, by 5 % "
        "of a step or more, significantly (in a test at 1 %) and in at least eight of ten sections of the captured "
        "time; and neither its own work on the host nor a function that it compiled alone explains it.",
        "Its device has more to compute, or computes more slowly: look at the sizes of its shards, and at its clock, "
        "temperature and neighbours.",
    ),
)
_BY_CODE = {entry.code: entry for entry in ENTRIES}


def with_fix(finding: Finding) -> Finding:
    """Return a finding about a job with the fix of its entry, unless it has one of its own."""
    return _BY_CODE[finding.code].complete(finding)
