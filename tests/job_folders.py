"""Folders of jobs whose processes spend their time as told."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import program_events
from folding import fold, written
from jaxprof import events as e
from jaxprof.analysis.timeline import TEXT_NAME, VERSION
from jaxprof.jobs.findings import JobFigures
from jaxprof.jobs.folder import JobFollower
from jaxprof.jobs.job import JobFiles, JobSteps, ProcessFile
from jaxprof.jobs.step_grid import OWN, StepGrid
from jaxprof.session.files import session_path

JOB = "slurm-1234.0"
ALL_REDUCE = """HloModule jit_step, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  p = f32[1048576]{0} parameter(0)
  ROOT all-reduce = f32[1048576]{0} all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=add
}
"""
"""A program that sums 4 MiB over four devices."""


def read_job(folder: Path) -> JobFiles:
    """The job of a folder, from its sessions."""
    follower = JobFollower(folder)
    follower.poll()
    files = JobFiles(folder, {}, notices=follower.notices)
    for index, member in sorted(follower.members.items()):
        files.take(ProcessFile(member.path, member.session, index=index))
    return files


def loop(seconds: int = 20, *, data: float = 0.02, host: float = 0.0, wait: float | None = None) -> list[e.Event]:
    """A loop of which so many hundredths go to data and to Python, and the rest to the device (or `wait` of it)."""
    device = 1 - data - host if wait is None else wait
    lines = [
        program_events.line(86, data, "data", "next()"),
        program_events.line(88, device, "device_busy", "step"),
        program_events.line(91, host, "host_busy", "save()"),
    ]
    states = {"data": data, "device_busy": device, "host_busy": host}
    return [
        *program_events.steady(seconds, states, [each for each in lines if each["seconds"]]),
        program_events.compiled("step"),
        program_events.steps(100 * seconds, 0.01),
    ]


def late_from(second: int, seconds: int = 20, *, data: float = 0.4) -> list[e.Event]:
    """A loop that is as `loop` up to that second, and makes its input for a share `data` of the time from then on. Its
    iterations of 10 ms are numbered."""
    inside = [program_events.compiled("step")]
    for at in range(seconds):
        share = data if at >= second else 0.02
        states = {"data": share, "device_busy": 1 - share}
        lines = [program_events.line(86, share, "data", "next()")]
        lines.append(program_events.line(88, 1 - share, "device_busy", "step"))
        inside.append(program_events.sampled(at, 1.0, states, lines))
        inside.append(program_events.iterations(100 * at, [0.01] * 100, began_seconds=program_events.BEGAN + at))
    return inside


def wavering(
    seconds: int = 60,
    *,
    data: float = 0.1,
    noise: float = 0.03,
    seed: int = 0,
    late: tuple[int, int, float] = (0, 0, 0.0),
    clock: float | None = None,
    alike: float = 0.0,
) -> list[e.Event]:
    """A loop whose share of data varies from second to second, by `noise`, and is larger from the first to the second
    moment of `late`, by its third number. Samples see nothing of that, and the CPU clock has it, where `clock` says
    what samples see. `alike`: the autocorrelation of the seconds."""
    rng = np.random.default_rng(seed)
    made = []
    wave = rng.standard_normal()
    for second in range(seconds):
        wave = alike * wave + (1 - alike**2) ** 0.5 * rng.standard_normal()
        more = late[2] if late[0] <= second < late[1] else 0.0
        worked = min(max(data + noise * wave + more, 0.0), 1.0)
        seen = worked if clock is None else clock
        lines = [
            program_events.line(86, seen, "data", "next()"),
            program_events.line(88, 1 - seen, "device_busy", "step"),
        ]
        window = program_events.sampled(second, 1.0, {"data": seen, "device_busy": 1 - seen}, lines)
        made.append(window if clock is None else replace(window, device_wait_seconds=1 - worked))
    return [*made, program_events.compiled("step"), program_events.steps(100 * seconds, 0.01)]


def recording(
    index: int, count: int, *inside: e.Event, header: dict[str, Any] | None = None, **more: Any
) -> tuple[e.Header, list[e.Event]]:
    """What one process of a job recorded; `more` as in `program_events.program`."""
    usual = {"host": f"node{index}", "session": f"5e55{index:08}", "job": JOB}
    told = replace(program_events.HEADER, process_index=index, process_count=count, **{**usual, **(header or {})})
    return told, program_events.program(*inside, **{"wall": 20.0, **more})


def process(folder: Path, index: int, count: int, *inside: e.Event, **more: Any) -> Path:
    """The session of one process, in the folder of its job."""
    header, events = recording(index, count, *inside, **more)
    return written(session_path(folder, index), events, header)


def job(folder: Path, *loops: Sequence[e.Event]) -> Path:
    """A job with a process for each loop."""
    for index, inside in enumerate(loops):
        process(folder, index, len(loops), *inside)
    return folder


def recorded(*loops: Sequence[e.Event], options: Mapping[int, dict[str, Any]] | None = None) -> JobFiles:
    """The same, as it would be read from that folder; `options`: how some of the processes ended, or where they ran;
    `is_live`: one has not ended."""
    files = JobFiles(Path("run.jaxprof.d"), {})
    for index, inside in enumerate(loops):
        of_it = dict((options or {}).get(index, {}))
        is_live = of_it.pop("is_live", False)
        session = fold(*recording(index, len(loops), *inside, **(of_it | ({"wall": None} if is_live else {}))))
        session.desert(deserted=not is_live)
        files.take(ProcessFile(files.folder / f"process-{index:05}.jaxprof", session, index=index))
    return files


def stderr(*lines: str, seconds: float = 5.0) -> list[e.Event]:
    """What a program wrote on its stderr."""
    at = program_events.BEGAN + seconds
    return [e.LogLine(run=program_events.RUN, stream="stderr", text=line, monotonic_seconds=at) for line in lines]


def captures(
    count: int,
    *,
    late: int | None = None,
    instances: int = 100,
    seed: int = 0,
    skip: Sequence[int] = (),
    clocks: Sequence[float] = (),
    jitter: float = 0.05,
    name: str = "all-reduce",
    arrived: Sequence[np.ndarray[Any, Any]] = (),
    ended: float = 5e-5,
    exchange: float = 1e-3,
    beside: float = 0.0,
    hlo: str = "",
) -> list[list[e.Event]]:
    """What each of `count` processes captured of one collective: steps of 10 ms, after which all of them meet. The
    process `late` arrives 3 ms after the others. `skip`: how many instances a process captured too late to see;
    `clocks`: seconds by which its clock is ahead; `arrived`: instead of `late`, seconds after the moment at which the
    first one could arrive, by process and instance; `ended`: by how much the ends of one instance differ;
    `exchange`: seconds of it; `beside`: for which part of each execution the device runs a kernel, too; `hlo`: of the
    program, `jit_step`."""
    rng = np.random.default_rng(seed)
    ends = 0.01 * np.cumsum(1 + jitter * rng.standard_normal(instances))
    began_unix = 1.7e9
    taken = []
    for index in range(count):
        own = rng.uniform(0.0, 0.5e-3, instances) - (0.0 if index == late else 3.5e-3 if late is not None else 0.0)
        if len(arrived):
            own = arrived[index] - np.max(arrived, axis=0)
        begins = ends - exchange + own
        finished = ends + rng.normal(0, ended, instances)
        first = skip[index] if skip else 0
        clock = clocks[index] if clocks else 0.0
        spans = [(round(begin * 1e9), round(end * 1e9)) for begin, end in zip(begins, finished, strict=True)][first:]
        starts = [begin for begin, _ in spans]
        lane = {
            "device": "cpu:0", "name": "thread", "kind": "thread", "labels": [[name, 0]], "label": [0] * len(spans),
            "start": [starts[0], *(after - before for before, after in itertools.pairwise(starts))],
            "duration": [end - begin for begin, end in spans],
        }  # fmt: skip
        text = {
            "version": VERSION, "started_unix_ns": round((began_unix + clock) * 1e9), "left_out": 0,
            "ops": [["jit_step", None, name], ["jit_step", None, "fusion"]], "lanes": [lane],
        }  # fmt: skip
        if beside:
            lengths = [round(beside * length) for length in lane["duration"]]
            other = {**lane, "name": "another", "labels": [["fusion", 1]], "duration": lengths}
            text["lanes"] = [lane, other]
        recorded = {TEXT_NAME: json.dumps(text), **({"hlo": hlo} if hlo else {})}
        taken.append([e.TextRecorded(run=program_events.RUN, name=key, text=each) for key, each in recorded.items()])
    return taken


def job_figures(job: JobFiles) -> JobFigures:
    """The figures of a job."""
    return job.job_figures()


def step_grid(job: JobFiles, columns: int = 100, values_of: str = OWN) -> StepGrid:
    """The steps of a job."""
    return JobSteps(job).grid(columns, values_of)
