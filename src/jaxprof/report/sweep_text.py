"""A range of sizes as text: time and speed-up at each size, and where one variant overtakes the baseline."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.report.table import table, wrap
from jaxprof.results import SweepGroup, SweepLine
from jaxprof.safe_text import safe
from jaxprof.units import UNKNOWN, ratio, scaled, seconds


def sweep_lines(sweep: SweepGroup, *, width: int) -> Iterator[str]:
    """The sweep's title, its table (a row a size, a column a variant) and its crossovers in words."""
    title = safe(f"{sweep.workload}  ·  {sweep.parameter} swept")
    yield title
    yield "─" * min(width, len(title))
    sizes = sorted({size for line in sweep.lines for size in line.sizes})
    several = len({line.device for line in sweep.lines}) > 1
    heads = [line.label if several else line.variant for line in sweep.lines]
    rows = [(sweep.parameter, *heads)]
    rows += [(scaled(size), *(_cell(sweep, line, size) for line in sweep.lines)) for size in sizes]
    yield from table(rows, right=range(len(heads) + 1), width=width)
    crossovers = sweep.crossovers()
    if crossovers:
        yield ""
    for crossover in crossovers:
        yield from wrap(crossover.sentence(sweep.parameter), width=width, indent="    ", first="  ")


def _cell(sweep: SweepGroup, line: SweepLine, size: float) -> str:
    at = dict(zip(line.sizes, line.results, strict=True)).get(size)
    if at is None or at.summary is None:
        return UNKNOWN
    text = seconds(at.summary.median)
    return f"{text} {ratio(at.versus.speedup.ratio)}" if at.versus is not None else text
