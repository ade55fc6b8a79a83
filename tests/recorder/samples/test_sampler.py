"""The sampler on real programs of a fraction of a second. Counting the live arrays. Whether a thread runs. A process
that stood still, and all the others whose sampler comes late."""

import ctypes
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import replace
from itertools import count, pairwise
from timeit import repeat
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from jaxprof import events as e
from jaxprof.analysis.programs.spots import WORKS
from jaxprof.recorder.samples import cpu_clock, standstill
from jaxprof.recorder.samples import steps as steps_module
from jaxprof.recorder.samples.cpu_clock import (
    CpuClock,
    PauseTest,
    Wait,
    judge_wait,
    own_switches,
    pause_seconds,
    resource_module,
    run_delay_seconds,
    runnable_threads,
)
from jaxprof.recorder.samples.monitored_loop import JUMP
from jaxprof.recorder.samples.sample_window import SampleWindow
from jaxprof.recorder.samples.sampler import (
    CLOSE_SHARE,
    COUNTED_EVERY_SECONDS,
    COUNTING_SHARE,
    FIRST_SHARE,
    OWN_SHARE,
    ArrayCounter,
    StackSampler,
    interval,
    next_reading,
)
from jaxprof.recorder.samples.settings import builds_on_jax, changes_at_start, settings_lines
from jaxprof.recorder.samples.stack import Stack
from jaxprof.recorder.samples.standstill import StandstillWatch
from jaxprof.recorder.samples.states import CALLBACK, COMPILED, HOST, SYNC, UNSEEN, Seen, Site
from jaxprof.recorder.samples.steps import without
from waiting import PATIENCE_SECONDS, until


class Ledger:
    """Says what it is told to say."""

    def __init__(self):
        self.seconds = {"trace": 0.0, "lower": 0.0, "compile": 0.0}
        self.stages = []

    def stage_seconds(self):
        return dict(self.seconds)

    def running(self):
        return list(self.stages)


def beside(emit, ledger=None):
    """A sampler of this thread."""
    began = time.monotonic()
    return StackSampler(emit, ledger or Ledger(), main_thread=threading.get_ident(), began_seconds=began)


def _record(work, ledger=None):
    events = []
    sampler = beside(events.append, ledger)
    sampler.start()
    try:
        work(sampler)
    finally:
        sampler.stop()
    windows = [event for event in events if isinstance(event, e.ProgramSampled)]
    states = {}
    for before, after in pairwise(windows):
        assert after.began_seconds == before.monotonic_seconds
    for window in windows:
        assert sum(window.states.values()) == pytest.approx(window.monotonic_seconds - window.began_seconds)
        for state, seconds in window.states.items():
            states[state] = states.get(state, 0.0) + seconds
    return events, states


def _sampled(sampler, samples, body):
    """Does it until so many more samples are taken, however long a machine needs for them."""
    taken, sample = [], sampler._sample

    def count(*arguments, **options):
        sample(*arguments, **options)
        taken.append(1)

    sampler._sample, due = count, time.monotonic() + PATIENCE_SECONDS
    while len(taken) < samples:
        body()
        assert time.monotonic() < due
    del sampler._sample


def test_the_step_of_a_loop_is_known_from_its_compilation_alone():
    """No sample ever sees it, and it is a local variable."""

    def waited_for(compiled):
        def work(sampler):
            def step(row):
                if compiled and row == 0:
                    place = e.SourceLocation(__file__, 0, "step")
                    sampler.note_compiled(e.Compiled(function="step", called_from=place, compile_seconds=0.1))
                return row

            def rows():
                for row in range(3):
                    yield row
                    _sampled(sampler, 4, lambda: time.sleep(0.001))

            for row in rows():
                step(row)

        _, states = _record(work)
        return states.get("data", 0.0)

    assert waited_for(compiled=True) > 0.0
    assert waited_for(compiled=False) == 0.0


def test_a_window_ends_where_a_loop_first_works():
    step = jax.jit(lambda x: (x @ x).sum())
    x = jnp.ones((350, 350))

    def work(sampler):
        def rows():
            _sampled(sampler, 6, lambda: time.sleep(0.001))  # its workers start
            yield from range(2)

        for _ in rows():
            _sampled(sampler, 20, lambda: step(x).block_until_ready())

    events, _ = _record(work)
    windows = [event for event in events if isinstance(event, e.ProgramSampled) and event.lines]
    worked = [any(line.kind in WORKS for line in window.lines if line.sites) for window in windows]
    assert worked[:2] == [False, True]


def test_a_program_that_reads_its_results():
    work = jax.jit(lambda x: (x @ x @ x).sum())
    x = jnp.ones((350, 350))
    while min(repeat("float(work(x))", number=1, globals={"work": work, "x": x})) < 0.005:
        x = jnp.ones((2 * len(x), 2 * len(x)))  # on many cores, until Python's share of the time is small
    events, states = _record(lambda sampler: _sampled(sampler, 40, lambda: float(work(x))))
    assert max(states, key=lambda state: states[state]) == "device_busy"
    lines = [line for event in events if isinstance(event, e.ProgramSampled) for line in event.lines]
    assert ("device_busy", "float()") in {(line.state, line.call) for line in lines}
    rows = [row for event in events if isinstance(event, e.TransfersSeen) for row in event.rows]
    assert all(row.direction == "device_to_host" for row in rows)


def test_stages_and_debug_settings_of_a_window():
    ledger = Ledger()

    def work(sampler):
        _sampled(sampler, 3, lambda: None)
        ledger.seconds["compile"] += 0.125
        time.sleep(0.125)  # a window has no more seconds of stages than it lasts

    jax.config.update("jax_debug_nans", True)
    try:
        events, states = _record(work, ledger)
    finally:
        jax.config.update("jax_debug_nans", False)
    assert states["compile"] == pytest.approx(0.125)
    assert [event.debug_settings for event in events if isinstance(event, e.ProgramSampled)][-1] == ["jax_debug_nans"]


def test_stage_is_reported_again_once_its_operations_are_known():
    events, ledger = [], Ledger()
    sampler = beside(events.append, ledger)
    stage = e.StageRunning(function="step", stage="compile", began_seconds=10.0)
    sampler._last_stages = {}
    for now, made_by in ((10.3, []), (10.6, []), (10.9, [e.LineOperations(name="sin")]), (11.2, [e.LineOperations()])):
        ledger.stages = [replace(stage, made_by=made_by)]
        sampler._tick(now)
    assert [[each.name for each in event.made_by] for event in events] == [[], ["sin"]]


def test_line_of_a_setting_is_in_the_programs_files(tmp_path, monkeypatch):
    class Lazy(ModuleType):
        def __getattribute__(self, name):
            raise AssertionError("it would be imported now")

    class Proxy:
        def __getattribute__(self, name):
            raise AssertionError("it would find its object now")

    file, setting = tmp_path / "own.py", "jax_" + "sought"  # no line of this file names it
    file.write_text(f'import jax\njax.config.update("{setting}", True)\n')
    os.utime(file, (1, 1))
    own = ModuleType("own")
    own.__file__ = str(file)
    for name, module in {"own": own, "lazy": Lazy("lazy"), "proxy": Proxy()}.items():
        monkeypatch.setitem(sys.modules, name, module)
    assert settings_lines([setting]) == {setting: e.SourceLocation(str(file), 2, "")}


def _failures(events):
    """The codes of the warnings, without that of a Python that cannot count steps."""
    codes = [event.code for event in events if isinstance(event, e.WarningRaised)]
    return [code for code in codes if code != "steps_not_counted"]


def test_ticks_come():
    ticked = threading.Event()

    def work(sampler):
        sampler.on_tick = lambda now: ticked.set()
        assert ticked.wait(PATIENCE_SECONDS)

    events, _ = _record(work)
    assert _failures(events) == []


def test_lines_are_timed_once_a_tick_is_over():
    """What the sampler still has to do would be in their times."""
    done, over = [], threading.Event()

    def work(sampler):
        look = sampler._steps.look
        sampler.on_tick = lambda now: done.append("tick")
        sampler._steps.look = lambda: (done.append("look"), look(), len(done) > 3 and over.set())
        assert over.wait(PATIENCE_SECONDS)

    _record(work)
    assert "".join(done).removeprefix("look").startswith("ticklookticklook")


def test_a_ledger_that_fails_ends_the_samples_and_nothing_else(capfd):
    ledger, asked = Ledger(), threading.Event()

    def fail():
        asked.set()
        raise ValueError("no")

    def work(sampler):
        ledger.running = fail
        assert asked.wait(PATIENCE_SECONDS)

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


def test_the_end_waits_for_a_slow_look_at_the_arrays():
    """A thread that comes back from native code after the interpreter has ended aborts the process."""
    over = threading.Event()
    sampler = beside(lambda event: None)
    sampler.start()
    sampler.on_tick = lambda now: over.wait(PATIENCE_SECONDS)
    threading.Timer(2.5, over.set).start()
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


@pytest.mark.parametrize(
    ("awake", "ran", "share", "expected"),
    [
        (0.006, 0.005, FIRST_SHARE, 0.005),  # 60 us each
        (0.028, 0.028, FIRST_SHARE, 0.0093),  # a slow machine
        (0.090, 0.028, FIRST_SHARE, 0.030),  # it lost its processor, perhaps with the lock
        (0.004, 0.004, CLOSE_SHARE, 0.005),
        (0.012, 0.012, CLOSE_SHARE, 0.012),
        (0.028, 0.028, CLOSE_SHARE, 0.028),
        (0.500, 0.020, CLOSE_SHARE, 0.040),
        (0.002, 0.002, OWN_SHARE, 0.010),
        (0.012, 0.012, OWN_SHARE, 0.034),
        (0.050, 0.020, OWN_SHARE, 0.100),
        (0.010, 0.012, OWN_SHARE, 0.034),  # the two clocks differ: the larger one
    ],
)
def test_the_interval_follows_from_what_samples_cost(awake, ran, share, expected):
    assert interval(100, awake, ran, share) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("took", "expected"), [(0.001, 10.25), (0.05, 10.25), (0.4, 12.0)])
def test_readings_that_take_long_are_made_seldom(took, expected):
    """As beside a program that holds the lock: a fifth of the time is theirs."""
    assert next_reading(10.0, 10.0 + took, 0.25) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first", "close_seconds", "expected"), [(1, 1.0, 0.0093), (0, 1.0, 0.028), (0, -0.1, 0.080), (1, -0.1, 0.080)]
)
def test_the_first_samples_are_the_closest(first, close_seconds, expected):
    sampler = beside(print)
    sampler._window = SampleWindow(0.0)
    sampler._window.samples, sampler._awake, sampler._own_began = 100, 0.028, 0.0
    sampler._first_left, sampler._close_left = first, close_seconds
    sampler._set_pace(0.020)
    assert sampler._interval == pytest.approx(expected, rel=0.05)


def test_that_steps_cannot_be_counted_is_said_once(monkeypatch):
    monkeypatch.setattr(steps_module, "line_clock", lambda _: None)
    told = []
    sampler = beside(told.append)
    sampler._last_stages = {}
    sampler._tick(1.0)
    assert told == [], "no loop was seen yet"
    sampler._steps.saw(Seen(COMPILED, None, (Site(e.LoopSite(file="f.py", loop_line=1, last_line=2, line=1)),)), 1.0)
    sampler._tick(2.0)
    sampler._tick(3.0)
    assert [event.code for event in told if isinstance(event, e.WarningRaised)] == ["steps_not_counted"]


@pytest.mark.parametrize("why", ["doubtful", "is_beside_unknown", ""])
@pytest.mark.parametrize("timed", [True, False])
def test_work_at_an_unknown_call_is_unseen_without_times(why, timed, monkeypatch):
    monkeypatch.setattr(steps_module, "line_clock", lambda _: None)
    site = Site(e.LoopSite(file="f.py", loop_line=1, last_line=2, line=1))
    sampler = beside(print)
    if not timed:
        sampler._steps.saw(Seen(COMPILED, None, (site,)), 1.0)
    seen = Seen(HOST, None, (site,), **({why: True} if why else {}))
    monkeypatch.setattr(sampler._classifier, "classify", lambda _: seen)
    assert sampler._interpret(Stack([]), "", Wait(held=False)).kind == (UNSEEN if why and not timed else HOST)


def test_a_new_array_is_seen_with_its_bytes():
    counter = ArrayCounter(lambda: 0.0)
    before = counter.count(0.0)
    kept = jnp.ones((10, 10), jnp.float32)
    after = counter.count(COUNTED_EVERY_SECONDS)
    assert after.count - before.count == 1
    assert after.bytes - before.bytes == kept.nbytes == 400
    (step := jax.jit(lambda x: jnp.tanh(x) + 3))(kept)  # whose program lives as long as it does
    later = counter.count(2 * COUNTED_EVERY_SECONDS)
    assert later.programs > after.programs > 0, step
    assert later.host_bytes > 1 << 20
    assert after.devices == {}  # the allocator of a CPU does not tell


def test_a_gpu_has_the_name_in_a_count_that_it_has_everywhere(monkeypatch):
    client = SimpleNamespace(platform_version="cuda 13000")
    gpu = SimpleNamespace(platform="gpu", id=0, client=client, memory_stats=lambda: {"bytes_in_use": 256})
    monkeypatch.setattr(jax, "local_devices", lambda: [gpu])
    assert ArrayCounter(lambda: 0.0).count(0.0).devices == {"cuda:0": 256}


def test_a_slow_count_is_followed_by_a_long_pause():
    counter = ArrayCounter(count(step=0.1).__next__)  # a clock of which every reading is later
    assert counter.count(0.0) is not None
    kept = jnp.ones(3)
    assert counter.count(0.1 / COUNTING_SHARE - 1.0) is None
    assert counter.count(0.1 / COUNTING_SHARE) is not None
    del kept


def test_file_named_like_a_module_of_python(tmp_path, monkeypatch):
    (tmp_path / "resource.py").write_text('raise AssertionError("it is the program that imports this")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "resource", raising=False)
    assert (resource_module() is not None) == sys.platform.startswith("linux")


def test_what_the_system_tells():
    clock = CpuClock(threading.get_ident())
    before, switches, end = clock.seconds(), own_switches(), time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    assert clock.seconds() - before > 0.015
    until(lambda: own_switches() > switches)
    assert run_delay_seconds(threading.get_native_id()) >= 0.0
    assert run_delay_seconds(0) is None


def test_calls_that_no_sample_takes_are_not_kept_for_ever():
    sampler = beside(print)
    for number in range(1100):
        place = e.SourceLocation("t.py", number + 1)
        sampler.note_compiled(e.Compiled(function="f", compile_seconds=0.1, called_from=place))
    assert len(sampler._compiled_calls) == 1000


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
    assert pause_seconds(late, **{**STOPPED, **counts}) == pytest.approx(still)


def test_iterations_exclude_pauses_of_the_process():
    moments = [(JUMP, 1.0), (5, 1.1), (JUMP, 3.0), (JUMP, 4.0)]
    assert without(deque(moments), []) == moments
    assert [at for _, at in without(deque(moments), [(1.5, 1.25)])] == pytest.approx([1.0, 1.1, 1.75, 2.75])


def _paused_seconds(work):
    """For how long the process stood still beside this work, as the sampler reports; a machine may really stop it for
    moments."""
    events, _ = _record(work)
    stops = [event for event in events if isinstance(event, e.ProgramStopped) and event.found_by == "standstill"]
    return sum(event.seconds for event in stops)


class Machine:
    """What the system counts, as it is set."""

    def __init__(self, monkeypatch):
        self.ran, self.pressure, self.runnable = 0.0, None, 1
        self.read = []
        """The threads whose delays were read."""
        for name, counted in {
            "time": SimpleNamespace(process_time=lambda: self.ran),
            "own_faults": lambda: 0,
            "pressure_seconds": lambda: self.pressure,
            "run_delay_seconds": lambda task: self.read.append(task) or 0.0,
            "runnable_threads": lambda: self.runnable,
            "steal_seconds": lambda: 0.0,
        }.items():
            monkeypatch.setattr(cpu_clock, name, counted)
        self.test = PauseTest(1, 2)

    def late(self, seconds, ran=0.0):
        """What is found of a sampler that slept for 4 ms, and is so late; the process `ran` meanwhile."""
        self.test.sleeping(0.004)
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
def test_pause_needs_an_idle_machine(machine, before, waited, found_by):
    machine.pressure = before
    machine.test.mark()
    machine.pressure = None if before is None else before + waited
    assert machine.late(1.0) == (1.0, found_by)


def test_who_runs_during_the_lateness_was_not_paused(machine):
    """However much it may have run before the sampler paused."""
    machine.ran += 9.0
    assert machine.late(0.22, ran=0.22)[0] == 0.0
    assert machine.late(0.22)[0] > 0.0


def test_a_thread_that_holds_the_lock_is_asked_once(machine):
    """Each file gives the lock away, and is waited for until the thread gives it back."""
    machine.read.clear()
    machine.late(0.22, ran=0.22)
    assert machine.read == [1]


@pytest.mark.process
@needs_counts
def test_what_the_machine_has_to_run_is_read():
    burn = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
    others = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(3)]
    try:
        until(lambda: runnable_threads() >= 3)
    finally:
        for other in others:
            other.kill()
            other.wait()


@needs_counts
def test_a_process_that_holds_the_lock_was_not_paused():
    """It sleeps in C: no processor time, and a sampler that cannot run."""
    assert _paused_seconds(lambda _sampler: ctypes.PyDLL(None).usleep(900_000)) < 0.3


@needs_counts
def test_the_end_of_a_capture_on_the_samplers_thread_is_no_stop():
    """It waits there until the capture is written, without a processor."""
    written = threading.Event()

    def listener(_now):
        if not written.is_set():
            time.sleep(0.9)
            written.set()

    def work(sampler):
        sampler.turns = written.is_set
        sampler.on_tick = listener
        assert written.wait(PATIENCE_SECONDS)
        _sampled(sampler, 2, lambda: time.sleep(0.001))

    assert _paused_seconds(work) < 0.3


def test_what_ran_while_the_profiler_held_it_is_no_time_of_lines():
    sampler = beside([].append)
    sampler._cpu, sampler._last_cpu = SimpleNamespace(seconds=lambda: 5.0), 4.0
    sampler._last_at, sampler._last_stages, sampler._window = 100.0, {}, SampleWindow(100.0)
    sampler._sample(101.1, judge_wait(0.0, None), stopped=True, paused=1.0)
    assert sampler._window.busy == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("ended", "usual", "held"),
    [
        ((7, 7), 0.01, 0.9),
        ((7, 8), 0.01, 0.0),  # a step ended
        ((7, 7), 0.5, 0.0),  # one takes as long
        ((7, 7), 0.0, 0.0),
        ((None, None), 0.01, 0.0),
    ],
)
def test_a_program_is_held_by_the_profiler_if_no_step_ends(ended, usual, held):
    before, after = ended
    sampler = SimpleNamespace(standstill=SimpleNamespace(usual_seconds=usual), steps_ended=after)
    assert StackSampler._held(sampler, 0.9, before) == held


def standing(
    *positions, kind=COMPILED, until=60.0, ran_until=0.0, ran=0.01, followed=None, paused_at=-1,
    each=lambda seconds: None,
):  # fmt: skip
    """What a watch reports of a program in whose samples, a tenth of a second apart, one function of the user's is at
    these offsets in turn, and at the last one until then; its thread runs between the samples before `ran_until`. The
    process is paused for five seconds before `paused_at`."""
    reported = []
    watch = StandstillWatch(reported.append, threading.get_ident(), threading.get_native_id())
    code = standing.__code__
    for number in range(round(10 * until)):
        each(number / 10)
        if number == 10 * paused_at:
            watch.note_pause(5.0)
        offset = positions[min(number, len(positions) - 1)]
        watch.take(number / 10, Stack(read=[(code, offset, "user", {})]), Seen(kind), ran * (number / 10 < ran_until))
        watch.look(number / 10, followed, 7, None)
    return reported


def test_missing_iteration_is_reported_with_all_stacks():
    reported = standing(*[10, 40] * 50, 20)
    assert [each.since_seconds for each in reported] == [pytest.approx(10.0, abs=0.2)] * len(reported)
    assert 3 <= len(reported) <= 12
    first = reported[0]
    assert first.step == 7
    assert first.over is False
    assert first.kind == COMPILED
    assert reported[0].usual_seconds == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("positions", "kind"),
    [([10, 40] * 300, COMPILED), ([10, 40] * 300, HOST)],
    ids=["it goes on", "a loop that only waits"],
)
def test_what_is_no_missing_iteration(positions, kind):
    assert standing(*positions, kind=kind) == []


def test_loop_that_only_waits_has_no_iterations():
    assert {each.usual_seconds for each in standing(*[10, 40] * 50, 20, kind=HOST)} == {0.0}


def test_thread_that_never_runs_is_reported_before_any_iteration():
    reported = standing(*[10, 40] * 2, 20)
    assert reported
    assert (reported[0].since_seconds, reported[0].usual_seconds) == (pytest.approx(0.4, abs=0.1), 0.0)
    assert standing(20, kind=HOST)[0].since_seconds == 0.0, "JAX was never used"
    assert standing(*[10, 40] * 2, 20, ran_until=60.0, followed=3) == [], "it runs"
    assert standing(*[10, 40] * 2, 20, ran_until=60.0, ran=5e-5)[0].usual_seconds == 0.0, "it looks for signals"


@pytest.mark.parametrize(
    ("ran", "passing", "then", "is_reported"),
    [
        (5e-5, [b"one", b"two"], [b"one"], True),
        (5e-5, [b"one", b"two"], [b"one", b"two"], False),
        (5e-5, [b"one"], [b"one"], False),
        (5e-5, [b""], [b""], False),
        (5e-4, [b"one", b"two"], [b"one"], False),
    ],
    ids=["it looks for signals", "a variable changes", "none ever does", "unknown", "it works"],
)
@pytest.mark.parametrize("ran_before", [5e-5, 5e-2], ids=["slow", "fast"])
def test_loop_without_events_that_waits_in_each_sample(monkeypatch, ran_before, ran, passing, then, is_reported):
    """It is woken to look for signals, as JAX's waits are."""
    reported, every = [], itertools.cycle(passing)
    monkeypatch.setattr(standstill, "user_content", lambda frame: next(every))
    watch = StandstillWatch(reported.append, threading.get_ident(), threading.get_native_id())
    site = Site(e.LoopSite(file="f.py", loop_line=1, last_line=2, line=1))
    stack = Stack(read=[(standing.__code__, 10, "user", {})])
    for number in range(900):
        if number == 300:
            every = itertools.cycle(then)
        watch.take(number / 10, stack, Seen(SYNC, sites=(site,)), ran if number >= 300 else ran_before)
        watch.look(number / 10, None, None, None)
    assert bool(reported) is is_reported


@pytest.mark.parametrize(("goes_on", "is_over"), [(True, True), (False, False)], ids=["it goes on", "interrupted"])
def test_interrupt_ends_no_standstill(monkeypatch, goes_on, is_over):
    """Its thread runs for longer then than it does to look for signals."""
    reported, content = [], itertools.count()
    monkeypatch.setattr(standstill, "user_content", lambda frame: b"%d" % next(content))
    watch = StandstillWatch(reported.append, threading.get_ident(), threading.get_native_id())
    site = Site(e.LoopSite(file="f.py", loop_line=1, last_line=2, line=1))
    stack = Stack(read=[(standing.__code__, 10, "user", {})])
    for number in range(600):
        if number == 200:
            content = itertools.repeat(0)
        if number == 500 and goes_on:
            content = itertools.count()
        watch.take(number / 10, stack, Seen(SYNC, sites=(site,)), 5e-5 if 200 <= number < 500 else 5e-3)
        watch.look(number / 10, None, None, None)
    assert any(each.over for each in reported) is is_over
    assert reported


def test_work_outside_a_loop_is_no_iteration():
    reported = standing(*[10] * 50, 20, ran_until=5.0)
    assert {each.usual_seconds for each in reported} == {0.0}


@pytest.mark.parametrize(("kind", "function"), [(CALLBACK, "standing"), (COMPILED, "")], ids=["callback", "compiled"])
def test_standstill_in_a_callback_is_at_its_own_line(kind, function):
    [first, *_] = standing(*[10, 40] * 50, 20, kind=kind)
    assert first.at.function == function


def test_interrupted_program_reports_no_other_standstill(monkeypatch):
    monkeypatch.setattr(sys, "last_value", KeyboardInterrupt(), raising=False)
    assert standing(*[10, 40] * 50, 20) == []


def test_pause_in_a_standstill_is_no_end_of_it():
    reported = standing(*[10, 40] * 50, 20, paused_at=40)
    assert reported[-1].since_seconds == pytest.approx(reported[0].since_seconds + 5.0)
    assert not any(each.over for each in reported)


def test_loop_always_in_its_wait_iterates_while_it_runs():
    assert standing(20, ran_until=10.0)
    assert standing(20, ran_until=60.0) == []
    assert standing(*[10, 40] * 50, 20, ran_until=60.0, followed=3), "the loop's own events know better"


def test_standstill_counts_from_the_last_iteration(monkeypatch):
    moved = [0]
    monkeypatch.setattr(standstill, "io_bytes", lambda process: moved[0])

    def read(seconds):
        moved[0] += 1_000_000_000 if seconds < 10 else 100

    reported = standing(*[10, 40] * 50, 20, each=read)
    assert [each.moved_bytes_per_second for each in reported] == [pytest.approx(1000, rel=0.1)] * len(reported)


def test_that_it_goes_on_is_reported():
    reported = standing(*[10, 40] * 50, *[20] * 200, *[10, 40] * 300, until=45.0)
    assert [each.over for each in reported][-2:] == [False, True]


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("/tmp/tmp3k_x91ab", "temporary"),
        ("/tmp/tmp3k_x91ab/cache", "temporary"),
        ("/tmp/tmp.Q2fK90aLx1", "temporary"),
        ("/tmp/jax_cache", ""),
        ("/home/me/tmp3k_x91ab", ""),
        ("/scratch/cache-{pid}", "process"),
        ("/scratch/cache-{pid}0", ""),
        ("/scratch/job-4711/cache", "job"),
        ("/scratch/47110/cache", ""),
        ("/cache/0123456789abcdef0123456789abcdef", "random"),
        ("/cache/{now:.0f}", "time"),
        ("/cache/run_{day}_{hour}-05-10", "time"),
        ("/cache/{day}", ""),
        ("/cache/1234567890", ""),
    ],
)
def test_cache_folder_that_changes_at_each_start(folder, why, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    changes_at_start.cache_clear()
    day, hour = time.strftime("%Y-%m-%d %H").split()
    assert changes_at_start(folder.format(pid=os.getpid(), now=time.time(), day=day, hour=hour)) == why


def test_temporary_folder_is_known_by_its_rights(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name, rights, why in (("cache_k3jx_0qa", 0o700, "temporary"), ("cache_k3jx_0qb", 0o755, "")):
        (tmp_path / name).mkdir(mode=rights)
        assert changes_at_start(str(tmp_path / name)) == why


def test_import_of_a_jax_library_is_needed(tmp_path, monkeypatch):
    for folder, name in (("site-packages", "layers_of_jax"), ("mine", "mine_of_jax"), ("site-packages", "tables")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.py").write_text("import jax\n" if name.endswith("jax") else "import math\n")
        monkeypatch.syspath_prepend(tmp_path / folder)
        __import__(name)
    assert [builds_on_jax(name) for name in ("layers_of_jax", "mine_of_jax", "tables")] == [True, False, False]
