"""Damaged, foreign and hostile files: an error or a partial result that says what is missing; nothing else. The walk
from many places finds what following the chain link by link finds, damage or not."""

import errno
import gzip
import mmap
import os
from contextlib import suppress
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import cpu_plane, gpu_planes, host, on_cpu, on_gpu, op
from xplane_wire import nested, number, space_bytes, varint

from jaxprof.base.errors import FileRefusedError, UsageError
from jaxprof.events import KernelsMeasured, TrustReported, WarningRaised
from jaxprof.hlo.text.wire import TruncatedError, fields
from jaxprof.trace import lanes, xspace
from jaxprof.trace.events import Events
from jaxprof.trace.imported import import_profile
from jaxprof.trace.lanes import PlaneLine
from jaxprof.trace.sources import choose, read_file, read_profile
from jaxprof.trace.summary import events_of
from jaxprof.trace.xspace import PADDING, Space, varints


def test_numbers_of_each_length_are_read_at_once():
    numbers = [0, *(1 << bits for bits in (7, 14, 34, 35, 62, 63)), (1 << 64) - 1]
    ends = np.cumsum([0, *(len(varint(each)) for each in numbers)])
    values, after = varints(np.frombuffer(b"".join(map(varint, numbers)) + bytes(PADDING), np.uint8), ends[:-1])
    assert (values.tolist(), after.tolist()) == (numbers, ends[1:].tolist())


def written(folder, raw, name="host.xplane.pb"):
    path = folder / name
    path.write_bytes(raw)
    return path


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
def test_files_of_other_tools_are_refused(tmp_path, raw):
    with pytest.raises(FileRefusedError, match="without a profile"):
        read_profile(tmp_path)
    with pytest.raises(FileRefusedError):
        read_profile(written(tmp_path, raw))


def said(path, code="file"):
    (trust,) = [event for event in events_of(read_profile(path), "imported") if isinstance(event, TrustReported)]
    return next(row for row in trust.rows if row.code == code)


def test_a_cut_off_file_gives_its_whole_planes_and_says_so(tmp_path):
    device, host_plane = gpu_planes()
    path = written(tmp_path, space_bytes([device, host_plane])[:-20])
    (measured,) = [event for event in events_of(read_profile(path), "imported") if isinstance(event, KernelsMeasured)]
    assert {row.device for row in measured.rows} == {"gpu:0"}
    assert said(path).verdict == "bad"


def test_a_cut_within_a_plane_keeps_the_events_before_it(tmp_path):
    whole = space_bytes([on_gpu(*(host(f"k{n}", 10 * n, 5, correlation_id=n) for n in range(40)))])
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


def test_damaged_event_costs_the_rest_of_its_line(tmp_path):
    raw = bytearray(space_bytes([on_cpu(a=[host(f"f{n}", 10 * n, 5) for n in range(9)], b=[host("g", 0, 7)])]))
    third = raw.index(number(1, 3) + b"\x10")
    raw[third - 1] = 0x7F  # it says that it is longer than the line
    trace = read_profile(written(tmp_path, bytes(raw)))
    assert {lane.name: len(lane) for lane in trace.lanes} == {"a": 2, "b": 1}
    assert "the rest of a cannot be read" in trace.problems[0]


def test_damaged_fields_cost_one_event(tmp_path):
    raw = bytearray(space_bytes([on_cpu(a=[host(f"f{n}", 10 * n, 5) for n in range(9)])]))
    raw[raw.index(number(1, 3) + b"\x10") + 2] = 0x17  # a wire type that does not exist
    trace = read_profile(written(tmp_path, bytes(raw)))
    assert [len(lane) for lane in trace.lanes] == [8]
    assert "1 event left out" in trace.problems[0]


def test_impossible_times_are_left_out_and_counted(tmp_path):
    plane = on_cpu(t=[op("a", 0, 5, run_id=1), op("b", 1 << 41, 5, run_id=1)])
    trace = read_profile(written(tmp_path, space_bytes([plane])))
    assert sum(len(lane) for lane in trace.lanes) == 1
    assert "1 event left out, whose times are impossible" in trace.problems[0]


def test_events_count_only_where_they_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "events=5")
    calls = [host(f"$train.py:{n} f", n, 1) for n in range(9)]
    trace = read_file(written(tmp_path, space_bytes([on_cpu(python=[*calls, op("dot", 20, 5, run_id=1)])])))
    assert [len(lane) for lane in trace.ready] == [1]
    with pytest.raises(FileRefusedError, match="more than 5 events"):
        trace.read_rest()


def test_events_with_statistics_count_once(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "events=5")
    plane = on_cpu(t=[op(f"dot.{n}", 10 * n, 5, run_id=1) for n in range(5)])
    assert sum(len(lane) for lane in read_profile(written(tmp_path, space_bytes([plane]))).lanes) == 5


def test_profile_without_room_in_memory_is_refused(tmp_path, monkeypatch):
    def no_room(*_, **__):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(xspace.mmap, "mmap", no_room)
    with pytest.raises(FileRefusedError, match=r"cannot be read: .*memory"):
        read_profile(written(tmp_path, space_bytes([on_cpu(t=[op("dot", 0, 5, run_id=1)])])))


def test_a_line_reads_the_same_in_small_parts(tmp_path, monkeypatch):
    calls = [host(f"$train.py:{n % 7} f", 3 * n, 2, **({"step_num": n} if n % 9 == 0 else {})) for n in range(900)]
    ops = [op(f"dot.{n % 5}", 3 * n, 2, run_id=n // 100 + 1) for n in range(900)]
    mixed = [event for pair in zip(calls, ops, strict=True) for event in pair]
    path = written(tmp_path, space_bytes([on_cpu(python=mixed), on_gpu(*ops)]))
    whole = read_profile(path)
    expected = [(lane.device, lane.starts.tolist(), lane.names, lane.op_of.tolist(), lane.step) for lane in whole.lanes]
    monkeypatch.setattr(xspace, "_PART", mmap.PAGESIZE)
    monkeypatch.setattr(lanes, "_BLOCK", 20_000)
    parts = read_profile(path)
    for lane, (device, starts, names, ops_of, step) in zip(parts.lanes, expected, strict=True):
        assert lane.device == device
        assert lane.starts.tolist() == starts
        assert lane.names == names
        assert lane.op_of.tolist() == ops_of
        assert (lane.step is None) == (step is None)
        assert step is None or lane.step.tolist() == step.tolist()
    assert parts.ops == whole.ops
    assert parts.events == whole.events == 2700


def test_a_cut_off_gzip_gives_what_it_holds(tmp_path):
    packed = gzip.compress(space_bytes([cpu_plane()] * 3))
    trace = read_profile(written(tmp_path, packed[:-12], "x.xplane.pb.gz"))
    assert any("the gzip file has no end" in problem for problem in trace.problems)


class TestFolders:
    @staticmethod
    def log_folder(tmp_path):
        for run, hosts in (("2026_01_01", ["a"]), ("2026_02_02", ["a", "b"])):
            folder = tmp_path / "plugins" / "profile" / run
            folder.mkdir(parents=True)
            for name in hosts:
                written(folder, space_bytes([cpu_plane()]), f"{name}.xplane.pb")
                written(folder, gzip.compress(b"{}"), f"{name}.trace.json.gz")
        return tmp_path

    def test_chosen_profile_is_the_newest_runs_first_host(self, tmp_path):
        folder = self.log_folder(tmp_path)
        newest = folder / "plugins/profile/2026_02_02"
        assert choose(folder).path == newest / "a.xplane.pb"
        assert choose(folder, host="b").path == newest / "b.xplane.pb"
        assert choose(folder, "2026_01_01").run.name == "2026_01_01"
        with pytest.raises(UsageError, match="2026_02_02, 2026_01_01"):
            choose(folder, "2025")
        with pytest.raises(UsageError, match="It has a, b"):
            choose(folder, host="c")

    def test_the_hosts_that_are_not_read_are_named(self, tmp_path):
        events = []
        import_profile(self.log_folder(tmp_path), "r1", events.append)
        (warning,) = (event for event in events if isinstance(event, WarningRaised) and event.code == "other_hosts")
        assert warning.message == "this is the profile of a; the recording also has b"


def line(events, seed, long=0.001, first=3, offsets=True, value=300):
    """Events with statistics in them, which have the same tag; a share of `long` ones. Statistics are below `value`."""
    random = np.random.default_rng(seed)
    out = bytearray()
    for _ in range(events):
        content = number(1, first) + (number(2, int(random.integers(1 << 40))) if offsets else number(3, 7))
        for _ in range(int(random.integers(7))):
            content += nested(4, number(1, 9) + number(7, int(random.integers(value))))
        if random.random() < long:
            content += nested(4, bytes(int(random.integers(200, 40_000))))
        out += nested(4, content)
    return bytes(out)


def begins(raw):
    """Where the events begin, block by block, and where a chain followed link by link finds them."""
    space = Space(raw + bytes(PADDING))
    found, singly, at = [], [], 0
    with suppress(TruncatedError):
        of_line = PlaneLine(SimpleNamespace(space=space), 0, len(raw))
        found = [start for starts, _ in of_line.blocks() for start in starts.tolist()]
    with suppress(TruncatedError, IndexError):
        for *_, after in fields(space.blob, 0, len(raw)):
            singly += [at] if space.blob[at] == 0x22 else []
            at = after
    return found, singly


@cache
def whole_line():
    return line(12_000, 5)


def test_a_long_line_is_walked_and_found_whole(monkeypatch):
    monkeypatch.setattr(lanes, "_follow", None)  # for what is left of a block, and events that are too long for a step
    raw = line(12_000, 5, long=0)
    starts, end = lanes.event_starts(raw, np.frombuffer(raw + bytes(PADDING), np.uint8), 0, len(raw))
    assert (len(starts), end) == (12_000, len(raw))


@pytest.mark.parametrize("form", [{"first": 700}, {"offsets": False}, {"value": 17}, {"first": 1 << 20}])
def test_walks_begin_at_events_of_any_form(form):
    raw = line(9_000, 6, long=0, **form)
    found, singly = begins(raw)
    assert found == singly
    starts, _ = lanes.event_starts(raw, np.frombuffer(raw + bytes(PADDING), np.uint8), 0, len(raw))
    assert len(starts) > 8_000  # not cut short by a guess that was wrong


def test_a_line_with_long_events_is_found_whole():
    found, singly = begins(whole_line())
    assert found == singly
    assert len(found) == 12_000


@pytest.mark.parametrize(("left_out", "kept"), [([False, True, False], [3]), ([True, False, False], [1, 2])])
def test_events_are_left_out_by_id_in_any_order(left_out, kept):
    contents = [number(1, 1) + number(2, 1), number(2, 2) + number(1, 1), number(2, 3)]
    space = Space(b"".join(nested(4, content) for content in contents) + bytes(PADDING))
    events = Events(SimpleNamespace(space=space, stat_ids=dict))
    events.add(np.array([0, 6, 12]), np.array(left_out))
    assert events.starts_ps.tolist() == kept


@given(data=st.data())
def test_statistics_of_alike_events_read_as_singly(data):
    layouts = [[(1, 3, 7), (2, 4, 1 << 40), (9, 7, 5)], [(2, 4, 1 << 20), (200, 3, 6)], [(1, 5, b"loop")], []]
    raw, starts = bytearray(), []
    for which in data.draw(st.lists(st.integers(0, len(layouts) - 1), min_size=1, max_size=30)):
        stats = [
            nested(4, number(1, key) + (nested(tag, value) if tag == 5 else number(tag, value + len(starts) % 3)))
            for key, tag, value in layouts[which]
        ]
        starts.append(len(raw))
        raw += nested(4, number(1, 1) + number(2, 5) + number(3, 5) + b"".join(stats))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    space = Space(bytes(raw) + bytes(PADDING))

    def read(*parts):
        events = Events(SimpleNamespace(space=space, stat_ids=lambda *_: {1: "a", 2: "b", 200: "c"}), "a", "b", "c")
        for part in parts:
            events.add(np.array(part))
        return [[events.stat(name).number.tolist(), events.stat(name).sort.tolist()] for name in "abc"]

    assert read(starts) == read(*([start] for start in starts))


@given(data=st.data())
def test_damage_is_met_in_the_same_place(data):
    raw = bytearray(whole_line())
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    found, singly = begins(bytes(raw[: data.draw(st.integers(1, len(raw)))]))
    assert found == singly


@pytest.mark.parametrize(
    "filler", [b"\x22\x00", b"\x22\x22", b"\x22\xff", b"\x00"], ids=["empty", "tags", "long", "zeros"]
)
def test_a_line_made_to_mislead(filler):
    found, singly = begins(filler * (300_000 // len(filler)))
    assert found == singly
