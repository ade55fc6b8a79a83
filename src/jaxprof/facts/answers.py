"""Facts of the `data` of every kind of answer in JSON, and of an error: of the views of a session, and of what is
listed without reading one. A view imports what it needs when it is requested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxprof.base.values import frozen
from jaxprof.facts import HEADER, RUN, Fact, Facts, RunItems, at, pick
from jaxprof.facts.units import ANY, BY_NAME, BYTES, COUNT, INDEX, LIST, NUMBER, OBJECT, ROWS, SECONDS, TEXT, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.base.config import Config, Setting
    from jaxprof.session import Entry, Run, Session
    from jaxprof.workloads.model import WorkloadInfo

OF_PROGRAMS = ("compiles", "findings", "transfers", "timeline")


def view_of(view: str) -> RunItems:
    if view == "kernels":
        from jaxprof.facts.kernels import KERNELS, capture_rows

        return RunItems(KERNELS, capture_rows)
    if view == "memory":
        from jaxprof.analysis.kernels.memory import memory_of_run
        from jaxprof.facts.memory import BUFFERS

        return RunItems(BUFFERS, lambda session, run: at("buffers")(memory_of_run(session, run.id)))
    from jaxprof.facts import captures, programs

    return (programs.VIEWS if view in OF_PROGRAMS else captures.VIEWS)[view]


class _ViewedRun(NamedTuple):
    """A run that has the view, and the rows of the view."""

    session: Session
    run: Run
    rows: list[Any]


def facts_of_view(view: str) -> Facts[Session]:
    """Return the facts of the JSON of a view: the runs that have it, or its rows of all programs."""
    items = view_of(view)
    if view in OF_PROGRAMS:

        def all_rows(session: Session) -> list[Any]:
            return [row for run in session.runs.values() for row in items.of(session, run) or ()]

        return (Fact(view, ROWS, "The rows of the view", all_rows, inside=(RUN, *items.facts)),)
    rows: Fact[_ViewedRun] = Fact(view, ROWS, "The rows of the view", "rows", inside=items.facts)
    of_run: list[Fact[_ViewedRun]] = [RUN, Fact("label", TEXT, "Its name for people", "run.label"), rows]
    if view == "memory":
        from jaxprof.analysis.kernels.memory import memory_of_run
        from jaxprof.facts.memory import MEMORY

        of_run[-1] = Fact(view, OBJECT, "Its memory",
                          lambda viewed: memory_of_run(viewed.session, viewed.run.id), inside=MEMORY)  # fmt: skip
    elif view == "steps":
        from jaxprof.facts.captures import DEVICE_STEPS, device_steps_of

        of_run.append(Fact("device_steps", ROWS, "The steps of each device as a whole",
                           lambda viewed: device_steps_of(viewed.run), inside=DEVICE_STEPS))  # fmt: skip
    return (Fact("runs", ROWS, "The runs that have it", lambda session: list(_runs_of_view(session, view)),
                 inside=tuple(of_run)),)  # fmt: skip


def _runs_of_view(session: Session, view: str) -> Iterator[_ViewedRun]:
    items = view_of(view)
    for run in session.runs.values():
        rows = items.of(session, run)
        listed = list(rows or ())
        if listed or (rows is not None and view in ("memory", "steps")):
            yield _ViewedRun(session, run, listed)


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


@frozen
class SettingsInForce:
    """The user's settings, and the keys of theirs that collide."""

    config: Config
    settings: Sequence[Setting]
    path: Path
    """The user's file, which need not exist."""
    keys: Sequence[tuple[str, str, str]]
    """The user's keys: action, key, and the file that it is from."""
    clashes: Sequence[Any]


_SETTINGS: Facts[SettingsInForce] = (
    Fact("file", TEXT, "The file of the settings", lambda row: str(row.path)),
    Fact("exists", TRUTH, "Whether it is there", lambda row: row.path.exists()),
    Fact("entries", ROWS, "Each setting", lambda row: [
        (each.name, row.config.values.get(each.name), row.config.sources.get(each.name), each.variable, each.means)
        for each in row.settings
    ], inside=(
        Fact("name", TEXT, "Its name in the file", itemgetter(0)),
        Fact("value", ANY, "What it is; null if it is not set", itemgetter(1)),
        Fact("source", TEXT, "The file or the variable that it is from", itemgetter(2)),
        Fact("variable", TEXT, "The variable of the environment that sets it", itemgetter(3)),
        Fact("means", TEXT, "What it is for", itemgetter(4)),
    )),
    Fact("keys", ROWS, "The user's keys", inside=(
        Fact("action", TEXT, "Id of an action of the app", itemgetter(0)),
        Fact("key", TEXT, "The key, as Textual names it", itemgetter(1)),
        Fact("source", TEXT, "The file that it is from", itemgetter(2)),
    )),
    Fact("clashes", ROWS, "Keys that two actions of one screen or list have", inside=(
        Fact("key", TEXT, "The key, as people write it"),
        Fact("actions", LIST, "The two actions"),
    )),
)  # fmt: skip
ERROR: Facts[Any] = (
    Fact("code", TEXT, "usage, missing_file, file_refused, not_hlo, storage, worker, does_not_fit, interrupted, ..."),
    Fact("message", TEXT, "Why there is no answer"),
    Fact("hint", TEXT, "What to do"),
)
_FOLDER: Fact[Any] = Fact("folder", TEXT, "Where they are")
_UNREADABLE: Fact[Any] = Fact("notices", LIST, "What could not be read")
_WORKLOADS: Facts[Any] = (Fact("workloads", ROWS, "What can be run", inside=WORKLOAD),)
_LISTED: dict[str, Facts[Any]] = {
    "config": _SETTINGS,
    "query": (Fact("rows", ROWS, "The rows, with the names of the columns of the SELECT"), _UNREADABLE),
    "rollup": (_FOLDER, _UNREADABLE, Fact("processes", ROWS, "The processes of the job", inside=ROLL_UP)),
    "sessions": (_FOLDER, Fact("size_bytes", BYTES, "Size of all of them"),
                 Fact("sessions", ROWS, "The sessions, the newest first", inside=ENTRY)),
    "workload": _WORKLOADS,
    "workloads": _WORKLOADS,
}  # fmt: skip


def facts_of_answer(kind: str) -> Facts[Any]:
    """Return the facts of an answer, and import only what they are read with. Raises KeyError for an unknown kind."""
    name, _, part = kind.partition("-")
    if name == "session" and part:
        return facts_of_view(part)
    if kind == "session":
        from jaxprof.facts.session_tree import SESSION

        path: Fact[Any] = Fact("path", TEXT, "Where it is; null if it could not be kept")
        return tuple(replace(fact, inside=(*fact.inside, path)) if fact.key == "session" else fact for fact in SESSION)
    if kind in ("ab", "comparison", "hlo-diff"):
        from jaxprof.facts.comparisons import AB, DIFFERENCE, HLO_DIFFERENCE

        if kind == "comparison":
            return (Fact("comparisons", ROWS, "One for each session after the first", inside=DIFFERENCE),)
        return (Fact("path", TEXT, "Where the comparison is kept"), *AB) if kind == "ab" else HLO_DIFFERENCE
    if name == "hlo":
        from jaxprof.facts.hlo import STAGE, facts_of_program

        inside = STAGE if part == "stage" else facts_of_program(part or None)
        return (Fact("programs", ROWS, "The programs of the target", inside=inside),)
    if kind in ("devices", "targets"):
        from jaxprof.facts.devices import DEVICES, TARGETS

        if kind == "devices":
            return (Fact("devices", ROWS, "The devices of this machine", inside=DEVICES),)
        return (Fact("targets", ROWS, "Devices to compile for", inside=TARGETS),)
    if kind in ("catalogue", "explanation", "finding"):
        from jaxprof.facts.explanations import ENTRY, EXPLANATION

        if kind == "catalogue":
            return (Fact("findings", ROWS, "Every code", inside=ENTRY[:3]),)
        return EXPLANATION if kind == "explanation" else ENTRY
    if kind == "gate":
        from jaxprof.facts.gate import GATE

        return GATE
    if kind == "job":
        from jaxprof.facts.jobs import JOB

        return JOB
    if kind == "query-schema":
        from jaxprof.facts.tables import DESCRIBED

        return (Fact("tables", ROWS, "The tables of SQL", inside=DESCRIBED),)
    return _LISTED[kind]
