"""Folders of jobs whose processes spend their time as told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import program_events
from jaxprof import events as e
from jaxprof.session.log import LogWriter
from jaxprof.session.log.job_folder import session_path

JOB = "slurm-1234.0"


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


def process(
    folder: Path, index: int, count: int, *inside: e.Event, header: dict[str, Any] | None = None, **more: Any
) -> Path:
    """The session of one process, in the folder of its job."""
    told = {"host": f"node{index}", "process_index": index, "process_count": count, "job": JOB, **(header or {})}
    path = session_path(folder, index)
    writer = LogWriter(replace(program_events.HEADER, **told), path)
    for event in program_events.program(*inside, **{"wall": 20.0, **more}):
        writer.append(event)
    writer.close()
    return path


def job(folder: Path, *loops: Sequence[e.Event]) -> Path:
    """A job with a process for each loop."""
    for index, inside in enumerate(loops):
        process(folder, index, len(loops), *inside)
    return folder


def stderr(*lines: str, seconds: float = 5.0) -> list[e.Event]:
    """What a program wrote on its stderr."""
    at = program_events.BEGAN + seconds
    return [e.LogLine(run=program_events.RUN, stream="stderr", text=line, monotonic_seconds=at) for line in lines]
