"""Whether a thread runs."""

from __future__ import annotations

import threading
import time

from jaxprof.recorder.samples.cpu_clock import CpuClock, RunningTest, own_switches, run_delay_seconds


class _Cpu:
    def __init__(self, *seconds: float | None) -> None:
        self._seconds = list(seconds)

    def seconds(self) -> float | None:
        return self._seconds.pop(0)


def _running(cpu: tuple[float | None, float | None], clock: tuple[float, float]) -> bool | None:
    times = list(clock)
    test = RunningTest(_Cpu(*cpu), lambda: times.pop(0))  # type: ignore[arg-type]
    test.begin()
    return test.end()


def test_a_clock_that_goes_on_is_a_thread_that_runs() -> None:
    assert _running((1.0, 1.00002), (5.0, 5.00002)) is True
    assert _running((1.0, 1.0), (5.0, 5.00002)) is False


def test_no_clock_no_answer() -> None:
    assert _running((None, None), (5.0, 6.0)) is None
    assert _running((1.0, 2.0), (5.0, 5.0)) is None


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
