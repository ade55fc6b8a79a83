"""Quantities over time in an XSpace: the bytes that allocators had given out, and samples of a device's counters.

A plane's line `_counters_` holds an event without a duration for each sample: its name is the counter's, its first
statistic the value. XLA writes there what NVIDIA's `gpu_pm_sample_counters` (xla/backends/profiler/gpu,
`PmSamples::PopulateCounterLine`) and AMD's option request, and libtpu writes power, temperature and performance
counters (`tpu_power_trace_level`, `tpu_enable_periodic_counter_sampling`); xprof draws such lines as counters
(xprof/convert/xplane_to_trace_container.cc, kCounterEventsLineName). A unit, if any, is at the end of the name: `HBM FW
Power Meter PL2(W)`.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jaxprof.trace.columns import integers, text_column
from jaxprof.trace.events import Events
from jaxprof.trace.intervals import distinct
from jaxprof.trace.line import PlaneLine
from jaxprof.trace.model import LONGEST_PS, Counter, Ints, Trace

COUNTER_LINE: Final = "_counters_"
_UNIT = re.compile(r"\(([^()]{1,16})\)\s*$")
_UNITS: Final = {"W": "watts", "Watts": "watts", "B": "bytes", "Bytes": "bytes"}
"""Units that are shown with prefixes; others stay as the profile has them."""


def sampled_counters(trace: Trace, line: PlaneLine, device: str) -> None:
    """Read the counters of a plane's `_counters_` line; samples without a number or at an impossible time are left
    out."""
    events = line.events
    values = events.first_numbers()
    times = _times(trace, line, events)
    sound = np.isfinite(values) & (np.abs(times) < LONGEST_PS)
    if dropped := len(sound) - int(np.count_nonzero(sound)):
        trace.problems.append(f"{line.plane.name}: {dropped} counter samples have no value or an impossible time")
    ids, which = distinct(events.metadata_ids)
    for number, key in enumerate(ids.tolist()):
        name = line.plane.event_name(key, "counter")
        unit = written[1] if (written := _UNIT.search(name)) else ""
        _take(trace, device, name, _UNITS.get(unit, unit), times, values, np.flatnonzero(sound & (which == number)))


def allocated_bytes(trace: Trace, line: PlaneLine, device: str) -> None:
    """Read the bytes that each allocator had given out, from the marks of allocations on a thread."""
    wanted = line.plane.stat_ids("bytes_allocated", "allocator_name")
    ids = {name: key for key, name in wanted.items()}
    if "bytes_allocated" not in ids:
        return
    events = line.some(line.rows_with([ids["bytes_allocated"]]))
    columns = events.stats(wanted)
    held = columns["bytes_allocated"]
    rows = np.flatnonzero(held.present)
    if not len(rows):
        return
    times = _times(trace, line, events)
    values = integers(line.plane, held, 0).astype(np.float64)
    names = text_column(line.plane, columns.get("allocator_name"))
    which = np.zeros(len(events), np.int64) if names is None else names.which
    for number in np.unique(which[rows]).tolist():
        name = names.texts[number] if names is not None and number >= 0 else "allocator"
        _take(trace, device, f"{name} allocated", "bytes", times, values, rows[which[rows] == number])


def _times(trace: Trace, line: PlaneLine, events: Events) -> Ints:
    return events.starts_ps + (line.timestamp_ns - trace.origin_ns) * 1000


def _take(
    trace: Trace, device: str, name: str, unit: str, times: Ints, values: NDArray[np.float64], rows: Ints
) -> None:
    if len(rows):
        rows = rows[np.argsort(times[rows], kind="stable")]
        trace.counters.append(Counter(device, name, unit, times[rows], values[rows]))
