"""Chrome traces: the JSON that JAX writes beside a profile, that Perfetto opens, and that jaxprof exports."""

import contextlib
import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_traces import cpu_plane, gpu_planes, read, tpu_plane

from jaxprof.analysis.opener import Kind, kind_of
from jaxprof.analysis.timeline import read_timeline
from jaxprof.errors import FileRefusedError
from jaxprof.events import encode
from jaxprof.exports.perfetto import to_perfetto
from jaxprof.trace.ops import op_times
from jaxprof.trace.sources import read_profile
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import summarise
from jaxprof.trace.timeline import timeline_text

NAMES = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}}


def ran(start, run_id, took=7.125):
    """One execution of `dot`, in microseconds."""
    op = {"hlo_op": "dot", "hlo_module": "jit_f", "run_id": str(run_id)}
    return {"ph": "X", "pid": 1, "tid": 2, "ts": start, "dur": took, "name": "dot", "args": op}


WHOLE = json.dumps({"displayTimeUnit": "ns", "traceEvents": [NAMES, ran(1.5, -4), ran(5.0, -3), {}]}).encode()


@pytest.mark.parametrize("text", ["", '"'], ids=["numbers", "texts"])
def test_unix_times_keep_their_nanoseconds(tmp_path, text):
    start = 1_764_000_000_123_456
    path = tmp_path / "x.trace.json"
    written = json.dumps({"traceEvents": [NAMES, *(ran(f"{start + 10 * n}.{n}01", n + 1) for n in range(3))]})
    path.write_text(
        written if text else written.replace(f'"{start // 10**6}', f"{start // 10**6}").replace('01", "d', '01, "d')
    )
    trace = read_profile(path)
    (lane,) = trace.op_lanes()
    assert lane.starts.tolist() == [0, 10_100_000, 20_200_000]
    assert (trace.started_unix_ns, trace.problems) == (start * 1000 + 1, [])


@pytest.mark.parametrize("planes", [(cpu_plane(),), gpu_planes(), (tpu_plane(),)], ids=["cpu", "gpu", "tpu"])
def test_an_export_can_be_opened_again(tmp_path, planes):
    trace = read(*planes)
    path = tmp_path / "out.json.gz"
    path.write_bytes(gzip.compress("".join(to_perfetto(read_timeline(timeline_text(trace)), "title")).encode()))
    assert kind_of(path) is Kind.PROFILE
    again = read_profile(path)
    assert {row.op: (row.device, row.count, row.total_seconds) for row in op_times(again)} == {
        row.op: (row.device, row.count, pytest.approx(row.total_seconds)) for row in op_times(trace)
    }
    assert [row.name for row in steps_of(again).rows] == [row.name for row in steps_of(trace).rows]


@pytest.mark.parametrize("limit", [None, 3])
def test_an_export_says_what_it_lacks(tmp_path, limit):
    text = timeline_text(read(cpu_plane())) if limit is None else timeline_text(read(cpu_plane()), limit=limit)
    path = tmp_path / "trace.json"
    path.write_text("".join(to_perfetto(read_timeline(text), "r1")))
    assert bool(read_profile(path).warnings) == (limit is not None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_json_is_read_or_refused(tmp_path, data):
    raw = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "x.trace.json"
    path.write_bytes(raw[: data.draw(st.integers(1, len(raw)))])
    with contextlib.suppress(FileRefusedError):
        for event in summarise(path, "imported"):
            encode(event)
