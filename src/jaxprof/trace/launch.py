"""How GPU kernels were launched and what GPU copies moved, from the profiler's two lines of text.

`kernel_details` is `regs:32 static_shared:0 dynamic_shared:49152 grid:132,1,1 block:128,1,1 occ_pct:50` on NVIDIA, and
`grid:... block:... private_mem:0 group_mem:16384 occ_pct:0` on AMD. `memcpy_details` is
`kind_src:host kind_dst:device size:4096 dest:0 async:1`, or older, `kind:Unknown size:0 dest:512 async:1`. A file was
seen with arbitrary bytes in there: a value outside of what hardware can do is unknown, and is not shown.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from jaxprof.trace.model import ABSENT, NO_OP, Lane, Trace

PS: Final = 1e-12
_PAIR = re.compile(r"(\w+):([\w,.+-]*)")
_MOST: Final = {
    "regs": 1024,
    "static_shared": 1 << 20,
    "dynamic_shared": 1 << 20,
    "private_mem": 1 << 30,
    "group_mem": 1 << 20,
}
"""The largest value that is believed, by the profiler's name: several times what any GPU has."""
_NAMES: Final = {
    "regs": "registers",
    "static_shared": "static_shared_bytes",
    "dynamic_shared": "dynamic_shared_bytes",
    "private_mem": "private_bytes",
    "group_mem": "group_bytes",
}
_MOST_BLOCKS, _MOST_THREADS = (1 << 31) - 1, 1024
"""Of a grid along one axis (in AMD files it counts threads, which also fits), and of a block in all."""
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
_COPY_NAME = re.compile(r"mem(cpy|set|cpy2D)|copyBuffer|fillBuffer", re.IGNORECASE)
_SET_NAME = re.compile(r"memset|fillBuffer", re.IGNORECASE)


def launch_details(text: str) -> dict[str, Any]:
    """The launch as JSON: grid and block (3 numbers each), registers, shared memory in bytes, occupancy in 0..1."""
    found: dict[str, Any] = {}
    for name, value in _PAIR.findall(text):
        if name in _NAMES:
            number = _whole(value, _MOST[name])
            if number is not None:
                found[_NAMES[name]] = number
        elif name in ("grid", "block"):
            sizes = [_whole(part, _MOST_BLOCKS) for part in value.split(",")]
            threads = int(np.prod([float(size or 0) for size in sizes]))
            if len(sizes) == 3 and all(sizes) and (name == "grid" or threads <= _MOST_THREADS):
                found[name] = sizes
        elif name == "occ_pct":
            percent = _number(value)
            if percent is not None and 0 < percent <= 100:  # AMD's profiler writes 0 for "not computed"
                found["occupancy"] = percent / 100
    return found


def copy_details(text: str) -> tuple[str, int | None]:
    """Direction (empty where it is not said) and bytes (None where they are not) of a copy."""
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
    found = by_name[lane.name_of] if len(by_name) else np.zeros(len(lane), np.bool_)
    return found if lane.copy is None else found | (lane.copy.which != ABSENT)


def transfers_of(trace: Trace) -> list[dict[str, Any]]:
    """The copies on device streams: rows of direction, device, count, total_seconds, bytes (None where unknown).

    Where the device's record does not say which way it went, the call on the host that launched it does.
    """
    calls = _host_calls(trace)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for lane in trace.lanes:
        if lane.kind != "stream":
            continue
        for index in np.flatnonzero(copies_of(lane)).tolist():
            direction, size = _one_copy(lane, index, calls)
            row = rows.setdefault(
                (lane.device, direction),
                {"direction": direction, "device": lane.device, "count": 0, "total_seconds": 0.0, "bytes": 0},
            )
            row["count"] += 1
            row["total_seconds"] += int(lane.durations[index]) * PS
            row["bytes"] = None if size is None or row["bytes"] is None else row["bytes"] + size
    return list(rows.values())


def _one_copy(lane: Lane, index: int, calls: dict[int, tuple[str, str]]) -> tuple[str, int | None]:
    name = lane.names[int(lane.name_of[index])]
    direction, size = "", None
    if lane.copy is not None and lane.copy.which[index] != ABSENT:
        direction, size = copy_details(lane.copy.texts[int(lane.copy.which[index])])
    correlation = int(lane.correlation[index]) if lane.correlation is not None else ABSENT
    call, said = calls.get(correlation, ("", ""))
    if said:
        by_host, size_by_host = copy_details(said)
        direction, size = direction or by_host, size if size is not None else size_by_host
    if _SET_NAME.search(name) or _SET_NAME.search(call):
        return "fill", size
    return direction or _direction_in(name) or _direction_in(call) or "unknown", size


def _host_calls(trace: Trace) -> dict[int, tuple[str, str]]:
    """Calls on the host that copied, by correlation: the call's name and its `memcpy_details`."""
    found: dict[int, tuple[str, str]] = {}
    for lane in trace.lanes:
        if lane.kind != "host" or lane.correlation is None:
            continue
        copying = np.array([bool(_COPY_NAME.search(name)) for name in lane.names], np.bool_)[lane.name_of]
        for index in np.flatnonzero(copying & (lane.correlation != ABSENT)).tolist():
            said = ""
            if lane.copy is not None and lane.copy.which[index] != ABSENT:
                said = lane.copy.texts[int(lane.copy.which[index])]
            found[int(lane.correlation[index])] = (lane.names[int(lane.name_of[index])], said)
    return found


def launches_of(trace: Trace) -> dict[tuple[str, int], dict[str, Any]]:
    """How the longest kernel of each op was launched, by device and op; nothing for ops without such details."""
    longest: dict[tuple[str, int], tuple[int, str]] = {}
    for lane in trace.lanes:
        if lane.kind != "stream" or lane.launch is None:
            continue
        rows = np.flatnonzero((lane.op_of != NO_OP) & (lane.launch.which != ABSENT))
        for index in rows[np.argsort(lane.durations[rows], kind="stable")].tolist():
            key, duration = (lane.device, int(lane.op_of[index])), int(lane.durations[index])
            if duration >= longest.get(key, (-1, ""))[0]:
                longest[key] = (duration, lane.launch.texts[int(lane.launch.which[index])])
    return {key: details for key, (_, text) in longest.items() if (details := launch_details(text))}
