"""Sum the steps of all processes in the columns of a screen, from the roll-ups with DuckDB.

The result has the size of the screen, whatever the number of steps, and nothing else is held in memory. A process
without a usable roll-up is read from its session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jaxprof.analysis.jobs.figures import Array
from jaxprof.analysis.jobs.step_grid import (
    OWN,
    OWN_PARTS,
    ColumnSums,
    LoopTrace,
    StepGrid,
    add_trace,
    assembled,
    column_edges,
    common_unit,
    parts_of,
)
from jaxprof.analysis.programs.loop_time import COMPILE
from jaxprof.rollup.job import JobFiles
from jaxprof.rollup.schema import MOST_BLOCKS, PART_COLUMNS, WORKED

if TYPE_CHECKING:
    from jaxprof.rollup.reading import RolledUp

_WIDE: Final = 4
"""Columns at least this many blocks wide are filled from blocks. A block on a bound is then a small part of a
column."""


class JobSteps:
    """The steps of a job whose files were read."""

    def __init__(self, files: JobFiles) -> None:
        self._folder = files.folder
        loops = {index: roll_up for index, roll_up in files.rolled.items() if roll_up.unit and roll_up.extent}
        both: dict[int, RolledUp | LoopTrace] = {**loops, **files.traces}
        self._unit = common_unit([loop.unit or "" for loop in both.values()])
        self._used = {index: loop for index, loop in sorted(both.items()) if loop.unit == self._unit}
        self._left_out = sorted(both.keys() - self._used.keys())
        self._indices = sorted({*files.figures, *files.sessions})

    def grid(
        self, columns: int = 100, first: float | None = None, last: float | None = None, values_of: str = OWN
    ) -> StepGrid:
        """Return the steps from `first` to `last`, by default all, in at most `columns` columns. Raises KeyError for
        `values_of` that a grid cannot show."""
        parts = parts_of(values_of)
        edges = column_edges(_whole(self._extents), columns, first, last, whole=self._unit == "step")
        rows = {index: row for row, index in enumerate(self._indices)}
        sums = ColumnSums.nothing(len(rows), len(edges) - 1)
        notices: list[str] = []
        rolled = [loop for loop in self._used.values() if not isinstance(loop, LoopTrace)]
        if rolled and len(edges) > 1:
            from jaxprof.rollup.reading import connected

            with connected(self._folder) as connection:
                _RolledSteps(connection, self._folder, rolled, notices).add(sums, rows, edges, parts)
        for index, loop in self._used.items():
            if isinstance(loop, LoopTrace):
                add_trace(sums, rows[index], loop, edges, parts)
        counters = {loop.numbered_by or "" for loop in self._used.values()}
        grid = assembled(self._indices, edges, sums, self._unit, values_of, counters, self._extents, self._left_out)
        return replace(grid, notices=(*notices, *grid.notices))

    def windows(self, first: float | None, last: float | None) -> int:
        """Return how many sample windows the median process has from `first` to `last`, at least 1. For roll-ups, the
        windows are taken to have equal lengths."""
        counts = [loop.windows_between(first, last) for loop in self._used.values()]
        return max(1, round(median(counts))) if counts else 1

    @property
    def _extents(self) -> dict[int, tuple[float, float]]:
        """Where the loop of each process begins and ends."""
        return {index: loop.extent for index, loop in self._used.items() if loop.extent is not None}


def _whole(extents: Mapping[int, tuple[float, float]]) -> tuple[float, float] | None:
    """Return where the first loop begins and the last one ends; None without a loop."""
    known = extents.values()
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


class _RolledSteps:
    """Roll-ups of some processes of a job, whose steps are added to columns."""

    def __init__(self, connection: Any, folder: Path, rolled: Sequence[RolledUp], notices: list[str]) -> None:
        self._connection, self._folder, self._rolled, self._notices = connection, folder, rolled, notices

    def add(self, sums: ColumnSums, rows: Mapping[int, int], edges: Array, parts: Sequence[str]) -> None:
        """Fill the rows of these processes in `sums`: wide columns from the table of blocks, which is short, others
        from steps and sample windows."""
        of_windows = of_blocks = " + ".join(PART_COLUMNS[part] for part in parts) or "0"
        if tuple(parts) == OWN_PARTS:
            of_blocks, of_windows = WORKED, f"coalesce(own_seconds + {PART_COLUMNS[COMPILE]}, {of_windows})"
        whole = " + ".join(PART_COLUMNS.values())
        step_sums = (sums.seconds, sums.counts)
        window_sums = (sums.part_seconds, sums.window_seconds, sums.samples, sums.covered)
        longest = max(end - begin for begin, end in (loop.extent or (0.0, 0.0) for loop in self._rolled))
        if edges[1] - edges[0] >= _WIDE * longest / MOST_BLOCKS:
            values = ("seconds", "count", of_blocks, whole, "samples", "covered")
            self._fill((*step_sums, *window_sums), "overview", values, rows, edges)
            return
        self._fill(step_sums, "steps", ("seconds", "count"), rows, edges)
        if parts:
            self._fill(window_sums, "parts", (of_windows, whole, "samples", "ends - begins"), rows, edges)

    def _fill(
        self, into: Sequence[Array], table: str, values: Sequence[str], rows: Mapping[int, int], edges: Array
    ) -> None:
        """Fill the arrays `into` with the sums of the columns `values` of a table."""
        from jaxprof.rollup.reading import numbers, sound_columns

        processes = [roll_up.process for roll_up in self._rolled]
        named = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
        query = in_columns_sql(len(values), edges).format(
            rows=f"SELECT process, begins, ends, {named} FROM {{files}} WHERE process IN ({numbers(processes)}) "
            f"AND ends > {edges[0].item()!r} AND begins < {edges[-1].item()!r}"
        )
        sums = sound_columns(self._connection, self._folder, table, query, self._notices)
        if sums is not None:
            row_of = np.zeros(max(rows) + 1, dtype="i8")
            row_of[list(rows)] = list(rows.values())
            places = row_of[sums["process"].astype("i8")], sums["c"].astype("i8")
            for number, array in enumerate(into):
                array[places] = sums[f"v{number}"]


def in_columns_sql(values: int, edges: Array) -> str:
    """Return SQL that sums the values `v0`, `v1`... of `{rows}`, which have `process`, `begins` and `ends`, in the
    columns between the `edges`. As in `step_grid.in_columns`, a row over several columns is divided by length."""
    low, high, count = edges[0].item(), edges[-1].item(), len(edges) - 1
    span = high - low
    begins, ends = f"greatest(begins, {low!r})", f"least(ends, {high!r})"
    if edges.dtype.kind == "i":  # the inverse of low + number * span // count, exactly
        column = f"((CAST({{0}} AS BIGINT) - {low} + 1) * {count} - 1) // {span}"
        begin, end = column.format(f"floor({begins})"), column.format(f"ceil({ends}) - 1")
        edge = f"({low} + (({{0}}) * {span}) // {count})"
    else:
        begin = f"CAST(floor(({begins} - {low!r}) * {count} / {span!r}) AS BIGINT)"
        end = f"CAST(ceil(({ends} - {low!r}) * {count} / {span!r}) AS BIGINT) - 1"
        edge = f"({low!r} + ({{0}}) * {span!r} / {count})"
    share = f"(least(ends, {edge.format('c + 1')}) - greatest(begins, {edge.format('c')})) / (ends - begins)"
    names = [f"v{number}" for number in range(values)]
    is_in_one = f"begin_column >= end_column AND begins >= {low!r} AND ends <= {high!r}"
    return f"""
        WITH placed AS (
            SELECT *, {begin} AS begin_column, {end} AS end_column FROM ({{rows}})
            WHERE ends > begins
        ), divided AS (
            SELECT process, begin_column AS c, {", ".join(names)} FROM placed WHERE {is_in_one}
            UNION ALL
            SELECT process, c, {", ".join(f"{name} * {share} AS {name}" for name in names)} FROM (
                SELECT *, unnest(range(begin_column, end_column + 1)) AS c FROM placed WHERE NOT ({is_in_one})
            )
        )
        SELECT process, c, {", ".join(f"sum({name}) AS {name}" for name in names)} FROM divided
        WHERE c BETWEEN 0 AND {count - 1} GROUP BY process, c
    """
