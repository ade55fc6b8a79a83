"""How GPU kernels were launched, by which HLO op, and what GPU copies moved.

The profiler describes launches and copies in two lines of text.

`kernel_details` is `regs:32 static_shared:0 dynamic_shared:49152 grid:132,1,1 block:128,1,1 occ_pct:50` on NVIDIA, and
`grid:... block:... private_mem:0 group_mem:16384 occ_pct:0` on AMD. `memcpy_details` is `kind_src:host kind_dst:device
size:4096 dest:0 async:1`, or older, `kind:Unknown size:0 dest:512 async:1`. One real file had arbitrary bytes there: a
value beyond any hardware is unknown, and is not shown.

Library kernels (cuBLAS, cuDNN, Tensile) and kernels of older profilers may name no HLO op. The launch on the host with
the same correlation id names it: that is certain. Without one, a kernel between two kernels of one op counts as that
op's as well, and is marked: it is a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from jaxprof.events import CopyTimes, KernelLaunch
from jaxprof.trace.model import ABSENT, NO_OP, PS, Ints, Lane, Trace

_PAIR = re.compile(r"(\w+):([\w,.+-]*)")
_MOST: Final = {
    "regs": 1024,
    "static_shared": 1 << 20,
    "dynamic_shared": 1 << 20,
    "private_mem": 1 << 30,
    "group_mem": 1 << 20,
}
"""The largest plausible value, by the profiler's name: several times what any GPU has."""
_NAMES: Final = {
    "regs": "registers",
    "static_shared": "static_shared_bytes",
    "dynamic_shared": "dynamic_shared_bytes",
    "private_mem": "private_bytes",
    "group_mem": "group_bytes",
}
_MOST_BLOCKS, _MOST_THREADS = (1 << 31) - 1, 1024
"""Largest grid along one axis (in AMD files it counts threads, which also fits), and largest block in total."""
_MOST_COPIED: Final = 1 << 42
DIRECTIONS: Final = {
    ("host", "device"): "host to device",
    ("device", "host"): "device to host",
    ("device", "device"): "device to device",
    ("host", "host"): "host to host",
}
_BY_NAME: Final = (
    (re.compile(r"H(ost)?(to|2)D(evice)?", re.IGNORECASE), "host to device"),
    (re.compile(r"D(evice)?(to|2)H(ost)?", re.IGNORECASE), "device to host"),
    (re.compile(r"D(evice)?(to|2)D(evice)?", re.IGNORECASE), "device to device"),
    (re.compile(r"P2P|peer", re.IGNORECASE), "peer to peer"),
)
_CLOCK_PS: Final = 2_000_000
"""Within which the profilers of GPUs set the device's clock to the host's."""
MOST_APART_PS: Final = 10_000_000_000
"""A device may begin after the last event of its host, where a call returned before its work was done."""
_KERNEL_LAUNCH: Final = re.compile(r"(cu|cuda|hip)(Ext|Module|ExtModule)?Launch(Cooperative)?Kernel")
_COPY_NAME = re.compile(r"mem(cpy|set|cpy2D)|copyBuffer|fillBuffer", re.IGNORECASE)
_SET_NAME = re.compile(r"memset|fillBuffer", re.IGNORECASE)


def launch_details(text: str) -> KernelLaunch | None:
    """The launch in the text; None where it holds no plausible value."""
    details: dict[str, Any] = {}
    for name, value in _PAIR.findall(text):
        if name in _NAMES:
            number = _whole(value, _MOST[name])
            if number is not None:
                details[_NAMES[name]] = number
        elif name in ("grid", "block"):
            sizes = [_whole(part, _MOST_BLOCKS) for part in value.split(",")]
            threads = int(np.prod([float(size or 0) for size in sizes]))
            if len(sizes) == 3 and all(sizes) and (name == "grid" or threads <= _MOST_THREADS):
                details[name] = tuple(sizes)
        elif name == "occ_pct":
            percent = _number(value)
            if percent is not None and 0 < percent <= 100:  # AMD's profiler writes 0 for "not computed"
                details["occupancy"] = percent / 100
    return KernelLaunch(**details) if details else None


def copy_details(text: str) -> tuple[str, int | None]:
    """Direction (empty where unknown) and bytes (None where unknown) of a copy."""
    pairs = dict(_PAIR.findall(text))
    size = _whole(pairs.get("size", ""), _MOST_COPIED) or None  # a size of 0 is the profiler's "unknown"
    source, target = (_memory(pairs.get(key, "")) for key in ("kind_src", "kind_dst"))
    direction = DIRECTIONS.get((source, target), "")
    if not direction and "kind" in pairs:
        direction = _direction_in(pairs["kind"])
    return direction, size


def _memory(kind: str) -> str:
    if kind in ("device", "array", "managed"):
        return "device"
    return "host" if kind in ("host", "pinned", "pageable") else kind


def _direction_in(name: str) -> str:
    return next((direction for pattern, direction in _BY_NAME if pattern.search(name)), "")


def _whole(text: str, most: int) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 and int(text) <= most else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def copies_of(lane: Lane) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which intervals of a device's stream are copies or fills that no kernel of the program does."""
    by_name = np.array([bool(_COPY_NAME.search(name)) for name in lane.names], np.bool_)
    named = by_name[lane.name_of] if len(by_name) else np.zeros(len(lane), np.bool_)
    return named if lane.copy is None else named | (lane.copy.which != ABSENT)


def transfers_of(trace: Trace) -> list[CopyTimes]:
    """The copies on device streams, a row for each direction on each device.

    Where the device's record does not give the direction, the call on the host that launched the copy does.
    """
    calls = _host_calls(trace)
    rows: dict[tuple[str, str], CopyTimes] = {}
    for lane in trace.op_lanes():
        if lane.kind != "stream":
            continue
        for index in np.flatnonzero(copies_of(lane)).tolist():
            direction, size = _one_copy(lane, index, calls)
            key = (lane.device, direction)
            before = rows.get(key) or CopyTimes(direction=direction, device=lane.device, bytes=0)
            rows[key] = replace(
                before,
                count=before.count + 1,
                total_seconds=before.total_seconds + int(lane.durations[index]) * PS,
                bytes=None if size is None or before.bytes is None else before.bytes + size,
            )
    return list(rows.values())


def _one_copy(lane: Lane, index: int, calls: dict[int, tuple[str, str]]) -> tuple[str, int | None]:
    name = lane.names[int(lane.name_of[index])]
    direction, size = "", None
    if lane.copy is not None and lane.copy.which[index] != ABSENT:
        direction, size = copy_details(lane.copy.texts[int(lane.copy.which[index])])
    correlation = int(lane.correlation[index]) if lane.correlation is not None else ABSENT
    call, details = calls.get(correlation, ("", ""))
    if details:
        by_host, size_by_host = copy_details(details)
        direction, size = direction or by_host, size if size is not None else size_by_host
    if _SET_NAME.search(name) or _SET_NAME.search(call):
        return "fill", size
    return direction or _direction_in(name) or _direction_in(call) or "unknown", size


def _host_calls(trace: Trace) -> dict[int, tuple[str, str]]:
    """Calls on the host that copied, by correlation: the call's name and its `memcpy_details`."""
    calls: dict[int, tuple[str, str]] = {}
    for lane in trace.launches:
        if lane.correlation is None:
            continue
        copying = np.array([bool(_COPY_NAME.search(name)) for name in lane.names], np.bool_)[lane.name_of]
        for index in np.flatnonzero(copying & (lane.correlation != ABSENT)).tolist():
            details = ""
            if lane.copy is not None and lane.copy.which[index] != ABSENT:
                details = lane.copy.texts[int(lane.copy.which[index])]
            calls[int(lane.correlation[index])] = (lane.names[int(lane.name_of[index])], details)
    return calls


def launches_of(trace: Trace) -> dict[tuple[str, int], KernelLaunch]:
    """How the longest kernel of each op was launched, by device and op; ops without such details are absent."""
    longest: dict[tuple[str, int], tuple[int, str]] = {}
    for lane in trace.op_lanes():
        if lane.kind != "stream" or lane.launch is None:
            continue
        rows = np.flatnonzero((lane.op_of != NO_OP) & (lane.launch.which != ABSENT))
        for index in rows[np.argsort(lane.durations[rows], kind="stable")].tolist():
            key, duration = (lane.device, int(lane.op_of[index])), int(lane.durations[index])
            if duration >= longest.get(key, (-1, ""))[0]:
                longest[key] = (duration, lane.launch.texts[int(lane.launch.which[index])])
    return {key: details for key, (_, text) in longest.items() if (details := launch_details(text)) is not None}


def match_kernels(trace: Trace) -> None:
    """Fills `op_of` of the device's streams where the op can be found, and `guessed` where it is a guess."""
    correlations = [
        (lane.correlation[rows], lane.op_of[rows])
        for lane in trace.launches
        if lane.correlation is not None
        for rows in [np.flatnonzero((lane.correlation != ABSENT) & (lane.op_of != NO_OP))]
    ]
    keys = np.concatenate([np.zeros(0, np.int64), *(key for key, _ in correlations)])
    ops = np.concatenate([np.zeros(0, np.int64), *(op for _, op in correlations)])
    order = np.argsort(keys, kind="stable")
    keys, ops = keys[order], ops[order]
    for lane in trace.op_lanes():
        if lane.kind == "stream" and (lane.op_of == NO_OP).any():
            if len(keys) and lane.correlation is not None:
                missing = np.flatnonzero((lane.op_of == NO_OP) & (lane.correlation != ABSENT))
                at = np.minimum(np.searchsorted(keys, lane.correlation[missing]), len(keys) - 1)
                same = keys[at] == lane.correlation[missing]
                lane.op_of[missing[same]] = ops[at[same]]
            _between(lane)


def _between(lane: Lane) -> None:
    """Gives kernels between two kernels of one op to that op, as a guess."""
    order = np.argsort(lane.starts, kind="stable")
    op = lane.op_of[order]
    matched = np.flatnonzero(op != NO_OP)
    missing = np.flatnonzero((op == NO_OP) & ~copies_of(lane)[order])
    if not len(matched) or not len(missing):
        return
    after = np.searchsorted(matched, missing)
    inside = (after > 0) & (after < len(matched))
    missing, after = missing[inside], after[inside]
    before_op, after_op = op[matched[after - 1]], op[matched[after]]
    same = before_op == after_op
    rows = order[missing[same]]
    if len(rows):
        lane.op_of[rows] = before_op[same]
        lane.guessed = np.zeros(len(lane), np.bool_)
        lane.guessed[rows] = True


# -- launches on the host, and their kernels -----------------------------------------------------------------------


def correlations_of(lane: Lane) -> Ints:
    """The correlation id of each interval, or `ABSENT`."""
    return np.full(len(lane), ABSENT, np.int64) if lane.correlation is None else lane.correlation


def launches_on(trace: Trace, host: str) -> tuple[Ints, Ints, Ints]:
    """The launches of a host, in order of their correlation ids: id, begin and thread of each."""
    nothing = np.zeros(0, np.int64)
    lanes = [lane for lane in trace.launches if lane.device.rpartition("/")[0] == host]
    ids = np.concatenate([nothing, *(correlations_of(lane) for lane in lanes)])
    starts = np.concatenate([nothing, *(lane.starts for lane in lanes)])
    threads = np.concatenate([nothing, *(np.full(len(lane), lane.thread, np.int64) for lane in lanes)])
    rows = np.flatnonzero(ids != ABSENT)
    rows = rows[np.lexsort((starts[rows], ids[rows]))]
    return ids[rows], starts[rows], threads[rows]


def hosts_of(trace: Trace) -> list[str]:
    """The hosts whose devices ran something; `""` where one host is open alone."""
    return sorted({lane.device.rpartition("/")[0] for lane in trace.op_lanes()})


@dataclass(frozen=True, slots=True)
class LaunchOutcome:
    """The launches of the hosts beside the kernels of their devices, where both have correlation ids."""

    launches: int = 0
    """Launches of kernels."""
    lost: int = 0
    """Those whose kernel is not in the profile."""
    kernels: int = 0
    """Kernels whose launch is in the profile."""
    early: int = 0
    """Those that begin before their launch, by more than clocks are set to each other."""
    early_by_ps: int = 0
    """The most by which one of them does."""

    def __add__(self, other: LaunchOutcome) -> LaunchOutcome:
        return LaunchOutcome(
            self.launches + other.launches,
            self.lost + other.lost,
            self.kernels + other.kernels,
            self.early + other.early,
            max(self.early_by_ps, other.early_by_ps),
        )


def launched_on(trace: Trace, host: str) -> LaunchOutcome:
    """What became of the launches of one host; all 0 where launches or kernels have no ids."""
    ids, moments, _ = launches_on(trace, host)
    lanes = [lane for lane in trace.op_lanes() if lane.kind == "stream" and lane.device.rpartition("/")[0] == host]
    nothing = np.zeros(0, np.int64)
    kernels = np.concatenate([nothing, *(correlations_of(lane) for lane in lanes)])
    starts = np.concatenate([nothing, *(lane.starts for lane in lanes)])[kernels != ABSENT]
    kernels = kernels[kernels != ABSENT]
    if not len(ids) or not len(kernels):
        return LaunchOutcome()
    of_kernels = _kernel_launches(trace, host)
    at = np.minimum(np.searchsorted(ids, kernels), len(ids) - 1)
    known = ids[at] == kernels
    early = moments[at[known]] - starts[known]
    return LaunchOutcome(
        launches=len(of_kernels),
        lost=int(np.count_nonzero(~np.isin(of_kernels, kernels))),
        kernels=int(np.count_nonzero(known)),
        early=int(np.count_nonzero(early > _CLOCK_PS)),
        early_by_ps=max(0, int(early.max(initial=0))),
    )


def _kernel_launches(trace: Trace, host: str) -> Ints:
    """The ids of the launches of kernels: other calls of the driver have ids, too, and leave nothing on the device."""
    found = [np.zeros(0, np.int64)]
    for lane in trace.launches:
        if lane.device.rpartition("/")[0] == host:
            named = np.array([bool(_KERNEL_LAUNCH.match(name)) for name in lane.names], np.bool_)[lane.name_of]
            ids = correlations_of(lane)
            found.append(ids[(named | (lane.op_of != NO_OP)) & (ids != ABSENT)])
    return np.concatenate(found)


def spans_apart_ps(trace: Trace, host: str) -> int:
    """Time between what a host recorded and what its accelerators did, where these do not meet at all; else 0."""
    spans = []
    for on_host in (True, False):
        lanes = [
            lane
            for lane in trace.lanes
            if lane.device.rpartition("/")[0] == host and len(lane)
            if (lane.kind == "host" if on_host else lane.kind in ("stream", "ops"))
        ]
        if not lanes:
            return 0
        spans.append((min(int(lane.starts.min()) for lane in lanes), max(int(lane.ends.max()) for lane in lanes)))
    (first, until), (begin, end) = spans
    return max(begin - until, first - end, 0)


def clocks_disagree(trace: Trace, host: str) -> bool:
    """Whether times of a host and of its devices evidently cannot be compared."""
    return launched_on(trace, host).early > 0 or spans_apart_ps(trace, host) > MOST_APART_PS
