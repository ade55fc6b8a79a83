"""A profile into a session, and out again: programs, HLO, timeline."""

import gzip
import json
from dataclasses import replace
from unittest.mock import Mock

import pytest
from made_traces import cpu_plane, gpu_planes, host, hosts, on_cpu, on_gpu, op, read
from xplane_wire import Line, Plane, space_bytes

from jaxprof.analysis.kernels.measured import measure_kernels, whole_profile
from jaxprof.analysis.target import Kind, kind_of
from jaxprof.analysis.timeline import read_timeline
from jaxprof.analysis.timeline.lanes import lanes_of, range_totals
from jaxprof.base.errors import FileRefusedError
from jaxprof.report.perfetto import pieces
from jaxprof.session import Session
from jaxprof.trace import sources
from jaxprof.trace.imported import import_profile
from jaxprof.trace.sources import read_file, read_profile
from jaxprof.trace.summary import timeline_text
from report.sessions import HEADER


@pytest.mark.parametrize(
    ("beside", "hint"), [("box.xplane.pb", "box.xplane.pb"), ("", "the .xplane.pb that JAX writes")]
)
def test_chrome_trace_is_refused_naming_the_profile(beside, hint, tmp_path):
    for name in ("another.xplane.pb", beside) if beside else ():
        (tmp_path / name).write_bytes(space_bytes([cpu_plane()]))
    path = tmp_path / "box.trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[]}'))
    assert kind_of(path) is Kind.PROFILE
    with pytest.raises(FileRefusedError, match="does not read Chrome traces") as caught:
        read_profile(path)
    assert hint in caught.value.hint


def test_chrome_trace_is_refused_in_an_unlisted_folder(tmp_path, monkeypatch):
    (path := tmp_path / "box.trace.json").write_bytes(b'{"traceEvents":[]}')
    monkeypatch.setattr(sources, "xplanes_in", Mock(side_effect=PermissionError))
    with pytest.raises(FileRefusedError, match="does not read Chrome traces"):
        read_file(path)


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
    assert warning.code == "no_hlo"
    assert "jit_g have times only" in warning.message
    found = measure_kernels(session, first.id)
    assert {kernel.name: round(kernel.share or 0, 4) for kernel in found.kernels} == {"fusion": 0.7333, "dot.1": 0.2}, (
        "of all"
    )
    assert sum(kernel.share or 0 for kernel in whole_profile(session)) == pytest.approx(1)
    assert found.kernels[0].launch.registers == 32
    assert whole.environment.devices[0] == {
        "id": "gpu:0", "platform": "gpu", "vendor": "Nvidia", "core_count": 132,
        "memory_bytes_per_second": 3_350_000_000_000, "clock_hertz": 1_980_000_000,
    }  # fmt: skip


def test_a_gpu_without_a_name_is_known_by_its_figures(tmp_path):
    def kind(memory_size):
        device, launches = gpu_planes()
        device.stats["memory_size"] = memory_size
        path = tmp_path / "host.xplane.pb"
        path.write_bytes(space_bytes([device, launches]))
        session = Session(HEADER)
        import_profile(path, "r1", lambda event: session.apply(replace(event, run=event.run or "r1")))
        return session.runs["r1"].environment.devices[0].get("kind")

    assert kind(84_978_434_048) == "H100 SXM, by its figures"
    assert kind(90_000_000_000) is None


class TestTimeline:
    def test_what_is_left_out_is_not_idle(self, tmp_path):
        """Of 100 kernels of 1 us on end and two of 50, three are kept: the stream was busy all the time."""
        events = [op("long", 0, 50), *(op("short", 50 + at, 1) for at in range(100)), op("long", 150, 50)]
        trace = read(on_gpu(*events))
        timeline = read_timeline(timeline_text(trace, limit=3))
        device, found = range_totals(lanes_of(timeline), 0, 200_000)
        assert (device.busy_ns, device.idle_ns) == (101_000, None), "that of all lanes together is not known"
        assert timeline.left_out == 99
        assert found.left_out == 99
        assert found.count == 3
        assert found.busy_ns == 200_000
        assert found.idle_ns == 0
        _, half = range_totals(lanes_of(timeline), 60_000, 100_000)
        assert half.idle_ns == pytest.approx(0, abs=2_000)

    def test_what_overlaps_gets_a_track_each_in_perfetto(self):
        spans = hosts("outer 0 100, inner 10 20, across 90 40, late 95 3, apart 140 5")
        plane = Plane("/device:TPU:0", [Line("Async XLA Ops", spans)])
        exported = json.loads("".join(pieces(read_timeline(timeline_text(read(plane))), "title")))
        events = exported["traceEvents"]
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        tracks = {event["name"]: names[event["tid"]] for event in events if event["ph"] == "X"}
        first, second = "Async XLA Ops", "Async XLA Ops (2)"
        assert tracks == {"outer": first, "inner": first, "across": second, "late": first, "apart": first}

    def test_perfetto_has_counters_and_what_ran_in_microseconds(self):
        marks = [host("MemoryAllocation", 3, 0, bytes_allocated=64, allocator_name="GPU_0_bfc")]
        trace = read(on_gpu(op("gemm", 1, 4.5)), on_cpu(python=marks))
        trace.read_rest()
        exported = json.loads("".join(pieces(read_timeline(timeline_text(trace)), "title")))
        ran = next(event for event in exported["traceEvents"] if event["ph"] == "X")
        count = next(event for event in exported["traceEvents"] if event["ph"] == "C")
        assert ran["dur"] == 4.5
        assert count["ts"] - ran["ts"] == 2
        assert count["args"] == {"bytes": 64}


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
