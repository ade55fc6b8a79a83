"""Words that the text and the Markdown of a program share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jaxprof.events import Compiled
from jaxprof.results.programs.derive import Finding, ProgramResult, StepFigures
from jaxprof.safe_text import safe, shorten
from jaxprof.units import UNKNOWN, integer, percent, scaled, seconds

WIDTH: Final = 80
ARGV_WIDTH: Final = 44
"""Columns of the command line in a title; a longer one stands under it, whole."""


def title(found: ProgramResult, *, live: bool = False) -> str:
    """`train.py --epochs 3  ·  exit code 0  ·  42.1 s  ·  161 steps/s`. `live`: it is being recorded now."""
    parts = [shorten(command(found), ARGV_WIDTH)]
    if found.exit_code is not None:
        parts.append(f"exit code {found.exit_code}")
    elif not found.ended:
        parts.append("running" if live else "cut off")
    parts.append(seconds(found.wall_seconds))
    if found.steps is not None and found.steps.per_second is not None:
        parts.append(f"{scaled(found.steps.per_second)} steps/s")
    return "  ·  ".join(parts)


def command(found: ProgramResult) -> str:
    """Its `sys.argv` on one line."""
    return safe(" ".join(found.argv)) or safe(found.run.plan.workload)


def words(name: str) -> str:
    """`device_busy` as `device busy`."""
    return name.replace("_", " ")


def compilations(count: int) -> str:
    """`1 compilation`, `428 compilations`."""
    return f"{integer(count)} compilation{'' if count == 1 else 's'}"


def ledger_title(found: ProgramResult) -> str:
    """`428 compilations of 6 functions, 31.2 s, 74 % of the wall time`."""
    share = found.of_wall(found.compile_seconds)
    of_wall = f", {percent(share)} of the wall time" if share is not None else ""
    number = len(found.functions)
    functions = f"{integer(number)} function{'' if number == 1 else 's'}"
    return f"{compilations(found.compile_count)} of {functions}, {seconds(found.compile_seconds)}{of_wall}"


def cache(rows: Sequence[Compiled]) -> str:
    """`3 hits, 1 miss` of the persistent cache; a dash where it is off or nothing is known."""
    hits = sum(row.count for row in rows if row.cache == "hit")
    misses = sum(row.count for row in rows if row.cache == "miss")
    said = [f"{hits} hit{'' if hits == 1 else 's'}"] if hits else []
    said += [f"{misses} miss{'' if misses == 1 else 'es'}"] if misses else []
    return ", ".join(said) or UNKNOWN


def remark(found: ProgramResult, one: Finding) -> str:
    """A finding with its line before it."""
    at = f"{one.where.short(found.directory)}: " if one.where is not None else ""
    return safe(f"{at}{one.message}{' (estimate)' if one.estimate else ''}")


def loop(found: ProgramResult, one: StepFigures) -> str:
    """`loop at train.py:88: 2 400 steps (counted), 161 steps/s, median 6.20 ms, jitter 2.0 %`."""
    where = f"at {one.where.short(found.directory)}" if one.where is not None else f"of {one.name!r}"
    how = "counted" if one.found_by == "monitoring" else "by its annotation"
    spread = f", jitter {percent(one.jitter)}" if one.jitter is not None else ""
    median = f", median {seconds(one.median_seconds)}{spread}" if one.median_seconds is not None else ""
    return safe(f"loop {where}: {integer(one.count)} steps ({how}), {scaled(one.per_second)} steps/s{median}")
