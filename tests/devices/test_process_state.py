"""Which processes are stopped, and for how long."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from jaxprof.devices.live.process_state import LOOK_SECONDS, StopWatch, is_stopped, suspended_seconds


def _until(pid, stopped):
    end = time.monotonic() + 10
    while is_stopped(pid) is not stopped:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.process
@pytest.mark.parametrize("code", ["import time; time.sleep(60)", "while True: pass"])
def test_only_a_signal_stops_it(code):
    """Sleeping and computing are not it, and one that has gone is not stopped."""
    child = subprocess.Popen([sys.executable, "-c", code])
    try:
        for _ in range(5):
            assert not is_stopped(child.pid)
        child.send_signal(signal.SIGSTOP)
        _until(child.pid, True)
        assert psutil.Process(child.pid).status() == psutil.STATUS_STOPPED  # what is looked at where there is no /proc
        child.send_signal(signal.SIGCONT)
        _until(child.pid, False)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_stopped(child.pid)  # a zombie
    finally:
        child.kill()
        child.wait()
    assert not is_stopped(child.pid)


class Machine:
    """A process and a machine whose state the test sets."""

    def __init__(self):
        self.stopped, self.slept, self.now = False, 5.0, 100.0
        self.watch = StopWatch(1, looks_stopped=lambda _: self.stopped, suspended=lambda: self.slept)
        self.seen = []

    def passes(self, seconds, *, stopped=False):
        self.stopped = stopped
        for _ in range(round(seconds / LOOK_SECONDS)):
            self.seen += self.watch.look(self.now)
            self.now += LOOK_SECONDS


def test_a_stop_is_told_once_it_is_over():
    machine = Machine()
    machine.passes(1.0)
    machine.passes(2.0, stopped=True)
    assert machine.watch.stopped
    assert machine.seen == []
    machine.passes(1.0)
    (stop,) = machine.seen
    assert stop.found_by == "state"
    assert stop.began_seconds == pytest.approx(101.0, abs=LOOK_SECONDS)
    assert stop.seconds == pytest.approx(2.0, abs=LOOK_SECONDS)
    assert machine.watch.end(machine.now) == []


def test_a_machine_that_slept():
    machine = Machine()
    machine.passes(1.0)
    machine.slept += 0.4  # two clocks that are read one after the other on a busy machine
    machine.passes(1.0)
    assert machine.seen == []
    machine.slept += 3600.0
    machine.passes(1.0)
    (stop,) = machine.seen
    assert (stop.found_by, stop.seconds) == ("clock", pytest.approx(3600.0))
    assert suspended_seconds() > -0.1  # two clocks, read one after the other
