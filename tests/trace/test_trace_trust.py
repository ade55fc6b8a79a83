"""What a capture says against itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_traces import US, async_loop, cpu_plane, gpu_planes, host, op, read
from xplane_wire import Event, Line, Plane

from jaxprof.analysis.explain.catalogue import entries
from jaxprof.events import TrustReported
from jaxprof.trace.model import Trace
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import events_of
from jaxprof.trace.trust.kernels import kernels
from jaxprof.trace.trust.recording import clock, compiles, device_share, slowdown


def trust(trace: Trace, kind: str = "imported", **more: object) -> dict[str, tuple[str, str]]:
    (event,) = [one for one in events_of(trace, kind, **more) if isinstance(one, TrustReported)]  # type: ignore[arg-type]
    return {row.code: (row.verdict, row.message) for row in event.rows}


def test_a_sound_profile_has_good_rows() -> None:
    rows = trust(read(cpu_plane()))
    assert {rows[code][0] for code in ("file", "dropped", "python_tracer", "clock", "unmatched", "steps")} == {"good"}


def test_levels_of_tracing_are_read_from_the_options() -> None:
    options = Plane("Task Environment", stats={"profile_options": b"\x08\x01\x10\x02\x18\x01\x20\x01\x28\x01\x38\x01"})
    assert trust(read(cpu_plane(), options))["tracers"] == ("good", "levels of tracing: host 2, device 1, python 1")


def test_a_tracer_that_was_off_is_said_where_it_is_missing() -> None:
    """The device's is none of a CPU's; without the host's, a GPU still has its kernels."""

    def off(*planes: Plane, host: int, device: int) -> str:
        options = Plane("Task Environment", stats={"profile_options": bytes([8, 1, 16, host, 24, device])})
        return trust(read(*planes, options))["tracers"][0]

    assert off(cpu_plane(), host=2, device=0) == "good"
    assert off(*gpu_planes(), host=2, device=1) == "good"
    assert off(*gpu_planes(), host=2, device=0) == "bad"
    assert off(*gpu_planes(), host=0, device=1) == "doubt"


def test_devices_on_which_nothing_ran() -> None:
    rows = trust(read(*gpu_planes(), Plane("/device:GPU:7")))
    assert rows["idle_devices"] == ("good", "nothing ran on gpu:7")
    assert "idle_devices" not in trust(read(*gpu_planes()))


def test_kernels_without_a_match_and_their_share() -> None:
    verdict, message = trust(read(*gpu_planes()))["unmatched"]
    assert (verdict, message) == ("doubt", "kernels with 5.9 % of the device's time name no HLO op")
    assert trust(_alone("cutlass_gemm"))["guessed"][1].startswith("9.1 % of the device's time")


def test_a_compile_alone_is_not_asked_for_steps() -> None:
    assert not {"steps", "modules", "unrecorded"} & set(trust(read(cpu_plane()), "compile"))
    assert {"steps", "modules", "unrecorded"} <= set(trust(read(cpu_plane()), "run", seconds_of_calls=[1e-3], calls=1))


def test_dropped_events_and_errors_of_the_profiler() -> None:
    rows = trust(
        read(cpu_plane(), warnings=["device activities dropped: 5"], errors=["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"])
    )
    assert rows["dropped"] == ("doubt", "the profiler says: device activities dropped: 5")
    assert rows["profiler_error"][0] == "bad"


def test_no_kernels_because_the_devices_records_are_missing() -> None:
    verdict, message = trust(read(gpu_planes()[1]))["no_kernels"]
    assert verdict == "bad"
    assert "the host launched some" in message


def test_device_time_outside_of_the_steps() -> None:
    assert trust(read(*_outside()))["outside_steps"][1].startswith("75 %")


@pytest.mark.parametrize(
    ("moved_us", "first", "ids", "words"),
    [
        (0, 0, True, ""),
        (1_000_000, 0, False, "997 ms apart"),
        (-1_000_000, 0, False, "879 ms apart"),
        (-1_000_000, 0, True, "24 of 24 kernels begin before their launch"),
        (-100_000, 12, True, "9 of 24 kernels begin before their launch, by up to 41.3 ms"),
        (5_000, 0, False, ""),
    ],
)
def test_clocks_of_host_and_device_that_cannot_be_one(moved_us: int, first: int, ids: bool, words: str) -> None:
    """By ids where launches have them, else by spans that do not meet: a call may return before its work begins."""
    device, threads = async_loop(correlated=ids)
    stream = device.lines[0]
    moved = [replace(event, offset=event.offset + moved_us * US) for event in stream.events[first:]]
    stream.events = [*stream.events[:first], *moved]
    trace = read(device, threads)
    verdict, message = trust(trace)["clock"]
    assert (verdict, words in message) == ("bad" if words else "good", True), message
    if words:
        assert steps_of(trace).devices[0].idle_causes == ()


@pytest.mark.parametrize(
    ("calls", "timed", "code", "verdict"),
    [
        ([60e-6], None, "sum", "good"),
        ([600e-6], None, "sum", "doubt"),
        ([5e-6, 5e-6, 50e-6], None, "sum", "good"),  # of all calls together, whichever was held up
        ([60e-6], 55e-6, "slowdown", "good"),
        ([60e-6], 30e-6, "slowdown", "doubt"),
        ([60e-6], 8e-6, "slowdown", "bad"),
    ],
)
def test_a_capture_against_what_was_timed(calls: list[float], timed: float | None, code: str, verdict: str) -> None:
    rows = trust(read(cpu_plane()), "run", calls=len(calls), seconds_of_calls=calls, timed_seconds=timed)
    assert rows[code][0] == verdict


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.49, "doubt"), (0.5, "good"), (1.05, "good"), (1.06, "doubt"), (None, None)]
)
def test_the_devices_share_of_the_calls(share: float | None, verdict: str | None) -> None:
    assert [row.verdict for row in device_share(share)] == ([verdict] if verdict else [])


@pytest.mark.parametrize(
    ("times", "verdict"), [(1.5, "good"), (1.51, "doubt"), (3.0, "doubt"), (3.01, "bad"), (0, None)]
)
def test_how_much_slower_the_profiler_made_a_call(times: float, verdict: str | None) -> None:
    assert [row.verdict for row in slowdown(times, 1.0)] == ([verdict] if verdict else [])
    assert not list(slowdown(1.0, None))


@pytest.mark.parametrize(
    ("took_us", "verdict", "more_than_a_run"),
    [(10, "good", False), (11, "doubt", False), (50, "doubt", False), (51, "doubt", True)],
)
def test_how_much_of_a_capture_is_a_compile(took_us: int, verdict: str, more_than_a_run: bool) -> None:
    (row,) = compiles(_cpu(op("a", 0, 100, run_id=1)), "run", took_us * 1e-6)
    assert (row.verdict, "mainly shows a compile" in row.message, bool(row.advice)) == (
        verdict, more_than_a_run, verdict == "doubt"
    )  # fmt: skip


def test_a_compile_that_was_captured_for_itself() -> None:
    trace = _cpu(op("a", 0, 100, run_id=1))
    assert [row.verdict for row in compiles(trace, "compile", 90e-6)] == ["good"]
    assert [row.verdict for row in compiles(trace, "compile", None)] == ["unknown"]
    assert not list(compiles(trace, "run", None))


@pytest.mark.parametrize(("lost", "verdict"), [(0, "good"), (3, "doubt"), (4, "doubt"), (5, "bad"), (6, "bad")])
def test_how_many_launches_have_no_kernel(lost: int, verdict: str) -> None:
    """Of 24; a fifth are 4.8."""
    said, message = trust(read(*_without_kernels(lost)))["lost_kernels"]
    assert said == verdict, message
    assert ("24" if not lost else f"{lost} of 24 launches") in message


@pytest.mark.parametrize(
    ("odd", "verdict"), [(140, "good"), (150, "good"), (160, "doubt"), (70, "good"), (67, "good"), (60, "doubt")]
)
def test_a_step_much_longer_or_shorter_than_the_others(odd: float, verdict: str) -> None:
    assert trust(_turns(100, 100, odd, 100, 100))["uneven_steps"][0] == verdict


@pytest.mark.parametrize(
    ("second", "started", "verdict", "words"),
    [
        (None, 10**18, "good", "of one clock"),
        ((50, 90), None, "doubt", "do not say when they began"),
        ((50, 90), 10**18, "doubt", "2 hosts are aligned by their wall clocks"),
        ((100, 150), 10**18, "doubt", "2 hosts are aligned by their wall clocks"),
        ((300, 400), 10**18, "bad", "the recordings of a and b do not overlap: the second begins 200 µs after"),
        ((300, 400), None, "doubt", "do not say when they began"),
    ],
)
def test_the_clocks_of_hosts(second: tuple[int, int] | None, started: int | None, verdict: str, words: str) -> None:
    trace = _cpu(op("a", 0, 100, run_id=1))
    trace.started_unix_ns = started
    (lane,) = trace.lanes
    if second is not None:
        other = _cpu(op("a", second[0], second[1] - second[0], run_id=1)).lanes[0]
        trace.hosts[:] = ["a", "b"]
        trace.lanes[:] = [replace(lane, device="a/cpu:0"), replace(other, device="b/cpu:0")]
    (row,) = clock(trace)
    assert (row.verdict, words in row.message) == (verdict, True), row.message


def _no_kernels_of(**facts: object) -> str:
    return next(iter(kernels(Trace(**facts), "imported"))).message  # type: ignore[arg-type]


def test_why_there_are_no_kernels() -> None:
    assert "no events at all" in _no_kernels_of()
    assert "the planes of gpu:0 name no HLO op" in _no_kernels_of(devices={"gpu:0": {}})
    assert "truncated before the names of the events of gpu:0" in _no_kernels_of(
        devices={"gpu:0": {}}, lost_names=["gpu:0"]
    )
    only_host = read(_PYTHON)
    assert "only host events" in next(iter(kernels(only_host, "imported"))).message


def test_time_of_an_execution_in_which_no_op_was_recorded() -> None:
    """As JAX 0.12 records a sort on CPU: its begin, and then nothing for half a second."""
    sort = [op("dot", 0, 200, run_id=1), op("sort", 200, 2, run_id=1), op("add", 800, 10, run_id=1)]
    rows = trust(read(Plane("/host:CPU", [Line("t", sort)])))
    assert rows["unrecorded"] == (
        "doubt",
        "74 % of the time in which programs were executed on cpu:0 has no op in the record",
    )
    close = [op("dot", 0, 200, run_id=1), op("sort", 200, 600, run_id=1), op("add", 801, 10, run_id=1)]
    assert trust(read(Plane("/host:CPU", [Line("t", close)])))["unrecorded"][0] == "good"
    assert "unrecorded" not in trust(read(*gpu_planes()))


def test_how_the_steps_were_found_is_said_for_each_device() -> None:
    annotated = Line("Steps", [host("1", 0, 30), host("2", 30, 30)])
    planes = [
        Plane("/device:GPU:0", [Line("Stream #1", [op("a", 0, 20), op("a", 30, 20)]), annotated]),
        Plane("/device:GPU:1", [Line("Stream #1", [op("a", 0, 20), op("b", 21, 5), op("a", 30, 20), op("b", 51, 5)])]),
    ]
    message = trust(read(*planes))["steps"][1]
    assert message.startswith("4 steps on 2 devices found ")
    assert "on gpu:0 by their annotations" in message
    assert "on gpu:1 by the executions of the program" in message


def _cpu(*events: Event) -> Trace:
    return read(Plane("/host:CPU", [Line("t", list(events))]))


def _turns(*microseconds: float) -> Trace:
    """Steps of so many microseconds, each of which has one op for most of it."""
    marks, ops, at = [], [], 0.0
    for number, took in enumerate(microseconds):
        marks.append(host("train", at, took, step_num=number))
        ops.append(op("a", at + 1, took - 2, run_id=number + 1))
        at += took
    return read(Plane("/host:CPU", [Line("t", ops), Line("python", marks)]))


def _edge(first: int) -> Trace:
    """Five steps of four ops, of which the first one has as many as given."""
    marks = [host("train", 100 * number, 100, step_num=number) for number in range(5)]
    ops = [
        op(f"o{index}", 100 * number + 20 * index, 10, run_id=number + 1)
        for number in range(5)
        for index in range(first if number == 0 else 4)
    ]
    return read(Plane("/host:CPU", [Line("t", ops), Line("python", marks)]))


def _alone(name: str, op_name: str = "") -> Trace:
    """A GPU's kernels, one of which names an op or none."""
    between = op(op_name, 30, 5, kernel=name) if op_name else host(name, 30, 5)
    return read(Plane("/device:GPU:0", [Line("Stream #1", [op("f", 10, 20), between, op("f", 40, 30)])]))


_PYTHON = Plane("/host:CPU", [Line("python", [host("$train.py:3 step", 0, 5)])])
_COMPILING = Plane("/host:CPU", [Line("python", [host("backend_compile_and_load", 0, 90), host("f", 95, 1)])])
_OFF = Plane("Task Environment", stats={"profile_options": bytes([8, 1, 16, 0, 24, 1])})
_ON = Plane("Task Environment", stats={"profile_options": bytes([8, 1, 16, 2, 24, 1])})


def _with_problem(problem: str) -> Trace:
    trace = read(cpu_plane())
    trace.problems.extend([problem] * bool(problem))
    return trace


def _with_hosts(names: list[str]) -> Trace:
    trace = read(cpu_plane())
    trace.hosts.extend(names)
    return trace


def _rows(code: str, *, sound: bool) -> dict[str, tuple[str, str]]:
    """The rows of a capture that is doubtful in one way, or of the sound one beside it."""
    traces: dict[str, Callable[[bool], Trace]] = {
        "no_kernels": lambda good: read(cpu_plane() if good else _PYTHON),
        "unmatched": lambda good: read(cpu_plane()) if good else read(*gpu_planes()),
        "guessed": lambda good: _alone("cutlass_gemm", "g" if good else ""),
        "modules": lambda good: read(_PYTHON) if good else read(cpu_plane()),
        "dropped": lambda good: read(cpu_plane(), warnings=[] if good else ["device activities dropped: 5"]),
        "profiler_error": lambda good: read(cpu_plane(), errors=[] if good else ["CUPTI_ERROR_X"]),
        "profiler_warning": lambda good: read(cpu_plane(), warnings=[] if good else ["clocks were changed"]),
        "file": lambda good: _with_problem("" if good else "a lane is cut off"),
        "python_tracer": lambda good: read(cpu_plane()) if good else read(_PYTHON, cpu_plane()),
        "tracers": lambda good: read(*gpu_planes(), _ON if good else _OFF),
        "clock": lambda good: _with_hosts(["a"] if good else ["a", "b"]),
        "compile": lambda good: read(cpu_plane()) if good else read(_COMPILING, cpu_plane()),
        "steps": lambda good: _edge(4 if good else 1),
        "one_step": lambda good: _turns(100, 100) if good else _turns(100),
        "uneven_steps": lambda good: _turns(100, 101, 100) if good else _turns(100, 100, 500, 100),
        "lost_kernels": lambda good: read(*_without_kernels(0 if good else 3)),
        "unlinked_steps": lambda good: read(*async_loop(correlated=good)),
        "outside_steps": lambda good: _turns(100, 100) if good else read(*_outside()),
        "unrecorded": lambda good: _cpu(
            op("dot", 0, 200, run_id=1), op("sort", 200, 590 if good else 2, run_id=1), op("add", 800, 10, run_id=1)
        ),
    }
    if code in traces:
        return trust(traces[code](sound))
    measured = {
        "sum": {"calls": 1, "seconds_of_calls": [60e-6 if sound else 600e-6]},
        "slowdown": {"calls": 1, "seconds_of_calls": [60e-6], "timed_seconds": 55e-6 if sound else 6e-6},
    }
    return trust(read(cpu_plane()), "run", **measured[code])


def _without_kernels(lost: int) -> tuple[Plane, ...]:
    device, threads = async_loop()
    device.lines[0].events = device.lines[0].events[lost:]
    return device, threads


def _outside() -> tuple[Plane, ...]:
    line = Line("t", [op("a", 0, 10, run_id=1), op("a", 50, 30, run_id=2)])
    return (Plane("/host:CPU", [line, Line("python", [host("train", 0, 20, step_num=0)])]),)


_ELSEWHERE = {
    "attribution": "../runner/test_attribution.py",
    "timeline": "test_trust_of_the_recording.py",
    "steps_kept": "test_trust_of_the_recording.py",
}
"""Rows that need several files, several captures or a long one: the test that has both cases."""
_TRUST = sorted(entry.code for entry in entries().values() if entry.source == "trust")


@pytest.mark.parametrize("code", [code for code in _TRUST if code not in _ELSEWHERE])
def test_a_doubt_is_raised_of_one_capture_and_not_of_the_other(code: str) -> None:
    assert _rows(code, sound=False)[code][0] in ("doubt", "bad")
    assert _rows(code, sound=True).get(code, ("good",))[0] not in ("doubt", "bad")


@pytest.mark.parametrize("code", _ELSEWHERE)
def test_the_other_doubts_are_raised_and_not_raised_elsewhere(code: str) -> None:
    text = (Path(__file__).parent / _ELSEWHERE[code]).read_text()
    assert code in _TRUST
    assert f'"{code}"' in text
