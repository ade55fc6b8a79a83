"""Chrome traces: the JSON that JAX writes beside a profile, that Perfetto opens, and that jaxprof exports. A profile
into a session, and out again: programs, HLO, timeline."""

import contextlib
import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_traces import cpu_plane, gpu_planes, hosts, on_gpu, op, read, tpu_plane
from xplane_wire import Line, Plane, space_bytes

from jaxprof.analysis.lanes.rows import lanes_of
from jaxprof.analysis.lanes.totals import range_totals
from jaxprof.analysis.measured import measured, whole_profile
from jaxprof.analysis.opener import Kind, kind_of
from jaxprof.analysis.timeline import read_timeline
from jaxprof.errors import FileRefusedError
from jaxprof.events import encode
from jaxprof.exports.perfetto import to_perfetto
from jaxprof.session import Session
from jaxprof.trace.imported import import_profile
from jaxprof.trace.ops import op_times
from jaxprof.trace.sources import read_file, read_profile
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import summarise
from jaxprof.trace.timeline import timeline_text
from report.sessions import HEADER

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


def test_a_run_for_the_whole_and_one_for_each_program(tmp_path):
    device, launches = gpu_planes()
    more = Line("Stream #9(Kernel)", [op("exp", 200, 5, module="jit_g", program=9, correlation_id=50)], id=9)
    device.lines = [*device.lines, more]
    metadata = Plane("/host:metadata", metadata={"jit_g(9)": {"Hlo Proto": b"broken"}})
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space_bytes([device, launches, metadata]))
    session = Session(HEADER)
    import_profile(path, "r1", lambda event: session.apply(replace(event, run=event.run or "r1")))
    whole, first, second = session.runs.values()
    assert [run.label for run in session.runs.values()] == [
        "host.xplane.pb profile gpu:0", "jit_f profile gpu:0", "jit_g profile gpu:0"
    ]  # fmt: skip
    assert second.plan.parameters == {"program": "9"}
    (warning,) = second.warnings
    assert (warning.code, "jit_g have times only" in warning.message) == ("no_hlo", True)
    found = measured(session, first.id)
    assert {kernel.name: round(kernel.share or 0, 4) for kernel in found.kernels} == {"fusion": 0.7857, "dot.1": 0.2143}
    assert sum(kernel.share or 0 for kernel in whole_profile(session)) == pytest.approx(1)
    assert (found.kernels[0].uncertain, found.kernels[0].launch.registers) == (True, 32)
    assert whole.environment.devices[0] == {
        "id": "gpu:0", "platform": "gpu", "vendor": "Nvidia", "core_count": 132,
        "memory_bytes_per_second": 3_350_000_000_000, "clock_hertz": 1_980_000_000,
    }  # fmt: skip


class TestTimeline:
    def test_what_is_left_out_is_not_idle(self, tmp_path):
        """Of 100 kernels of 1 us on end and two of 50, three are kept: the stream was busy all the time."""
        events = [op("long", 0, 50), *(op("short", 50 + at, 1) for at in range(100)), op("long", 150, 50)]
        trace = read(on_gpu(*events))
        timeline = read_timeline(timeline_text(trace, limit=3))
        (found,) = range_totals(lanes_of(timeline), 0, 200_000).lanes
        assert (timeline.left_out, found.left_out, found.count, found.busy_ns, found.idle_ns) == (99, 99, 3, 200_000, 0)
        (half,) = range_totals(lanes_of(timeline), 60_000, 100_000).lanes
        assert half.idle_ns == pytest.approx(0, abs=2_000)

    def test_what_overlaps_gets_a_track_each_in_perfetto(self):
        spans = hosts("outer 0 100, inner 10 20, across 90 40, late 95 3, apart 140 5")
        plane = Plane("/device:TPU:0", [Line("Async XLA Ops", spans)])
        exported = json.loads("".join(to_perfetto(read_timeline(timeline_text(read(plane))), "title")))
        events = exported["traceEvents"]
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        tracks = {event["name"]: names[event["tid"]] for event in events if event["ph"] == "X"}
        first, second = "Async XLA Ops", "Async XLA Ops (2)"
        assert tracks == {"outer": first, "inner": first, "across": second, "late": first, "apart": first}


def test_the_reading_stops_where_it_is_told_to(tmp_path):
    path = tmp_path / "box.xplane.pb"
    path.write_bytes(space_bytes(gpu_planes()))
    shares = []

    def advance(share):
        shares.append(share)
        if share > 0.5:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        read_file(path, advance)
    assert len(shares) > 2
