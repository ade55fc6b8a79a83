import io
import json
from contextlib import suppress
from dataclasses import asdict
from functools import cache

import pytest

import program_events
from folding import written
from jaxprof import events as e
from jaxprof.query.sql_process import SqlProcess
from jaxprof.session import Session, load
from report import sessions

pytest.importorskip("duckdb")


class InThisProcess(SqlProcess):
    """A stand-in for the process of a query, which answers anew whenever its clock is started."""

    def __init__(self):
        self.sink, self.source = io.BytesIO(), io.BytesIO()

    def start_clock(self):
        import pyarrow as pa

        from jaxprof.query.database import serve

        answer = io.BytesIO()
        with suppress(pa.ArrowInvalid):  # at first the tables with rows are still to come
            serve(io.BytesIO(self.sink.getvalue()), answer)
        self.source = io.BytesIO(answer.getvalue()[self.source.tell() :])

    def stop_clock(self): ...

    def __exit__(self, *_): ...


@cache
def loaded(path):
    return load(path, Session)


def asked(path):
    from jaxprof.query.execution import QueriedSession

    return QueriedSession(path, loaded(path))


def ask(sql, sources):
    from jaxprof.query.execution import execute

    return execute(InThisProcess(), sql, sources)


TIMELINE = {
    "version": 1, "started_unix_ns": None, "left_out": 2, "ops": [["jit_selu", "7", "fusion"]], "counters": [],
    "lanes": [
        {"device": "gpu:0", "name": "Stream #1", "kind": "stream",
         "labels": [["void fused<1, 2>", 0], ["memcpy", None]], "label": [0, 1, 0], "start": [0, 10_000, 10_000],
         "duration": [5_000, 1_000, 6_000], "execution": [1, 0, 1], "correlation": [7, -8, 9], "steps": [[2, 3]]},
        {"device": "host", "name": "python", "kind": "thread", "labels": [["step", None]], "label": [0],
         "start": [2_000], "duration": [30_000]},
    ],
}  # fmt: skip


def events():
    """A recorded program (r1), NumPy (r2), a compiled twin with all that a capture gives (r3), a failed run (r4)."""
    jit = sessions.jit_run("r3", "r2")
    timeline = e.TextRecorded(run="r3", name="timeline", text=json.dumps(TIMELINE))
    program = program_events.program(
        *program_events.steady(3, {"device_busy": 0.6, "host_busy": 0.4}, [program_events.line(88, 0.4, "host_busy")]),
        *program_events.shaped(5, cache="off", compile_seconds=0.1),
        program_events.steps(2400, 6.2e-3, 85, lines={91: 0.5, 88: 0.4, 86: 0.1}),
        program_events.copies("host_to_device", 14, seconds=0.14, **asdict(program_events.at(88))),
    )
    reading = e.DeviceReading(
        device="cpu:0", monotonic_seconds=12.5, utilisation=0.5, memory_used_bytes=1 << 33, throttle_reasons=["hot"]
    )
    return [
        *program,
        *sessions.numpy_run("r2"),
        *jit[:-2],
        *sessions.captures("r3"),
        timeline,
        reading,
        *jit[-2:],
        *sessions.failed_run("r4", "r2"),
        e.SessionClosed(),
    ]


def write(path, kept=None):
    return written(path, events() if kept is None else kept, sessions.HEADER)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("query") / "whole.jaxprof")
