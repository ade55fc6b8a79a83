"""Export the timeline of a run as a Chrome trace (JSON), which ui.perfetto.dev and chrome://tracing open.

Times are microseconds, as the format requires; a process is a device, a thread is a lane. Overlapping events on one
thread have to nest in this format, so intervals that only overlap get threads of their own. An interval has the HLO op
and module that it belongs to, its execution, launch and step; the HLO text follows the events, where other readers
ignore it. So an exported file can be imported again without losing anything that jaxprof shows. The viewer shows
devices and lanes in the order that they have here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from jaxprof.analysis.profile import programs_of
from jaxprof.analysis.timeline import TEXT_NAME, Timeline, TimelineLane, read_timeline, tracks_of
from jaxprof.exports.formats import ExportSource
from jaxprof.session import Run, Session
from jaxprof.text import json_text

HLO_KEY: Final = "jaxprofHlo"
"""Key of the HLO modules, beside `traceEvents`."""
LEFT_OUT_KEY: Final = "jaxprofLeftOut"
"""Key in `otherData` of the number of intervals of the profile that the file lacks."""


@dataclass(frozen=True, slots=True)
class ExportedHlo:
    """The HLO text of a program."""

    module: str
    program: str | None
    """Id of the program, in decimal digits; None if unknown."""
    text: str


def runs(session: Session) -> list[Run]:
    """Return the runs with a timeline."""
    return [run for run in session.runs.values() if TEXT_NAME in run.texts]


def pieces(source: ExportSource) -> Iterator[str]:
    """Yield the timeline of the one run, with the HLO of its programs."""
    (run,) = source.runs
    timeline = read_timeline(source.session.text(run.id, TEXT_NAME) or "")
    return to_perfetto(timeline, run.label, list(_modules(source.session, run)))


def _modules(session: Session, run: Run) -> Iterator[ExportedHlo]:
    """Yield the HLO of the programs in the timeline of `run`: its own, or, for a profile, that of all its programs."""
    for program in programs_of(session, run):
        text = session.text(program.id, "hlo")
        if text:
            name = text.split("HloModule ", 1)[-1].split(",", 1)[0].split(None, 1)[0] if run is program else ""
            program_id = program.plan.parameters.get("program")
            yield ExportedHlo(name or program.plan.workload, None if program_id is None else str(program_id), text)


def to_perfetto(timeline: Timeline, title: str, hlo: Sequence[ExportedHlo] = ()) -> Iterator[str]:
    """Yield the text of the file in pieces, so that a million intervals need not be one string."""
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
    """Return the name of a device as in JAX's own Chrome traces, so that jaxprof can open the file again."""
    host, _, name = device.rpartition("/")
    platform, _, number = name.partition(":")
    jax_name = "/host:CPU" if platform in ("host", "cpu") else f"/device:{platform.upper()}:{number}"
    return f"{host} {jax_name}" if host else jax_name


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
    """Return the arguments that name the op of an interval, each after a comma."""
    if op is None:
        return ""
    hlo_op = timeline.ops[op]
    arguments = {"hlo_op": hlo_op.name, "hlo_module": hlo_op.module, "program_id": hlo_op.program or ""}
    platform, _, number = device.rpartition("/")[2].partition(":")
    if platform == "cpu":  # the process of the trace is the host, whose threads may serve several devices
        arguments["device_ordinal"] = number
    return "".join(f",{json_text(name)}:{json_text(value)}" for name, value in arguments.items())
