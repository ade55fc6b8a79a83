"""Derive the columns of a roll-up from the session of one process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jaxprof.analysis.arrivals import collective_events
from jaxprof.analysis.jobs.figures import LoopWindows
from jaxprof.analysis.jobs.step_grid import OWN_PARTS, ColumnSums, add_trace, extent_of
from jaxprof.analysis.programs.loop_time import PARTS
from jaxprof.analysis.timeline import session_timelines
from jaxprof.facts import Encoded, Part
from jaxprof.facts.processes import PART_SECONDS

if TYPE_CHECKING:
    from jaxprof.analysis.arrivals import Exchanged
    from jaxprof.analysis.jobs.figures import Array
    from jaxprof.analysis.programs.functions import FunctionCompiles
    from jaxprof.events import DeviceReading
    from jaxprof.facts.processes import ProcessFile

WORKED: Final = "worked_seconds"
PART_COLUMNS: Final = {part: PART_SECONDS[part].key for part in PARTS}
"""The column of each part of the loop."""
MOST_STEPS: Final = 1 << 14
"""Most rows of `steps`: of a longer loop, two or more neighbouring steps share a row."""
MOST_WINDOWS: Final = 1 << 9
"""Most rows of `parts`."""
MOST_BLOCKS: Final = 1 << 9
"""Most rows of `overview`."""
MOST_FUNCTIONS: Final = 200
MOST_OPS: Final = 200
MOST_READINGS: Final = 256
"""Most readings of one device, about."""
MOST_COLLECTIVES: Final = 4
"""Most different collectives."""
MOST_INSTANCES: Final = 1000
"""Most executions of one collective."""
_BITS: Final = 14
"""Significant bits of times, a precision of 0.006 %: the rest is noise of clocks, which does not compress."""
_MILLISECOND: Final = 1e3


def window_count(file: ProcessFile) -> int:
    """Return the number of rows in `parts`."""
    return len(_groups(len(file.trace.windows), MOST_WINDOWS)) if file.trace is not None else 0


def stored_figures(file: ProcessFile) -> str:
    """Return the figures of a process as JSON, without the sample windows, which are the table `parts`, and without the
    folder, which may be another one for a reader."""
    import msgspec

    figures = replace(file.figures, windows=LoopWindows.of(), path=file.path.name)
    stored = msgspec.to_builtins(figures, enc_hook=np.ndarray.tolist) | {"windows": []}
    return msgspec.json.encode(stored).decode()


def steps(file: ProcessFile) -> Part | None:
    """Derive `steps`, the timed steps of the hot loop; None without any."""
    trace = file.trace
    if trace is None or not len(trace.counts):
        return None
    groups = _groups(len(trace.counts), MOST_STEPS)
    return {
        "begins": trace.passes.begins[groups],
        "ends": trace.passes.ends[_last(groups, len(trace.counts))],
        "count": np.add.reduceat(trace.counts, groups).astype("i8"),
        "seconds": rounded(np.add.reduceat(trace.seconds, groups)),
    }


def overview(file: ProcessFile) -> Part | None:
    """Derive `overview`, the loop in at most `MOST_BLOCKS` blocks of equal size, of `2 ** n` steps each; None without a
    loop."""
    trace = file.trace
    extent = extent_of([trace]) if trace is not None else None
    if trace is None or extent is None or extent[1] <= extent[0]:
        return None
    edges = _block_edges(*extent, whole=trace.unit == "step")
    sums = ColumnSums.nothing(1, len(edges) - 1)
    add_trace(sums, 0, trace, edges, PARTS)
    of_parts = {}
    for column, summed in {WORKED: OWN_PARTS, **{PART_COLUMNS[part]: (part,) for part in PARTS}}.items():
        of_one = ColumnSums.nothing(1, len(edges) - 1)
        add_trace(of_one, 0, trace, edges, summed)
        of_parts[column] = rounded(of_one.part_seconds[0])
    return {
        "begins": edges[:-1].astype("f8"),
        "ends": edges[1:].astype("f8"),
        "count": rounded(sums.counts[0], 30),
        "seconds": rounded(sums.seconds[0]),
        "covered": rounded(sums.covered[0]),
        "samples": rounded(sums.samples[0]),
        **of_parts,
    }


def _block_edges(begin: float, end: float, *, whole: bool) -> Array:
    if not whole:
        return np.linspace(begin, end, MOST_BLOCKS + 1)
    size = 1
    while end - begin > size * (MOST_BLOCKS - 1):
        size *= 2
    first = math.floor(begin / size)
    return np.arange(first, math.ceil(end / size) + 1, dtype="i8") * size


def parts(file: ProcessFile) -> Part | None:
    """Derive `parts`, the sample windows of the hot loop; None without any."""
    trace = file.trace
    if trace is None or not len(trace.windows):
        return None
    count = len(trace.windows)
    groups = _groups(count, MOST_WINDOWS)
    began = trace.windows.began_seconds[groups] + file.clock_seconds
    return {
        "begins": rounded(trace.spans.begins[groups], 30),
        "ends": rounded(trace.spans.ends[_last(groups, count)], 30),
        "number": np.arange(len(groups)),
        "began_seconds": np.round(began * _MILLISECOND) / _MILLISECOND,
        "seconds": rounded(np.add.reduceat(trace.windows.seconds, groups)),
        "own_seconds": rounded(np.add.reduceat(trace.windows.own_seconds, groups)),
        "first_step": np.fmin.reduceat(trace.windows.first_steps, groups),
        "samples": rounded(np.add.reduceat(trace.windows.samples, groups)),
        **{PART_COLUMNS[part]: rounded(np.add.reduceat(trace.windows.part(part), groups)) for part in PARTS},
    }


def compiles(file: ProcessFile) -> Sequence[FunctionCompiles]:
    """Return the rows of `compiles`, the compile ledger by function, the most expensive ones."""
    return file.result.functions[:MOST_FUNCTIONS] if file.result is not None else ()


@dataclass(frozen=True, slots=True)
class OpRow:
    """What ran in the captures under one name, with its durations in seconds."""

    run: str
    device: str
    module: str | None
    op: str
    durations: Array


def ops(file: ProcessFile) -> list[OpRow]:
    """Return the rows of `ops`, what ran in the captures with the spread of its durations, those that took most."""
    durations_of: dict[tuple[str, str, str | None, str], list[Array]] = {}
    for run, timeline in session_timelines(file.session, file.notices):
        for lane in timeline.lanes:
            durations, labels = np.asarray(lane.durations, dtype="f8") * 1e-9, np.asarray(lane.label_of, dtype="i8")
            for number, (name, op) in enumerate(lane.labels):
                if op is not None:
                    key = (run.id, lane.device, timeline.ops[op].module, timeline.ops[op].name or name)
                    durations_of.setdefault(key, []).append(durations[labels == number])
    rows = (OpRow(*key, np.concatenate(arrays)) for key, arrays in durations_of.items())
    return sorted((row for row in rows if len(row.durations)), key=lambda row: -row.durations.sum())[:MOST_OPS]


def collectives(file: ProcessFile) -> Part | None:
    """Derive `collectives`, the executions of the collectives that took most time; None without any."""
    by_name = collective_events(file.index, file.session)
    longest = sorted(by_name.values(), key=lambda events: -float(np.sum(events.ends - events.starts)))
    kept = longest[:MOST_COLLECTIVES]
    if not kept:
        return None
    counts = [min(len(events.starts), MOST_INSTANCES) for events in kept]
    starts = np.concatenate([events.starts[:MOST_INSTANCES] for events in kept])
    ends = np.concatenate([events.ends[:MOST_INSTANCES] for events in kept])
    exposed = np.concatenate([events.exposed[:MOST_INSTANCES] for events in kept])
    names = [events.name for events in kept]
    return {
        "name": Encoded(names, np.repeat(np.arange(len(names)), counts)),  # type: ignore[arg-type]
        "instance": np.concatenate([np.arange(count) for count in counts]),
        "began_seconds": starts,
        "seconds": rounded(ends - starts),
        "exposed_seconds": rounded(exposed),
        **_exchange_columns([events.exchanged for events in kept], counts),
    }


def _exchange_columns(exchanges: list[Exchanged | None], counts: list[int]) -> dict[str, list[Any]]:
    """Return what each collective exchanges, repeated for each of its executions."""
    rows = [exchanged for exchanged, count in zip(exchanges, counts, strict=True) for _ in range(count)]
    return {
        "opcode": [row.opcode if row is not None else None for row in rows],
        "bytes": [row.bytes if row is not None else None for row in rows],
        "devices": [row.devices if row is not None else None for row in rows],
        "least_seconds": [row.bound_seconds if row is not None else None for row in rows],
    }


def readings(file: ProcessFile) -> list[tuple[float, DeviceReading]]:
    """Return the rows of `readings`, the readings of the devices, evenly thinned, each with its time in Unix time."""
    return [
        (round(reading.monotonic_seconds + file.clock_seconds, 3), reading)
        for of_device in file.session.readings.values()
        for reading in of_device[:: max(1, -(-len(of_device) // MOST_READINGS))]
    ]


def rounded(values: Array, bits: int = _BITS) -> Array:
    """Round the values to `bits` significant bits."""
    fraction, exponent = np.frexp(values)
    result: Array = np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits)
    return result


def _groups(count: int, most: int) -> Array:
    """Divide `count` neighbours into groups of equal size, at most `most`. Returns the first index of each group."""
    return np.arange(0, count, max(1, -(-count // most)))


def _last(groups: Array, count: int) -> Array:
    """Return the last index of each group."""
    return np.append(groups[1:], count) - 1
