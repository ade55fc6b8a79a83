"""Make roll-ups: of one session, in any process, or of several in processes of this machine; and write their
files, `run.jaxprof.d/rollup/<table>/process-00002.parquet`, each whole or not there.

Files have PLAIN and dictionary encodings and zstd, which every engine that reads Parquet supports.

Readers other than jaxprof may rely on the tables' schema: `ROLL_UP_FORMAT` changes with the meaning of any column. The
size of a table is bounded, whatever the session is: a row of a long loop holds several steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet

from jaxprof.analysis.programs import PARTS
from jaxprof.base.errors import FileRefusedError, JaxprofError, system_words
from jaxprof.base.files import PRIVATE, private_folder, replace_file
from jaxprof.base.operating_system import processors, safe_path_of_children
from jaxprof.base.values import frozen
from jaxprof.facts import Fact, Facts, Part, Relation, Repeated
from jaxprof.facts.processes import FIGURES, PART_SECONDS
from jaxprof.facts.processes import PROCESSES as OF_JOB
from jaxprof.facts.units import BYTES, COUNT, INDEX, NUMBER, SECONDS, TEXT, UNIX_TIME
from jaxprof.jobs.figures import Array, figures_json
from jaxprof.jobs.folder import ROLL_UP_ENDING, ROLL_UP_FOLDER, ROLL_UP_FORMAT
from jaxprof.jobs.job import ProcessFile
from jaxprof.jobs.step_grid import MOST_BLOCKS, OWN_PARTS, PART_COLUMNS, WORKED, add_trace, no_sums
from jaxprof.query.columnar import arrow_table
from jaxprof.session import Session, load
from jaxprof.session.files import process_number

MOST_STEPS = 1 << 14
"""Most rows of `steps`: of a longer loop, two or more neighbouring steps share a row."""
MOST_WINDOWS = 1 << 9
"""Most rows of `parts`."""
MOST_COLLECTIVES = 4
"""Most different collectives."""
MOST_INSTANCES = 1000
"""Most executions of one collective."""
_BITS = 14
"""Significant bits of times, a precision of 0.006 %: the rest is noise of clocks, which does not compress."""
_MILLISECOND = 1e3


def window_count(file: ProcessFile) -> int:
    """Return the number of rows in `parts`."""
    return len(_groups(len(file.trace.windows), MOST_WINDOWS)) if file.trace is not None else 0


def steps(file: ProcessFile) -> Iterator[Part]:
    """Yield `steps`, the timed steps of the hot loop; nothing without any."""
    trace = file.trace
    if trace is None or not len(trace.counts):
        return
    groups = _groups(len(trace.counts), MOST_STEPS)
    yield {
        "process": Repeated(file.index),
        "begins": trace.iterations[groups, 0],
        "ends": trace.iterations[_last(groups, len(trace.counts)), 1],
        "count": np.add.reduceat(trace.counts, groups).astype("i8"),
        "seconds": round_values(np.add.reduceat(trace.seconds, groups)),
    }


def overview(file: ProcessFile) -> Iterator[Part]:
    """Yield `overview`, the loop in at most `MOST_BLOCKS` blocks of `2 ** n` steps each; nothing without a loop."""
    trace = file.trace
    extent = trace.extent if trace is not None else None
    if trace is None or extent is None or extent[1] <= extent[0]:
        return
    begin, end = extent
    edges: Array = np.linspace(begin, end, MOST_BLOCKS + 1)
    if trace.unit == "step":
        size = 1
        while end - begin > size * (MOST_BLOCKS - 1):
            size *= 2
        edges = np.arange(math.floor(begin / size), math.ceil(end / size) + 1, dtype="i8") * size
    sums = no_sums(1, len(edges) - 1)
    add_trace(sums, 0, trace, edges, PARTS)
    seconds, counts, _, _, samples, covered = sums[:, 0]
    of_parts = {}
    for column, summed in {WORKED: OWN_PARTS, **{PART_COLUMNS[part]: (part,) for part in PARTS}}.items():
        of_one = no_sums(1, len(edges) - 1)
        add_trace(of_one, 0, trace, edges, summed)
        _, _, part_seconds, *_ = of_one[:, 0]
        of_parts[column] = round_values(part_seconds)
    yield {
        "process": Repeated(file.index),
        "begins": edges[:-1].astype("f8"),
        "ends": edges[1:].astype("f8"),
        "count": round_values(counts, 30),
        "seconds": round_values(seconds),
        "covered": round_values(covered),
        "samples": round_values(samples),
        **of_parts,
    }


def parts(file: ProcessFile) -> Iterator[Part]:
    """Yield `parts`, the sample windows of the hot loop; nothing without any."""
    trace = file.trace
    if trace is None or not len(trace.windows):
        return
    count = len(trace.windows)
    groups = _groups(count, MOST_WINDOWS)
    began = trace.windows.began_seconds[groups] + file.clock_seconds
    yield {
        "process": Repeated(file.index),
        "begins": round_values(trace.spans[groups, 0], 30),
        "ends": round_values(trace.spans[_last(groups, count), 1], 30),
        "number": np.arange(len(groups)),
        "began_seconds": np.round(began * _MILLISECOND) / _MILLISECOND,
        "seconds": round_values(np.add.reduceat(trace.windows.seconds, groups)),
        "own_seconds": round_values(np.add.reduceat(trace.windows.own_seconds, groups)),
        "first_step": np.fmin.reduceat(trace.windows.first_steps, groups),
        "samples": round_values(np.add.reduceat(trace.windows.samples, groups)),
        **{PART_COLUMNS[part]: round_values(np.add.reduceat(trace.windows.part(part), groups)) for part in PARTS},
    }


def collectives(file: ProcessFile) -> Iterator[Part]:
    """Yield `collectives`, the executions of the collectives that took most time; nothing without any."""
    longest = sorted(file.captures.values(), key=lambda events: -float(np.sum(events.ends - events.starts)))
    for events in longest[:MOST_COLLECTIVES]:
        starts, ends = events.starts[:MOST_INSTANCES], events.ends[:MOST_INSTANCES]
        exchanged = events.exchanged
        yield {
            "process": Repeated(file.index),
            "name": Repeated(events.name),
            "instance": np.arange(len(starts)),
            "began_seconds": starts,
            "seconds": round_values(ends - starts),
            "exposed_seconds": round_values(events.exposed[:MOST_INSTANCES]),
            "opcode": Repeated(exchanged and exchanged.opcode),
            "bytes": Repeated(exchanged and exchanged.bytes),
            "devices": Repeated(exchanged and exchanged.devices),
        }


def round_values(values: Array, bits: int = _BITS) -> Array:
    fraction, exponent = np.frexp(values)
    result: Array = np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits)
    return result


def _groups(count: int, most: int) -> Array:
    """Divide `count` neighbours into groups of equal size, at most `most`. Returns the first index of each group."""
    return np.arange(0, count, max(1, -(-count // most)))


def _last(groups: Array, count: int) -> Array:
    return np.append(groups[1:], count) - 1


PROCESS = FIGURES[0]
_OF_FILE: Facts[ProcessFile] = (
    Fact("windows", COUNT, "Its rows in the table parts", window_count),
    Fact("session_bytes", BYTES, "Size of the session that was read", "bytes"),
    Fact("session_modified_ns", INDEX, "When the session had been written last, in Unix ns", "modified_ns"),
    Fact("format", INDEX, "Version of these tables", lambda file: ROLL_UP_FORMAT),
    Fact(
        "figures",
        TEXT,
        "All figures of the process for jaxprof itself, as JSON",
        lambda file: figures_json(replace(file.figures, path=file.path.name)),
    ),
)
"""Facts that only a roll-up has: its format, and the session that it was made of."""


PROCESSES = Relation(
    "processes",
    "A row for each process of the job",
    # The path is the name of the file: the folder may be another one for a reader.
    (*(replace(fact, read="path.name") if fact.key == "path" else fact for fact in OF_JOB.facts), *_OF_FILE),
    lambda file: [file],
)
_PARTS = tuple(PART_SECONDS.values())


_BEGINS = "Number of its first step; where the process has the unit time, seconds since its loop began"

STEPS = Relation(
    "steps",
    "The steps of the loop in order, one in a row or several together",
    (
        PROCESS,
        Fact("begins", NUMBER, _BEGINS),
        Fact("ends", NUMBER, "Where the next one begins, in the same unit"),
        Fact("count", COUNT, "Steps in this row"),
        Fact("seconds", SECONDS, "What they took together, rounded to 14 bits"),
    ),
    arrays=steps,
)
OVERVIEW = Relation(
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
            WORKED,
            SECONDS,
            "Time in which the process itself worked: by the CPU clock of its main thread and the compile ledger, "
            "without such a clock the sum of the parts below except device_seconds",
        ),
        *_PARTS,
    ),
    arrays=overview,
)
PARTS_TABLE = Relation(
    "parts",
    "What the time of the loop went to, in sample windows: estimates",
    (
        PROCESS,
        Fact("begins", NUMBER, _BEGINS),
        Fact("ends", NUMBER, "Where it ends, in the same unit"),
        Fact("number", INDEX, "Which one it is, from 0"),
        Fact("began_seconds", UNIX_TIME, "When it began, in Unix time of the host, to the millisecond"),
        Fact("seconds", SECONDS, "Time in the loop; the parts add up to it, except for first compilations"),
        Fact(
            "own_seconds",
            SECONDS,
            "Time in which the main thread worked, or waited for anything but the device",
        ),
        Fact("first_step", NUMBER, "Number of the first step that began in it, as the program counts"),
        Fact("samples", NUMBER, "Samples of the stack, in the loop"),
        *_PARTS,
    ),
    arrays=parts,
)
COLLECTIVES = Relation(
    "collectives",
    "Executions of the collectives that took most time, in the last capture",
    (
        PROCESS,
        Fact("name", TEXT, "The HLO instruction"),
        Fact("instance", INDEX, "Which execution in this capture, from 0; captures may begin at different ones"),
        Fact("began_seconds", UNIX_TIME, "When this process arrived, in Unix time of its host"),
        Fact("seconds", SECONDS, "Until it ended: the exchange, and waiting for those that arrived later"),
        Fact("exposed_seconds", SECONDS, "Part of it in which the device ran no other kernel"),
        Fact("opcode", TEXT, "The HLO operation; null if unknown, as are the next two columns"),
        Fact("bytes", BYTES, "Size of the whole array that is gathered, reduced or sent"),
        Fact("devices", COUNT, "Devices that exchange with each other"),
    ),
    arrays=collectives,
)
TABLES = {table.name: table for table in (STEPS, OVERVIEW, PARTS_TABLE, COLLECTIVES, PROCESSES)}
"""Tables by name, in the order in which they are written: `processes` last, because it vouches for the others."""


@frozen
class RollUpReport:
    """Result of making the roll-up of one session."""

    process: int
    session: str
    bytes: int | None
    """Size of the roll-up; None if it was not made."""
    session_bytes: int | None
    """Size of the session; None if the roll-up was not made."""
    error: str = ""
    """Why the roll-up was not made; empty if it was."""
    notices: tuple[str, ...] = ()
    """What could not be read of the session."""


def roll_up(session_path: Path) -> RollUpReport:
    """Make the roll-up of a session beside it, in any process. An error is reported and not raised, so that a damaged
    session does not end the work on the others."""
    index = process_number(session_path.name)
    try:
        status = session_path.stat()
        session = load(session_path, Session)
        index = session.process_index if index is None else index
        file = ProcessFile(session_path, session, index=index, bytes=status.st_size, modified_ns=status.st_mtime_ns)
        size = write(session_path.parent, index, build(file))
    except JaxprofError as error:
        return RollUpReport(index or 0, session_path.name, None, None, error.what)
    except OSError as error:
        return RollUpReport(index or 0, session_path.name, None, None, system_words(error))
    return RollUpReport(index, session_path.name, size, status.st_size, "", tuple(session.notices))


def roll_ups(session_paths: Sequence[Path], workers: int | None = None) -> Iterator[RollUpReport]:
    """Make the roll-up of each session in worker processes of this machine, by default one for each processor. Raises
    FileRefusedError if a worker process is killed."""
    count = min(len(session_paths), workers or processors())
    if count <= 1:
        yield from map(roll_up, session_paths)
        return
    with safe_path_of_children(), ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(roll_up, session_paths, chunksize=max(1, len(session_paths) // (8 * count)))
        except BrokenProcessPool as error:
            raise FileRefusedError(
                "a worker process was killed while it read a session",
                "Memory may be short: use fewer workers, --workers 1.",
            ) from error


def build(file: ProcessFile) -> dict[str, Any]:
    """Derive the tables of one process, as Arrow tables by name."""
    return {name: arrow_table(table, file) for name, table in TABLES.items()}


def write(folder: Path, index: int, tables: Mapping[str, Any]) -> int:
    """Write the tables of a process into the folder of its job, in place of older ones; a table without rows gets no
    file. The table `processes` is written last, because it names the session of all tables. Returns the size in bytes.
    Raises OSError."""
    size = 0
    for name in TABLES:
        path = file_of(folder, name, index)
        if not len(tables[name]):
            path.unlink(missing_ok=True)
            continue
        private_folder(path.parent)
        # In a table of one row, dictionaries and statistics would be larger than the data; numbers that differ in each
        # row are larger with a dictionary.
        options: dict[str, Any] = {"use_dictionary": False, "write_statistics": False}
        if name != PROCESSES.name:
            encoded = [fact.key for fact in TABLES[name].facts if fact.unit.sql != "DOUBLE"]
            # Statistics of a group of rows bound its steps, so that a reader of some steps skips other groups.
            options = {"use_dictionary": encoded, "row_group_size": 2048}
        with replace_file(path, PRIVATE, only_regular=True) as fresh:
            parquet.write_table(tables[name], fresh, compression="zstd", store_schema=False, **options)
        size += path.stat().st_size
    return size


def file_of(folder: Path, table: str, index: int) -> Path:
    return folder / ROLL_UP_FOLDER / table / f"process-{index:05}{ROLL_UP_ENDING}"
