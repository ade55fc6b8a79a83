"""Roll-ups of the processes of a job, read in one go by DuckDB: only those that are of the sessions that are there.

What was not written by this version of jaxprof, or is damaged, is left out with a notice; its session is read instead.
Those of many processes are kept as one file in a folder of its own, `rollup/all/`. Its name says which files it was
made of, with their sizes and times: it is used as long as they are the same.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import msgspec
import numpy as np

from jaxprof.analysis.arrivals import CollectiveEvents, Exchanged
from jaxprof.analysis.jobs.figures import Array, LoopWindows, ProcessFigures
from jaxprof.errors import system_words
from jaxprof.facts.processes import PROCESSES
from jaxprof.files import taking_place
from jaxprof.limits import PROCESSES as PROCESSES_READ
from jaxprof.limits import QUERY_TIME, bounded_memory
from jaxprof.query.connection import connect
from jaxprof.rollup import ENDING, FOLDER
from jaxprof.rollup.rows import PART_COLUMNS
from jaxprof.rollup.schema import FORMAT
from jaxprof.units import integer

T = TypeVar("T")

_MOST_NAMED: Final = 4
_MOST_ROWS: Final = 1_000_000
"""Of an answer: a job of 4096 processes has fewer in every table that is read row by row."""
MANY: Final = 128
"""Processes, from which on their sample windows are put together."""
WINDOWS_OF_MANY: Final = 40
_WANTED: Final = (
    "process", "path", "session_id", "job", "process_count", "jaxprof", "complete", "session_bytes",
    "session_modified_ns", "clock_seconds", "began_seconds", "unit", "numbered_by", "begins", "ends", "windows",
    "figures",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RolledUp:
    """The roll-up of one process."""

    process: int
    path: str
    """Name of the file that it was made of."""
    session_id: str
    job: str
    process_count: int | None
    """None where it was not known. Roll-ups of earlier versions have 0 for it."""
    jaxprof: str
    complete: bool
    session_bytes: int
    session_modified_ns: int
    clock_seconds: float
    began_seconds: float
    unit: str | None
    numbered_by: str | None
    begins: float | None
    ends: float | None
    """Where its loop begins and ends, in its unit."""
    windows: int
    """Rows of its table `parts`."""
    figures: ProcessFigures

    def is_of(self, path: Path) -> bool:
        """Whether it holds all of the session at this path, which is over."""
        with suppress(OSError):
            return self.holds(path.name, path.stat().st_size)
        return False

    def holds(self, name: str, size: int) -> bool:
        """Whether it holds all of the session of that name, which has so many bytes and is over."""
        return self.complete and name == self.path and size == self.session_bytes

    @property
    def age_seconds(self) -> float:
        """How long ago its session was looked at last."""
        return max(0.0, time.time() - self.session_modified_ns * 1e-9)


@contextmanager
def connected(folder: Path) -> Iterator[Any]:
    """A database that can read the roll-ups in the folder of a job, and nothing else."""
    connection = connect(folder=folder / FOLDER)
    try:
        yield connection
    finally:
        connection.close()


def files_of(folder: Path, table: str) -> list[Path]:
    """The files of a table; none without roll-ups. What is no regular file is none of them: Arrow and DuckDB would wait
    for a named pipe for ever."""
    with suppress(OSError), os.scandir(folder / FOLDER / table) as entries:
        return sorted(Path(entry.path) for entry in entries if _is_file_name(entry.name) and entry.is_file())
    return []


def _is_file_name(name: str) -> bool:
    return name.startswith("process-") and name.endswith(ENDING)


def sound_rows(
    connection: Any, folder: Path, table: str, select: str, notices: list[str], most: int = _MOST_ROWS
) -> list[tuple[Any, ...]]:
    """The rows of `select`, in which `{files}` stands for a table's files. Files that cannot be read, or are not this
    table, are left out with a notice, and so are rows after the first `most`."""
    rows = _sound(connection, folder, table, select, notices, lambda answer: answer.fetchmany(most + 1)) or []
    if len(rows) > most:
        notices.append(f"the roll-ups of {table} have more than {integer(most)} rows: the others are left out")
    return rows[:most]


def sound_columns(
    connection: Any, folder: Path, table: str, select: str, notices: list[str]
) -> dict[str, Array] | None:
    """As `sound_rows`, the columns of numbers by their names, with NaN for what is not known; None without rows."""
    columns = _sound(connection, folder, table, select, notices, lambda answer: answer.fetchnumpy()) or {}
    if not any(map(len, columns.values())):
        return None
    return {name: np.ma.filled(np.ma.asarray(each, dtype="f8"), np.nan) for name, each in columns.items()}


def _sound(
    connection: Any, folder: Path, table: str, select: str, notices: list[str], fetch: Callable[[Any], T]
) -> T | None:
    """What `fetch` makes of the answer; None without one."""
    files = files_of(folder, table)
    together = compacted(folder, table, files)
    if together is not None:
        with _bounded(connection):
            return fetch(connection.execute(select.format(files=_listed([together]))))
    while files:
        with _bounded(connection):
            return fetch(connection.execute(select.format(files=_listed(files))))
        bad = [path for path in files if not _is_sound(path, table)]
        if not bad:
            notices.append(f"the roll-ups of {table} cannot be read together: the sessions are read instead")
            return None
        named = ", ".join(path.name for path in bad[:_MOST_NAMED])
        more = f" and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
        notices.append(f"no roll-up of this version of jaxprof, or damaged: {FOLDER}/{table}/{named}{more}")
        files = [path for path in files if path not in bad]
    return None


@contextmanager
def _bounded(connection: Any) -> Iterator[None]:
    """Inside, a query takes no more time and memory than one that a user asks, whatever files of a few kilobytes
    unpack to; where it would, or cannot read them, the block ends there."""
    timer = threading.Timer(QUERY_TIME.most, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        with bounded_memory(), suppress(duckdb.Error, MemoryError):
            yield
    finally:
        timer.cancel()


def compact_all(folder: Path) -> str:
    """One file for each table that is read of all processes, where there are many. Returns why there is none, or an
    empty text."""
    with connected(folder) as connection:
        for table in TABLES_OF_ALL:
            files = files_of(folder, table)
            if len(files) < MANY or compacted(folder, table, files) is not None:
                continue
            try:
                compact(connection, folder, table, files)
            except OSError as error:
                return system_words(error)
            except duckdb.Error:
                return "some roll-ups are damaged, or of another version"
    return ""


def _listed(files: Sequence[Path]) -> str:
    quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in files)
    return f"read_parquet([{quoted}])"


def _is_sound(path: Path, table: str) -> bool:
    from jaxprof.rollup.files import read_table  # imports Arrow, which takes longer than reading all sound files

    try:
        with bounded_memory():
            read_table(path, table)
    except (OSError, ValueError, LookupError, NotImplementedError, MemoryError):
        return False
    return True


def read_processes(connection: Any, folder: Path, notices: list[str]) -> dict[int, RolledUp]:
    """By index, the roll-ups of the processes. What cannot be used is in the notices."""
    select = f"SELECT format, {', '.join(_WANTED)} FROM {{files}}"
    found: dict[int, RolledUp] = {}
    others = 0
    rows = sound_rows(connection, folder, "processes", select, notices, 4 * PROCESSES_READ.most)
    for version, *values in rows:
        row: dict[str, Any] = dict(zip(_WANTED, values, strict=True))
        try:
            if version != FORMAT:
                raise ValueError(version)
            figures = msgspec.json.decode(row.pop("figures") or "", type=ProcessFigures)
            row |= {name: row[name] or "" for name in ("path", "session_id", "job", "jaxprof")}
            found[row["process"]] = RolledUp(**row, figures=figures)
        except (ValueError, TypeError, msgspec.MsgspecError):
            others += 1
    if others:
        notices.append(f"{others} roll-ups are not of this version of jaxprof: their sessions are read")
    return found


def read_windows(
    connection: Any, folder: Path, rolled: Mapping[int, RolledUp], notices: list[str]
) -> dict[int, LoopWindows]:
    """The sample windows of these processes. Of many processes some windows are put together, so that a thousand of
    them are read at once."""
    most = max((each.windows for each in rolled.values()), default=0)
    together = max(1, -(-most // WINDOWS_OF_MANY)) if len(rolled) > MANY else 1
    sums = ", ".join(f"sum({name}) AS {name}" for name in ("seconds", "samples", *PART_COLUMNS.values()))
    own = "CASE WHEN count(own_seconds) = count(*) THEN sum(own_seconds) END AS own_seconds"
    select = (
        f"SELECT process, min(began_seconds) AS began, {own}, min(first_step) AS first_step, {sums} FROM {{files}} "
        f"WHERE process IN ({numbers(rolled)}) GROUP BY process, number // {together} ORDER BY process, began"
    )
    columns = sound_columns(connection, folder, "parts", select, notices)
    if columns is None:
        return {}
    processes, firsts = np.unique(columns["process"].astype("i8"), return_index=True)
    lasts = np.append(firsts[1:], len(columns["process"]))
    clocks = np.repeat([rolled[index].clock_seconds for index in processes.tolist()], lasts - firsts)
    whole = LoopWindows(
        columns["began"] - clocks,
        columns["seconds"],
        columns["samples"],
        np.stack([columns[name] for name in PART_COLUMNS.values()], axis=1),
        columns["own_seconds"],
        columns["first_step"],
    )
    rows = zip(processes.tolist(), firsts.tolist(), lasts.tolist(), strict=True)
    return {index: whole.chosen(slice(first, last)) for index, first, last in rows}


def process_rows(connection: Any, folder: Path, indices: Iterable[int]) -> dict[int, Any]:
    """By index, the row of a process as queries have it, of those that recorded a program: an Arrow table."""
    import pyarrow as pa

    from jaxprof.query.columnar import arrow_schema

    facts = ", ".join(f'"{fact.key}"' for fact in PROCESSES.facts)
    select = f"SELECT {facts} FROM {{files}} WHERE process IN ({numbers(indices)}) AND status <> 'unknown'"
    schema = arrow_schema(PROCESSES)
    rows = sound_rows(connection, folder, "processes", select, [])
    return {row[0]: pa.table([[cell] for cell in row], schema=schema) for row in rows}


def processes_in(connection: Any, folder: Path, table: str) -> set[int]:
    """The processes of which a table has rows."""
    return {index for (index,) in sound_rows(connection, folder, table, "SELECT DISTINCT process FROM {files}", [])}


def numbers(indices: Iterable[int]) -> str:
    """For IN: NULL is in no list."""
    return ", ".join(map(str, indices)) or "NULL"


def read_collectives(
    connection: Any, folder: Path, hosts: Mapping[int, str], notices: list[str]
) -> list[dict[str, CollectiveEvents]]:
    """The captured collectives of these processes, by name."""
    select = (
        "SELECT process, name, opcode, bytes, devices, least_seconds, list(began_seconds ORDER BY instance), "
        "list(seconds ORDER BY instance), list(exposed_seconds ORDER BY instance) FROM {files} "
        f"WHERE process IN ({numbers(hosts)}) GROUP BY ALL ORDER BY ALL"
    )
    found: dict[int, dict[str, CollectiveEvents]] = {}
    for process, name, opcode, exchanged, devices, least, began, *took in sound_rows(
        connection, folder, "collectives", select, notices
    ):
        starts = np.asarray(began, dtype="f8")
        seconds, exposed = (np.asarray(each, dtype="f8") for each in took)
        moved = Exchanged(opcode, exchanged, devices, least) if opcode is not None else None
        found.setdefault(process, {})[name] = CollectiveEvents(
            process, hosts[process], name, starts, starts + seconds, exposed, moved
        )
    return list(found.values())


TABLES_OF_ALL: Final = ("processes", "overview", "parts")
"""Those that are read of all processes at once."""
_ALL: Final = "all"


def compacted(folder: Path, table: str, files: list[Path]) -> Path | None:
    """The one file that holds what these files of a table do; None if there is none."""
    if table not in TABLES_OF_ALL or len(files) < 2:
        return None
    with suppress(OSError):
        path = _place(folder, table, files)
        return path if path.is_file() else None
    return None


def compact(connection: Any, folder: Path, table: str, files: list[Path]) -> Path:
    """Write the one file, and remove the ones before it. Raises OSError, and duckdb.Error for files that cannot be read
    together. `connection` may read and write the folder of roll-ups."""
    path = _place(folder, table, files)
    path.parent.mkdir(parents=True, exist_ok=True)
    quoted = ", ".join(_quoted(each) for each in files)
    with taking_place(path, only_regular=True) as fresh:
        connection.execute(
            f"COPY (SELECT * FROM read_parquet([{quoted}]) ORDER BY process) TO {_quoted(fresh)} "
            "(FORMAT parquet, COMPRESSION zstd)"
        )
    for other in path.parent.glob(f"{table}-*.parquet"):
        if other != path:
            other.unlink(missing_ok=True)
    return path


def _place(folder: Path, table: str, files: list[Path]) -> Path:
    made_of = hashlib.sha256()
    for path in files:
        status = path.stat()
        made_of.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return folder / FOLDER / _ALL / f"{table}-{made_of.hexdigest()[:24]}.parquet"


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
