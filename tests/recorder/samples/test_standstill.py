"""A process that stood still, and all the others whose sampler comes late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from jaxprof import events as e
from jaxprof.recorder.samples import standstill as standstills
from jaxprof.recorder.samples.cpu_clock import runnable_threads
from jaxprof.recorder.samples.monitored_loop import JUMP
from jaxprof.recorder.samples.sampler import StackSampler
from jaxprof.recorder.samples.standstill import StandstillTest, standstill
from jaxprof.recorder.samples.steps import without
from recorder.samples.test_sampler import Ledger

needs_counts = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a thread waits for")
STOPPED = {
    "switches": 2,
    "delay_seconds": 0.001,
    "main_delay_seconds": 0.001,
    "steal_seconds": 0.02,
    "process_seconds": 0.01,
    "running_seconds": 0.1,
}


def test_a_process_that_nothing_kept_from_running_was_stopped() -> None:
    assert standstill(1.0, **STOPPED) == pytest.approx(0.999)


@pytest.mark.parametrize(
    ("late", "counts"),
    [
        (0.1, {}),
        (1.0, {"delay_seconds": 0.9}),  # others had the processor
        (1.0, {"switches": 190}),  # it asked for the interpreter's lock all the time
        (1.0, {"process_seconds": 0.9}),  # another of its threads ran
        (1.0, {"delay_seconds": 0.78, "switches": 44}),  # both: after each try for the lock it waited for a processor
        (1.0, {"main_delay_seconds": 0.9}),  # the main thread waited for a processor, and the sampler for it
        (0.31, {"steal_seconds": 0.3}),  # the host of a virtual machine had its processor
        (0.54, {"least_seconds": 0.8}),  # four threads a processor want to run
        (0.21, {"delay_seconds": 0.0, "switches": 3}),  # what is left over is too short
    ],
)
def test_what_has_another_reason_was_not(late: float, counts: dict[str, float]) -> None:
    assert standstill(late, **{**STOPPED, **counts}) == 0.0  # type: ignore[arg-type]


def test_of_a_stop_on_a_busy_machine_the_wait_for_a_processor_is_none_of_it() -> None:
    assert standstill(1.5, **{**STOPPED, "delay_seconds": 0.4}) == pytest.approx(1.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("waited", "found_by"), [(0.0, "standstill"), (0.9, "pressure"), (None, "standstill")])
def test_a_stop_needs_a_machine_on_which_nobody_waits_for_a_processor(
    waited: float | None, found_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressure = iter([None, None] if waited is None else [5.0, 5.0 + waited])
    monkeypatch.setattr(standstills, "pressure_seconds", lambda: next(pressure))
    monkeypatch.setattr(standstills, "standstill", lambda late, **_: late)
    test = StandstillTest(threading.get_native_id(), threading.get_native_id())
    assert test.seconds(1.0, 2) == (1.0, found_by)


def test_passes_are_timed_by_a_clock_that_stands_still_with_the_process() -> None:
    moments = [(JUMP, 1.0), (5, 1.1), (JUMP, 3.0), (JUMP, 4.0)]
    assert without(moments, []) is moments
    assert [at for _, at in without(moments, [(1.5, 1.25)])] == pytest.approx([1.0, 1.1, 1.75, 2.75])


def _recorded(body: Callable[[], None], seen: dict[int, float] | None = None) -> tuple[list[e.ProgramStopped], float]:
    """The standstills that the sampler reports, and the seconds of its windows that have that state. `seen`: takes the
    moment at which each event came, by its id."""
    events: list[e.Event] = []

    def emit(event: e.Event) -> None:
        events.append(event)
        if seen is not None:
            seen[id(event)] = time.monotonic()

    sampler = StackSampler(emit, Ledger(), main_thread=threading.get_ident(), began_seconds=time.monotonic())
    sampler.start()
    try:
        body()
    finally:
        sampler.stop()
    windows = [event for event in events if isinstance(event, e.ProgramSampled)]
    for window in windows:
        assert sum(window.states.values()) <= window.monotonic_seconds - window.began_seconds + 1e-6
    stops = [event for event in events if isinstance(event, e.ProgramStopped) and event.found_by == "standstill"]
    return stops, sum(window.states.get("stopped", 0.0) for window in windows)


def _stopped() -> None:
    """Stops this process for a second, as a signal does; the child of another process lets it go on."""
    time.sleep(0.3)
    child = subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)
    child.wait()
    time.sleep(0.1)


@needs_counts
@pytest.mark.parametrize(("runnable", "found"), [(1, True), (12, False)])
def test_a_short_lateness_of_a_busy_machine_is_no_stop(
    runnable: int, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standstills, "runnable_threads", lambda: runnable * (os.cpu_count() or 1))
    monkeypatch.setattr(standstills, "steal_seconds", lambda: 0.0)
    test = StandstillTest(threading.get_native_id(), threading.get_native_id())
    test.pausing(0.004)
    assert bool(test.seconds(0.54, 1)[0]) == found
    test.pausing(0.004)
    assert test.seconds(1.0, 1)[0] > 0.9


@pytest.mark.process
@needs_counts
def test_what_the_machine_has_to_run_is_read() -> None:
    burn = "import time\nend = time.time() + 20\nwhile time.time() < end: pass"
    others = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(3)]
    try:
        end = time.monotonic() + 15
        while runnable_threads() < 3 and time.monotonic() < end:
            time.sleep(0.01)
        assert runnable_threads() >= 3
    finally:
        for other in others:
            other.kill()
            other.wait()


@needs_counts
def test_who_runs_during_the_lateness_has_not_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much it may have run before the sampler paused."""
    monkeypatch.setattr(standstills, "runnable_threads", lambda: 1)
    monkeypatch.setattr(standstills, "steal_seconds", lambda: 0.0)
    monkeypatch.setattr(standstills, "run_delay_or_none", lambda _task: 0.0)
    monkeypatch.setattr(standstills, "run_delay_seconds", lambda _task: 0.0)
    test = StandstillTest(threading.get_native_id(), threading.get_native_id())
    time.sleep(0.3)
    test.pausing(0.01)
    end = time.process_time() + 0.22
    while time.process_time() < end:
        pass
    assert test.seconds(0.22, 1)[0] == 0.0
    test.pausing(0.01)
    assert test.seconds(0.22, 1)[0] > 0.0


@pytest.mark.process
@needs_counts
def test_a_real_stop_is_found_and_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins in the body and ends before it is reported, by this process's own clock: a sampler that comes late on a
    full machine ends it later, and is seen later."""
    monkeypatch.setattr(standstills, "pressure_seconds", lambda: 0.0)
    began, seen = time.monotonic(), dict[int, float]()
    (stop,), seconds = _recorded(_stopped, seen)
    assert stop.seconds > 0.7
    assert began <= stop.began_seconds
    assert stop.began_seconds + stop.seconds <= seen[id(stop)]
    assert seconds == pytest.approx(stop.seconds)


def _holds_the_lock() -> None:
    """Sleeps in C without releasing the interpreter's lock: no processor time, and a sampler that cannot run."""
    import ctypes

    ctypes.PyDLL(None).usleep(900_000)


def _sleeps() -> None:
    time.sleep(0.9)


def _waits_for_input() -> None:
    reading, writing = os.pipe()
    threading.Timer(0.9, lambda: os.write(writing, b"x")).start()
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)


def _starved() -> None:
    """More threads of work than processors, all of other processes, which this one must wait for."""
    burn = "import time\nend = time.time() + 1.2\nwhile time.time() < end: pass"
    count = 4 * len(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(count)]
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        sum(range(1000))
    for other in others:
        other.wait()


@pytest.mark.process
@needs_counts
@pytest.mark.parametrize("body", [_holds_the_lock, _sleeps, _waits_for_input, _starved])
def test_what_only_waits_has_not_stood_still(body: Callable[[], None]) -> None:
    assert _recorded(body) == ([], 0.0)


@needs_counts
def test_the_end_of_a_capture_on_the_samplers_thread_is_no_stop() -> None:
    """It waits there until the capture is written, without a processor."""
    events: list[e.Event] = []
    sampler = StackSampler(events.append, Ledger(), main_thread=threading.get_ident(), began_seconds=time.monotonic())
    written = threading.Event()

    def listener(_now: float) -> None:
        if not written.is_set():
            time.sleep(0.9)
            written.set()

    sampler.on_tick.append(listener)
    sampler.turns = written.is_set
    sampler.start()
    try:
        assert written.wait(20)
        time.sleep(0.3)
    finally:
        sampler.stop()
    assert not [event for event in events if isinstance(event, e.ProgramStopped)]
