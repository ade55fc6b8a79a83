"""A profile through the engine's process into a session, and out again: programs, HLO, timeline, commands."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import cpu_plane, gpu_planes, host, op, read
from xplane_wire import Event, Line, Plane, nested, number, space_bytes

from jaxprof.analysis.lanes.questions import range_totals
from jaxprof.analysis.lanes.rows import lanes_of
from jaxprof.analysis.measured import measured, whole_profile
from jaxprof.analysis.opener import Kind, kind_of
from jaxprof.analysis.timeline import read_timeline
from jaxprof.cli.hlo_target import CompileOptions, find_modules
from jaxprof.errors import UsageError
from jaxprof.exports.perfetto import to_perfetto
from jaxprof.runner import Scheduler, own_interpreter, plan_profile
from jaxprof.session import Session
from jaxprof.session.log import LogWriter, load, new_header
from jaxprof.trace.ops import op_times
from jaxprof.trace.sources import read_file
from jaxprof.trace.timeline import timeline_text


def write(folder: Path, *planes: Plane, name: str = "host.xplane.pb") -> Path:
    path = folder / name
    path.write_bytes(space_bytes(planes))
    return path


def conducted(path: Path, target: Path) -> Session:
    writer = LogWriter(new_header({}), target)
    scheduler = Scheduler(writer, own_interpreter(), lambda events: None)
    scheduler.add([plan_profile(path)])
    scheduler.run()
    scheduler.close()
    return scheduler.session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Of a GPU profile with two programs; folded from the file that was written."""
    folder = tmp_path_factory.mktemp("gpu")
    device, launches = gpu_planes()
    more = Line("Stream #9(Kernel)", [op("exp", 200, 5, module="jit_g", program=9, correlation_id=50)], id=9)
    device.lines = [*device.lines, more]
    metadata = Plane("/host:metadata", metadata={"jit_g(9)": {"Hlo Proto": b"broken"}})
    live = conducted(write(folder, device, launches, metadata), folder / "s.jaxprof")
    kept = load(folder / "s.jaxprof", Session)
    assert [run.label for run in kept.runs.values()] == [run.label for run in live.runs.values()]
    return kept


@pytest.mark.process
def test_a_run_for_the_whole_and_one_for_each_program(session: Session) -> None:
    assert session.complete
    assert [(run.id, run.label, run.status) for run in session.runs.values()] == [
        ("r1", "host.xplane.pb profile gpu:0", "ok"),
        ("r2", "jit_f profile gpu:0", "ok"),
        ("r3", "jit_g profile gpu:0", "ok"),
    ]
    assert session.runs["r3"].plan.parameters == {"program": "9"}


@pytest.mark.process
def test_hlo_that_cannot_be_read_is_a_warning_of_its_program(session: Session) -> None:
    (warning,) = session.runs["r3"].warnings
    assert (warning.code, "jit_g have times only" in warning.message) == ("no_hlo", True)


def hlo_proto() -> bytes:
    """A program of one `exponential` over 8 float32, as HloProto (hlo.proto, xla_data.proto)."""
    shape = number(2, 11) + nested(3, b"\x08") + nested(5, nested(1, b"\x00"))
    x = nested(1, "x") + nested(2, "parameter") + nested(3, shape) + number(9, 0) + number(35, 1)
    result = nested(1, "exp") + nested(2, "exponential") + nested(3, shape) + number(35, 2) + nested(36, b"\x01")
    main = nested(1, "main") + nested(2, x) + nested(2, result) + number(5, 1) + number(6, 2)
    return nested(1, nested(1, "jit_g") + nested(2, "main") + nested(3, main) + number(5, 9) + number(6, 1))


@pytest.mark.process
def test_the_hlo_of_a_profile_is_listed_by_program(tmp_path: Path) -> None:
    device, launches = gpu_planes()
    device.lines = [*device.lines, Line("Stream #9(Kernel)", [op("exp", 200, 5, module="jit_g", program=9)], id=9)]
    metadata = Plane("/host:metadata", metadata={"jit_g(9)": {"Hlo Proto": hlo_proto()}})
    path = write(tmp_path, device, launches, metadata)
    for target in (path, tmp_path):  # a file, and the folder that it lies in
        (module,) = find_modules(str(target), None, None, CompileOptions())
        assert module.label == "r3 jit_g profile gpu:0"
        assert [instruction.opcode for instruction in module.hlo.entry or ()] == ["parameter", "exponential"]
    with pytest.raises(UsageError, match="no compiled program"):
        find_modules(str(path), "r2", None, CompileOptions())


@pytest.mark.process
def test_measured_kernels_with_shares_of_program_and_profile(session: Session) -> None:
    found = measured(session, "r2")
    assert {kernel.name: round(kernel.share or 0, 4) for kernel in found.kernels} == {"fusion": 0.7857, "dot.1": 0.2143}
    assert sum(kernel.share or 0 for kernel in whole_profile(session)) == pytest.approx(1)
    assert found.kernels[0].uncertain
    assert found.kernels[0].launch.registers == 32


@pytest.mark.process
def test_devices_are_kept_with_what_the_profile_says_of_them(session: Session) -> None:
    environment = session.runs["r1"].environment
    assert environment.devices[0] == {
        "id": "gpu:0",
        "platform": "gpu",
        "vendor": "Nvidia",
        "core_count": 132,
        "memory_bytes_per_second": 3_350_000_000_000,
        "clock_hertz": 1_980_000_000,
    }


@pytest.mark.process
def test_a_refused_file_fails_the_run_in_words(tmp_path: Path) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(b"")
    (run,) = conducted(path, tmp_path / "s.jaxprof").runs.values()
    assert (run.status, "0 bytes" in run.error) == ("failed", True)


class TestTimeline:
    def test_it_reads_as_it_was_written(self) -> None:
        trace = read(*gpu_planes())
        timeline = read_timeline(timeline_text(trace))
        stream = next(lane for lane in timeline.lanes if lane.kind == "stream")
        assert stream.starts == [0, 10_000, 30_000, 40_000, 80_000, 100_000]
        assert stream.durations == [10_000, 20_000, 5_000, 30_000, 15_000, 5_000]
        name, number = stream.labels[stream.label_of[1]]
        assert number is not None
        assert (name, timeline.ops[number].name, timeline.ops[number].program) == ("loop_fusion.kd", "fusion", "7")
        assert timeline.left_out == 0

    def test_what_is_left_out_is_not_idle(self, tmp_path: Path) -> None:
        """Of 100 kernels of 1 us on end and two of 50, three are kept: the stream was busy all the time."""
        events = [op("long", 0, 50), *(op("short", 50 + at, 1) for at in range(100)), op("long", 150, 50)]
        trace = read(Plane("/device:GPU:0", [Line("Stream #7", events)]))
        timeline = read_timeline(timeline_text(trace, limit=3))
        (found,) = range_totals(lanes_of(timeline), 0, 200_000).lanes
        assert (timeline.left_out, found.left_out, found.count, found.busy_ns, found.idle_ns) == (99, 99, 3, 200_000, 0)
        (half,) = range_totals(lanes_of(timeline), 60_000, 100_000).lanes
        assert half.idle_ns == pytest.approx(0, abs=2_000)

    def test_of_an_older_session_that_lacks_intervals_idle_time_is_unknown(self) -> None:
        data = json.loads(timeline_text(read(cpu_plane()), limit=3))
        for lane in data["lanes"]:
            del lane["left_out"]
            lane.pop("active", None)
        totals = range_totals(lanes_of(read_timeline(json.dumps(data))), 0, 60_000).lanes
        assert {(found.left_out, found.idle_ns, found.busy_share) for found in totals} == {(None, None, None)}

    @given(st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 60_000)), min_size=1, max_size=30))
    def test_rounding_keeps_nesting_and_what_is_apart(self, spans: list[tuple[int, int]]) -> None:
        events = [Event(f"e{number}", start, length) for number, (start, length) in enumerate(spans)]
        plane = Plane("/device:TPU:0", [Line("XLA Ops", events)])
        (lane,) = read_timeline(timeline_text(read(plane))).lanes
        columns = zip(lane.label_of, lane.starts, lane.durations, strict=True)
        shown = [(lane.labels[label][0], start, start + duration) for label, start, duration in columns]
        true = {f"e{number}": (start, start + length) for number, (start, length) in enumerate(spans)}
        for first, begin, end in shown:
            for second, other_begin, other_end in shown:
                if true[first][1] <= true[second][0]:
                    assert end <= other_begin
                if true[first][0] <= true[second][0] and true[second][1] <= true[first][1]:
                    assert begin <= other_begin
                    assert other_end <= end

    def test_what_overlaps_gets_a_track_each_in_perfetto(self) -> None:
        spans = [("outer", 0, 100), ("inner", 10, 20), ("across", 90, 40), ("late", 95, 3), ("apart", 140, 5)]
        plane = Plane("/device:TPU:0", [Line("Async XLA Ops", [host(*span) for span in spans])])
        exported = json.loads("".join(to_perfetto(read_timeline(timeline_text(read(plane))), "title")))
        events = exported["traceEvents"]
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        tracks = {event["name"]: names[event["tid"]] for event in events if event["ph"] == "X"}
        first, second = "Async XLA Ops", "Async XLA Ops (2)"
        assert tracks == {"outer": first, "inner": first, "across": second, "late": first, "apart": first}

    def test_an_export_names_ops_executions_and_steps(self) -> None:
        steps = Line("python", [host("train", 0, 60, step_num=3), host("train", 100, 60, step_num=4)])
        for planes in (gpu_planes(), (Plane("/host:CPU", [*cpu_plane().lines, steps]),)):
            trace = read(*planes)
            events = json.loads("".join(to_perfetto(read_timeline(timeline_text(trace)), "title")))["traceEvents"]
            shown = [event for event in events if event["ph"] == "X"]
            places = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
            took: Counter[str] = Counter()
            for event in shown:
                if len(planes) == 1 or places[event["pid"]].startswith("/device"):  # the host names what it launches
                    took[event.get("args", {}).get("hlo_op", "")] += event["dur"] / 1e6
            assert {row.op.name: took[row.op.name] for row in op_times(trace)} == {
                row.op.name: pytest.approx(row.total_seconds) for row in op_times(trace)
            }
            numbers = {event["args"]["step_num"] for event in shown if "step_num" in event.get("args", {})}
            assert numbers == ({"3", "4"} if len(planes) == 1 else set())


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jaxprof", b'{"format":"jaxprof"}', False),
        ("renamed", b'{"format":"jaxprof"}', False),
        ("a.xplane.pb", b"", True),
        ("a.json", b'{"traceEvents":[]}', True),
        ("a.bin", b"\x0a\x03", True),
    ],
)
def test_profiles_and_sessions_are_told_apart(tmp_path: Path, name: str, content: bytes, expected: bool) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert (kind_of(path) is Kind.PROFILE) is expected
    assert (kind_of(tmp_path) is Kind.PROFILE) is name.endswith(".xplane.pb")
    assert kind_of(tmp_path / "missing") is None


def test_the_reading_stops_where_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "box.xplane.pb"
    path.write_bytes(space_bytes(gpu_planes()))
    shares: list[float] = []

    def advance(share: float) -> None:
        shares.append(share)
        if share > 0.5:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        read_file(path, advance)
    assert len(shares) > 2
