"""Read the roll-ups of all processes of a job at once, with DuckDB.

A roll-up that is damaged, or that another version of jaxprof wrote, is left out with a notice; its session is read
instead. For many processes, each table is also kept as one file in `rollup/all/`. The name of that file is a hash of
the names, sizes and times of the files that it was made of, and it is used as long as these are the same.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import msgspec
import numpy as np

from jaxprof.base.database import connect
from jaxprof.base.errors import system_words
from jaxprof.base.files import PRIVATE, private_folder, replace_file
from jaxprof.base.limits import PROCESSES as PROCESSES_READ
from jaxprof.base.limits import QUERY_TIME, memory_bound
from jaxprof.base.units import and_more, integer
from jaxprof.base.values import frozen
from jaxprof.jobs.arrivals import CollectiveEvents, Exchanged
from jaxprof.jobs.figures import Array, LoopWindows, ProcessFigures, figures_from_json
from jaxprof.jobs.folder import ROLL_UP_ENDING, ROLL_UP_FOLDER, ROLL_UP_FORMAT, job_sessions, no_session_in
from jaxprof.jobs.step_grid import OWN_PARTS, PART_COLUMNS, WORKED

T = TypeVar("T")

_MOST_ROWS = 1_000_000
"""Most rows of an answer. A job of 4096 processes has fewer in every table that is read row by row."""
MANY = 128
"""Processes from which on sample windows are merged, and tables are kept as one file."""
WINDOWS_OF_MANY = 40
"""Most sample windows of a process after windows are merged."""


@frozen
class RolledUp:
    """The roll-up of one process: columns of the table `processes`."""

    process: int
    path: str
    """Name of the session's file."""
    session_id: str
    job: str
    process_count: int | None
    """Processes of the job; None if unknown."""
    jaxprof: str
    complete: bool
    session_bytes: int
    session_modified_ns: int
    clock_seconds: float
    began_unix_seconds: float
    unit: str | None
    numbered_by: str | None
    begins: float | None
    ends: float | None
    """End of the loop, in `unit`, as `begins` is its begin; None for both without a loop."""
    windows: int
    """Number of rows in the table `parts`."""
    figures: ProcessFigures

    def is_of(self, path: Path) -> bool:
        """Return whether the roll-up holds all of the session at this path, which has ended."""
        with suppress(OSError):
            return self.complete and path.name == self.path and path.stat().st_size == self.session_bytes
        return False

    @property
    def extent(self) -> tuple[float, float] | None:
        """Begin and end of the loop, in `unit`; None without a loop."""
        return None if self.begins is None or self.ends is None else (self.begins, self.ends)

    @property
    def age_seconds(self) -> float:
        """Time since the session was written, as of the roll-up."""
        return max(0.0, time.time() - self.session_modified_ns * 1e-9)


@contextmanager
def open_roll_ups(folder: Path, notices: list[str] | None = None) -> Iterator[RollUps]:
    """Open a job's roll-ups in a database that can read nothing else. `notices`: gets those that are left out."""
    connection = connect(folder=folder / ROLL_UP_FOLDER)
    try:
        yield RollUps(connection, folder, [] if notices is None else notices)
    finally:
        connection.close()


def files_of(folder: Path, table: str) -> list[Path]:
    """Return the files of a table; regular ones, because Arrow and DuckDB would wait for a named pipe for ever."""
    with suppress(OSError), os.scandir(folder / ROLL_UP_FOLDER / table) as entries:
        named = (
            entry for entry in entries if entry.name.startswith("process-") and entry.name.endswith(ROLL_UP_ENDING)
        )
        return sorted(Path(entry.path) for entry in named if entry.is_file())
    return []


@frozen
class RollUps:
    """The roll-ups of a job. Files that cannot be read, or do not hold their table, are left out with a notice."""

    connection: Any
    folder: Path
    notices: list[str]

    def rows(self, table: str, select: str, most: int = _MOST_ROWS) -> list[tuple[Any, ...]]:
        """Return the rows of `select`, in which `{files}` stands for the table's files; beyond `most`, a notice."""
        rows = self._answer(table, select, lambda answer: answer.fetchmany(most + 1)) or []
        if len(rows) > most:
            self.notices.append(f"the roll-ups of {table} have more than {integer(most)} rows: the others are left out")
        return rows[:most]

    def columns(self, table: str, select: str) -> dict[str, Array] | None:
        """Return the columns of `select` by name, all numbers, with NaN for unknown; None without rows."""
        columns = self._answer(table, select, lambda answer: answer.fetchnumpy()) or {}
        if not any(map(len, columns.values())):
            return None
        return {name: np.ma.filled(np.ma.asarray(column, dtype="f8"), np.nan) for name, column in columns.items()}

    def _answer(self, table: str, select: str, fetch: Callable[[Any], T]) -> T | None:
        files = files_of(self.folder, table)
        whole = compact_tables(self.folder, table, files)
        if whole is not None and (answer := self._answer_of([whole], select, fetch)) is not None:
            return answer
        while files:
            if (answer := self._answer_of(files, select, fetch)) is not None:
                return answer
            bad = [path for path in files if self._answer_of([path], select, lambda answer: answer.fetchall()) is None]
            if not bad:
                self.notices.append(f"the roll-ups of {table} cannot be read together: the sessions are read instead")
                return None
            named = and_more([path.name for path in bad], 4)
            self.notices.append(f"no roll-up of this version of jaxprof, or damaged: {ROLL_UP_FOLDER}/{table}/{named}")
            files = [path for path in files if path not in bad]
        return None

    def _answer_of(self, files: Sequence[Path], select: str, fetch: Callable[[Any], T]) -> T | None:
        """Return the answer from these files, within the limits of time and memory of a user's query, because a file of
        a few kilobytes may unpack to anything; None beyond the limits, or if they cannot be read."""
        timer = threading.Timer(QUERY_TIME.most, self.connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            with memory_bound(), suppress(duckdb.Error, MemoryError):
                return fetch(self.connection.execute(select.format(files=_read_files_sql(files))))
            return None
        finally:
            timer.cancel()

    def processes(self) -> dict[int, RolledUp]:
        """Return the roll-ups of the processes by index. Roll-ups that cannot be used add a notice."""
        columns = [column.name for column in fields(RolledUp)]
        select = f"SELECT format, {', '.join(columns)} FROM {{files}}"
        rolled: dict[int, RolledUp] = {}
        others = 0
        for version, *values in self.rows("processes", select, 4 * PROCESSES_READ.most):
            row: dict[str, Any] = dict(zip(columns, values, strict=True))
            try:
                if version != ROLL_UP_FORMAT:
                    raise ValueError(version)
                figures = figures_from_json(row.pop("figures") or "")
                row |= {name: row[name] or "" for name in ("path", "session_id", "job", "jaxprof")}
                rolled[row["process"]] = RolledUp(**row, figures=figures)
            except (ValueError, TypeError, msgspec.MsgspecError):
                others += 1
        if others:
            self.notices.append(f"{others} roll-ups are not of this version of jaxprof: their sessions are read")
        return rolled

    def windows(self, rolled: Mapping[int, RolledUp]) -> dict[int, LoopWindows]:
        """Return the sample windows of these processes by index. For many processes, neighbouring windows are merged,
        so that those of a thousand processes can be read at once."""
        most = max((roll_up.windows for roll_up in rolled.values()), default=0)
        merged = max(1, -(-most // WINDOWS_OF_MANY)) if len(rolled) > MANY else 1
        sums = ", ".join(f"sum({name}) AS {name}" for name in ("seconds", "samples", *PART_COLUMNS.values()))
        own = "CASE WHEN count(own_seconds) = count(*) THEN sum(own_seconds) END AS own_seconds"
        select = (
            f"SELECT process, min(began_seconds) AS began, {own}, min(first_step) AS first_step, {sums} FROM {{files}} "
            f"WHERE process IN ({numbers(rolled)}) GROUP BY process, number // {merged} ORDER BY process, began"
        )
        columns = self.columns("parts", select)
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
        return {index: whole.select(slice(first, last)) for index, first, last in rows}

    def blocks(self, indices: Iterable[int], parts: Sequence[str]) -> list[Array] | None:
        """Return the process of each block of these processes, where it begins and ends, and its values in the order of
        `no_sums`; None without blocks."""
        of_parts = WORKED if tuple(parts) == OWN_PARTS else " + ".join(PART_COLUMNS[part] for part in parts) or "0"
        columns = self.columns(
            "overview",
            f"SELECT process, begins, ends, seconds, count, {of_parts} AS parts, "
            f"{' + '.join(PART_COLUMNS.values())} AS whole, samples, covered FROM {{files}} "
            f"WHERE process IN ({numbers(indices)})",
        )
        return None if columns is None else list(columns.values())

    def collectives(self, hosts: Mapping[int, str]) -> list[dict[str, CollectiveEvents]]:
        """Return the captured collectives of each process by name."""
        select = (
            "SELECT process, name, opcode, bytes, devices, list(began_seconds ORDER BY instance), "
            "list(seconds ORDER BY instance), list(exposed_seconds ORDER BY instance) FROM {files} "
            f"WHERE process IN ({numbers(hosts)}) GROUP BY ALL ORDER BY ALL"
        )
        events: dict[int, dict[str, CollectiveEvents]] = {}
        for process, name, opcode, size, devices, *lists in self.rows("collectives", select):
            starts, seconds, exposed = (np.asarray(values, dtype="f8") for values in lists)
            exchanged = Exchanged(opcode, size, devices) if opcode is not None else None
            events.setdefault(process, {})[name] = CollectiveEvents(
                process, hosts[process], name, starts, starts + seconds, exposed, exchanged
            )
        return list(events.values())

    def compact(self, table: str, files: list[Path]) -> None:
        """Write one file with the rows of all files of a table, and remove earlier ones. Raises OSError, and
        duckdb.Error for files that cannot be read together."""
        path = _path_of_compact(self.folder, table, files)
        private_folder(path.parent)
        with replace_file(path, PRIVATE, only_regular=True) as fresh:
            rows = f"SELECT * FROM {_read_files_sql(files)} ORDER BY process"
            self.connection.execute(f"COPY ({rows}) TO {_quote(fresh)} (FORMAT parquet, COMPRESSION zstd)")
        for other in path.parent.glob(f"{table}-*.parquet"):
            if other != path:
                other.unlink(missing_ok=True)


def find_outdated(folder: Path, *, every: bool = False) -> tuple[list[Path], list[str]]:
    """Return the sessions of a job whose roll-up is missing or does not hold all of them (with `every`, all sessions),
    and notices of what was left out. Needs the extra `query`. Raises FileRefusedError if the folder has no session."""
    sessions, notices = job_sessions(folder)
    if not sessions:
        raise no_session_in(folder)
    with open_roll_ups(folder) as roll_ups:
        rolled = {} if every else roll_ups.processes()
        there = {index for (index,) in roll_ups.rows("parts", "SELECT DISTINCT process FROM {files}")}
    for index in without_parts(rolled, there):
        del rolled[index]
    return [path for index, path in sessions if index not in rolled or not rolled[index].is_of(path)], notices


def without_parts(rolled: Mapping[int, RolledUp], there: Container[int]) -> list[int]:
    """Return the processes whose roll-up lacks its table `parts`: it counts sample windows, but the process is not in
    `there`, the processes with rows in that table."""
    return [index for index, roll_up in rolled.items() if roll_up.windows and index not in there]


def numbers(indices: Iterable[int]) -> str:
    """Return the indices as a list for SQL's IN; for none NULL, which IN never matches."""
    return ", ".join(map(str, indices)) or "NULL"


TABLES_OF_ALL = ("processes", "overview", "parts")
"""Tables that are read of all processes at once."""
_ALL = "all"


def compact_tables(folder: Path, table: str, files: list[Path]) -> Path | None:
    """Return the one file that holds what these files of a table hold; None if there is none."""
    if table not in TABLES_OF_ALL or len(files) < 2:
        return None
    with suppress(OSError):
        path = _path_of_compact(folder, table, files)
        return path if path.is_file() else None
    return None


def compact_all(folder: Path) -> str:
    """Write one file for each table that is read of all processes, if there are many of them. Returns why a file cannot
    be written, or an empty text."""
    with open_roll_ups(folder) as roll_ups:
        for table in TABLES_OF_ALL:
            files = files_of(folder, table)
            if len(files) < MANY or compact_tables(folder, table, files) is not None:
                continue
            try:
                roll_ups.compact(table, files)
            except OSError as error:
                return system_words(error)
            except duckdb.Error:
                return "some roll-ups are damaged, or of another version"
    return ""


def _path_of_compact(folder: Path, table: str, files: list[Path]) -> Path:
    sources = hashlib.sha256()
    for path in files:
        status = path.stat()
        sources.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return folder / ROLL_UP_FOLDER / _ALL / f"{table}-{sources.hexdigest()[:24]}.parquet"


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _read_files_sql(files: Sequence[Path]) -> str:
    return f"read_parquet([{', '.join(map(_quote, files))}])"
