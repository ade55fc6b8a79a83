"""The columns of a roll-up, derived from the session of one process."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jaxprof.analysis.arrivals import collective_events
from jaxprof.analysis.jobs.step_grid import OWN_PARTS, ColumnSums, add_trace, extent_of
from jaxprof.analysis.programs.verdict import PARTS
from jaxprof.analysis.timeline import session_timelines
from jaxprof.facts import Encoded, Part
from jaxprof.facts.processes import PART_SECONDS

if TYPE_CHECKING:
    from jaxprof.analysis.arrivals import Exchanged
    from jaxprof.analysis.jobs.figures import Array
    from jaxprof.facts.processes import ProcessFile

WORKED: Final = "worked_seconds"
PART_COLUMNS: Final = {part: PART_SECONDS[part].key for part in PARTS}
"""The column of each part of the loop."""
MOST_STEPS: Final = 1 << 14
"""Rows of `steps`: more of them are put together by twos, by threes and so on."""
MOST_WINDOWS: Final = 1 << 9
"""Rows of `parts`."""
MOST_BLOCKS: Final = 1 << 9
"""Rows of `overview`."""
MOST_FUNCTIONS: Final = 200
MOST_OPS: Final = 200
MOST_READINGS: Final = 256
"""Of one device."""
MOST_COLLECTIVES: Final = 4
"""Different ones."""
MOST_INSTANCES: Final = 1000
"""Of one collective."""
_BITS: Final = 14
"""Times are rounded to so many significant bits, 0.006 %: the rest is noise of clocks, which does not compress."""
_MILLISECOND: Final = 1e3


def window_count(file: ProcessFile) -> int:
    """Rows of `parts`."""
    return len(_groups(len(file.trace.windows), MOST_WINDOWS)) if file.trace is not None else 0


def stored_figures(file: ProcessFile) -> str:
    """The figures as JSON, without the sample windows, which are the table `parts`, and without the folder, which may
    be another one where they are read."""
    import msgspec

    return msgspec.json.encode(replace(file.figures, windows=(), path=file.path.name)).decode()


def steps(file: ProcessFile) -> Part | None:
    """The timed passes of the hot loop."""
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
    """The loop in at most `MOST_BLOCKS` blocks of equal size, of `2 ** n` steps each."""
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
    """The sample windows of the hot loop."""
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


def compiles(file: ProcessFile) -> Part | None:
    """The compile ledger by function, those that cost most."""
    functions = file.result.functions[:MOST_FUNCTIONS] if file.result is not None else ()
    if not functions:
        return None
    reasons = [each.reasons[0] if each.reasons else None for each in functions]
    return {
        "function": [each.function for each in functions],
        "defined_at": [each.defined_at.text if each.defined_at else None for each in functions],
        "called_from": [each.called_from.text if each.called_from else None for each in functions],
        "count": [each.count for each in functions],
        "again": [sum(reason.count for reason in each.reasons if reason.code != "first") for each in functions],
        "seconds": [each.seconds for each in functions],
        "reason_code": [reason.code if reason is not None else None for reason in reasons],
        "reason": [reason.text if reason is not None else None for reason in reasons],
        "library": [each.library or each.op_by_op for each in functions],
    }


def ops(file: ProcessFile) -> Part | None:
    """What ran in the captures, with the spread of its durations; those that took most."""
    found: dict[tuple[str, str, str | None, str], list[Array]] = {}
    for run, timeline in session_timelines(file.session, file.notices):
        for lane in timeline.lanes:
            durations, labels = np.asarray(lane.durations, dtype="f8") * 1e-9, np.asarray(lane.label_of, dtype="i8")
            for number, (name, op) in enumerate(lane.labels):
                if op is not None:
                    key = (run.id, lane.device, timeline.ops[op].module, timeline.ops[op].name or name)
                    found.setdefault(key, []).append(durations[labels == number])
    taken = {key: np.concatenate(each) for key, each in found.items()}
    most = sorted((key for key in taken if len(taken[key])), key=lambda key: -taken[key].sum())[:MOST_OPS]
    if not most:
        return None
    runs, devices, modules, names = zip(*most, strict=True)
    return {
        "run": runs,
        "device": devices,
        "module": modules,
        "op": names,
        "count": [len(taken[key]) for key in most],
        "seconds": [float(taken[key].sum()) for key in most],
        "p50_seconds": [float(np.median(taken[key])) for key in most],
        "p95_seconds": [float(np.quantile(taken[key], 0.95)) for key in most],
    }


def collectives(file: ProcessFile) -> Part | None:
    """The executions of the collectives that took most time."""
    found = collective_events(file.index, file.session)
    names = sorted(found, key=lambda name: -float(np.sum(found[name].ends - found[name].starts)))[:MOST_COLLECTIVES]
    if not names:
        return None
    kept = [slice(0, min(len(found[name].starts), MOST_INSTANCES)) for name in names]
    starts = np.concatenate([found[name].starts[rows] for name, rows in zip(names, kept, strict=True)])
    ends = np.concatenate([found[name].ends[rows] for name, rows in zip(names, kept, strict=True)])
    return {
        "name": Encoded(names, np.repeat(np.arange(len(names)), [rows.stop for rows in kept])),  # type: ignore[arg-type]
        "instance": np.concatenate([np.arange(rows.stop) for rows in kept]),
        "began_seconds": starts,
        "seconds": rounded(ends - starts),
        "exposed_seconds": rounded(
            np.concatenate([found[name].exposed[rows] for name, rows in zip(names, kept, strict=True)])
        ),
        **_exchanged([found[name].exchanged for name in names], [rows.stop for rows in kept]),
    }


def _exchanged(of_names: list[Exchanged | None], counts: list[int]) -> dict[str, list[Any]]:
    """What is exchanged, in each row the same of one collective."""
    every = [each for each, count in zip(of_names, counts, strict=True) for _ in range(count)]
    return {
        "opcode": [each.opcode if each is not None else None for each in every],
        "bytes": [each.bytes if each is not None else None for each in every],
        "devices": [each.devices if each is not None else None for each in every],
        "least_seconds": [each.bound_seconds if each is not None else None for each in every],
    }


def readings(file: ProcessFile) -> Part | None:
    """Readings of the devices, thinned."""
    offset = file.clock_seconds
    kept = [
        reading
        for of_device in file.session.readings.values()
        for reading in of_device[:: max(1, -(-len(of_device) // MOST_READINGS))]
    ]
    if not kept:
        return None
    columns: dict[str, list[Any]] = {
        "device": [each.device for each in kept],
        "at_seconds": [round(each.monotonic_seconds + offset, 3) for each in kept],
        "memory_bytes": [each.memory_used_bytes for each in kept],
        "throttled": [each.throttle_reasons or None for each in kept],
    }
    for name in ("utilisation", "power_watts", "temperature_celsius", "clock_hertz"):
        columns[name] = [getattr(each, name) for each in kept]
    return columns


def rounded(values: Array, bits: int = _BITS) -> Array:
    """The values with so many significant bits."""
    fraction, exponent = np.frexp(values)
    found: Array = np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits)
    return found


def _groups(count: int, most: int) -> Array:
    """Where groups of as many neighbours begin as leave at most so many groups."""
    return np.arange(0, count, max(1, -(-count // most)))


def _last(groups: Array, count: int) -> Array:
    """The last one of each group."""
    return np.append(groups[1:], count) - 1
