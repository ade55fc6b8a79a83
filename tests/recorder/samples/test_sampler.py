"""The sampler on real programs of a fraction of a second. Counting the live arrays. Whether a thread runs."""

import gc
import threading
import time
from itertools import pairwise

import jax
import jax.numpy as jnp
import pytest

from jaxprof import events as e
from jaxprof.recorder.samples import stack as stack_module
from jaxprof.recorder.samples import steps as steps_module
from jaxprof.recorder.samples.cpu_clock import CpuClock, judge_wait, own_switches, run_delay_seconds
from jaxprof.recorder.samples.sampler import COUNTED_EVERY_SECONDS, COUNTING_SHARE, ArrayCounter, StackSampler
from jaxprof.recorder.samples.stack import read_stack, read_thread
from jaxprof.recorder.samples.states import COMPILED, Seen, Site


class Ledger:
    """Says what it is told to say."""

    def __init__(self):
        self.seconds = {"trace": 0.0, "lower": 0.0, "compile": 0.0}
        self.stages = []

    def stage_seconds(self):
        return dict(self.seconds)

    def running(self):
        return list(self.stages)


def beside(emit, ledger=None, age=0.0):
    """A sampler of this thread, as of a program that is so old."""
    began = time.monotonic() - age
    return StackSampler(emit, ledger or Ledger(), main_thread=threading.get_ident(), began_seconds=began)


def _record(work, ledger=None, age=0.0):
    events = []
    sampler = beside(events.append, ledger, age)
    sampler.start()
    try:
        work(sampler)
    finally:
        sampler.stop()
    stretches = [event for event in events if isinstance(event, e.ProgramSampled)]
    states = {}
    for before, after in pairwise(stretches):
        assert after.began_seconds == before.monotonic_seconds
    for stretch in stretches:
        assert sum(stretch.states.values()) == pytest.approx(stretch.monotonic_seconds - stretch.began_seconds)
        for state, seconds in stretch.states.items():
            states[state] = states.get(state, 0.0) + seconds
    return events, states


def _until(seconds, body):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        body()


def _lines(events):
    found = {}
    for event in events:
        for line in event.lines if isinstance(event, e.ProgramSampled) else ():
            key = (line.state, line.call)
            found[key] = found.get(key, 0.0) + line.seconds
    return found


def test_the_step_of_a_loop_is_known_from_its_compilation_alone():
    """No sample ever sees it, and it is a local variable."""

    def waited_for(compiled):
        def work(sampler):
            def step(row):
                if compiled and row == 0:
                    place = e.SourceLocation(__file__, 0, "step")
                    sampler.compiled(e.Compiled(function="step", called_from=place, compile_seconds=0.1))
                return row

            def rows():
                for row in range(4):
                    time.sleep(0.05 if row else 0.0)
                    yield row

            for row in rows():
                step(row)

        _, states = _record(work)
        return states.get("data", 0.0)

    assert waited_for(compiled=True) > 0.05
    assert waited_for(compiled=False) == 0.0


def test_a_program_that_reads_its_results():
    work = jax.jit(lambda x: (x @ x @ x).sum())
    x = jnp.ones((700, 700))
    float(work(x))
    events, states = _record(lambda sampler: _until(0.8, lambda: float(work(x))))
    assert max(states, key=lambda state: states[state]) == "device_busy"
    assert ("device_busy", "float()") in _lines(events)
    rows = [row for event in events if isinstance(event, e.TransfersSeen) for row in event.rows]
    assert all(row.source == "samples" and row.direction == "device_to_host" for row in rows)


def test_stages_are_the_ledgers_own_and_settings_that_are_there_to_find_faults_are_noted():
    ledger = Ledger()

    def work(sampler):
        _until(0.1, lambda: None)
        ledger.seconds["compile"] += 0.125
        _until(0.2, lambda: None)

    jax.config.update("jax_debug_nans", True)
    try:
        events, states = _record(work, ledger)
    finally:
        jax.config.update("jax_debug_nans", False)
    assert states["compile"] == pytest.approx(0.125)
    assert [event.debug_settings for event in events if isinstance(event, e.ProgramSampled)][-1] == ["jax_debug_nans"]


def _failures(events):
    """The codes of the warnings, without that of a Python that cannot count steps."""
    codes = [event.code for event in events if isinstance(event, e.WarningRaised)]
    return [code for code in codes if code != "steps_not_counted"]


def test_ticks_come_and_one_that_fails_is_dropped():
    ticked = threading.Event()
    failures = []

    def failing(now):
        failures.append(now)
        raise ValueError("no")

    def work(sampler):
        sampler.on_tick += [failing, lambda now: ticked.set()]
        assert ticked.wait(20)

    events, _ = _record(work)
    assert len(failures) == 1
    assert _failures(events) == ["sampler_failed"]


def test_a_ledger_that_fails_ends_the_samples_and_nothing_else(capfd):
    ledger, asked = Ledger(), threading.Event()

    def fail():
        asked.set()
        raise ValueError("no")

    def work(sampler):
        ledger.running = fail
        assert asked.wait(20)

    events, _ = _record(work, ledger)
    assert _failures(events) == ["sampler_failed"]
    assert capfd.readouterr() == ("", "")


def test_the_thread_is_not_the_programs_and_stops():
    threads = threading.enumerate()
    sampler = beside(lambda event: None)
    sampler.stop()  # before the start: nothing to do
    sampler.start()
    assert threading.enumerate() == threads
    sampler.stop()
    sampler.stop()
    assert sampler._over.acquire(False)


@pytest.mark.parametrize(
    ("late", "switches", "held", "forced"),
    [
        (0.0001, 1, False, False),
        (0.0100, 1, False, False),  # the scheduler was late, nobody held the lock
        (0.0001, 2, True, False),
        (0.0010, 2, True, False),
        (0.0060, 3, True, True),
        (0.0004, None, None, False),
        (0.0020, None, True, False),
    ],
)
def test_what_lateness_says(late, switches, held, forced):
    wait = judge_wait(late, switches)
    assert (wait.held, wait.forced) == (held, forced)


def test_that_steps_cannot_be_counted_is_said_once(monkeypatch):
    monkeypatch.setattr(steps_module, "line_clock", lambda _: None)
    told = []
    sampler = beside(told.append)
    sampler._last_stages = {}
    sampler._tick(1.0)
    assert told == [], "no loop was seen yet"
    sampler._steps.saw(Seen(COMPILED, None, (Site("f.py", "f", 1, 2, 1, ""),)), 1.0)
    sampler._tick(2.0)
    sampler._tick(3.0)
    assert [event.code for event in told if isinstance(event, e.WarningRaised)] == ["steps_not_counted"]


class _Clock:
    """Every reading is `step` later."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def test_a_new_array_is_seen_with_its_bytes():
    counter = ArrayCounter(_Clock(0.0))
    before = counter.count(0.0)
    kept = jnp.ones((10, 10), jnp.float32)
    after = counter.count(COUNTED_EVERY_SECONDS)
    assert after.count - before.count == 1
    assert after.bytes - before.bytes == kept.nbytes == 400
    assert after.devices == {}  # the allocator of a CPU does not tell


def test_a_slow_count_is_followed_by_a_long_pause():
    counter = ArrayCounter(_Clock(0.1))
    assert counter.count(0.0) is not None
    kept = jnp.ones(3)
    assert counter.count(0.1 / COUNTING_SHARE - 1.0) is None
    assert counter.count(0.1 / COUNTING_SHARE) is not None
    del kept


def test_what_the_system_tells():
    clock = CpuClock(threading.get_ident())
    before, switches, end = clock.seconds(), own_switches(), time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    threading.Event().wait(0.01)
    assert clock.seconds() - before > 0.015
    assert own_switches() > switches
    assert run_delay_seconds(threading.get_native_id()) >= 0.0
    assert run_delay_seconds(0) == 0.0


def test_a_stack_is_read_again_if_the_collector_ran_and_its_setting_is_the_programs(monkeypatch):
    """Python 3.11 collects in the middle of reading a stack."""
    reads = []

    def read(frame):
        reads.append(gc.isenabled())
        if len(reads) == 1:
            gc.collect()
        return read_stack(frame)

    monkeypatch.setattr(stack_module, "_COLLECTS_WHEREVER", True)
    monkeypatch.setattr(stack_module, "read_stack", read)
    _, stack = read_thread(threading.get_ident())
    assert len(reads) in (2, 3)
    assert all(reads)
    assert stack.codes


def test_calls_that_no_sample_takes_are_not_kept_for_ever():
    sampler = beside(print)
    for number in range(1100):
        place = e.SourceLocation("t.py", number + 1)
        sampler.compiled(e.Compiled(function="f", compile_seconds=0.1, called_from=place))
    assert len(sampler._compiled_calls) == 1000
