"""Whether a thread runs."""

from __future__ import annotations

import threading
import time

from jaxprof.recorder.samples.cpu_clock import CpuClock, own_switches, run_delay_seconds


def test_the_clock_of_this_thread() -> None:
    clock = CpuClock(threading.get_ident())
    before = clock.seconds()
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    after = clock.seconds()
    assert before is not None
    assert after is not None
    assert 0.015 < after - before < 0.1


def test_what_the_system_tells() -> None:
    before = own_switches()
    threading.Event().wait(0.01)
    after = own_switches()
    assert before is not None
    assert after is not None
    assert after > before
    assert run_delay_seconds(threading.get_native_id()) >= 0.0
    assert run_delay_seconds(0) == 0.0
