"""Facts of the processes of a job: how each ended, what the time of its loop went to, what it compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxprof.analysis.programs import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, part_key
from jaxprof.facts import Fact, Facts, Relation, at, within
from jaxprof.facts.units import COUNT, INDEX, NUMBER, RATE, SECONDS, SHARE, TEXT, TRUTH, UNIX_TIME
from jaxprof.jobs.figures import LoopFigures, ProcessFigures
from jaxprof.jobs.job import ProcessFile
from jaxprof.session.files import with_urls

_PARTS = {
    DEVICE: "The device computes, or the process waits in a collective",
    DATA: "Making or fetching the input",
    HOST: "Other Python on the host, and its waits",
    DISPATCH: "Calling JAX",
    COPY: "Copies between host and device",
    COMPILE: "Compilations that were not the first of their function",
}
"""Parts of the time of a loop, with their meanings, in the order in which they are shown."""


PART_SECONDS: dict[str, Fact[Any]] = {
    part: Fact(f"{part_key(part)}_seconds", SECONDS, meaning) for part, meaning in _PARTS.items()
}
"""Facts with the time of each part of a loop, by part. Tables with other rows have these facts, too."""


def _share(part: str) -> Callable[[ProcessFigures], float | None]:
    return lambda process: process.shares[part] if process.shares is not None else None


def _part_seconds(part: str) -> Callable[[ProcessFigures], float | None]:
    return lambda process: loop.parts.get(part) if (loop := _loop_with_samples(process)) is not None else None


def _loop_with_samples(process: ProcessFigures) -> LoopFigures | None:
    """Return the loop of a process; None if it has no samples, which show what the time went to."""
    return process.loop if process.loop is not None and process.loop.samples else None


def _step_total(file: ProcessFile, attribute: str) -> Any:
    trace = file.trace
    return getattr(trace, attribute).sum().item() if trace is not None and len(trace.counts) else None


FIGURES: Facts[ProcessFigures] = (
    Fact("process", INDEX, "Index of the process in its job", "index", "process"),
    Fact("host", TEXT, "Name of its machine", title="host"),
    Fact(
        "status",
        TEXT,
        "ok, failed, crashed, cancelled; running; standing still; interrupted, where its session has no end",
        title="status",
    ),
    Fact("wall_seconds", SECONDS, "From its start to its end, or to the last event", title="wall"),
    Fact(
        "steps_per_second",
        RATE,
        "Steps of its loop in a second; the same in all processes that wait for each other",
        title="steps/s",
    ),
    Fact("step_median_seconds", SECONDS, "Median step of its loop", title="median step"),
    *(
        Fact(f"{part_key(part)}_share", SHARE, f"Share of the time of its loop: {words[0].lower()}{words[1:]}",
             _share(part), part)
        for part, words in _PARTS.items()
    ),
    Fact("compile_count", COUNT, "Compilations", title="compiles"),
    Fact("compiled_again", COUNT, "Compilations of the user's functions that were not the first of their function",
         title="recompiles"),
    Fact("compiling_seconds", SECONDS, "Time of all stages of all compilations", "compile_seconds", "compile time"),
    Fact("error", TEXT, "Why it failed"),
    Fact("hint", TEXT, "What to do about that", "advice"),
    Fact("exit_code", INDEX, "Exit code, as in a shell"),
    Fact("ended_unix_seconds", UNIX_TIME, "When it ended, in Unix time of its host", "ended_seconds"),
    Fact("loop_file", TEXT, "File of its hot loop", "loop.where.file"),
    Fact("loop_line", INDEX, "First line of the loop", "loop.where.line"),
    Fact("loop_function", TEXT, "Function of the loop", "loop.where.function"),
    Fact("loop_seconds", SECONDS, "Time in the loop, without first compilations and waits for a processor",
         lambda process: at("seconds")(_loop_with_samples(process))),
    Fact("loop_samples", NUMBER, "Samples of the stack in the loop, from which the parts are estimated",
         "loop.samples"),
    *(Fact(fact.key, SECONDS, fact.meaning, _part_seconds(part)) for part, fact in PART_SECONDS.items()),
    Fact("path", TEXT, "Its session; in a roll-up the name of the file", lambda process: with_urls(process.path)),
)  # fmt: skip

_RECORDED: Facts[ProcessFile] = (
    Fact("session_id", TEXT, "Identity of the session", "session.header.session"),
    Fact("job", TEXT, "Id of the job, from its launcher", "session.header.job"),
    Fact("process_count", COUNT, "Processes of the job, as its launcher reports it",
         lambda file: file.session.process_count or None),
    Fact("began_unix_seconds", UNIX_TIME, "When its recording began, in Unix time of its host",
         "session.header.wall_seconds"),
    Fact("unit", TEXT, "What begins and ends count: step, or time (seconds in the loop)", "trace.unit"),
    Fact("numbered_by", TEXT, "The variable that numbers the steps", "trace.numbered_by"),
    Fact("begins", NUMBER, "Where its loop begins, in that unit", lambda file: file.extent[0]),
    Fact("ends", NUMBER, "Where its loop ends, in that unit", lambda file: file.extent[1]),
    Fact("steps", COUNT, "Steps of the loop that were timed", lambda file: _step_total(file, "counts")),
    Fact("steps_seconds", SECONDS, "Time of these steps", lambda file: _step_total(file, "seconds")),
    Fact("clock_seconds", NUMBER, "Unix time less the monotonic time of the session"),
    Fact("complete", TRUTH, "Whether the session has its end", "session.complete"),
    Fact("last_event", INDEX, "Number of the session's last event", "session.last_seq"),
    Fact("jaxprof", TEXT, "Version of jaxprof that recorded it", "session.header.jaxprof"),
)  # fmt: skip


PROCESSES = Relation(
    "processes",
    "A row for each process of a job, and for each other session with a recorded program",
    (*within("figures", FIGURES), *_RECORDED),
    lambda file: (
        [ProcessFile(file.path, file.session, file.session.process_index or 0)]
        if any(True for _ in file.session.programs)
        else []
    ),
)
