"""The catalogue's entries for jobs: what one of several processes can have that the others have not."""

from __future__ import annotations

from typing import Final

from jaxprof.analysis.explain.entry import CatalogueEntry


def _job(code: str, title: str, means: str, fix: str) -> CatalogueEntry:
    return CatalogueEntry(code, "job", title, means, fix, "jobs.md#who-is-late")


ENTRIES: Final = (
    _job(
        "process-failed",
        "the process that failed first",
        "It raised an exception or was killed, and the other processes of the job ended because it had gone.",
        "Its last words are in its session: jaxprof show FOLDER/process-00002.jaxprof.",
    ),
    _job(
        "failed-after",
        "processes that ended because another one had gone",
        "What they say is a consequence: a collective or the coordinator lost its peer.",
        "Look at the process that failed first.",
    ),
    _job(
        "process-stopped",
        "a process did not run for a while",
        "A signal stopped it (SIGSTOP, SIGTSTP), or its container was frozen, or its machine slept. The others wait "
        "for it in the next collective.",
        "Look for what stops it: a batch system that suspends, ctrl+z, a snapshot, a machine that sleeps.",
    ),
    _job(
        "recompiles-alone",
        "one process compiles again what the others do not",
        "It compiled a function again at least twice as often as any other process, and two times more. The others "
        "wait for it meanwhile.",
        "The ledger of its session has the reason for each compilation: mostly shapes that only its data have. Pad "
        "them, or drop the remainder.",
    ),
    _job(
        "straggler",
        "one process is late by its own work",
        "Its own work on the host (data, Python, dispatch, copies) takes at least 5 % of the loop more than on the "
        "others, by the CPU clocks of their main threads where these are known, and certainly: by a t test at 1 % for "
        "the whole job. All processes have the same time a step, because the others wait for it in a collective.",
        "Its session has the lines. Data: the shard, the disk or the network of that host. Python: logging, "
        "checkpoints, metrics of one process, or a busy host.",
    ),
    _job(
        "throttled-device",
        "one device is held back by its temperature or power",
        "Its clock is more than 10 % below the median of the other devices, and in half or more of its readings, taken "
        "twice a second while it was busy, it gave a reason for throttling.",
        "Look at the cooling, the power limit and the neighbours of that device.",
    ),
    _job(
        "uneven-shards",
        "one process has larger shards than the others",
        "It compiled a function for arguments of its own that are larger by a quarter and by 64 KiB or more than those "
        "of the middle one of the others: exact, by the ledgers. Compared are functions that all have compiled once, "
        "and arrays on one device: those that are spread over processes are divided evenly. What it costs is known "
        "only where captures show that the others wait for its device.",
        "Give each process as much: the same number of rows, the remainder dropped or padded on all, and long examples "
        "spread by their length.",
    ),
    _job(
        "exposed-exchange",
        "the devices of a job do nothing but exchange for much of the time",
        "In captures of the same steps the exchange of its collectives, without waiting for a late process, takes a "
        "tenth of the time or more in which the devices run no other kernel.",
        "Exchange less, put many small ones together, or let them run beside work that does not need them.",
    ),
    _job(
        "slow-device",
        "one process arrives last at the collectives, and its host is not why",
        "In captures of the same steps it mostly arrives at a collective later than the middle one of the others, by "
        "5 % of a step or more, certainly (by a test at 1 %) and in at least eight of ten stretches of the captured "
        "time; and neither its own work on the host nor a function that it compiled alone explains it.",
        "Its device has more to compute, or computes more slowly: look at the sizes of its shards, and at its clock, "
        "temperature and neighbours.",
    ),
)
