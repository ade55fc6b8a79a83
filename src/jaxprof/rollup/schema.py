"""The tables of a roll-up: each column with its type, its unit and its meaning, and how it is derived from a session.

Another reader than jaxprof may rely on what stands here: `FORMAT` changes with the meaning of any column. Tables are
bounded, whatever the session is: long loops are kept in fewer entries, of several steps each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from jaxprof.analysis.programs.verdict import COMPILE, PARTS
from jaxprof.query.schema import REAL, TEXT, TRUTH, WHOLE, Part, Repeated, SessionFile, SqlColumn, SqlTable, row_table
from jaxprof.report.table import at
from jaxprof.rollup import rows
from jaxprof.rollup.process_file import ProcessFile

FORMAT: Final = 3
"""Counted up whenever the meaning of a table changes."""
_PART_MEANINGS: Final = {
    "device": "The device computes, or the process waits in a collective",
    "dispatch": "Calling JAX",
    "data": "Making or fetching the input",
    "host": "Other Python on the host",
    "copy": "Copies between host and device",
    COMPILE: "Compilations that were not the first of their function",
}


PROCESS: Final = SqlColumn("process", WHOLE, "Index of the process in its job", at("index"))


def _of(path: str) -> Callable[[Any], Any]:
    """The value at a path of attributes; None where one of them is None."""

    def value(row: Any) -> Any:
        for name in path.split("."):
            row = getattr(row, name) if row is not None else None
        return row

    return value


def _part(part: str) -> Callable[[ProcessFile], float | None]:
    def value(file: ProcessFile) -> float | None:
        loop = file.figures.loop if file.figures is not None else None
        return loop.parts.get(part) if loop is not None else None

    return value


PROCESSES: Final = row_table(
    "processes",
    "A row for each process of the job",
    (
        PROCESS,
        SqlColumn("host", TEXT, "Name of its machine", _of("session.header.host")),
        SqlColumn("session", TEXT, "Name of its session's file", _of("path.name")),
        SqlColumn("session_id", TEXT, "Identity of the session", _of("session.header.session")),
        SqlColumn("job", TEXT, "Id of the job, from its launcher", _of("session.header.job")),
        SqlColumn(
            "process_count",
            WHOLE,
            "Processes of the job, as it was told",
            lambda file: file.session.process_count or None,
        ),
        SqlColumn("status", TEXT, "running, ok, failed, crashed, cancelled, interrupted", _of("figures.status")),
        SqlColumn("error", TEXT, "Why it failed", _of("figures.error")),
        SqlColumn("exit_code", WHOLE, "As in a shell", _of("figures.exit_code")),
        SqlColumn(
            "began_seconds",
            REAL,
            "When its recording began, in Unix time of its host",
            _of("session.header.wall_seconds"),
        ),
        SqlColumn("ended_seconds", REAL, "When it ended, in Unix time of its host", _of("figures.ended_seconds")),
        SqlColumn("wall_seconds", REAL, "From its start to its end, or to the last event", _of("figures.wall_seconds")),
        SqlColumn("loop_file", TEXT, "File of its hot loop", _of("figures.loop.where.file")),
        SqlColumn("loop_line", WHOLE, "First line of the loop", _of("figures.loop.where.line")),
        SqlColumn("loop_function", TEXT, "Function of the loop", _of("figures.loop.where.function")),
        SqlColumn("unit", TEXT, "What begins and ends count: step, or time (seconds in the loop)", _of("trace.unit")),
        SqlColumn("numbered_by", TEXT, "The variable that numbers the steps", _of("trace.numbered_by")),
        SqlColumn("begins", REAL, "Where its loop begins, in that unit", rows.begins),
        SqlColumn("ends", REAL, "Where it ends", rows.ends),
        SqlColumn("steps", WHOLE, "Steps of the loop that were timed", rows.step_count),
        SqlColumn("windows", WHOLE, "Its rows in the table parts", rows.window_count),
        SqlColumn("steps_seconds", REAL, "What these took", rows.step_seconds),
        SqlColumn("step_median_seconds", REAL, "Median step", _of("figures.step_median_seconds")),
        SqlColumn("loop_seconds", REAL, "Time in the loop: the sum of its parts", _of("figures.loop.seconds")),
        SqlColumn("samples", REAL, "Samples that the parts rest on", _of("figures.loop.samples")),
        *(SqlColumn(rows.PART_COLUMNS[part], REAL, _PART_MEANINGS[part], _part(part)) for part in PARTS),
        SqlColumn("compiles", WHOLE, "Compilations", _of("figures.compile_count")),
        SqlColumn("compile_seconds", REAL, "What all compilations took", _of("figures.compile_seconds")),
        SqlColumn("compiled_again", WHOLE, "Compilations that were not the first", _of("figures.compiled_again")),
        SqlColumn("clock_seconds", REAL, "Unix time less the monotonic time of the session", rows.clock_offset),
        SqlColumn("complete", TRUTH, "Whether the session has its end", _of("session.complete")),
        SqlColumn("events", WHOLE, "Number of the session's last event", _of("session.last_seq")),
        SqlColumn("session_bytes", WHOLE, "Size of the session that was read", _of("bytes")),
        SqlColumn(
            "session_modified_ns", WHOLE, "When the session had been written last, in Unix ns", _of("modified_ns")
        ),
        SqlColumn("jaxprof", TEXT, "Version of jaxprof that recorded it", _of("session.header.jaxprof")),
        SqlColumn("format", WHOLE, "Version of these tables", lambda file: FORMAT),
        SqlColumn("figures", TEXT, "All figures of the process for jaxprof itself, as JSON", _of("stored_figures")),
    ),
    lambda file: [file],
)


def _columns(derive: Callable[[Any], Part | None]) -> Callable[[SessionFile], Iterator[Part]]:
    """Rows that are arrays; none where `derive` has none."""

    def parts(file: SessionFile) -> Iterator[Part]:
        assert isinstance(file, ProcessFile)
        found = derive(file)
        if found is not None:
            yield {"process": Repeated(file.index), **found}

    return parts


_BEGINS: Final = "Number of its first step; where the process has the unit time, seconds since its loop began"

STEPS: Final = SqlTable(
    "steps",
    "The steps of the loop in order, one in a row or several together",
    (
        PROCESS,
        SqlColumn("begins", REAL, _BEGINS),
        SqlColumn("ends", REAL, "Where the next one begins, in the same unit"),
        SqlColumn("count", WHOLE, "Steps in this row"),
        SqlColumn("seconds", REAL, "What they took together, rounded to 14 bits"),
    ),
    _columns(rows.steps),
)
OVERVIEW: Final = SqlTable(
    "overview",
    "The whole loop in a few hundred blocks of equal size, of 2 ** n steps each: `steps` and `parts` together",
    (
        PROCESS,
        SqlColumn("begins", REAL, _BEGINS),
        SqlColumn("ends", REAL, "Where the next block begins, in the same unit"),
        SqlColumn("count", REAL, "Timed steps in it"),
        SqlColumn("seconds", REAL, "What these took"),
        SqlColumn("covered", REAL, "How much of the block sample windows saw, in the unit of begins"),
        SqlColumn("samples", REAL, "Samples of the stack in it"),
        SqlColumn(
            rows.WORKED,
            REAL,
            "What the process did itself: by the CPU clock of its main thread and the compile ledger, without such a "
            "clock the sum of the parts below except device_seconds",
        ),
        *(SqlColumn(rows.PART_COLUMNS[part], REAL, _PART_MEANINGS[part]) for part in PARTS),
    ),
    _columns(rows.overview),
)
PARTS_TABLE: Final = SqlTable(
    "parts",
    "What the time of the loop went to, in sample windows: estimates",
    (
        PROCESS,
        SqlColumn("begins", REAL, _BEGINS),
        SqlColumn("ends", REAL, "Where it ends, in the same unit"),
        SqlColumn("number", WHOLE, "Which one it is, from 0"),
        SqlColumn("began_seconds", REAL, "When it began, in Unix time of the host, to the millisecond"),
        SqlColumn("seconds", REAL, "Spent in the loop; the parts add up to it without first compilations"),
        SqlColumn("own_seconds", REAL, "In which the main thread worked itself, by its CPU clock"),
        SqlColumn("first_step", REAL, "Number of the first step that began in it, as the program counts"),
        SqlColumn("samples", REAL, "Samples of the stack, in the loop"),
        *(SqlColumn(rows.PART_COLUMNS[part], REAL, _PART_MEANINGS[part]) for part in PARTS),
    ),
    _columns(rows.parts),
)
COMPILES: Final = SqlTable(
    "compiles",
    "The compile ledger by function",
    (
        PROCESS,
        SqlColumn("function", TEXT, "JAX's name of the function"),
        SqlColumn("defined_at", TEXT, "file:line of its definition"),
        SqlColumn("called_from", TEXT, "file:line of the call that compiled it most often"),
        SqlColumn("count", WHOLE, "Compilations"),
        SqlColumn("again", WHOLE, "Those of them that were not the first"),
        SqlColumn("seconds", REAL, "What all of them took"),
        SqlColumn("reason_code", TEXT, "The most frequent reason"),
        SqlColumn("reason", TEXT, "In words"),
        SqlColumn("library", TRUTH, "Whether it is one of a library, or a single operation"),
    ),
    _columns(rows.compiles),
)
OPS: Final = SqlTable(
    "ops",
    "Kernels and other operations of the captures, those that took most: a row for each on each device",
    (
        PROCESS,
        SqlColumn("run", TEXT, "Id of the run that was captured"),
        SqlColumn("device", TEXT, "gpu:0, cpu:0"),
        SqlColumn("module", TEXT, "The HLO module"),
        SqlColumn("op", TEXT, "The HLO instruction, or the name of what ran"),
        SqlColumn("count", WHOLE, "How often it ran"),
        SqlColumn("seconds", REAL, "All of its executions together"),
        SqlColumn("p50_seconds", REAL, "Median execution"),
        SqlColumn("p95_seconds", REAL, "95th percentile of the executions"),
    ),
    _columns(rows.ops),
)
COLLECTIVES: Final = SqlTable(
    "collectives",
    "Executions of the collectives that took most time, in the last capture",
    (
        PROCESS,
        SqlColumn("name", TEXT, "The HLO instruction"),
        SqlColumn("instance", WHOLE, "Which execution in this capture, from 0; captures may begin at different ones"),
        SqlColumn("began_seconds", REAL, "When this process arrived, in Unix time of its host"),
        SqlColumn("seconds", REAL, "Until it ended: the exchange, and waiting for those that arrived later"),
        SqlColumn("exposed_seconds", REAL, "Of these: the device ran no other kernel"),
        SqlColumn("opcode", TEXT, "Of its HLO; null where that is not known, as the following"),
        SqlColumn("bytes", WHOLE, "Of the whole array that is gathered, reduced or sent"),
        SqlColumn("devices", WHOLE, "How many exchange with each other"),
        SqlColumn("least_seconds", REAL, "At the bandwidth of the links of the device, if that is known"),
    ),
    _columns(rows.collectives),
)
READINGS: Final = SqlTable(
    "readings",
    "Readings of the devices, evenly thinned",
    (
        PROCESS,
        SqlColumn("device", TEXT, "gpu:0, cpu:0"),
        SqlColumn("at_seconds", REAL, "When, in Unix time of the host"),
        SqlColumn("utilisation", REAL, "Share of the time in which it was busy, in 0..1"),
        SqlColumn("memory_bytes", WHOLE, "Memory in use"),
        SqlColumn("power_watts", REAL, "Power"),
        SqlColumn("temperature_celsius", REAL, "Temperature"),
        SqlColumn("clock_hertz", REAL, "Clock rate"),
        SqlColumn("throttled", TEXT, "Why the device was slowed down, as a JSON list"),
    ),
    _columns(rows.readings),
)
TABLES: Final = {
    table.name: table for table in (STEPS, OVERVIEW, PARTS_TABLE, COMPILES, OPS, COLLECTIVES, READINGS, PROCESSES)
}
"""In the order in which they are written: `processes` vouches for the others."""
