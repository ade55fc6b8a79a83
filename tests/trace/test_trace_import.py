"""A profile through the engine's process into a session, and out again: programs, HLO, timeline, commands."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from made_traces import cpu_plane, gpu_planes, op, read, tpu_plane
from xplane_wire import Line, Plane, nested, number, space_bytes

from jaxprof.cli.programs import Wanted, find_programs
from jaxprof.errors import FileRefusedError, UsageError
from jaxprof.report.perfetto import to_perfetto
from jaxprof.report.views import VIEWS, profile_text, view_csv, view_json, view_text
from jaxprof.results.measured import measured, whole_profile
from jaxprof.results.timeline import read_timeline
from jaxprof.session import Session
from jaxprof.store import LogWriter, load, new_header
from jaxprof.trace.sources import read_profile
from jaxprof.trace.timeline import timeline_text
from jaxprof.worker import Conductor, is_profile, own_interpreter, plan_profile


def write(folder: Path, *planes: Plane, name: str = "host.xplane.pb") -> Path:
    path = folder / name
    path.write_bytes(space_bytes(planes))
    return path


def conducted(path: Path, target: Path) -> Session:
    writer = LogWriter(new_header({}), target)
    conductor = Conductor(writer, own_interpreter(), lambda events: None)
    conductor.add([plan_profile(path)])
    conductor.run()
    conductor.close()
    return conductor.session


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


def test_a_run_for_the_whole_and_one_for_each_program(session: Session) -> None:
    assert session.complete
    assert [(run.id, run.label, run.status) for run in session.runs.values()] == [
        ("r1", "host.xplane.pb profile gpu:0", "ok"),
        ("r2", "jit_f profile gpu:0", "ok"),
        ("r3", "jit_g profile gpu:0", "ok"),
    ]
    assert session.runs["r3"].plan.parameters == {"program": "9"}


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


def test_the_hlo_of_a_profile_is_listed_by_program(tmp_path: Path) -> None:
    device, launches = gpu_planes()
    device.lines = [*device.lines, Line("Stream #9(Kernel)", [op("exp", 200, 5, module="jit_g", program=9)], id=9)]
    metadata = Plane("/host:metadata", metadata={"jit_g(9)": {"Hlo Proto": hlo_proto()}})
    path = write(tmp_path, device, launches, metadata)
    for target in (path, tmp_path):  # a file, and the folder that it lies in
        (program,) = find_programs(str(target), None, None, Wanted())
        assert program.label == "r3 jit_g profile gpu:0"
        assert [one.opcode for one in program.module.entry or ()] == ["parameter", "exponential"]
    with pytest.raises(UsageError, match="no compiled program"):
        find_programs(str(path), "r2", None, Wanted())


def test_a_profile_without_hlo_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, *gpu_planes())
    with pytest.raises(UsageError, match="holds no HLO"):
        find_programs(str(path), None, None, Wanted())


def test_a_text_is_no_profile(tmp_path: Path) -> None:
    for content in (b"hostname\n", b"\x7fELF\x02", b""):
        path = tmp_path / "text"
        path.write_bytes(content)
        assert not is_profile(path)


def test_measured_kernels_with_shares_of_program_and_profile(session: Session) -> None:
    found = measured(session, "r2")
    assert found is not None
    assert {kernel.name: round(kernel.share or 0, 4) for kernel in found.kernels} == {"fusion": 0.7857, "dot.1": 0.2143}
    assert sum(kernel.share or 0 for kernel in whole_profile(session)) == pytest.approx(1)
    assert found.kernels[0].uncertain
    assert found.kernels[0].launch["registers"] == 32


def test_devices_are_kept_with_what_the_profile_says_of_them(session: Session) -> None:
    environment = session.runs["r1"].environment
    assert environment is not None
    assert environment.devices[0] == {
        "id": "gpu:0",
        "platform": "gpu",
        "vendor": "Nvidia",
        "core_count": 132,
        "memory_bytes_per_second": 3_350_000_000_000,
        "clock_hertz": 1_980_000_000,
    }


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_every_form(session: Session, view: str) -> None:
    assert view_text(session, view)
    assert json.dumps(view_json(session, view), allow_nan=False)
    assert view_csv(session, view).startswith("run")


def test_the_profile_at_a_glance(session: Session) -> None:
    text = profile_text(session)
    assert "fusion (?)" in text
    assert "copies host to device on gpu:0: 1 in 10.0 µs, 3.91 KiB, 400 MB/s" in text
    assert "kernels with 6% of the device's time name no HLO op" in text


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

    def test_past_the_limit_the_shortest_of_the_host_go_first(self) -> None:
        timeline = read_timeline(timeline_text(read(cpu_plane()), limit=3))
        assert (timeline.intervals, timeline.left_out) == (3, 3)
        assert all(lane.kind == "thread" for lane in timeline.lanes)

    @pytest.mark.parametrize("text", ["", "[]", '{"version":1}', '{"version":9,"lanes":[]}', "{"])
    def test_damage_is_refused(self, text: str) -> None:
        with pytest.raises(FileRefusedError):
            read_timeline(text)

    def test_perfettos_form_can_be_opened_again(self, tmp_path: Path) -> None:
        trace = read(tpu_plane())
        path = tmp_path / "out.json.gz"
        path.write_bytes(gzip.compress("".join(to_perfetto(read_timeline(timeline_text(trace)), "title")).encode()))
        again = read_profile(path)
        assert {lane.device for lane in again.lanes} == {"tpu:0"}
        assert [len(lane) for lane in again.lanes if lane.kind == "ops"] == [4]


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
    assert is_profile(path) is expected
    assert is_profile(tmp_path)
    assert not is_profile(tmp_path / "missing")
