"""What a capture says against itself, and what it does not."""

import pytest
from made_traces import US, async_loop, cpu_plane, gpu_planes, host, hosts, on_cpu, on_gpu, op, read
from xplane_wire import Line, Plane

from jaxprof.events import TrustReported
from jaxprof.findings.catalogue import entries
from jaxprof.trace.model import Trace
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import events_of
from jaxprof.trace.trust import compiles, device_share, kernels, slowdown
from tables import rows


def trust(trace, kind="imported", **more):
    (event,) = [one for one in events_of(trace, kind, **more) if isinstance(one, TrustReported)]
    return {row.code: (row.verdict, row.message) for row in event.rows}


def _executed(*ops):
    """An execution of these ops."""
    return read(on_cpu(t=[op(*one, run_id=1) for one in ops]))


def _waiting(*ops, waits):
    """An execution of these ops, whose thread then waits from a moment for so long."""
    unfinished = host("ThunkExecutor::Execute (wait for completion)", *waits)
    return read(on_cpu(t=[*(op(*one, run_id=1) for one in ops), unfinished]))


def _turns(*microseconds, first=1, ops=1):
    """Steps of so many microseconds, with so many ops each; the first of them may have fewer."""
    marks, events, at = [], [], 0.0
    for number, took in enumerate(microseconds):
        marks.append(host("train", at, took, step_num=number))
        long = (took - 2) / ops
        count = ops if number else first
        events += [op(f"o{index}", at + 1 + index * long, long, run_id=number + 1) for index in range(count)]
        at += took
    return read(on_cpu(t=events, python=marks))


def _traced(*planes, host=2, device=1):
    """A capture whose options say which tracers were on."""
    options = bytes([8, 1, 16, host, 24, device, 32, 1, 40, 1, 56, 1])
    return read(*planes, Plane("Task Environment", stats={"profile_options": options}))


def _with(trace, *, problem=""):
    trace.problems.extend([problem] * bool(problem))
    return trace


def _sound(**more):
    return read(cpu_plane(), **more)


def _loop(**more):
    return read(*async_loop(**more))


def _unlike_clocks():
    device, threads = async_loop()
    for event in device.lines[0].events:
        event.offset -= 10**6 * US
    return read(device, threads)


def _without_kernels(lost):
    device, threads = async_loop()
    device.lines[0].events = device.lines[0].events[lost:]
    return read(device, threads)


_OUTSIDE = on_cpu(t=[op("a", 0, 10, run_id=1), op("a", 50, 30, run_id=2)], python=[host("train", 0, 20, step_num=0)])
_PYTHON = on_cpu(python=hosts("$train.py:3 step 0 5"))
_COMPILING = on_cpu(python=hosts("backend_compile_and_load 0 90, f 95 1"))
CASES = {
    # the code: its verdict, or None where it is not mentioned, of which capture, and words of its message
    "no_kernels": [
        (None, _sound),
        ("bad", lambda: read(_PYTHON), "only host events"),
        ("bad", lambda: read(gpu_planes()[1]), "the host launched some"),
    ],
    "unmatched": [
        ("good", _sound),
        ("doubt", lambda: read(*gpu_planes()), "kernels with 5.9 % of the device's time name no HLO op"),
    ],
    "idle_devices": [
        (None, lambda: read(*gpu_planes())),
        ("good", lambda: read(*gpu_planes(), Plane("/device:GPU:7")), "nothing ran on gpu:7"),
    ],
    "modules": [(None, lambda: read(_PYTHON)), ("doubt", _sound)],
    "dropped": [("good", _sound), ("doubt", lambda: _sound(warnings=["device activities dropped: 5"]), "dropped: 5")],
    "profiler_error": [
        (None, _sound),
        ("bad", lambda: _sound(errors=["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"])),
        ("bad", lambda: _sound(errors=["CUPTI_ERROR_X"])),
    ],
    "profiler_warning": [(None, _sound), ("doubt", lambda: _sound(warnings=["clocks were changed"]))],
    "file": [("good", _sound), ("bad", lambda: _with(_sound(), problem="a lane is cut off"), "a lane is cut off")],
    "python_tracer": [("good", _sound), ("doubt", lambda: read(_PYTHON, cpu_plane()))],
    "tracers": [
        ("good", lambda: _traced(cpu_plane()), "levels of tracing: host 2, device 1, python 1"),
        ("good", lambda: _traced(cpu_plane(), device=0)),  # it is none of a CPU's
        ("bad", lambda: _traced(*gpu_planes(), device=0)),
        ("doubt", lambda: _traced(*gpu_planes(), host=0)),  # a GPU still has its kernels
    ],
    "clock": [("good", _sound), ("bad", _unlike_clocks)],
    "compile": [(None, _sound), ("doubt", lambda: read(_COMPILING, cpu_plane()))],
    "steps": [
        ("good", lambda: _turns(*[100] * 5, first=4, ops=4)),
        ("doubt", lambda: _turns(*[100] * 5, first=1, ops=4)),
    ],
    "one_step": [(None, lambda: _turns(100, 100)), ("doubt", lambda: _turns(100))],
    "uneven_steps": [
        ("good", lambda: _turns(100, 100, 150, 100, 100)),
        ("doubt", lambda: _turns(100, 100, 160, 100, 100)),
    ],
    "lost_kernels": [
        ("good", lambda: _without_kernels(0), "24 of 24 launches"),
        ("doubt", lambda: _without_kernels(4), "4 of 24 launches"),
        ("bad", lambda: _without_kernels(5), "5 of 24 launches"),  # a fifth are 4.8
    ],
    "unlinked_steps": [(None, _loop), ("doubt", lambda: _loop(correlated=False))],
    "outside_steps": [(None, lambda: _turns(100, 100)), ("doubt", lambda: read(_OUTSIDE), "75 %")],
    "unrecorded": [
        ("good", lambda: _executed(("dot", 0, 200), ("sort", 200, 600), ("add", 801, 10))),
        # As JAX 0.12 records a sort on CPU: its begin, and then nothing for half a second.
        (
            "doubt",
            lambda: _executed(("dot", 0, 200), ("sort", 200, 2), ("add", 800, 10)),
            "74 % of the time in which programs were executed on cpu:0",
        ),
        # As it records a convolution that other threads go on with: its begin, and then a wait.
        ("good", lambda: _waiting(("dot", 0, 200), waits=(150, 50))),
        ("doubt", lambda: _waiting(("convolution", 0, 2), waits=(2, 198)), "99 % of the time"),
    ],
    "steps_kept": [(None, _loop), ("doubt", lambda: _loop(steps=13), "of 13 steps the first 12")],
    "timeline": [(None, _loop), ("doubt", lambda: _loop(steps=13))],
}
MEASURED = [
    # the code, its verdict, the calls of the capture, and what a call took before
    ("sum", "good", [60e-6], None),
    ("sum", "doubt", [600e-6], None),
    ("sum", "good", [5e-6, 5e-6, 50e-6], None),  # of all calls together, whichever was held up
    ("slowdown", "good", [60e-6], 55e-6),
    ("slowdown", "bad", [60e-6], 8e-6),
]
ELSEWHERE = {"attribution"}
"""Needs several captures: `tests/runner/test_attribution.py`."""


@pytest.mark.parametrize("code", CASES)
def test_a_doubt_is_raised_of_one_capture_and_not_of_the_other(code, monkeypatch):
    for module in ("steps", "trust"):
        monkeypatch.setattr(f"jaxprof.trace.{module}.STEPS_KEPT", 12)
    monkeypatch.setattr("jaxprof.trace.summary.INTERVALS_KEPT", 75)
    for verdict, make, *words in CASES[code]:
        said, message = trust(make()).get(code, (None, ""))
        assert said == verdict, message
        assert all(word in message for word in words), message


@pytest.mark.parametrize(("code", "verdict", "calls", "timed"), MEASURED)
def test_a_capture_against_what_was_timed(code, verdict, calls, timed):
    rows = trust(_sound(), "run", calls=len(calls), seconds_of_calls=calls, timed_seconds=timed)
    assert rows[code][0] == verdict


def test_every_doubt_has_its_pair():
    verdicts = [(code, verdict) for code, cases in CASES.items() for verdict, *_ in cases]
    told = {(code, verdict in ("doubt", "bad")) for code, verdict in [*verdicts, *(row[:2] for row in MEASURED)]}
    doubts = {entry.code for entry in entries().values() if entry.source == "trust"}
    assert {code for code in doubts if {(code, True), (code, False)} <= told} == doubts - ELSEWHERE


def test_a_compile_alone_is_not_asked_for_steps():
    of_steps = {"steps", "modules", "unrecorded"}
    assert not of_steps & set(trust(_sound(), "compile"))
    assert of_steps <= set(trust(_sound(), "run", seconds_of_calls=[1e-3], calls=1))


def test_where_a_doubt_of_times_begins():
    for check, given, verdict in rows("""
        device_share  0.49      doubt
        device_share  0.5       good
        device_share  1.06      doubt
        slowdown      1.5 1.0   good
        slowdown      1.51 1.0  doubt
        slowdown      3.01 1.0  bad
        slowdown      0 1.0     -
        slowdown      1.0 0     -
    """):
        found = list({"device_share": device_share, "slowdown": slowdown}[check](*map(float, given.split())))
        assert [row.verdict for row in found] == ([verdict] if verdict else []), (check, given)


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (compiles(_executed(("a", 0, 100)), "run", 9e-6), "good", ""),
        (compiles(_executed(("a", 0, 100)), "run", 11e-6), "doubt", ""),
        (compiles(_executed(("a", 0, 100)), "run", 51e-6), "doubt", "mainly shows a compile"),
        (compiles(Trace(), "compile", 90e-6), "good", ""),
        (compiles(Trace(), "compile", None), "unknown", ""),
        (kernels(Trace(), "imported"), "bad", "no events at all"),
        (kernels(Trace(devices={"gpu:0": {}}), "imported"), "bad", "the planes of gpu:0 name no HLO op"),
        (kernels(Trace(devices={"gpu:0": {}}, lost_names=["gpu:0"]), "imported"), "bad",
         "truncated before the names of the events of gpu:0"),
    ],
)  # fmt: skip
def test_doubts_of_compiles_and_of_kernels(found, verdict, words):
    (row,) = found
    assert row.verdict == verdict
    assert words in row.message
    assert bool(row.advice) is (verdict in ("doubt", "bad"))


@pytest.mark.parametrize(
    ("moved_us", "first", "ids", "words"),
    rows("""
        0         0   True   -
        1000000   0   False  997 ms apart
        -1000000  0   False  879 ms apart
        -1000000  0   True   24 of 24 kernels begin before their launch
        -100000   12  True   9 of 24 kernels begin before their launch, by up to 41.3 ms
        5000      0   False  -
    """),
)
def test_clocks_of_host_and_device_that_cannot_be_one(moved_us, first, ids, words):
    """By ids where launches have them, else by spans that do not meet: a call may return before its work begins."""
    device, threads = async_loop(correlated=ids == "True")
    stream = device.lines[0]
    for event in stream.events[int(first) :]:
        event.offset += int(moved_us) * US
    trace = read(device, threads)
    verdict, message = trust(trace)["clock"]
    assert verdict == ("bad" if words else "good"), message
    assert words in message, message
    if words:
        assert steps_of(trace).devices[0].idle_causes == ()


def test_how_the_steps_were_found_is_said_for_each_device():
    annotated = Line("Steps", hosts("1 0 30, 2 30 30"))
    planes = [
        on_gpu(op("a", 0, 20), op("a", 30, 20), lines=[annotated]),
        on_gpu(
            op("a", 0, 20),
            op("a", 30, 20),
            number=1,
            lines=[Line("XLA Modules", hosts("jit_f(7) 0 20, jit_f(7) 30 20"))],
        ),
    ]
    message = trust(read(*planes))["steps"][1]
    assert message.startswith("4 steps on 2 devices found ")
    assert "on gpu:0 by their annotations" in message
    assert "on gpu:1 by the executions of the program" in message
