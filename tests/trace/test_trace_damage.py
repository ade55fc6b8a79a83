"""Damaged, foreign and hostile files: an error or a partial result that says what is missing; nothing else. The walk
from many places finds what following the chain link by link finds, damage or not."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import cpu_plane, gpu_planes, host, op
from xplane_wire import Line, Plane, nested, number, space_bytes

import mutated
from jaxprof.errors import FileRefusedError, UsageError
from jaxprof.events import KernelsMeasured, TrustCheck, TrustReported, encode
from jaxprof.trace.line import Chain
from jaxprof.trace.sources import read_profile
from jaxprof.trace.summary import summarise
from jaxprof.trace.varints import padded


def _dot(at: float, took: float, run: int) -> dict[str, object]:
    args = {"hlo_op": "dot", "hlo_module": "jit_f", "run_id": str(run)}
    return {"ph": "X", "pid": 1, "tid": 2, "ts": at, "dur": took, "name": "dot", "args": args}


CHROME = json.dumps({
    "displayTimeUnit": "ns",
    "traceEvents": [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "tf_XLA/2"}},
        _dot(1.5, 2.0, -4), _dot(5.0, 4.0, -3), {},
    ],
}).encode()  # fmt: skip


def written(folder: Path, raw: bytes, name: str = "host.xplane.pb") -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path


def sound_or_refused(path: Path) -> None:
    """Reads the file; whatever comes of it can be written into a log, or is a refusal with words."""
    with contextlib.suppress(FileRefusedError):
        for event in summarise(path, "imported"):
            encode(event)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_json(tmp_path: Path, seed: int) -> None:
    """Other damaged profiles are in `tests/cli/test_mutated.py`."""
    chance = random.Random(seed)
    for _ in range(10):
        sound_or_refused(written(tmp_path, mutated.with_faults(CHROME, chance), "x.trace.json"))


@pytest.mark.parametrize(
    "raw",
    [
        b"# Notes\nsome text",
        b'{"traceEvents": []}',
        b"\x0a\x05\x0a\x03abc" * 40,
        b"\x89PNG\r\n\x1a\n" + bytes(50),
        b"\x1f\x8b" + bytes(20),
    ],
    ids=["text", "json", "perfetto", "png", "gzip"],
)
def test_files_of_other_tools_are_refused(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(FileRefusedError, match="without a profile"):
        read_profile(tmp_path)
    with pytest.raises(FileRefusedError):
        read_profile(written(tmp_path, raw))


def said(path: Path, code: str = "file") -> TrustCheck:
    (trust,) = [event for event in summarise(path, "imported") if isinstance(event, TrustReported)]
    return next(row for row in trust.rows if row.code == code)


def test_a_cut_off_file_gives_its_whole_planes_and_says_so(tmp_path: Path) -> None:
    device, host_plane = gpu_planes()
    path = written(tmp_path, space_bytes([device, host_plane])[:-20])
    (measured,) = [event for event in summarise(path, "imported") if isinstance(event, KernelsMeasured)]
    assert {row.device for row in measured.rows} == {"gpu:0"}
    assert said(path).verdict == "bad"


def test_a_cut_within_a_plane_keeps_the_events_before_it(tmp_path: Path) -> None:
    lines = [Line("Stream #1", [host(f"k{n}", 10 * n, 5, correlation_id=n) for n in range(40)])]
    whole = space_bytes([Plane("/device:GPU:0", lines)])
    seen = []
    for tenth in range(2, 11):
        path = written(tmp_path, whole[: len(whole) * tenth // 10])
        trace = read_profile(path)
        found = trace.lanes[0] if trace.lanes else None
        seen.append(0 if found is None else len(found))
        if found is not None:
            assert found.starts.tolist() == [10_000_000 * n for n in range(len(found))]
        if tenth < 10:
            assert "/device:GPU:0 is truncated or damaged: it lacks" in said(path).message
    assert seen == sorted(seen)
    assert seen[2] > 5
    assert seen[-1] == 40


def test_a_damaged_event_costs_the_rest_of_its_line_and_nothing_else(tmp_path: Path) -> None:
    lines = [Line("a", [host(f"f{n}", 10 * n, 5) for n in range(9)]), Line("b", [host("g", 0, 7)])]
    raw = bytearray(space_bytes([Plane("/host:CPU", lines)]))
    third = raw.index(b"\x22", raw.index(b"a\x18") + 24)
    while raw[third + 2 : third + 4] != b"\x08\x03":
        third = raw.index(b"\x22", third + 1)
    raw[third + 1] = 0x7F  # it says that it is longer than the line
    trace = read_profile(written(tmp_path, bytes(raw)))
    assert {lane.name: len(lane) for lane in trace.lanes} == {"a": 2, "b": 1}
    assert "the rest of a cannot be read" in trace.problems[0]


def test_impossible_times_are_left_out_and_counted(tmp_path: Path) -> None:
    line = Line("t", [op("a", 0, 5, run_id=1), op("b", 1 << 41, 5, run_id=1)])
    trace = read_profile(written(tmp_path, space_bytes([Plane("/host:CPU", [line])])))
    assert sum(len(lane) for lane in trace.lanes) == 1
    assert "1 event left out, whose times are impossible" in trace.problems[0]


def test_a_cut_off_gzip_gives_what_it_holds(tmp_path: Path) -> None:
    packed = gzip.compress(space_bytes([cpu_plane()] * 3))
    trace = read_profile(written(tmp_path, packed[:-12], "x.xplane.pb.gz"))
    assert any("the gzip file has no end" in problem for problem in trace.problems)


@pytest.mark.parametrize(
    "event",
    ['{"ph":"X","pid":1,"tid":2,"ts":NaN,"dur":1,"name":"a"}', '{"ph":"X","pid":1,"tid":2,"ts":1e300,"name":"a"}',
     '{"ph":"X","pid":1,"tid":2,"ts":1,"dur":1,"name":"a","args":"text"}', '{"ph":"X","ts":1,"name":"a"}', "[1]", "7"],
)  # fmt: skip
def test_an_event_of_another_form_is_left_out_and_counted(tmp_path: Path, event: str) -> None:
    raw = CHROME.replace(b'{"ph": "X"', event.encode() + b', {"ph": "X"', 1)
    trace = read_profile(written(tmp_path, raw, "x.trace.json"))
    assert trace.events == 2
    assert trace.problems == ["1 events are not Chrome trace events, and are left out"]


def test_a_chrome_trace(tmp_path: Path) -> None:
    events = list(summarise(written(tmp_path, gzip.compress(CHROME), "x.trace.json.gz"), "imported"))
    assert isinstance(events[0], CaptureTaken)
    assert events[0].wall_seconds == pytest.approx(7.5e-6)
    (row,) = events[1].rows  # type: ignore[attr-defined]
    assert (row.count, row.total_seconds, row.program) == (2, pytest.approx(6e-6), None)


def test_a_chrome_trace_by_the_clock_of_a_machine_begins_at_its_first_event(tmp_path: Path) -> None:
    raw = CHROME.replace(b'"ts": 1.5', b'"ts": 300000000001.5').replace(b'"ts": 5.0', b'"ts": 300000000005.0')
    span = read_profile(written(tmp_path, raw, "x.trace.json")).span_ps
    assert span == (0, pytest.approx(7_500_000, abs=100))  # a double has no more digits so far on


def test_a_chrome_trace_of_another_tool_has_no_kernels(tmp_path: Path) -> None:
    raw = json.dumps([{"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 1, "name": "aten::mm"}]).encode()
    row = said(written(tmp_path, raw, "torch.json"), "no_kernels")
    assert "recorded by another tool" in row.message + row.advice


class TestFolders:
    @staticmethod
    def log_folder(tmp_path: Path) -> Path:
        for run, hosts in (("2026_01_01", ["a"]), ("2026_02_02", ["a", "b"])):
            folder = tmp_path / "plugins" / "profile" / run
            folder.mkdir(parents=True)
            for place, name in enumerate(hosts):
                task = Plane("Task Environment", stats={"profile_start_time": 1_700_000_000_000_000_000 + place * 1000})
                written(folder, space_bytes([cpu_plane(), task]), f"{name}.xplane.pb")
                written(folder, gzip.compress(b"{}"), f"{name}.trace.json.gz")
        return tmp_path

    def test_the_newest_run_with_all_its_hosts_on_one_clock_unless_others_are_chosen(self, tmp_path: Path) -> None:
        folder = self.log_folder(tmp_path)
        trace = read_profile(folder)
        starts = {
            device: min(int(lane.starts.min()) for lane in trace.op_lanes() if lane.device == device)
            for device in ("a/cpu:0", "b/cpu:0")
        }
        assert starts == {"a/cpu:0": 0, "b/cpu:0": 1_000_000}
        assert trace.hosts == ["a", "b"]
        assert read_profile(folder, "2026_01_01").hosts == ["a"]
        assert {lane.device for lane in read_profile(folder, hosts=["b"]).op_lanes()} == {"cpu:0"}
        with pytest.raises(UsageError, match="2026_02_02, 2026_01_01"):
            read_profile(folder, "2025")
        with pytest.raises(UsageError, match="It has a, b"):
            read_profile(folder, hosts=["c"])

    def test_a_host_that_cannot_be_read_is_left_out_and_named(self, tmp_path: Path) -> None:
        folder = self.log_folder(tmp_path)
        written(folder / "plugins/profile/2026_02_02", b"", "b.xplane.pb")
        trace = read_profile(folder)
        assert {lane.device for lane in trace.op_lanes()} == {"cpu:0"}
        assert "b.xplane.pb is empty" in trace.problems[0]


TAG = 4 << 3 | 2


def line(events: int, seed: int) -> bytes:
    """Events with statistics in them, which have the same tag; a long one now and then."""
    random = np.random.default_rng(seed)
    out = bytearray()
    for _ in range(events):
        content = number(1, 3) + number(2, int(random.integers(1 << 40)))
        for _ in range(int(random.integers(7))):
            content += nested(4, number(1, 9) + number(7, int(random.integers(300))))
        if random.random() < 0.001:
            content += nested(4, bytes(int(random.integers(200, 40_000))))
        out += nested(4, content)
    return bytes(out)


def begins(raw: bytes, *, walking: bool) -> tuple[list[int], int]:
    chain = Chain(padded(raw), raw + bytes(16), 0, len(raw), TAG)
    if not walking:
        chain._walks.clear()
    pieces, end = chain.run(0)
    return np.concatenate(pieces).tolist(), end


WHOLE_LINE = line(12_000, 5)


def test_a_long_line_is_walked_and_found_whole() -> None:
    chain = Chain(padded(WHOLE_LINE), WHOLE_LINE + bytes(16), 0, len(WHOLE_LINE), TAG)
    assert len(chain._walks) > 8
    assert begins(WHOLE_LINE, walking=True) == begins(WHOLE_LINE, walking=False)
    assert len(begins(WHOLE_LINE, walking=True)[0]) == 12_000


@given(data=st.data())
def test_damage_is_met_in_the_same_place(data: st.DataObject) -> None:
    raw = bytearray(WHOLE_LINE)
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(1, len(raw)))])
    assert begins(cut, walking=True) == begins(cut, walking=False)


@pytest.mark.parametrize(
    "filler", [b"\x22\x00", b"\x22\x22", b"\x22\xff", b"\x00"], ids=["empty", "tags", "long", "zeros"]
)
def test_a_line_made_to_mislead(filler: bytes) -> None:
    raw = filler * (300_000 // len(filler))
    assert begins(raw, walking=True) == begins(raw, walking=False)
