"""Read a profile from disk: the `.xplane.pb` that JAX writes, under any name. Files are never written.

The traces of several hosts become one: on one clock, with the host's name before each device.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from jaxprof.errors import FileRefusedError, system_words
from jaxprof.files import open_regular, unpacked
from jaxprof.limits import FILE
from jaxprof.trace.folders import ProfileRun, choose, xplanes_in
from jaxprof.trace.lanes import lanes_of
from jaxprof.trace.model import NO_OP, Lane, OpNumbers, Trace
from jaxprof.trace.xspace import PADDING, parse_xspace

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 22
_READ: Final = 0.1
"""Assumed share of reading from disk in the work on a file."""


def read_profile(path: Path) -> Trace:
    """Return the trace of the newest recording at `path`, hosts joined on one clock. Raises FileRefusedError."""
    return read_chosen(choose(path))


def read_chosen(chosen: ProfileRun, advance: Callable[[float], None] = lambda share: None) -> Trace:
    """Return the trace of a recording. `advance` is called regularly with the share that is done, and may raise.

    A host that cannot be read is left out and named in `problems` if others can. Raises FileRefusedError.
    """
    traces: list[tuple[str, Trace]] = []
    problems: list[str] = []
    sizes = [max(1, host.bytes) for host in chosen.hosts]
    done = 0
    for host, size in zip(chosen.hosts, sizes, strict=True):
        before, share = done / sum(sizes), size / sum(sizes)
        done += size
        advance(before)
        try:
            traces.append((host.host, read_file(host.path, partial(_within, advance, before, share))))
        except FileRefusedError as error:
            if len(chosen.hosts) == 1:
                raise
            problems.append(error.what)
    if not traces:
        raise FileRefusedError(f"no host's profile in run {chosen.name} can be read: {problems[0]}")
    trace = together(traces)
    trace.problems += problems
    return trace


def _within(advance: Callable[[float], None], before: float, share: float, done: float) -> None:
    """Report the progress of a part that begins at `before` and is a `share` of the whole."""
    advance(before + share * done)


def read_file(path: Path, advance: Callable[[float], None] = lambda share: None) -> Trace:
    """Return the trace in one file of any name; `advance` as for `read_chosen`. Raises FileRefusedError."""
    try:
        with open_regular(path) as opened:
            size = os.fstat(opened.fileno()).st_size
            if size > FILE.most:
                raise FileRefusedError(f"{path} has {FILE.words}", f"Record fewer steps. {FILE.hint}")
            raw = bytearray(size + PADDING)
            size = _filled(opened, memoryview(raw)[:size], partial(_within, advance, 0.0, _READ))
    except OSError as error:
        raise FileRefusedError(f"{path} cannot be read: {system_words(error)}") from error
    problem, length = "", size
    if raw.startswith(_GZIP):
        raw, problem = _unpacked(raw[:size], path)
        advance(_READ)
        length = len(raw)
        raw += bytes(PADDING)
    if raw[:64].lstrip().startswith((b"{", b"[")):
        raise _not_json(path)
    trace = lanes_of(parse_xspace(raw, str(path), length), partial(_within, advance, _READ, 1 - _READ))
    trace.sizes[str(path)] = size
    if problem:
        trace.problems.append(problem)
    return trace


def _not_json(path: Path) -> FileRefusedError:
    """Refuse a Chrome trace, and name the profile that JAX wrote beside it, if it is there."""
    host = path.name.partition(".trace.json")[0]
    try:
        beside = sorted(xplanes_in(path.absolute().parent), key=lambda file: not file.name.startswith(host))
    except OSError:  # a folder that may be entered, but not listed
        beside = []
    return FileRefusedError(
        f"{path} is JSON: jaxprof does not read Chrome traces",
        f"Open {beside[0]}, which is beside it."
        if beside and "trace.json" in path.name
        else "A profile is the .xplane.pb that JAX writes beside a .trace.json.gz.",
    )


def _filled(opened: BinaryIO, room: memoryview, advance: Callable[[float], None]) -> int:
    """Read until the buffer is full or the file ends, and return the number of bytes."""
    at = 0
    while at < len(room) and (read := opened.readinto(room[at : at + _CHUNK])):  # type: ignore[attr-defined]
        at += read
        advance(at / len(room))
    return at


def _unpacked(raw: bytearray, path: Path) -> tuple[bytearray, str]:
    """Return the content of a gzip file, as far as it can be read, and what is wrong with it. Raises
    FileRefusedError."""
    content = bytearray()
    try:
        for piece in unpacked(raw, str(path)):
            content += piece
    except zlib.error as error:
        return content, f"{path} is damaged as a gzip file: {error}"
    except EOFError:
        return content, f"{path} is truncated: the gzip file has no end"
    return content, ""


PS_IN_NS = 1000


def together(traces: Sequence[tuple[str, Trace]]) -> Trace:
    """Return the trace of all these hosts; the trace of a single host is returned unchanged.

    The wall clocks at which the recordings began align them. If one host lacks it, each trace begins at 0, and the
    result has no `started_unix_ns`.
    """
    if len(traces) == 1:
        host, only = traces[0]
        only.hosts = only.hosts or [host]
        return only
    starts = [trace.started_unix_ns for _, trace in traces]
    stated = [start for start in starts if start is not None]
    first = min(stated) if len(stated) == len(starts) else None
    ops: OpNumbers = {}
    joined = Trace(started_unix_ns=first, origin_ns=traces[0][1].origin_ns)
    for host, trace in traces:
        shift_ns = 0
        if first is not None and trace.started_unix_ns is not None:
            shift_ns = trace.started_unix_ns - first + trace.origin_ns - joined.origin_ns
        _take(joined, host, trace, shift_ns * PS_IN_NS, ops)
    joined.ops = list(ops)
    return joined


def _take(joined: Trace, host: str, trace: Trace, shift_ps: int, ops: OpNumbers) -> None:
    numbers = np.array([*(ops.setdefault(op, len(ops)) for op in trace.ops), NO_OP], np.int64)

    def moved(lanes: Iterable[Lane]) -> list[Lane]:
        return [
            replace(
                lane,
                device=f"{host}/{lane.device}",
                starts=lane.starts + shift_ps,
                op_of=numbers[lane.op_of],  # NO_OP is the last element
            )
            for lane in lanes
        ]

    def rest() -> list[Lane]:
        ready, read, problems = len(trace.ready), trace.read, len(trace.problems)
        lanes = moved(trace.lanes[ready:])
        joined.read += trace.read - read
        joined.counters += [
            replace(counter, device=f"{host}/{counter.device}", times=counter.times + shift_ps)
            for counter in trace.counters
        ]
        joined.problems += [f"{host}: {problem}" for problem in trace.problems[problems:]]
        return lanes

    joined.ready += moved(trace.ready)
    joined.annotations += moved(trace.annotations)
    joined.launches += moved(trace.launches)
    joined.read += trace.read
    joined.pending.append(rest)
    joined.python_tracer = joined.python_tracer or trace.python_tracer
    joined.hosts.append(host)
    joined.platform = joined.platform or trace.platform
    joined.devices |= {f"{host}/{device}": facts for device, facts in trace.devices.items()}
    present = {(program.name, program.program) for program in joined.programs}
    joined.programs += [program for program in trace.programs if (program.name, program.program) not in present]
    joined.sizes |= trace.sizes
    joined.notes = {**trace.notes, **joined.notes}
    joined.tracers = {name: max(level, joined.tracers.get(name, 0)) for name, level in trace.tracers.items()}
    joined.problems += [f"{host}: {problem}" for problem in trace.problems]
    joined.lost_names += [f"{host} {plane}" for plane in trace.lost_names]
    joined.errors += [f"{host}: {text}" for text in trace.errors]
    joined.warnings += [f"{host}: {text}" for text in trace.warnings]
