"""Tables of a roll-up: each column with its type, its unit and its meaning, and how it is derived from a session.

Readers other than jaxprof may rely on this schema: `FORMAT` changes with the meaning of any column. The size of a table
is bounded, whatever the session is: a row of a long loop holds several steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

import numpy as np

from jaxprof.facts import Fact, Part, Relation, Repeated, SessionFile, at, within
from jaxprof.facts.processes import FIGURES, PART_SECONDS, ProcessFile
from jaxprof.facts.processes import PROCESSES as OF_JOB
from jaxprof.facts.programs import text_of
from jaxprof.facts.units import BYTES, COUNT, INDEX, LIST, NUMBER, SECONDS, SHARE, TEXT, TRUTH, UNIX_TIME
from jaxprof.rollup import rows

FORMAT: Final = 4
"""Version of the tables. Count it up whenever the meaning of a table changes."""
PROCESS: Final = FIGURES[0]
_OF_FILE: Final[tuple[Fact[ProcessFile], ...]] = (
    Fact("windows", COUNT, "Its rows in the table parts", rows.window_count),
    Fact("session_bytes", BYTES, "Size of the session that was read", at("bytes")),
    Fact("session_modified_ns", INDEX, "When the session had been written last, in Unix ns", at("modified_ns")),
    Fact("format", INDEX, "Version of these tables", lambda file: FORMAT),
    Fact("figures", TEXT, "All figures of the process for jaxprof itself, as JSON", rows.stored_figures),
)
"""Facts that only a roll-up has: its format, and the session that it was made of."""


PROCESSES: Final = Relation(
    "processes",
    "A row for each process of the job",
    # The path is the name of the file: the folder may be another one for a reader.
    (*(replace(fact, read=at("path.name")) if fact.key == "path" else fact for fact in OF_JOB.facts), *_OF_FILE),
    lambda file: [file],
)
_PARTS: Final = tuple(PART_SECONDS.values())


def _columns(derive: Callable[[Any], Part | None]) -> Callable[[SessionFile], Iterator[Part]]:
    """Return the columns that `derive` has for a process, with the column `process`; none if it has none."""

    def parts(file: SessionFile) -> Iterator[Part]:
        assert isinstance(file, ProcessFile)
        columns = derive(file)
        if columns is not None:
            yield {"process": Repeated(file.index), **columns}

    return parts


def _listed(
    name: str, meaning: str, derive: Callable[[ProcessFile], Sequence[Any]], facts: tuple[Fact[Any], ...]
) -> Relation:
    """Return the relation of the rows that `derive` has for a process, with the column `process`."""
    readers = [(fact.key, fact.reader()) for fact in facts]

    def columns(file: ProcessFile) -> Part | None:
        found = derive(file)
        return {key: [read(row) for row in found] for key, read in readers} if found else None

    return Relation(name, meaning, (PROCESS, *facts), arrays=_columns(columns))


_BEGINS: Final = "Number of its first step; where the process has the unit time, seconds since its loop began"

STEPS: Final = Relation(
    "steps",
    "The steps of the loop in order, one in a row or several together",
    (
        PROCESS,
        Fact("begins", NUMBER, _BEGINS),
        Fact("ends", NUMBER, "Where the next one begins, in the same unit"),
        Fact("count", COUNT, "Steps in this row"),
        Fact("seconds", SECONDS, "What they took together, rounded to 14 bits"),
    ),
    arrays=_columns(rows.steps),
)
OVERVIEW: Final = Relation(
    "overview",
    "The whole loop in a few hundred blocks of equal size, of 2 ** n steps each: `steps` and `parts` together",
    (
        PROCESS,
        Fact("begins", NUMBER, _BEGINS),
        Fact("ends", NUMBER, "Where the next block begins, in the same unit"),
        Fact("count", NUMBER, "Timed steps in it"),
        Fact("seconds", SECONDS, "What these took"),
        Fact("covered", NUMBER, "How much of the block sample windows saw, in the unit of begins"),
        Fact("samples", NUMBER, "Samples of the stack in it"),
        Fact(
            rows.WORKED,
            SECONDS,
            "Time in which the process itself worked: by the CPU clock of its main thread and the compile ledger, "
            "without such a clock the sum of the parts below except device_seconds",
        ),
        *_PARTS,
    ),
    arrays=_columns(rows.overview),
)
PARTS_TABLE: Final = Relation(
    "parts",
    "What the time of the loop went to, in sample windows: estimates",
    (
        PROCESS,
        Fact("begins", NUMBER, _BEGINS),
        Fact("ends", NUMBER, "Where it ends, in the same unit"),
        Fact("number", INDEX, "Which one it is, from 0"),
        Fact("began_seconds", UNIX_TIME, "When it began, in Unix time of the host, to the millisecond"),
        Fact("seconds", SECONDS, "Time in the loop; the parts add up to it, except for first compilations"),
        Fact("own_seconds", SECONDS, "CPU time of the main thread"),
        Fact("first_step", NUMBER, "Number of the first step that began in it, as the program counts"),
        Fact("samples", NUMBER, "Samples of the stack, in the loop"),
        *_PARTS,
    ),
    arrays=_columns(rows.parts),
)
COMPILES: Final = _listed(
    "compiles",
    "The compile ledger by function",
    rows.compiles,
    (
        Fact("function", TEXT, "JAX's name of the function"),
        Fact("defined_at", TEXT, "file:line of its definition", lambda function: text_of(function.defined_at)),
        Fact("called_from", TEXT, "file:line of the call that compiled it most often",
             lambda function: text_of(function.called_from)),
        Fact("count", COUNT, "Compilations"),
        Fact("again", COUNT, "Those of them that were not the first",
             lambda function: sum(reason.count for reason in function.reasons if reason.code != "first")),
        Fact("seconds", SECONDS, "What all of them took"),
        Fact("reason_code", TEXT, "The most frequent reason",
             lambda function: function.reasons[0].code if function.reasons else None),
        Fact("reason", TEXT, "The reason in words",
             lambda function: function.reasons[0].text if function.reasons else None),
        Fact("library", TRUTH, "Whether it is one of a library, or a single operation",
             lambda function: function.library or function.op_by_op),
    ),
)  # fmt: skip
OPS: Final = _listed(
    "ops",
    "Kernels and other operations of the captures, those that took most: a row for each on each device",
    rows.ops,
    (
        Fact("run", TEXT, "Id of the run that was captured"),
        Fact("device", TEXT, "gpu:0, cpu:0"),
        Fact("module", TEXT, "The HLO module"),
        Fact("op", TEXT, "The HLO instruction, or the name of what ran"),
        Fact("count", COUNT, "How often it ran", lambda row: len(row.durations)),
        Fact("seconds", SECONDS, "All of its executions together", lambda row: float(row.durations.sum())),
        Fact("p50_seconds", SECONDS, "Median execution", lambda row: float(np.median(row.durations))),
        Fact("p95_seconds", SECONDS, "95th percentile of the executions",
             lambda row: float(np.quantile(row.durations, 0.95))),
    ),
)  # fmt: skip
COLLECTIVES: Final = Relation(
    "collectives",
    "Executions of the collectives that took most time, in the last capture",
    (
        PROCESS,
        Fact("name", TEXT, "The HLO instruction"),
        Fact("instance", INDEX, "Which execution in this capture, from 0; captures may begin at different ones"),
        Fact("began_seconds", UNIX_TIME, "When this process arrived, in Unix time of its host"),
        Fact("seconds", SECONDS, "Until it ended: the exchange, and waiting for those that arrived later"),
        Fact("exposed_seconds", SECONDS, "Part of it in which the device ran no other kernel"),
        Fact("opcode", TEXT, "The HLO operation; null if unknown, as are the next three columns"),
        Fact("bytes", BYTES, "Size of the whole array that is gathered, reduced or sent"),
        Fact("devices", COUNT, "Devices that exchange with each other"),
        Fact("least_seconds", SECONDS, "Lower bound by the bandwidth of the device's links; null if unknown"),
    ),
    arrays=_columns(rows.collectives),
)
READINGS: Final = _listed(
    "readings",
    "Readings of the devices, evenly thinned",
    rows.readings,
    (
        Fact("device", TEXT, "gpu:0, cpu:0", lambda row: row[1].device),
        Fact("at_seconds", UNIX_TIME, "When it was taken, in Unix time of the host", itemgetter(0)),
        *within(itemgetter(1), (
            Fact("utilisation", SHARE, "Share of the time in which it was busy, in 0..1"),
            Fact("memory_bytes", BYTES, "Memory in use", at("memory_used_bytes")),
            Fact("power_watts", NUMBER, "Power"),
            Fact("temperature_celsius", NUMBER, "Temperature"),
            Fact("clock_hertz", NUMBER, "Clock rate"),
            Fact("throttled", LIST, "Why the device was slowed down, as a JSON list",
                 lambda reading: reading.throttle_reasons or None),
        )),
    ),
)  # fmt: skip
TABLES: Final = {
    table.name: table for table in (STEPS, OVERVIEW, PARTS_TABLE, COMPILES, OPS, COLLECTIVES, READINGS, PROCESSES)
}
"""Tables by name, in the order in which they are written: `processes` last, because it vouches for the others."""
