"""Facts of what is listed without reading a session: kept sessions and jobs, workloads, and the summary tables
(roll-ups) of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.facts import HEADER, Fact, Facts, pick
from jaxprof.facts.units import BY_NAME, BYTES, COUNT, INDEX, LIST, NUMBER, OBJECT, ROWS, SECONDS, TEXT, TRUTH

if TYPE_CHECKING:
    from jaxprof.session.log import Entry
    from jaxprof.workloads.model import WorkloadInfo

ENTRY: Facts[Entry] = (
    Fact("name", TEXT, "Its name, as commands take it", title="session", widest=34),
    Fact("path", TEXT, "Its file", lambda entry: str(entry.path)),
    Fact("size_bytes", BYTES, "Size on disk", title="size"),
    *pick(HEADER, "id", "created"),
    Fact("process_index", INDEX, "Which process of a job it was, from 0"),
    Fact("process_count", COUNT, "Processes of that job", lambda entry: entry.process_count or None),
    Fact("state", TEXT, "complete, being written, interrupted, or the signal that ended it"),
    Fact("complete", TRUTH, "Whether its writer closed it properly"),
    Fact("live", TRUTH, "Whether a process is writing it now"),
    Fact("problem", TEXT, "Why it cannot be read"),
    Fact("workloads", LIST, "What was run"),
    Fact("job_summary", OBJECT, "Of the folder of a job; null for a session", "job", inside=(
        Fact("recorded_processes", COUNT, "Processes with a session here", lambda job: len(job.processes)),
        Fact("process_count", COUNT, "Processes of the job; null where it is not known", "count"),
        Fact("missing_processes", COUNT, "Processes without a session",
             lambda job: job.missing if job.count is not None else None),
        Fact("hosts", LIST, "The machines that they ran on"),
        Fact("by_status", ROWS, "Processes by how they ended, the most frequent first",
             lambda job: list(job.by_status.items()), inside=(
                 Fact("status", TEXT, "ok, failed, crashed, cancelled, running, interrupted, unreadable",
                      lambda pair: pair[0]),
                 Fact("count", COUNT, "Processes that ended in this way", lambda pair: pair[1]),
             )),
    )),
    Fact("runs", ROWS, "Runs that have ended", "closed", inside=(
        Fact("run", TEXT, "Id of the run"),
        Fact("workload", TEXT, "Name of the workload, the function or the program"),
        Fact("variant", TEXT, "numpy, jax, jit, or a name of the user's"),
        Fact("device", TEXT, "Where it ran"),
        Fact("status", TEXT, "How it ended"),
        Fact("median_seconds", SECONDS, "Median time of a call"),
        Fact("ci95_low_seconds", SECONDS, "Lower bound of its 95 % interval",
             lambda run: run.ci95_seconds and run.ci95_seconds[0]),
        Fact("ci95_high_seconds", SECONDS, "Upper bound of its 95 % interval",
             lambda run: run.ci95_seconds and run.ci95_seconds[1]),
    )),
)  # fmt: skip
"""The facts of a session, or of a job, in the list of those that are kept."""
WORKLOAD: Facts[WorkloadInfo] = (
    Fact("name", TEXT, "Its name", title="name"),
    Fact("title", TEXT, "What it computes, in a line", title="computes", widest=44),
    Fact("description", TEXT, "What it is"),
    Fact("parameters", ROWS, "What can be set", inside=(
        Fact("name", TEXT, "Its name", title="parameter"),
        Fact("description", TEXT, "What it is", title=""),
        Fact("kind", TEXT, "int, float or choice"),
        Fact("minimum", NUMBER, "The smallest value"),
        Fact("maximum", NUMBER, "The largest value"),
        Fact("choices", LIST, "The words to choose from"),
    )),
    Fact("presets", BY_NAME, "Parameters by the name of a preset"),
    Fact("variants", ROWS, "What can be run of it", inside=(
        Fact("name", TEXT, "Its name"),
        Fact("how", TEXT, "numpy, eager (op by op), jit", title="how"),
        Fact("description", TEXT, "What it is", title=""),
        Fact("inputs", TEXT, "Where its inputs are: device or host"),
        Fact("precision", TEXT, "Precision of its matrix products"),
        Fact("source", TEXT, "Its code"),
    )),
    Fact("baseline", TEXT, "The variant that the others are compared with"),
    Fact("has_dots", TRUTH, "Whether it has matrix products"),
    Fact("origin", TEXT, "built in, or the target"),
    Fact("inputs_from", TEXT, "Where the inputs come from"),
)  # fmt: skip
ROLL_UP: Facts[Any] = (
    Fact("process", INDEX, "Index of the process in its job"),
    Fact("session", TEXT, "Name of its session's file"),
    Fact("rollup_bytes", BYTES, "Size of its roll-up; null if there is none", "bytes"),
    Fact("session_bytes", BYTES, "Size of the session that was read"),
    Fact("error", TEXT, "Why there is no roll-up"),
    Fact("notices", LIST, "What of the session could not be read"),
)
