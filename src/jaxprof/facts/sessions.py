"""Tables of sessions, of the phases and samples of their runs, and of live readings of the devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

from jaxprof.events import PHASES as PHASES_OF_A_CALL
from jaxprof.events import SAMPLED_PHASES, STARTUP_PHASES, DeviceReading
from jaxprof.facts import (
    FROM_FILE,
    HEADER,
    RUN,
    Fact,
    Facts,
    Part,
    Relation,
    Repeated,
    RunItems,
    SessionFile,
    at,
    in_tables,
    optional,
    pick,
    within,
)
from jaxprof.facts.units import BYTES, COUNT, INDEX, LIST, NUMBER, OBJECT, SECONDS, SHARE, TEXT, TRUTH
from jaxprof.session import Phase, Run, Session


def _environment(name: str) -> Callable[[SessionFile], Any]:
    return at(f"session.environment.{name}")


SESSIONS = Relation(
    "sessions",
    "The sessions themselves, a row each",
    (
        *within("session", pick(HEADER, "id", "created")),
        *in_tables(Fact("path", TEXT, "Its file", lambda file: str(file.path))),
        *within("session", pick(HEADER, "host")),
        Fact("command", LIST, "The command line, as a JSON list", "session.header.command"),
        FROM_FILE,
        Fact("state", TEXT, "complete, being written, interrupted, or the signal that ended it", "session.state"),
        Fact("complete", TRUTH, "Whether its writer closed it properly", "session.complete"),
        Fact("ended", TEXT, "finished, interrupted, or the name of a signal", "session.closed.reason"),
        Fact("notices", LIST, "What of the file could not be read", "session.notices"),
        *in_tables(
            Fact("jaxprof", TEXT, "Version of jaxprof that wrote it", "session.header.jaxprof"),
            Fact("jax", TEXT, "Version of jax that was measured", _environment("jax")),
            Fact("jaxlib", TEXT, "Version of jaxlib", _environment("jaxlib")),
            Fact("numpy", TEXT, "Version of numpy", _environment("numpy")),
            Fact("python", TEXT, "Version of Python that was measured", _environment("python")),
            Fact("settings", OBJECT, "Settings that change a measurement, as a JSON object", _environment("settings")),
            Fact("machine", OBJECT, "What is known of the machine, as a JSON object", "session.header.environment"),
        ),
        Fact("process_index", INDEX, "Which process of a job it was, from 0", "session.process_index"),
        Fact("process_count", COUNT, "Processes of that job", lambda file: file.session.process_count or None),
    ),
    lambda file: [file],
)


def _phases(_: Session, run: Run) -> Iterator[tuple[int | None, Phase]]:
    """Yield each phase with the number of its launch, if launches are recorded; no other work of the engine."""
    launches: list[tuple[int | None, Mapping[str, Phase]]] = [(launch.number, launch.phases) for launch in run.launches]
    if not any(phases is run.phases for _, phases in launches):
        launches.insert(0, (None, run.phases))
    listed = ((number, phase) for number, phases in launches for phase in phases.values())
    return ((number, phase) for number, phase in listed if phase.name in (*STARTUP_PHASES, *PHASES_OF_A_CALL))


TOTAL_MEANING = "Of run and transfers, from the first to the last sample of a launch, with the turns of the others"
PHASE: Facts[Phase] = (
    *in_tables(
        Fact("phase", TEXT, "Name of the phase", "name"),
        Fact("seconds", SECONDS, "Duration; null for run and transfers, whose single times are in samples",
             lambda phase: None if phase.name in SAMPLED_PHASES else phase.seconds),
        Fact("total_seconds", SECONDS, TOTAL_MEANING,
             lambda phase: phase.seconds if phase.name in SAMPLED_PHASES else None),
        Fact("bytes", BYTES, "Bytes that one transfer moves"),
        Fact("zero_copy", TRUTH, "Whether nothing was moved: host and device share the memory"),
    ),
    optional("note", TEXT, "What else is known of it"),
)  # fmt: skip
"""Facts of a phase of a run; JSON has its times with their spread over samples and launches."""
PHASES = RunItems(
    (Fact("launch", INDEX, "Which of the run's fresh processes, from 1", itemgetter(0)), *within(itemgetter(1), PHASE)),
    _phases,
).relation(
    "phases",
    "The phases of a run in each of its launches: import, backend_init, warm_up, trace, lower, compile, transfer_in, "
    "first_run, run, transfer_out",
)


def _samples(file: SessionFile) -> Iterator[Part]:
    for run in file.session.runs.values():
        for name, series in run.series.items():
            count = len(series.seconds)
            turns = [(launch.number, turn) for launch in run.launches for turn in launch.turns]
            known = name == "run" and sum(len(turn.seconds) for _, turn in turns) == count
            yield {
                "run": Repeated(run.id),
                "series": Repeated(name),
                "number": range(1, count + 1),
                "launch": [number for number, turn in turns for _ in turn.seconds] if known else Repeated(None),
                "block": [turn.number for _, turn in turns for _ in turn.seconds] if known else Repeated(None),
                "seconds": series.seconds,
                "calls_per_sample": Repeated(series.calls_per_sample),
            }


SAMPLES = Relation(
    "samples",
    "The raw times, a row for each sample",
    (
        RUN,
        Fact(
            "series",
            TEXT,
            "run (blocked calls), dispatch, pipelined, transfer_in, transfer_out; alone, settling: calls outside the "
            "turns of a run, whose figures are those of alone where it has the warning disturbed",
        ),
        Fact("number", INDEX, "Its position in the series of the run, from 1, in the order of time"),
        Fact("launch", INDEX, "Which of the run's fresh processes took it, from 1"),
        Fact("block", INDEX, "Number of its turn: the blocks of all runs of a session have one order"),
        Fact("seconds", SECONDS, "Time of one call"),
        Fact("calls_per_sample", COUNT, "Calls whose mean a sample is"),
    ),
    arrays=_samples,
)


def _readings(file: SessionFile) -> Iterator[tuple[float, DeviceReading]]:
    zero = file.session.header.monotonic_seconds
    readings = chain.from_iterable(file.session.readings.values())
    return ((reading.monotonic_seconds - zero, reading) for reading in readings)


READING: Facts[DeviceReading] = (
    Fact("utilisation", SHARE, "Share of the time in which it was busy, in 0..1"),
    Fact("memory_used_bytes", BYTES, "Memory in use"),
    Fact("memory_limit_bytes", BYTES, "Memory that there is"),
    Fact("power_watts", NUMBER, "Power"),
    Fact("temperature_celsius", NUMBER, "Temperature"),
    Fact("clock_hertz", NUMBER, "Clock"),
    Fact("load_average", NUMBER, "Load average of the host: processes that want to run"),
    Fact("throttle_reasons", LIST, "Why it is throttled, as a JSON list"),
)
READINGS = Relation(
    "readings",
    "Live readings of the devices while the session was recorded",
    (
        Fact("device", TEXT, "cpu:0, cuda:0", lambda row: row[1].device),
        Fact("at_seconds", SECONDS, "Seconds since the session began", itemgetter(0)),
        Fact("readings", COUNT, "Readings in it: means, of memory and temperature maxima", lambda row: row[1].count),
        *within(itemgetter(1), READING),
    ),
    _readings,
)
