"""The timeline of a run as a Chrome trace (JSON), which ui.perfetto.dev and chrome://tracing open.

Times are microseconds, as that format wants them; a process is a device, a thread is a lane. In that format what
overlaps on one thread must nest: intervals that only overlap get threads of their own. Intervals carry the HLO op and
module that they belong to, their execution, launch and step; the HLO itself stands behind the events, where other
readers pass it over. So a file that was exported can be imported again, and loses nothing that was shown of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from jaxprof.analysis.timeline import Timeline, TimelineLane
from jaxprof.text import json_text

HLO_KEY: Final = "jaxprofHlo"
"""Under which the modules are, beside `traceEvents`."""


@dataclass(frozen=True, slots=True)
class ExportedHlo:
    """The HLO text of a program."""

    module: str
    program: str | None
    """Its id, in decimal digits."""
    text: str


def to_perfetto(timeline: Timeline, title: str, hlo: Sequence[ExportedHlo] = ()) -> Iterator[str]:
    """The file's text in pieces, so that a million intervals need not be one string."""
    yield '{"displayTimeUnit":"ns","otherData":' + json_text({"source": title}, compact=True) + ',"traceEvents":[\n'
    devices = {device: number for number, device in enumerate(dict.fromkeys(lane.device for lane in timeline.lanes), 1)}
    thread = 0
    separator = ""
    for device, number in devices.items():
        yield separator + _named("process_name", number, 0, _process(device))
        separator = ",\n"
    for lane in timeline.lanes:
        process = devices[lane.device]
        track_of, tracks = _tracks(lane)
        for track in range(tracks):
            name = lane.name if not track else f"{lane.name} ({track + 1})"
            yield separator + _named("thread_name", process, thread + track + 1, name)
            separator = ",\n"
        yield from _intervals(timeline, lane, process, thread + 1, track_of)
        thread += tracks
    for counter in timeline.counters:
        number = devices.setdefault(counter.device, len(devices) + 1)
        if number == len(devices) and counter.device not in {lane.device for lane in timeline.lanes}:
            yield separator + _named("process_name", number, 0, _process(counter.device))
            separator = ",\n"
        for time, value in zip(counter.times, counter.values, strict=True):
            yield separator + json_text({"ph": "C", "pid": number, "name": counter.name, "ts": time / 1000,
                                     "args": {counter.unit: value}}, compact=True)  # fmt: skip
    yield "\n]"
    if hlo:
        yield f",{json_text(HLO_KEY)}:" + json_text([asdict(module) for module in hlo], compact=True)
    yield "}\n"


def _tracks(lane: TimelineLane) -> tuple[list[int], int]:
    """On which track each interval is drawn, so that those of one track nest, and how many there are."""
    tracks: list[list[int]] = [[]]
    numbers = []
    for start, duration in zip(lane.starts, lane.durations, strict=True):
        end = start + duration
        chosen = next((number for number, open_ends in enumerate(tracks) if _fits(open_ends, start, end)), len(tracks))
        if chosen == len(tracks):
            tracks.append([])
        tracks[chosen].append(end)
        numbers.append(chosen)
    return numbers, len(tracks)


def _fits(open_ends: list[int], start: int, end: int) -> bool:
    """Whether an interval lies within the innermost of a track's that are still open (their ends), or none is."""
    while open_ends and open_ends[-1] <= start:
        open_ends.pop()
    return not open_ends or open_ends[-1] >= end


def _process(device: str) -> str:
    """The device, named as in JAX's own Chrome traces, so that jaxprof can open the file again."""
    host, _, name = device.rpartition("/")
    platform, _, number = name.partition(":")
    own_name = "/host:CPU" if platform in ("host", "cpu") else f"/device:{platform.upper()}:{number}"
    return f"{host} {own_name}" if host else own_name


def _named(kind: str, process: int, thread: int, name: str) -> str:
    return json_text({"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}, compact=True)


def _intervals(
    timeline: Timeline, lane: TimelineLane, process: int, thread: int, track_of: Sequence[int]
) -> Iterator[str]:
    names = [json_text(name) for name, _ in lane.labels]
    ops = [_op_arguments(timeline, lane.device, op) for _, op in lane.labels]
    executions, correlations = lane.executions, lane.correlations
    columns = zip(lane.label_of, lane.starts, lane.durations, track_of, strict=True)
    for at, (label, start, duration, track) in enumerate(columns):
        arguments = ops[label]
        if executions is not None and executions[at]:
            arguments += f',"run_id":"{executions[at]}"'
        if correlations is not None and correlations[at] >= 0:
            arguments += f',"correlation_id":"{correlations[at]}"'
        if at in lane.steps:
            arguments += f',"step_num":"{lane.steps[at]}"'
        yield (
            f',\n{{"ph":"X","pid":{process},"tid":{thread + track},"name":{names[label]},'
            f'"ts":{start // 1000}.{start % 1000:03d},"dur":{duration // 1000}.{duration % 1000:03d}'
            + (f',"args":{{{arguments[1:]}}}}}' if arguments else "}")
        )


def _op_arguments(timeline: Timeline, device: str, op: int | None) -> str:
    """The arguments that name an interval's op, each after a comma."""
    if op is None:
        return ""
    named = timeline.ops[op]
    arguments = {"hlo_op": named.name, "hlo_module": named.module, "program_id": named.program or ""}
    platform, _, number = device.rpartition("/")[2].partition(":")
    if platform == "cpu":  # its threads may serve several devices, and the process is the host
        arguments["device_ordinal"] = number
    return "".join(f",{json_text(name)}:{json_text(value)}" for name, value in arguments.items())
