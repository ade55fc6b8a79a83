"""Sum the steps of all processes in the columns of a screen, from the roll-ups with DuckDB.

The result has the size of the screen, whatever the number of steps, and nothing else is held in memory. A process
without a usable roll-up is read from its session.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jaxprof.analysis.jobs.figures import Array
from jaxprof.analysis.jobs.step_grid import (
    FEW_STEPS,
    OWN,
    OWN_PARTS,
    ColumnSums,
    StepGrid,
    add_trace,
    assembled,
    column_edges,
    common_unit,
    extent_of,
    parts_of,
)
from jaxprof.analysis.programs.loop_time import COMPILE
from jaxprof.rollup.job import JobFiles
from jaxprof.rollup.rows import MOST_BLOCKS, PART_COLUMNS, WORKED

if TYPE_CHECKING:
    from jaxprof.rollup.reading import RolledUp

_WIDE: Final = 4
"""Columns at least this many blocks wide are filled from blocks. A block on a bound is then a small part of a
column."""


class JobSteps:
    """The steps of a job whose files were read."""

    def __init__(self, files: JobFiles) -> None:
        self._folder, self._rolled, self._traces = files.folder, files.rolled, files.traces
        rolled = files.rolled.items()
        unit_of = {index: roll_up.unit for index, roll_up in rolled if roll_up.unit and roll_up.begins is not None}
        unit_of |= {index: trace.unit for index, trace in files.traces.items()}
        self._unit = common_unit(list(unit_of.values()))
        self._used = sorted(index for index, unit in unit_of.items() if unit == self._unit)
        self._left_out = sorted(set(unit_of) - set(self._used))
        self._indices = sorted({*files.figures, *files.sessions})

    def grid(
        self, columns: int = 100, first: float | None = None, last: float | None = None, values_of: str = OWN
    ) -> StepGrid:
        """Return the steps from `first` to `last`, by default all, in at most `columns` columns. Raises KeyError for
        `values_of` that a grid cannot show."""
        parts = parts_of(values_of)
        edges = column_edges(self._extent(), columns, first, last, whole=self._unit == "step")
        rows = {index: row for row, index in enumerate(self._indices)}
        sums = ColumnSums.nothing(len(rows), len(edges) - 1)
        notices: list[str] = []
        rolled = [self._rolled[index] for index in self._used if index in self._rolled]
        if rolled and len(edges) > 1:
            from jaxprof.rollup.reading import connected

            with connected(self._folder) as connection:
                _RolledSteps(connection, self._folder, rolled, notices).add(sums, rows, edges, parts)
        counters = {roll_up.numbered_by or "" for roll_up in rolled}
        for index in self._used:
            if index in self._traces:
                add_trace(sums, rows[index], self._traces[index], edges, parts)
                counters.add(self._traces[index].numbered_by)
        if self._unit == "step" and "" in counters:
            notices.append("steps are counted from the first one that was seen of each process")
        elif self._unit == "step":
            notices += _shifted_numbers(rolled)
        grid = assembled(self._indices, edges, sums, self._unit, values_of, counters, self._left_out)
        return replace(grid, notices=(*notices, *grid.notices))

    def windows(self, first: float | None, last: float | None) -> int:
        """Return how many sample windows the median process has from `first` to `last`, at least 1. For roll-ups, the
        windows are taken to have equal lengths."""
        counts = []
        for index in self._used:
            if index in self._traces:
                counts.append(self._traces[index].windows_between(first, last))
                continue
            roll_up = self._rolled[index]
            begins, ends = roll_up.begins or 0.0, roll_up.ends or 0.0
            low, high = max(begins, begins if first is None else first), min(ends, ends if last is None else last)
            counts.append(math.ceil(roll_up.windows * max(0.0, high - low) / (ends - begins)) if ends > begins else 0)
        return max(1, round(median(counts))) if counts else 1

    def _extent(self) -> tuple[float, float] | None:
        """Return where the first loop begins and the last one ends; None without a loop."""
        rolled = [self._rolled[index] for index in self._used if index in self._rolled]
        extents = [
            (roll_up.begins, roll_up.ends)
            for roll_up in rolled
            if roll_up.begins is not None and roll_up.ends is not None
        ]
        of_traces = extent_of([self._traces[index] for index in self._used if index in self._traces])
        extents += [of_traces] if of_traces is not None else []
        return (min(low for low, _ in extents), max(high for _, high in extents)) if extents else None


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
        longest = max((roll_up.ends or 0.0) - (roll_up.begins or 0.0) for roll_up in self._rolled)
        if edges[1] - edges[0] >= _WIDE * longest / MOST_BLOCKS:
            values = ("seconds", "count", of_blocks, whole, "samples", "covered")
            self._fill((*step_sums, *window_sums), "overview", values, rows, edges)
            return
        self._fill(step_sums, "steps", ("seconds", "count"), rows, edges)
        if parts:
            self._fill(window_sums, "parts", (of_windows, whole, "samples", "ends - begins"), rows, edges)

    def _fill(
        self,
        into: Sequence[Array],
        table: str,
        values: Sequence[str],
        rows: Mapping[int, int],
        edges: Array,
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


def _shifted_numbers(rolled: Sequence[RolledUp]) -> list[str]:
    """Return a notice if step numbers of processes may not correspond: a process that begins as far from the first
    process's number as it ends may have restored its counter. Only the clocks in its session tell which steps
    correspond, and a roll-up does not have them."""
    known = [
        (roll_up.process, roll_up.begins, roll_up.ends)
        for roll_up in rolled
        if roll_up.begins is not None and roll_up.ends
    ]
    if not known:
        return []
    first, first_begin, first_end = known[0]
    shifted = [
        (process, begin)
        for process, begin, end in known
        if abs(begin - first_begin) > FEW_STEPS and abs((end - first_end) - (begin - first_begin)) <= FEW_STEPS
    ]
    if not shifted:
        return []
    process, begin = shifted[0]
    more = f" ({len(shifted) - 1} more begin elsewhere, too)" if len(shifted) > 1 else ""
    return [
        f"process {process} counts from step {begin:.0f} and process {first} from {first_begin:.0f}{more}: whether one "
        "number means the same step is unknown from roll-ups; the steps are aligned by number"
    ]


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
