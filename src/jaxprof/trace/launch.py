"""Derive how GPU kernels were launched, by which HLO op, and what GPU copies moved.

The profiler describes launches and copies in two lines of text.

`kernel_details` is `regs:32 static_shared:0 dynamic_shared:49152 grid:132,1,1 block:128,1,1 occ_pct:50` on NVIDIA, and
`grid:... block:... private_mem:0 group_mem:16384 occ_pct:0` on AMD. `memcpy_details` is `kind_src:host kind_dst:device
size:4096 dest:0 async:1`, or in older profiles `kind:Unknown size:0 dest:512 async:1`. One real file had arbitrary
bytes there, so a value beyond any hardware is treated as unknown and not shown.

Library kernels (cuBLAS, cuDNN, Tensile) and kernels of older profilers may name no HLO op. The launch on the host with
the same correlation id names it.

Kernels of a CUDA graph that was made before the profiler started all name the graph (`command_buffer_1`), or the loop
or call that XLA made it of. XLA calls a kernel after its instruction, so the kernel's own name gives the op.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from jaxprof.base.errors import HloError
from jaxprof.base.text import number, whole_number
from jaxprof.base.units import counted, seconds
from jaxprof.events import CopyTimes, KernelLaunch
from jaxprof.hlo.kernels import CONTROL, FREE
from jaxprof.hlo.text.proto import module_message
from jaxprof.trace.intervals import distinct, join, positions_in
from jaxprof.trace.model import (
    ABSENT,
    NO_OP,
    PS,
    Flags,
    Ints,
    Lane,
    Program,
    ProgramProto,
    Trace,
    program_proto,
    span_of,
)

_PAIR = re.compile(r"(\w+):([\w,.+-]*)")
_FIGURES = {
    "regs": ("registers", 1024),
    "static_shared": ("static_shared_bytes", 1 << 20),
    "dynamic_shared": ("dynamic_shared_bytes", 1 << 20),
    "private_mem": ("private_bytes", 1 << 30),
    "group_mem": ("group_bytes", 1 << 20),
}
"""Field of `KernelLaunch` and its largest plausible value, several times that of any GPU, by the profiler's name."""
_MOST_BLOCKS, _MOST_THREADS = (1 << 31) - 1, 1024
"""Largest grid along one axis (in AMD files it counts threads, which also fits), and most threads of a block."""
_MEMORY = dict.fromkeys(("device", "array", "managed"), "device") | dict.fromkeys(
    ("host", "pinned", "pageable"), "host"
)
_BY_NAME = (
    (re.compile(r"H(ost)?(to|2)D(evice)?", re.IGNORECASE), "host to device"),
    (re.compile(r"D(evice)?(to|2)H(ost)?", re.IGNORECASE), "device to host"),
    (re.compile(r"D(evice)?(to|2)D(evice)?", re.IGNORECASE), "device to device"),
    (re.compile(r"P2P|peer", re.IGNORECASE), "peer to peer"),
)
_CLOCK_PS = 2_000_000
"""GPU profilers align the clocks of device and host to within this time."""
_MOST_APART_PS = 10_000_000_000
"""Longest plausible time from the last event of a host to the work of its device, if a call returned before its work
was done.
"""
_KERNEL_LAUNCH = re.compile(r"(cu|cuda|hip)((Ext|Module|ExtModule)?Launch(Cooperative)?Kernel|GraphLaunch)")
_OTHER_CALL = re.compile(r"(cu|cuda|hip)[A-Z]")
"""Other calls of the driver: `cuMemHostAlloc`."""
_COPY_NAME = re.compile(r"mem(cpy|set|cpy2D)|copyBuffer|fillBuffer", re.IGNORECASE)
_COMMAND_BUFFER = re.compile(r"command_buffer")
_NOT_IN_KERNEL_NAMES = re.compile(r"\W", re.ASCII)
_SET_NAME = re.compile(r"memset|fillBuffer", re.IGNORECASE)


def launch_details(text: str) -> KernelLaunch | None:
    """Return the launch that the text describes; None if it holds no plausible value."""
    details: dict[str, Any] = {}
    for name, value in _PAIR.findall(text):
        if name in _FIGURES:
            ours, most = _FIGURES[name]
            if (figure := _whole(value, most)) is not None:
                details[ours] = figure
        elif name in ("grid", "block"):
            sizes = [_whole(part, _MOST_BLOCKS) for part in value.split(",")]
            threads = int(np.prod([float(size or 0) for size in sizes]))
            if len(sizes) == 3 and all(sizes) and (name == "grid" or threads <= _MOST_THREADS):
                details[name] = tuple(sizes)
        elif name == "occ_pct":
            percent = number(value)
            if percent is not None and 0 < percent <= 100:  # AMD's profiler writes 0 for "not computed"
                details["occupancy"] = percent / 100
    return KernelLaunch(**details) if details else None


def copy_details(text: str) -> tuple[str, int | None]:
    """Return direction (empty if unknown) and bytes (None if unknown) of a copy."""
    pairs = dict(_PAIR.findall(text))
    size = _whole(pairs.get("size", ""), 1 << 42) or None  # the profiler writes a size of 0 for "unknown"
    source, target = (_MEMORY.get(pairs.get(key, "")) for key in ("kind_src", "kind_dst"))
    return f"{source} to {target}" if source and target else _direction_in(pairs.get("kind", "")), size


def _direction_in(name: str) -> str:
    return next((direction for pattern, direction in _BY_NAME if pattern.search(name)), "")


def _whole(text: str, most: int) -> int | None:
    found = whole_number(text)
    return found if found is not None and found <= most else None


def copies_of(lane: Lane) -> Flags:
    """Return which intervals of a device's stream are copies or fills that no kernel of the program does."""
    named = lane.matching(_COPY_NAME.search)
    return named if lane.copy is None else named | (lane.copy.which != ABSENT)


def transfers_of(trace: Trace) -> list[CopyTimes]:
    """Return the copies on device streams, one row for each direction on each device.

    If the device's record does not give the direction, the call on the host that launched the copy does.
    """
    calls: dict[int, tuple[str, str]] = {}
    """Name and `memcpy_details` of each host call that copied, by correlation id."""
    for lane in trace.launches:
        copying = lane.matching(_COPY_NAME.search) & (lane.correlations != ABSENT)
        for index in np.flatnonzero(copying).tolist():
            details = lane.copy.at(index) if lane.copy is not None else ""
            calls[int(lane.correlations[index])] = (lane.names[int(lane.name_of[index])], details)
    rows: dict[tuple[str, str], CopyTimes] = {}
    for lane in trace.streams:
        for index in np.flatnonzero(copies_of(lane)).tolist():
            name = lane.names[int(lane.name_of[index])]
            direction, size = copy_details(lane.copy.at(index)) if lane.copy is not None else ("", None)
            correlation = int(lane.correlation[index]) if lane.correlation is not None else ABSENT
            call, details = calls.get(correlation, ("", ""))
            if details:
                by_host, size_by_host = copy_details(details)
                direction, size = direction or by_host, size if size is not None else size_by_host
            if _SET_NAME.search(name) or _SET_NAME.search(call):
                direction = "fill"
            direction = direction or _direction_in(name) or _direction_in(call) or "unknown"
            key = (lane.device, direction)
            before = rows.get(key) or CopyTimes(direction=direction, device=lane.device, bytes=0)
            rows[key] = replace(
                before,
                count=before.count + 1,
                total_seconds=before.total_seconds + int(lane.durations[index]) * PS,
                bytes=None if size is None or before.bytes is None else before.bytes + size,
            )
    return list(rows.values())


def launches_of(trace: Trace) -> dict[tuple[str, int], KernelLaunch]:
    """Return how the longest kernel of each op was launched, by device and op; ops without such details are absent."""
    longest: dict[tuple[str, int], tuple[int, str]] = {}
    for lane in trace.streams:
        if lane.launch is None:
            continue
        rows = np.flatnonzero((lane.op_of != NO_OP) & (lane.launch.which != ABSENT))
        rows = rows[np.argsort(lane.durations[rows], kind="stable")]
        # The last row of an op is its longest.
        for op, index in dict(zip(lane.op_of[rows].tolist(), rows.tolist(), strict=True)).items():
            key, duration = (lane.device, op), int(lane.durations[index])
            if duration >= longest.get(key, (-1, ""))[0]:
                longest[key] = (duration, lane.launch.at(index))
    return {key: details for key, (_, text) in longest.items() if (details := launch_details(text)) is not None}


def match_kernels(trace: Trace) -> None:
    """Set `op_of` on the device's streams where the op can be found."""
    launches = [lane.select((lane.correlations != ABSENT) & (lane.op_of != NO_OP)) for lane in trace.launches]
    keys, ops = join(lane.correlations for lane in launches), join(lane.op_of for lane in launches)
    order = np.argsort(keys, kind="stable")
    keys, ops = keys[order], ops[order]
    for lane in trace.streams:
        missing = np.flatnonzero(lane.op_of == NO_OP)
        at, known = positions_in(lane.correlations[missing], keys)
        lane.op_of[missing[known]] = ops[at[known]]


def split_graphs(trace: Trace) -> None:
    """Give each kernel of a CUDA graph the op that its own name gives, if its op is the whole graph.

    A kernel that no instruction is named like becomes an op of its own in `Trace.nameless`. A copy keeps no op.
    """
    numbers = {op: number for number, op in enumerate(trace.ops)}
    known: dict[Program, dict[str, str] | None] = {}
    for lane in trace.streams:
        if lane.in_graph is None:
            continue
        rows = np.flatnonzero(lane.in_graph & (lane.op_of != NO_OP))
        pairs, which = distinct(lane.op_of[rows] * len(lane.names) + lane.name_of[rows])
        ops = pairs // len(lane.names)
        for index, pair in enumerate(pairs.tolist()):
            op, kernel = trace.ops[ops[index]], lane.names[pair % len(lane.names)]
            program = (op.module, op.program)
            if program not in known:
                known[program] = _kernel_names(program_proto(trace, *program))
            names = known[program]
            if not _COMMAND_BUFFER.match(op.name) if names is None else _kernel_name(op.name) in names:
                continue
            if _COPY_NAME.search(kernel):
                ops[index] = NO_OP
                continue
            instruction = (names or {}).get(kernel)
            ops[index] = numbers.setdefault(replace(op, name=instruction or kernel), len(numbers))
            if not instruction:
                trace.nameless.add(int(ops[index]))
            else:
                trace.renamed += int(np.count_nonzero(which == index))
        lane.op_of[rows] = ops[which]
    trace.ops = list(numbers)


def _kernel_names(held: ProgramProto | None) -> dict[str, str] | None:
    """Return the module's instructions that can be kernels, by the name that XLA gives the kernel, empty if it is that
    of several; None without a module that can be read."""
    try:
        computations = module_message(held.proto).messages(3) if held is not None else []
    except HloError:
        return None
    found: dict[str, str] = {}
    for instruction in (each for computation in computations for each in computation.messages(2)):
        if instruction.text(2) not in CONTROL and instruction.text(2) not in FREE:
            kernel = _kernel_name(instruction.text(1))
            found[kernel] = "" if kernel in found else instruction.text(1)
    return found or None


def _kernel_name(instruction: str) -> str:
    return _NOT_IN_KERNEL_NAMES.sub("_", instruction)


# -- launches on the host, and their kernels -----------------------------------------------------------------------


def launches_on(trace: Trace) -> tuple[Ints, Ints, Ints]:
    """Return id, start and thread of each launch on the host, ordered by correlation id."""
    lanes = trace.launches
    ids = join(lane.correlations for lane in lanes)
    starts = join(lane.starts for lane in lanes)
    threads = join(np.full(len(lane), lane.thread, np.int64) for lane in lanes)
    rows = np.flatnonzero(ids != ABSENT)
    rows = rows[np.lexsort((starts[rows], ids[rows]))]
    return ids[rows], starts[rows], threads[rows]


def count_lost_launches(trace: Trace) -> tuple[int, int]:
    """Return how many kernel launches there were, and how many of them left no kernel; 0 if kernels have no ids.

    Newer profilers call a launch after the kernel. Other calls of the driver have ids as well, but leave nothing on the
    device.
    """
    kernels, _ = _kernels_with_launch(trace)
    if not len(kernels):
        return 0, 0

    def launches(name: str) -> bool:
        return bool(_KERNEL_LAUNCH.match(name)) or not (_OTHER_CALL.match(name) or _COPY_NAME.search(name))

    ids = join(lane.correlations[lane.matching(launches) | (lane.op_of != NO_OP)] for lane in trace.launches)
    ids = ids[ids != ABSENT]
    return len(ids), int(np.count_nonzero(~np.isin(ids, kernels)))


def _kernels_with_launch(trace: Trace) -> tuple[Ints, Ints]:
    """Return correlation id and start of each kernel that has an id."""
    kernels, starts = join(lane.correlations for lane in trace.streams), join(lane.starts for lane in trace.streams)
    return kernels[kernels != ABSENT], starts[kernels != ABSENT]


def clock_fault(trace: Trace) -> str:
    """Return what shows that the clocks of the host and its devices disagree, so that their times cannot be compared;
    empty if nothing does."""
    kernels, starts = _kernels_with_launch(trace)
    ids, moments, _ = launches_on(trace)
    at, known = positions_in(kernels, ids)
    early = moments[at[known]] - starts[known]
    if count := int(np.count_nonzero(early > _CLOCK_PS)):
        of_kernels = counted(len(early), "kernel")
        return f"{count} of {of_kernels} begin before their launch, by up to {seconds(int(early.max()) * PS)}"
    recorded = span_of(trace.threads)
    ran = span_of(lane for lane in trace.lanes if lane.kind in ("stream", "ops"))
    gap = max(ran[0] - recorded[1], recorded[0] - ran[1]) if recorded is not None and ran is not None else 0
    if gap > _MOST_APART_PS:
        return f"what the host recorded and what its devices did lie {seconds(gap * PS)} apart"
    return ""
