"""The capture window in a running program: by time, by steps, and beside the program's own use of the profiler."""

import math
import tempfile
import threading
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxprof.events import NOWHERE, CaptureWindow, Compiled, SourceLocation, StageRunning, StepsCounted
from jaxprof.recorder.capture_window import LONGEST_SECONDS, SETTLED_SECONDS, UNCOUNTED_SECONDS, CaptureWindows
from jaxprof.recorder.guest import start_thread
from jaxprof.recorder.profiler_use import ProfilerUse
from jaxprof.trace.sources import read_profile
from jaxprof.trace.summary import op_times
from waiting import until

COMPILED = Compiled(function="step", compile_seconds=0.1)


class Stage:
    """A window with a clock that is set by hand, and what it said."""

    def __init__(self):
        self.now = 100.0
        self.said = []
        self.still_since = math.inf
        self.ended = None
        self.window = CaptureWindows(
            self.said.append,
            clock=lambda: self.now,
            still_since=lambda: self.still_since,
            steps_ended=lambda: self.ended,
        )

    def after(self, seconds):
        self.now += seconds
        self.window.tick(self.now)

    @property
    def states(self):
        return [event.state for event in self.said if isinstance(event, CaptureWindow)]

    @property
    def last(self):
        return self.said[-1]


@pytest.fixture(autouse=True)
def _profiles_below_tmp_path(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def stage():
    made = Stage()
    made.window.take(COMPILED)
    made.after(SETTLED_SECONDS)
    yield made
    made.window.end()


def step(x):
    return jnp.tanh(x) * 2


def test_steps_that_end_begin_the_window_of_a_short_program(stage):
    """They are counted from the last compilation on; an event about them would come after a second."""
    stage.ended = 7
    stage.window.take(COMPILED)
    stage.window.begin(steps=3)
    for ended in (7, 8):
        stage.ended = ended
        stage.after(0.02)
        assert stage.states == []
    stage.window.take(COMPILED)
    stage.ended = 9
    stage.after(0.02)
    assert stage.states == []
    stage.ended = 10
    stage.after(0.02)
    assert stage.states == ["began"]
    stage.window.end()


def test_steps_of_another_loop_count_from_its_own_begin(stage):
    stage.ended = 100
    stage.window.take(COMPILED)
    stage.window.begin(steps=3)
    for ended, states in ((0, []), (1, []), (2, ["began"])):
        stage.ended = ended
        stage.after(0.02)
        assert stage.states == states
    stage.window.end()


def steps(count, seconds=1.0):
    return StepsCounted(where=SourceLocation("train.py", 3), count=count, seconds=seconds)


def test_a_window_of_some_seconds_holds_what_ran_in_it(stage):
    stage.window.begin(seconds=1.5)
    assert stage.window.begun
    assert stage.window.turns == 2, "before the profiler was started, and after"
    jax.jit(step)(jnp.ones(1000)).block_until_ready()
    stage.after(1.4)
    assert stage.states == ["began"]
    stage.after(0.2)
    assert stage.states == ["began", "ended"]
    assert not stage.window.begun
    assert stage.window.turns == 4
    table = op_times(read_profile(Path(stage.last.path)))
    assert "jit_step" in {row.module for row in table}


def test_a_window_by_steps_begins_in_the_loop():
    stage = Stage()
    stage.window.begin(steps=3)
    compiling = StageRunning(function="step", stage="compile", began_seconds=stage.now)
    for event, seconds in ((COMPILED, 0.1), (compiling, 40.0), (COMPILED, SETTLED_SECONDS - 0.1)):
        stage.window.take(event)
        stage.after(seconds)
    assert stage.states == []
    stage.after(0.2)
    assert stage.states == ["began"]


def test_what_compiles_before_an_event_says_so_is_no_loop():
    """A step is traced for longer than `SETTLED_SECONDS` after the first small compilation."""
    stage, compiles = Stage(), True
    stage.window = CaptureWindows(stage.said.append, clock=lambda: stage.now, compiles_now=lambda: compiles)
    stage.window.begin(steps=3)
    stage.window.take(COMPILED)
    stage.after(2 * SETTLED_SECONDS)
    assert stage.states == []
    compiles = False
    stage.after(SETTLED_SECONDS - 0.1)
    assert stage.states == []
    stage.after(0.2)
    assert stage.states == ["began"]
    stage.window.end()


def test_counted_steps_mean_the_loop_despite_compiles():
    stage = Stage()
    stage.window.begin(steps=3)
    stage.window.take(COMPILED)
    stage.window.take(steps(2))
    stage.after(0)
    assert stage.states == ["began"]
    stage.window.end()


@pytest.mark.parametrize(
    ("compiled", "steps", "code"),
    [(True, 3, "ended_uncounted"), (False, None, "nothing_compiled")],
)
def test_a_program_that_ends_before_its_loop_has_no_window(compiled, steps, code):
    stage = Stage()
    stage.window.begin(steps=steps)
    if compiled:
        stage.window.take(COMPILED)
    stage.window.end()
    assert (stage.states, stage.last.code) == (["failed"], code)


def test_steps_from_before_the_window_do_not_count(stage):
    stage.window.take(steps(1000))
    stage.window.begin(steps=5)
    stage.now += 0.25
    stage.window.take(steps(8, seconds=1.0))  # a quarter of that second was inside
    stage.after(0)
    assert stage.states == ["began"]


def test_a_window_without_steps_ends_after_two_seconds(stage):
    """A program that places its arrays and compiles its step for longer than that shows its loop afterwards."""
    stage.window.begin(steps=5)
    stage.after(UNCOUNTED_SECONDS - 0.1)
    stage.window.take(StageRunning(function="step", stage="compile", began_seconds=stage.now))
    stage.after(3 * UNCOUNTED_SECONDS)
    stage.window.take(COMPILED)
    stage.after(UNCOUNTED_SECONDS - 0.1)
    assert stage.states == ["began"]
    stage.after(0.2)
    assert stage.states == ["began", "ended"]
    assert (stage.last.code, stage.last.seconds) == ("uncounted", UNCOUNTED_SECONDS)


def test_steps_that_are_seen_to_end_need_no_event(stage):
    """Events come once a second, in which a loop of milliseconds goes round a hundred times."""
    stage.ended = 40
    stage.window.begin(steps=5)
    for ended in (43, 2, 3):  # another loop counts anew
        stage.ended = ended
        stage.after(0.1)
        assert stage.states == ["began"]
    stage.window.take(steps(100, seconds=0.1))  # the same steps again, and those before
    stage.ended = 4
    stage.after(0.1)
    assert stage.states == ["began", "ended"]
    assert stage.last.code == ""


def test_a_window_in_one_long_call_lasts_until_the_call_ends(stage):
    """A capture holds only the operations that have ended: none, if the window ended in the middle of the first."""
    stage.still_since = stage.now - 1.0
    stage.window.begin(steps=5)
    stage.after(10 * UNCOUNTED_SECONDS)
    assert stage.states == ["began"]
    stage.still_since = stage.now
    stage.after(0.1)
    assert stage.states == ["began", "ended"]
    assert stage.last.code == "uncounted"


def test_a_window_in_an_endless_call_ends_at_the_limit(stage):
    stage.still_since = stage.now - 1.0
    stage.window.begin(steps=5)
    stage.after(LONGEST_SECONDS)
    assert stage.states == ["began", "ended"]
    assert stage.last.code == "too_long"


def test_it_waits_for_the_first_compile_and_starts_no_backend():
    stage = Stage()
    stage.window.begin(seconds=1)
    stage.window.take(Compiled(function="step", trace_seconds=0.1))
    stage.window.take(StageRunning(function="step", stage="trace", began_seconds=0))
    stage.after(50)
    assert not stage.window.begun
    stage.window.take(StageRunning(function="step", stage="compile", began_seconds=0))
    stage.after(0)
    assert stage.window.begun
    stage.window.end()
    assert stage.states == ["began", "ended"]


def test_the_programs_own_profile_comes_first(stage, tmp_path):
    jax.profiler.start_trace(tmp_path / "own")
    stage.window.begin(seconds=1)
    jax.profiler.stop_trace()
    assert stage.states == ["failed"]
    assert stage.last.code == "not_started"
    assert "already been started" in stage.last.error
    assert list((tmp_path / "own").rglob("*.xplane.pb"))
    assert [path.name for path in tmp_path.iterdir()] == ["own"]  # ours left nothing behind


@pytest.mark.parametrize("way", ["start_trace", "trace"])
def test_it_gives_way_to_a_profile_that_the_program_starts(stage, tmp_path, way):
    stage.window.begin(seconds=60)
    own = tmp_path / "own"
    if way == "trace":
        with jax.profiler.trace(own):
            pass
    else:
        jax.profiler.start_trace(own)
        jax.profiler.stop_trace()
    assert stage.states == ["began", "ended"]
    assert stage.last.code == "taken_over"
    assert list(own.rglob("*.xplane.pb"))


def test_the_profiler_is_as_ever_beside_a_window_and_after_it(stage):
    before = {name: getattr(jax.profiler, name) for name in ("start_trace", "stop_trace", "trace")}
    stage.window.begin(seconds=60)
    with pytest.raises(RuntimeError, match="No profile started"):
        jax.profiler.stop_trace()
    stage.window.end()
    assert {name: getattr(jax.profiler, name) for name in before} == before


def test_compiling_does_not_wait_for_the_profilers_stop(stage, monkeypatch):
    taken = threading.Event()

    def take():
        stage.window.take(COMPILED)
        taken.set()

    def stop_trace():
        threading.Thread(target=take, daemon=True).start()
        assert taken.wait(20)
        stopped()

    stage.window.begin(1.0)
    stopped = jax.profiler.stop_trace
    monkeypatch.setattr(jax.profiler, "stop_trace", stop_trace)
    stage.window.end()
    assert stage.states == ["began", "ended"]


def test_own_profiles_of_the_program_are_timed(stage, tmp_path):
    now = [10.0]
    use = ProfilerUse(clock=lambda: now[0])
    before = {name: getattr(jax.profiler, name) for name in ("start_trace", "stop_trace", "trace")}
    use.attach()
    start_thread(partial(stage.window.begin, seconds=1.0))
    until(lambda: stage.states == ["began"])
    now[0] += 5.0
    stage.after(2.0)
    assert (use.seconds(), use.where) == (0.0, NOWHERE)
    jax.profiler.start_trace(tmp_path / "own")
    now[0] += 2.0
    assert use.seconds() == 2.0
    assert use.where.file == __file__
    assert use.where.function == "test_own_profiles_of_the_program_are_timed"
    jax.profiler.stop_trace()
    now[0] += 4.0
    with jax.profiler.trace(tmp_path / "own"):
        now[0] += 1.0
    now[0] += 4.0
    assert use.seconds() == 3.0
    use.detach()
    assert {name: getattr(jax.profiler, name) for name in before} == before
