"""Export the timeline of a run as a Chrome trace (JSON), which ui.perfetto.dev and chrome://tracing open.

Times are microseconds, as the format requires; a process is a device, a thread is a lane. Overlapping events on one
thread have to nest in this format, so intervals that only overlap get threads of their own. An interval has the HLO op
and module that it belongs to, its execution, launch and step. The viewer shows devices and lanes in the order that they
have here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain

from jaxprof.analysis.timeline import TEXT_NAME, Timeline, read_timeline, tracks_of
from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.text import json_text
from jaxprof.session import Session

_CAPTURED = "`jaxprof run` captures kernels, and `jaxprof script --capture-steps 100` those of a script."


def export(session: Session, name: str, run_id: str | None = None) -> tuple[Iterator[str], int]:
    """Return the text of the file in pieces, and how many of the shortest intervals it lacks. `run_id`: by default the
    only run with a timeline; raises UsageError for none, or several. `name`: what commands call the session."""
    usable = [run for run in session.runs.values() if TEXT_NAME in run.texts]
    listed = ", ".join(f"{run.id} ({run.label})" for run in usable[:10])
    if run_id is not None:
        if run_id not in session.runs:
            raise unknown_name("run", run_id, session.runs)
        run = session.runs[run_id]
        if run not in usable:
            raise UsageError(f"run {run_id} has no timeline", f"These have: {listed}." if listed else _CAPTURED)
    elif not usable:
        raise UsageError(f"no run of {name} has a timeline", _CAPTURED)
    elif len(usable) > 1:
        several = f"{len(usable)} runs of {name} have a timeline: {listed}"
        raise UsageError(several, f"jaxprof export {shlex.quote(name)} --run {usable[0].id} writes one of them.")
    else:
        run = usable[0]
    timeline = read_timeline(session.text(run.id, TEXT_NAME) or "")
    return pieces(timeline, run.label), timeline.left_out


def pieces(timeline: Timeline, title: str) -> Iterator[str]:
    """Yield the text of the file in pieces, so that a million intervals need not be one string."""
    about = {"source": title} | ({"jaxprofLeftOut": timeline.left_out} if timeline.left_out else {})
    yield '{"displayTimeUnit":"ns","otherData":' + json_text(about, compact=True) + ',"traceEvents":['
    separator = "\n"
    for event in _events(timeline):
        yield separator + event
        separator = ",\n"
    yield "\n]}\n"


def _events(timeline: Timeline) -> Iterator[str]:
    """Yield the events of the file as JSON: a process for each device, a thread for each track of a lane."""
    devices = dict.fromkeys(chain((lane.device for lane in timeline.lanes), (row.device for row in timeline.counters)))
    processes = {device: number for number, device in enumerate(devices, 1)}
    for device, process in processes.items():
        yield from _name_and_order("process", process, 0, device)
    thread = 1
    for lane in timeline.lanes:
        process = processes[lane.device]
        track_of, tracks = tracks_of(lane)
        for track in range(tracks):
            yield from _name_and_order(
                "thread", process, thread + track, f"{lane.name} ({track + 1})" if track else lane.name
            )
        names = [json_text(name) for name, _ in lane.labels]
        ops = []
        for _, op in lane.labels:
            known = {}
            if op is not None:
                hlo_op = timeline.ops[op]
                known = {"hlo_op": hlo_op.name, "hlo_module": hlo_op.module, "program_id": hlo_op.program or ""}
            ops.append("".join(f",{json_text(name)}:{json_text(value)}" for name, value in known.items()))
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
                f'{{"ph":"X","pid":{process},"tid":{thread + track},"name":{names[label]},'
                f'"ts":{start // 1000}.{start % 1000:03d},"dur":{duration // 1000}.{duration % 1000:03d}'
                + (f',"args":{{{arguments[1:]}}}}}' if arguments else "}")
            )
        thread += tracks
    for counter in timeline.counters:
        for time, value in zip(counter.times, counter.values, strict=True):
            yield json_text({"ph": "C", "pid": processes[counter.device], "name": counter.name, "ts": time / 1000,
                             "args": {counter.unit: value}}, compact=True)  # fmt: skip


def _name_and_order(kind: str, process: int, thread: int, name: str) -> Iterator[str]:
    """Yield the name of a process or a thread, and its place, which is its number."""
    for key, value in (("name", name), ("sort_index", thread or process)):
        event = {"ph": "M", "pid": process, "tid": thread, "name": f"{kind}_{key}", "args": {key: value}}
        yield json_text(event, compact=True)
