"""Readings of devices, folded while a program runs for a day."""

from dataclasses import replace
from itertools import pairwise

import pytest

import program_events as made
from jaxprof import events as e
from jaxprof.devices.live.process_state import LOOK_SECONDS, PauseWatch
from jaxprof.jobs.figures import device_clocks
from jaxprof.runner import session_recorder
from jaxprof.runner.session_recorder import LONGEST_FOLDED_SECONDS, PROGRAM_SECONDS, DeviceWatch
from jaxprof.session import Session
from jaxprof.session.readings import MOST_READINGS, folded

DAY = 24 * 3600.0


class Clock:
    def __init__(self):
        self.now = made.BEGAN

    def monotonic(self):
        return self.now


class Gpu:
    """Computes and is idle in turns of a minute; in one reading of the day its memory is nearly full."""

    def __init__(self, clock):
        self.clock, self.peak, self.made = clock, made.BEGAN + 7201.0, []

    def read(self):
        now = self.clock.now
        busy = now % 120 < 60
        reading = e.DeviceReading(
            device="cuda:0",
            monotonic_seconds=now,
            utilisation=0.5 + now % 7 / 20 if busy else 0.0,
            memory_used_bytes=79 << 30 if now == self.peak else 40 << 30,
            memory_limit_bytes=80 << 30,
            clock_hertz=1.2e9 if busy else 3e8,
            throttle_reasons=["heat"] if busy and now % 3 else [],
        )
        self.made.append(reading)
        return [reading]


@pytest.fixture
def watched(monkeypatch):
    """A clock, a device, and what watches it."""
    clock = Clock()
    monkeypatch.setattr(session_recorder, "time", clock)
    watch = DeviceWatch("none:0")
    watch._monitor, watch._interval_seconds = Gpu(clock), PROGRAM_SECONDS
    return clock, watch._monitor, watch


def passes(watched, session, seconds, *, captured=False):
    clock, _, watch = watched
    for _ in range(round(seconds / PROGRAM_SECONDS)):
        clock.now += PROGRAM_SECONDS
        for reading in watch.take_when_due(clock.now, captured=captured):
            yield reading
            session.apply(replace(reading, run=made.RUN))


def test_readings_of_a_day_stay_few_and_keep_peaks(watched):
    session = made.session(wall=None)
    written = sum(1 for _ in passes(watched, session, DAY))
    _, gpu, watch = watched
    session.extend(replace(reading, run=made.RUN) for reading in watch.held())
    kept = session.readings["cuda:0"]
    assert written < 2.5 * DAY / LONGEST_FOLDED_SECONDS
    assert MOST_READINGS / 2 < len(kept) <= MOST_READINGS
    assert sum(reading.count for reading in kept) == len(gpu.made) == DAY / PROGRAM_SECONDS
    assert max(reading.memory_used_bytes for reading in kept) == 79 << 30
    use = sum(reading.utilisation * reading.count for reading in kept) / len(gpu.made)
    assert use == pytest.approx(sum(reading.utilisation for reading in gpu.made) / len(gpu.made), rel=1e-5)
    assert [reading.monotonic_seconds for reading in kept] == sorted(reading.monotonic_seconds for reading in kept)
    # the clock of the idle device is in none of them
    assert device_clocks({"cuda:0": kept}) == device_clocks({"cuda:0": gpu.made})
    recent = [reading.count for reading in kept if reading.monotonic_seconds > watched[0].now - 3600]
    assert max(recent) <= LONGEST_FOLDED_SECONDS / PROGRAM_SECONDS, "the newest stay as they were written"


def test_a_reading_is_lost_with_its_recorder_at_most_so_long(watched):
    session = made.session(wall=None)
    written = [reading.monotonic_seconds for reading in passes(watched, session, 7200)]
    gaps = [later - earlier for earlier, later in pairwise(written)]
    assert max(gaps) <= LONGEST_FOLDED_SECONDS
    assert max(gaps[:20]) == PROGRAM_SECONDS, "each reading is written at first"


def test_readings_in_a_capture_window_stay_whole(watched):
    session = made.session(wall=None)
    list(passes(watched, session, 3600))
    began = watched[0].now
    for state, seconds in (("began", 5.0), ("ended", DAY / 2)):
        session.apply(e.CaptureWindow(run=made.RUN, monotonic_seconds=watched[0].now, state=state))
        list(passes(watched, session, seconds, captured=state == "began"))
    kept = [each for each in session.readings["cuda:0"] if 0.5 < each.monotonic_seconds - began < 5.0]
    assert [reading.count for reading in kept] == [1] * 8
    assert len(session.readings["cuda:0"]) <= MOST_READINGS


def test_readings_in_windows_without_end_are_folded(watched):
    session = made.session(wall=None)
    session.apply(e.CaptureWindow(run=made.RUN, monotonic_seconds=watched[0].now, state="began"))
    list(passes(watched, session, 7200, captured=True))
    assert len(session.readings["cuda:0"]) <= MOST_READINGS


def test_readings_all_unlike_each_other_are_bounded():
    session = Session()
    for number in range(3 * MOST_READINGS):
        session.apply(e.DeviceReading(device="cpu:0", monotonic_seconds=float(number), fault=str(number)))
    assert [reading.fault for reading in session.readings["cpu:0"]][-1:] == [str(3 * MOST_READINGS - 1)]
    assert len(session.readings["cpu:0"]) <= MOST_READINGS


READING = e.DeviceReading(device="cuda:0", utilisation=0.9, power_watts=300.0, core_utilisation=[0.5, 0.0])
UNLIKE = {
    "idle": {"utilisation": 0.1},
    "unknown": {"utilisation": None},
    "its power is unknown": {"power_watts": None},
    "throttled": {"throttle_reasons": ["heat"]},
    "out of order": {"fault": "fell off the bus"},
    "another limit": {"power_limit_watts": 200.0},
    "another device": {"device": "cuda:1"},
}


@pytest.mark.parametrize("fields", UNLIKE.values(), ids=UNLIKE)
def test_readings_unlike_each_other_are_not_folded(fields):
    readings = [READING, replace(READING, monotonic_seconds=1.0, **fields)]
    assert folded(readings) == readings


def test_a_folded_reading_has_means_and_maxima():
    first = replace(READING, count=3, memory_used_bytes=9, temperature_celsius=50.0, monotonic_seconds=1.0)
    last = {"power_watts": 600.0, "core_utilisation": [1.0, 0.5], "memory_used_bytes": 5, "monotonic_seconds": 2.0}
    (one,) = folded([first, replace(first, count=1, **last)])
    assert (one.count, one.power_watts, one.core_utilisation) == (4, 375.0, [0.625, 0.125])
    assert (one.memory_used_bytes, one.temperature_celsius, one.monotonic_seconds) == (9, 50.0, 2.0)
    assert (one.load_average, one.clock_hertz) == (None, None)


@pytest.mark.parametrize("ran", [True, False])
def test_a_pause_is_judged_where_no_reading_is(ran):
    """Two seconds in ten, over which the readings of a long session are folded, in which the program could not run:
    beside a recorder that ran, they were no pause; if it was stopped too, they were."""
    watch = PauseWatch(1, looks_stopped=lambda _: False, suspended=lambda: 0.0)
    for look in range(round(10 / LOOK_SECONDS)):
        if ran or not 4.0 <= look * LOOK_SECONDS < 6.0:
            watch.look(made.BEGAN + look * LOOK_SECONDS)
    seen = e.ProgramStopped(run=made.RUN, began_seconds=made.BEGAN + 4.0, seconds=2.0, found_by="standstill")
    reading = e.DeviceReading(run=made.RUN, device="cuda:0", count=20, monotonic_seconds=made.BEGAN + 10.0)
    windows = [*made.steady(4, {"device_busy": 1.0}), made.sampled(4, 4.0, {"device_busy": 2.0, "paused": 2.0})]
    result = made.result(*windows, watch.witness(seen), reading, wall=10.0)
    assert result.states["paused"] == (0.0 if ran else 2.0)


def test_pauses_of_earlier_sessions_are_judged_by_readings():
    session = Session()
    for number in range(2 * MOST_READINGS):
        at = number * PROGRAM_SECONDS
        session.apply(e.DeviceReading(run="r1", device="cpu:0", monotonic_seconds=at))
        if number in (100, 300):
            began = at - (2.0 if number == 100 else 0.55)
            session.apply(
                e.ProgramStopped(run="r1", began_seconds=began, seconds=at - began - 0.1, found_by="standstill")
            )
    assert [pause.recorder_ran for pause in session.runs["r1"].program.pauses] == [True, False]
