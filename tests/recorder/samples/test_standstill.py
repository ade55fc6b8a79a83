"""A process that stood still, and all the others whose sampler comes late."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from jaxprof import events as e
from jaxprof.recorder.samples import standstill as standstills
from jaxprof.recorder.samples.cpu_clock import runnable_threads
from jaxprof.recorder.samples.monitored_loop import JUMP
from jaxprof.recorder.samples.standstill import StandstillTest, standstill
from jaxprof.recorder.samples.steps import without
from recorder.samples.test_sampler import beside

needs_counts = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a thread waits for")
STOPPED = {
    "switches": 2,
    "delay_seconds": 0.001,
    "main_delay_seconds": 0.001,
    "steal_seconds": 0.02,
    "process_seconds": 0.01,
    "running_seconds": 0.1,
}


@pytest.mark.parametrize(
    ("late", "counts", "still"),
    [
        (1.0, {}, 0.999),
        (1.5, {"delay_seconds": 0.4}, 1.1),  # on a busy machine the wait for a processor is none of it
        (0.1, {}, 0.0),
        (1.0, {"delay_seconds": 0.9}, 0.0),  # others had the processor
        (1.0, {"switches": 190}, 0.0),  # it asked for the interpreter's lock all the time
        (1.0, {"process_seconds": 0.9}, 0.0),  # another of its threads ran
        (1.0, {"delay_seconds": 0.78, "switches": 44}, 0.0),  # after each try for the lock it waited for a processor
        (1.0, {"main_delay_seconds": 0.9}, 0.0),  # the main thread waited for a processor, and the sampler for it
        (0.31, {"steal_seconds": 0.3}, 0.0),  # the host of a virtual machine had its processor
        (0.54, {"least_seconds": 0.8}, 0.0),  # four threads a processor want to run
        (0.21, {"delay_seconds": 0.0, "switches": 3}, 0.0),  # what is left over is too short
    ],
)
def test_only_what_nothing_else_explains_is_a_stop(late, counts, still):
    assert standstill(late, **{**STOPPED, **counts}) == pytest.approx(still)


def test_passes_are_timed_by_a_clock_that_stands_still_with_the_process():
    moments = [(JUMP, 1.0), (5, 1.1), (JUMP, 3.0), (JUMP, 4.0)]
    assert without(moments, []) is moments
    assert [at for _, at in without(moments, [(1.5, 1.25)])] == pytest.approx([1.0, 1.1, 1.75, 2.75])


def _stops(body, prepare=str):
    """What the sampler reports beside `body`."""
    events = []
    sampler = beside(events.append)
    prepare(sampler)
    sampler.start()
    try:
        body()
    finally:
        sampler.stop()
    return [event for event in events if isinstance(event, e.ProgramStopped) and event.found_by == "standstill"]


class Machine:
    """What the system counts, as it is set."""

    def __init__(self, monkeypatch):
        self.ran, self.pressure, self.runnable = 0.0, None, 1
        for name, counted in {
            "time": SimpleNamespace(process_time=lambda: self.ran),
            "own_faults": lambda: 0,
            "pressure_seconds": lambda: self.pressure,
            "run_delay_or_none": lambda _task: 0.0,
            "run_delay_seconds": lambda _task: 0.0,
            "runnable_threads": lambda: self.runnable,
            "steal_seconds": lambda: 0.0,
        }.items():
            monkeypatch.setattr(standstills, name, counted)
        self.test = StandstillTest(1, 2)

    def late(self, seconds, ran=0.0):
        """What is found of a sampler that slept for 4 ms, and is so late; the process `ran` meanwhile."""
        self.test.pausing(0.004)
        self.ran += ran
        return self.test.seconds(seconds, 1)


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


@pytest.mark.parametrize(("runnable", "found"), [(1, True), (12, False)])
def test_a_short_lateness_of_a_busy_machine_is_no_stop(machine, runnable, found):
    machine.runnable = runnable * (os.cpu_count() or 1)
    machine.test.mark_host()
    assert bool(machine.late(0.54)[0]) == found
    assert machine.late(1.0)[0] > 0.9


@pytest.mark.parametrize(
    ("before", "waited", "found_by"), [(5.0, 0.0, "standstill"), (5.0, 0.9, "pressure"), (None, None, "standstill")]
)
def test_a_stop_needs_a_machine_on_which_nobody_waits_for_a_processor(machine, before, waited, found_by):
    machine.pressure = before
    machine.test.mark()
    machine.pressure = None if before is None else before + waited
    assert machine.late(1.0) == (1.0, found_by)


def test_who_runs_during_the_lateness_has_not_stood_still(machine):
    """However much it may have run before the sampler paused."""
    machine.ran += 9.0
    assert machine.late(0.22, ran=0.22)[0] == 0.0
    assert machine.late(0.22)[0] > 0.0


@pytest.mark.process
@needs_counts
def test_what_the_machine_has_to_run_is_read():
    burn = "import time\nend = time.time() + 20\nwhile time.time() < end: pass"
    others = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(3)]
    try:
        end = time.monotonic() + 15
        while (found := runnable_threads()) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        assert found >= 3
    finally:
        for other in others:
            other.kill()
            other.wait()


@needs_counts
def test_a_process_that_holds_the_lock_has_not_stood_still():
    """It sleeps in C: no processor time, and a sampler that cannot run."""
    assert _stops(lambda: ctypes.PyDLL(None).usleep(900_000)) == []


@needs_counts
def test_the_end_of_a_capture_on_the_samplers_thread_is_no_stop():
    """It waits there until the capture is written, without a processor."""
    written = threading.Event()

    def listener(_now):
        if not written.is_set():
            time.sleep(0.9)
            written.set()

    def body():
        assert written.wait(20)
        time.sleep(0.3)

    def prepare(sampler):
        sampler.on_tick.append(listener)
        sampler.turns = written.is_set

    assert _stops(body, prepare) == []
