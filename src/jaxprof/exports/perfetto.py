"""The timeline of a run as a Chrome trace (JSON), which ui.perfetto.dev and chrome://tracing open.

Times are microseconds, as that format wants them; a process is a device, a thread is a lane. In that format what
overlaps on one thread must nest: intervals that only overlap get threads of their own. Intervals carry the HLO op and
module that they belong to, their execution, launch and step; the HLO itself stands behind the events, where other
readers pass it over. So a file that was exported can be imported again, and loses nothing that was shown of it. Devices
and lanes stand in the viewer in the order that they have here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from jaxprof.analysis.profile import programs_of
from jaxprof.analysis.timeline import TEXT_NAME, Timeline, TimelineLane, read_timeline
from jaxprof.exports.source import ExportSource, tracks_of
from jaxprof.session import Run, Session
from jaxprof.text import json_text

HLO_KEY: Final = "jaxprofHlo"
"""Under which the modules are, beside `traceEvents`."""
LEFT_OUT_KEY: Final = "jaxprofLeftOut"
"""In `otherData`: how many intervals of the profile are not here."""


@dataclass(frozen=True, slots=True)
class ExportedHlo:
    """The HLO text of a program."""

    module: str
    program: str | None
    """Its id, in decimal digits."""
    text: str


def runs(session: Session) -> list[Run]:
    """The runs with a timeline."""
    return [run for run in session.runs.values() if TEXT_NAME in run.texts]


def pieces(source: ExportSource) -> Iterator[str]:
    """The timeline of the one run, with the HLO of its programs."""
    (run,) = source.runs
    timeline = read_timeline(source.session.text(run.id, TEXT_NAME) or "")
    return to_perfetto(timeline, run.label, list(_modules(source.session, run)))


def _modules(session: Session, run: Run) -> Iterator[ExportedHlo]:
    """The HLO of the programs in the timeline of `run`: its own, or, for a profile, that of all its programs."""
    for of_program in programs_of(session, run):
        text = session.text(of_program.id, "hlo")
        if text:
            name = text.split("HloModule ", 1)[-1].split(",", 1)[0].split(None, 1)[0] if run is of_program else ""
            program = of_program.plan.parameters.get("program")
            yield ExportedHlo(name or of_program.plan.workload, None if program is None else str(program), text)


def to_perfetto(timeline: Timeline, title: str, hlo: Sequence[ExportedHlo] = ()) -> Iterator[str]:
    """The file's text in pieces, so that a million intervals need not be one string."""
    about = {"source": title} | ({LEFT_OUT_KEY: timeline.left_out} if timeline.left_out else {})
    yield '{"displayTimeUnit":"ns","otherData":' + json_text(about, compact=True) + ',"traceEvents":[\n'
    devices = {device: number for number, device in enumerate(dict.fromkeys(lane.device for lane in timeline.lanes), 1)}
    thread = 0
    separator = ""
    for device, number in devices.items():
        yield separator + _named("process_name", number, 0, _process(device))
        separator = ",\n"
        yield separator + _sorted("process_sort_index", number, 0, number)
    for lane in timeline.lanes:
        process = devices[lane.device]
        track_of, tracks = tracks_of(lane)
        for track in range(tracks):
            name = lane.name if not track else f"{lane.name} ({track + 1})"
            yield separator + _named("thread_name", process, thread + track + 1, name)
            separator = ",\n"
            yield separator + _sorted("thread_sort_index", process, thread + track + 1, thread + track + 1)
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


def _process(device: str) -> str:
    """The device, named as in JAX's own Chrome traces, so that jaxprof can open the file again."""
    host, _, name = device.rpartition("/")
    platform, _, number = name.partition(":")
    own_name = "/host:CPU" if platform in ("host", "cpu") else f"/device:{platform.upper()}:{number}"
    return f"{host} {own_name}" if host else own_name


def _named(kind: str, process: int, thread: int, name: str) -> str:
    return json_text({"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}, compact=True)


def _sorted(kind: str, process: int, thread: int, place: int) -> str:
    data = {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"sort_index": place}}
    return json_text(data, compact=True)


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
