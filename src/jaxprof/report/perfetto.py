"""The timeline of a run as a Chrome trace (JSON), which ui.perfetto.dev and chrome://tracing open.

Times are microseconds, as that format wants them; a process is a device, a thread is a lane. Intervals on the device
carry the HLO op and module that they belong to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from jaxprof.results.timeline import Timeline, TimelineLane


def to_perfetto(timeline: Timeline, title: str) -> Iterator[str]:
    """The file's text in pieces, so that a million intervals need not be one string."""
    yield '{"displayTimeUnit":"ns","otherData":' + json.dumps({"source": title}) + ',"traceEvents":[\n'
    devices = {device: number for number, device in enumerate(dict.fromkeys(lane.device for lane in timeline.lanes), 1)}
    first = True
    for device, number in devices.items():
        yield _separated(first) + _named("process_name", number, 0, _process(device))
        first = False
    for thread, lane in enumerate(timeline.lanes, 1):
        process = devices[lane.device]
        yield _separated(first) + _named("thread_name", process, thread, lane.name)
        first = False
        yield from _intervals(timeline, lane, process, thread)
    yield "\n]}\n"


def _process(device: str) -> str:
    """The device as JAX's own Chrome traces name it, so that the file can be opened here again."""
    host, _, name = device.rpartition("/")
    platform, _, number = name.partition(":")
    known = "/host:CPU" if platform in ("host", "cpu") else f"/device:{platform.upper()}:{number}"
    return f"{host} {known}" if host else known


def _separated(first: bool) -> str:
    return "" if first else ",\n"


def _named(kind: str, process: int, thread: int, name: str) -> str:
    return _json({"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}})


def _intervals(timeline: Timeline, lane: TimelineLane, process: int, thread: int) -> Iterator[str]:
    heads = []
    for name, op in lane.labels:
        event: dict[str, object] = {"ph": "X", "pid": process, "tid": thread, "name": name}
        if op is not None:
            known = timeline.ops[op]
            event["args"] = {"hlo_op": known.name, "hlo_module": known.module, "program_id": known.program or ""}
        heads.append(_json(event)[:-1])
    for label, start, duration in zip(lane.label_of, lane.starts, lane.durations, strict=True):
        yield f',\n{heads[label]},"ts":{start / 1000:.3f},"dur":{duration / 1000:.3f}}}'


def _json(event: dict[str, object]) -> str:
    return json.dumps(event, ensure_ascii=True, separators=(",", ":"))
