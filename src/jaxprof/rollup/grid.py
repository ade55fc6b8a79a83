"""Steps of all processes in the columns of a screen, put together by DuckDB from the roll-ups.

What comes out has the size of the screen, whatever the number of steps; nothing else is held in memory. Processes whose
roll-up does not count come from their session.
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
from jaxprof.analysis.programs.verdict import COMPILE
from jaxprof.rollup.job import JobFiles
from jaxprof.rollup.rows import MOST_BLOCKS, PART_COLUMNS, WORKED

if TYPE_CHECKING:
    from jaxprof.rollup.reading import RolledUp

_WIDE: Final = 4
"""Columns of so many blocks are filled from blocks: what lies on a bound is then a small part of them."""


class JobSteps:
    """The steps of a job whose files were read."""

    def __init__(self, files: JobFiles) -> None:
        self._folder, self._rolled, self._traces = files.folder, files.rolled, files.traces
        unit_of = {index: each.unit for index, each in files.rolled.items() if each.unit and each.begins is not None}
        unit_of |= {index: trace.unit for index, trace in files.traces.items()}
        self._unit = common_unit(list(unit_of.values()))
        self._used = sorted(index for index, own in unit_of.items() if own == self._unit)
        self._left_out = sorted(set(unit_of) - set(self._used))
        self._indices = sorted({*files.figures, *files.sessions})

    def grid(
        self, columns: int = 100, first: float | None = None, last: float | None = None, values_of: str = OWN
    ) -> StepGrid:
        """The steps `first` to `last`, by default all. Raises KeyError for `values_of` that a grid cannot show."""
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
        names = {each.numbered_by or "" for each in rolled}
        for index in self._used:
            if index in self._traces:
                add_trace(sums, rows[index], self._traces[index], edges, parts)
                names.add(self._traces[index].numbered_by)
        if self._unit == "step" and "" in names:
            notices.append("steps are counted from the first one that was seen of each process")
        elif self._unit == "step":
            notices += _other_numbers(rolled)
        grid = assembled(self._indices, edges, sums, self._unit, values_of, names, self._left_out)
        return replace(grid, notices=(*notices, *grid.notices))

    def windows(self, first: float | None, last: float | None) -> int:
        """How many sample windows the middle process has from `first` to `last`, at least 1; of roll-ups as if its
        windows were of one length."""
        counts = []
        for index in self._used:
            if index in self._traces:
                counts.append(self._traces[index].windows_between(first, last))
            else:
                each = self._rolled[index]
                begins, ends = each.begins or 0.0, each.ends or 0.0
                low, high = max(begins, begins if first is None else first), min(ends, ends if last is None else last)
                counts.append(math.ceil(each.windows * max(0.0, high - low) / (ends - begins)) if ends > begins else 0)
        return max(1, round(median(counts))) if counts else 1

    def _extent(self) -> tuple[float, float] | None:
        """Where the first loop begins and the last one ends."""
        extents = [
            (each.begins, each.ends)
            for index in self._used
            if (each := self._rolled.get(index)) is not None and each.begins is not None and each.ends is not None
        ]
        of_traces = extent_of([self._traces[index] for index in self._used if index in self._traces])
        extents += [of_traces] if of_traces is not None else []
        return (min(low for low, _ in extents), max(high for _, high in extents)) if extents else None


class _RolledSteps:
    """The roll-ups of some processes of a job."""

    def __init__(self, connection: Any, folder: Path, rolled: Sequence[RolledUp], notices: list[str]) -> None:
        self._connection, self._folder, self._rolled, self._notices = connection, folder, rolled, notices

    def add(self, sums: ColumnSums, rows: Mapping[int, int], edges: Array, parts: Sequence[str]) -> None:
        """What is in the columns of the processes that are rolled up: of wide columns from blocks, which are few."""
        shown = in_blocks = " + ".join(PART_COLUMNS[part] for part in parts) or "0"
        if tuple(parts) == OWN_PARTS:
            in_blocks, shown = WORKED, f"coalesce(own_seconds + {PART_COLUMNS[COMPILE]}, {shown})"
        whole = " + ".join(PART_COLUMNS.values())
        of_steps = (sums.seconds, sums.counts)
        of_windows = (sums.part_seconds, sums.window_seconds, sums.samples, sums.covered)
        longest = max((each.ends or 0.0) - (each.begins or 0.0) for each in self._rolled)
        if edges[1] - edges[0] >= _WIDE * longest / MOST_BLOCKS:
            of_both = ("seconds", "count", in_blocks, whole, "samples", "covered")
            self._fill((*of_steps, *of_windows), "overview", of_both, rows, edges)
            return
        self._fill(of_steps, "steps", ("seconds", "count"), rows, edges)
        if parts:
            values = (shown, whole, "samples", "ends - begins")
            self._fill(of_windows, "parts", values, rows, edges)

    def _fill(
        self,
        into: Sequence[Array],
        table: str,
        values: Sequence[str],
        rows: Mapping[int, int],
        edges: Array,
    ) -> None:
        from jaxprof.rollup.reading import numbers, sound_columns

        processes = [each.process for each in self._rolled]
        named = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
        query = in_columns_sql(len(values), edges).format(
            rows=f"SELECT process, begins, ends, {named} FROM {{files}} WHERE process IN ({numbers(processes)}) "
            f"AND ends > {edges[0].item()!r} AND begins < {edges[-1].item()!r}"
        )
        found = sound_columns(self._connection, self._folder, table, query, self._notices)
        if found is not None:
            row_of = np.zeros(max(rows) + 1, dtype="i8")
            row_of[list(rows)] = list(rows.values())
            places = row_of[found["process"].astype("i8")], found["c"].astype("i8")
            for number, array in enumerate(into):
                array[places] = found[f"v{number}"]


def _other_numbers(rolled: Sequence[RolledUp]) -> list[str]:
    """That a counter may be one of its own: a process that begins as far from the first one's number as it ends may
    have restored it. Which of its steps are those of the others, the clocks in its session say, and no roll-up."""
    known = [(each.process, each.begins, each.ends) for each in rolled if each.begins is not None and each.ends]
    if not known:
        return []
    first, first_begin, first_end = known[0]
    other = [
        (process, begin)
        for process, begin, end in known
        if abs(begin - first_begin) > FEW_STEPS and abs((end - first_end) - (begin - first_begin)) <= FEW_STEPS
    ]
    if not other:
        return []
    process, begin = other[0]
    more = f" ({len(other) - 1} more begin elsewhere, too)" if len(other) > 1 else ""
    return [
        f"process {process} counts from step {begin:.0f} and process {first} from {first_begin:.0f}{more}: whether one "
        "number means the same step is not in roll-ups; they are laid beside each other by number"
    ]


def in_columns_sql(values: int, edges: Array) -> str:
    """SQL that sums columns `v0`, `v1`... of `{rows}`, which have `process`, `begins` and `ends`, over the columns
    between the `edges`: what `step_grid.in_columns` does, with what lies on the bound of two divided by its length."""
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
