"""Where a program's time goes: one thread samples the main thread's stack, closely in the first seconds, then seldom.

It sees only what Python shows of another thread. That has a trap: the sampler tends to get the interpreter's lock where
the main thread releases it, so a plain sampler finds a program always at the same few calls. Therefore the sampler
measures how long it waits for the lock: if it has to wait at all, the main thread was running Python.
"""

from __future__ import annotations

import _thread
import math
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from jaxprof.events import ArraysCounted, Compiled, Event, ProgramStopped, SourceLocation, WarningRaised
from jaxprof.recorder.compiles.ledger import Ledger
from jaxprof.recorder.guest import CollectorElsewhere, start_thread
from jaxprof.recorder.profiler_use import ProfilerUse
from jaxprof.recorder.samples.classifier import Classifier
from jaxprof.recorder.samples.cpu_clock import (
    GIVEN_AWAY,
    CpuClock,
    PauseTest,
    RunningTest,
    Wait,
    judge_wait,
    own_switches,
    read_figure,
    run_delay_seconds,
)
from jaxprof.recorder.samples.other_threads import OtherThreads
from jaxprof.recorder.samples.sample_window import SampleWindow
from jaxprof.recorder.samples.settings import CACHE_FOLDER, debug_settings, new_cache, settings_lines
from jaxprof.recorder.samples.stack import Stack, read_stack, read_thread
from jaxprof.recorder.samples.standstill import StandstillWatch
from jaxprof.recorder.samples.states import COMPILED, Seen
from jaxprof.recorder.samples.steps import StepCounter

CLOSE_INTERVAL = 0.005
"""Shortest interval between two samples, in seconds, while a program is sampled closely."""
CLOSE_SECONDS = 4.0
"""A program is sampled closely for this long, not counting the stages of compilations, so that the findings do not
depend on how long it runs. The limit bounds the cost."""
SHORTEST_INTERVAL = 0.010
"""Shortest interval afterwards."""
LONGEST_CLOSE_INTERVAL = 0.040
"""Longest interval while a program is sampled closely."""
LONGEST_INTERVAL = 0.100
"""Longest interval afterwards."""
STAGE_INTERVAL = 0.025
"""Least interval while something is compiled: the ledger has the exact times, samples only the lines."""
OWN_SHARE = 0.0035
"""Share of the time for which the sampler may be awake; the interval follows from how long it is awake for a sample. On
a machine with more to run than processors, that is longer than it runs: the program may wait for the lock meanwhile."""
CLOSE_SHARE = 0.010
"""Share of the time for which the sampler may be awake while it samples closely."""
FIRST_SHARE = 0.030
"""Share of the time awake for the first `FIRST_SAMPLES` outside compilations: short programs need them."""
FIRST_SAMPLES = 100
"""Number of samples that `FIRST_SHARE` holds for."""
_STACKS_OF_A_LINE = 16
"""Number of compilations from one line whose stacks are read."""
_LOOPS_AT_MOST = 50
"""Limit for the loops at whose first work with JAX a window ends."""
_CALLS_WAITING = 1000
"""Limit for the calls that compiled since the last sample, if no sampler takes them, as after it failed."""
WINDOW_SECONDS = 1.0
"""Least length of a sample window."""
GROWTH = 1 / 150
"""A sample window lasts at least this share of the program's age, so that a day has 1 000 windows and a year 2 000."""
TICK_SECONDS = 0.25
"""Interval between two looks at the timed loop, the live arrays and the stages of compilations."""
CLOSE_TICK_SECONDS = 0.1
"""The same while a program is sampled closely."""
_HELD_STEPS = 5
"""Usual steps, of which none ends while the profiler is switched on or off, from which it held the program."""
READING_SHARE = 0.2
"""Share of the time that reading the system's files may take. Each file gives Python's lock away, and where the program
holds that for long, as in `gc.collect()`, little time would be left for samples."""
_GOLDEN = 0.6180339887498949

COUNTED_EVERY_SECONDS = 1.0
"""Interval between two counts of the live arrays."""
COUNTED_AT_FIRST_SECONDS = 0.1
"""Interval between the first counts, so that a program of a second or two has some."""
FIRST_COUNTS = 40
"""Number of counts at `COUNTED_AT_FIRST_SECONDS`."""
RESIDENT_STEP_BYTES = 16 << 20
"""Change of the resident memory that is worth an event by itself."""
COUNTING_SHARE = 0.004
"""Share of the wall time that counting may take: after a count that took longer, the next interval is longer."""


def next_reading(began: float, ended: float, every: float) -> float:
    """Return when to read the system's files again: after `every` seconds, but within `READING_SHARE`."""
    return max(began + every, ended + (ended - began) * (1 / READING_SHARE - 1))


def interval(samples: int, awake_seconds: float, own_seconds: float, share: float) -> float:
    """Return the seconds between two samples, from the cost of `samples`: for how long the sampler was awake,
    and how much CPU time it took. `share`: of the time, for which it may be awake."""
    each = max(awake_seconds, own_seconds) / samples
    if share == OWN_SHARE:
        return min(LONGEST_INTERVAL, max(SHORTEST_INTERVAL, each / share))
    return min(LONGEST_CLOSE_INTERVAL, max(CLOSE_INTERVAL, each / share))


class StackSampler:
    """Samples the main thread: call `start`; events follow until `stop`. Nothing here raises into the program."""

    def __init__(
        self, emit: Callable[[Event], None], ledger: Ledger, *, main_thread: int, began_seconds: float
    ) -> None:
        """`main_thread`: its `threading.get_ident`. `began_seconds`: monotonic time at which the program began; the
        time from there to `start` counts as import."""
        self.on_tick: Callable[[float], object] = lambda now: None
        """Called by the sampler's thread several times a second, with the monotonic time. Raises nothing."""
        self.turns: Callable[[], int] = int
        """Returns a number that rises when the recorder itself makes this thread wait: no pause."""
        self.longest_tick = math.inf
        """Longest interval between two looks that a capture window needs, in seconds."""
        self.profiler: ProfilerUse | None = None
        """The program's own use of JAX's profiler; None if it is not watched."""
        self._profiled = 0.0
        self._emit, self._ledger, self._main_thread = emit, ledger, main_thread
        self._began = began_seconds
        self._stop = _thread.allocate_lock()
        self._stop.acquire()
        self._over = _thread.allocate_lock()
        self._started = False
        self._awake = 0.0
        self._interval = CLOSE_INTERVAL
        self._close_left = CLOSE_SECONDS
        self._first_left = FIRST_SAMPLES
        self._in_stage = False
        self._steps_missed = False
        self._inline: bool | None = None
        native = {item.ident: item.native_id for item in threading.enumerate()}
        self._task = native.get(main_thread) or os.getpid()
        """The system's id of the main thread."""
        self._cpu = CpuClock(main_thread)
        self._running_test = RunningTest(self._cpu)
        self._classifier = Classifier()
        self._arrays = ArrayCounter()
        self._steps = StepCounter(main_thread)
        self._others = OtherThreads(main_thread)
        self.standstill = StandstillWatch(emit, main_thread, self._task)
        self._working_loops: set[tuple[int, int]] = set()
        self._settings_sought: set[str] = set()
        self._settings_at: dict[str, SourceLocation] = {}
        self._stages_reported: set[tuple[str, str, float, bool]] = set()
        self._stacks_read: Counter[tuple[str, int]] = Counter()
        self._compiled_calls: deque[tuple[str, int, int, Stack | None]] = deque(maxlen=_CALLS_WAITING)

    def start(self) -> None:
        """Start sampling, in a thread that `threading` does not know."""
        if not self._started:
            self._started = True
            now = time.monotonic()
            self._window = SampleWindow(self._began)
            self._last_at, self._last_cpu, self._last_delay = now, self._cpu.seconds(), self._delay()
            self._last_stages = self._ledger.stage_seconds()
            self._over.acquire()
            start_thread(self._run)

    def stop(self, timeout_seconds: float = 15.0) -> None:
        """End with the last window; return when the thread is over, or after the timeout.

        On a busy machine the last look at the live arrays takes some seconds, and the program must not end before: a
        thread that comes back from native code of jaxlib into an interpreter that has ended is unwound through its C++,
        which aborts the process ("terminate called without an active exception").
        """
        if self._started and self._stop.locked():
            self._stop.release()
            if self._over.acquire(True, timeout_seconds):
                self._over.release()

    def note_compiled(self, event: Compiled) -> None:
        """Note a row of the ledger, which the recorder passes on in the thread that compiles.

        Calls in the line of that row count as calls of compiled functions, even if the function is a local variable.
        Samples may never see a step that is much shorter than the code around it; the stack of its compilation shows
        where the loop calls it."""
        called_from = event.called_from
        if not event.op_by_op and not event.library and event.compile_seconds is not None and called_from:
            line = called_from.file, called_from.line or 0
            stack = None
            if _thread.get_ident() == self._main_thread and self._stacks_read[line] < _STACKS_OF_A_LINE:
                self._stacks_read[line] += 1
                stack = read_stack(sys._getframe())
            self._compiled_calls.append((*line, event.numpy_bytes, stack))

    def _run(self) -> None:
        try:
            self._own_began = time.thread_time()
            pause_test = PauseTest(_thread.get_native_id(), self._task)
            turns = self.turns()
            counted_at, counted = time.monotonic(), own_switches()
            now = self._last_at
            if now > self._began:
                self._send_window(now, least="import")
            next_tick = next_mark = now
            turn = 0.0
            stopped, held = False, 0.0
            collector = CollectorElsewhere()
            try:
                while not stopped:
                    turn = (turn + _GOLDEN) % 1.0  # so that samples do not fall into step with the program's own loop
                    sleep = max(self._interval, STAGE_INTERVAL if self._in_stage else 0.0) * (0.5 + turn)
                    asleep = time.monotonic()
                    self._awake += asleep - now
                    due = asleep + sleep
                    before = own_switches()
                    pause_test.sleeping(sleep)
                    stopped = collector.asleep(partial(self._stop.acquire, True, sleep))
                    now, after = time.monotonic(), own_switches()
                    switches = None if before is None or after is None else after - before
                    since = None if counted is None or after is None else after - counted
                    paused, found_by = pause_test.seconds(now - counted_at - sleep, since)
                    turns, before_that = self.turns(), turns
                    if turns != before_that:
                        paused, found_by = held, "capture"
                    held = 0.0
                    counted_at, counted = now, after
                    if paused:
                        # That time belongs to no line.
                        began = now - paused
                        if found_by == GIVEN_AWAY:
                            self._window.given_away += paused
                        else:
                            self._window.paused += paused
                        self._steps.note_pause(began, paused)
                        self.standstill.note_pause(paused)
                        self._emit(ProgramStopped(began_seconds=began, seconds=paused, found_by=found_by))
                    self._sample(now, judge_wait(now - due - paused, switches), stopped=stopped, paused=paused)
                    if stopped or now - self._window.began >= max(WINDOW_SECONDS, GROWTH * (now - self._began)):
                        self._send_window(now, final=stopped)
                        pause_test.mark_host()
                    ticks = now >= next_tick or stopped
                    if ticks:
                        self._set_pace(time.thread_time())
                        began, ended = time.monotonic(), self.steps_ended
                        self._tick(now)
                        if self.turns() != turns:
                            held = self._held(time.monotonic() - began, ended)
                        every = CLOSE_TICK_SECONDS if self._close_left > 0 else TICK_SECONDS
                        next_tick = next_reading(began, time.monotonic(), min(every, self.longest_tick))
                    if now >= next_mark:
                        began = time.monotonic()
                        pause_test.mark()
                        next_mark = next_reading(began, time.monotonic(), TICK_SECONDS)
                    if ticks:  # last: the lines that it begins to time would wait for what this thread does after it
                        self._steps.look()
            finally:
                self._steps.close()
                collector.close()
        except Exception as error:  # noqa: BLE001 - a traceback would go to the program's stderr
            self._emit(WarningRaised(code="sampler_failed", values={"error": f"{type(error).__name__}: {error}"}))
        finally:
            self._over.release()

    def _sample(self, now: float, wait: Wait, *, stopped: bool, paused: float = 0.0) -> None:
        """Sample the stack once, for the time since the last sample, during which the process was paused for `paused`
        seconds. Nothing here may release the interpreter's lock before the stack is read, or the main thread would move
        on."""
        self._running_test.begin()
        stages, cpu = self._ledger.stage_seconds(), self._cpu.seconds()
        seconds = max(0.0, now - self._last_at - paused)
        self._close_left -= max(0.0, seconds - sum(stages.values()) + sum(self._last_stages.values()))
        passed = {name: max(0.0, value - self._last_stages.get(name, 0.0)) for name, value in stages.items()}
        if paused and (in_stages := sum(passed.values())) > seconds:  # the clock of a stage went on
            passed = {name: value * seconds / in_stages for name, value in passed.items()}
        ran = None if cpu is None or self._last_cpu is None else max(0.0, cpu - self._last_cpu)
        if paused and ran is not None:  # while the profiler of a capture held it, it may have used a processor
            ran = min(ran, seconds)
        before, self._last_at, self._last_cpu, self._last_stages = self._last_at, now, cpu, stages
        if stopped:  # the stack shows our own exit handler
            self._window.add(None, seconds, running=True, stages=passed, busy_seconds=ran)
            return
        frame, stack = read_thread(self._main_thread)
        running = self._running_test.end() is not False
        self._steps.iterations.sample(frame)
        if wait.held:
            self._others.sample()
        stage = function = ""
        if any(passed.values()):
            open_ones = ((item.stage, item.function) for item in self._ledger.running() if not item.thread)
            stage, function = next(open_ones, ("", ""))
        self._in_stage = bool(stage)
        self._first_left -= not stage
        seen = self._interpret(stack, stage, wait)
        self.standstill.take(now, stack, seen, ran, staged=bool(stage), frame=frame)
        del frame
        share = ran / seconds if ran is not None and seconds > 0 else None
        running = running or bool(wait.held) or (share is not None and share > seen.running_above)
        loops = {site.loop.key for site in seen.sites if site.loop is not None and (stage or seen.works)}
        if not loops <= self._working_loops and len(self._working_loops) < _LOOPS_AT_MOST:
            self._working_loops |= loops
            if self._window.samples:  # what a loop does before it first works is no part of its steady state
                self._send_window(before)
        self._window.add(
            seen,
            seconds,
            running=running,
            stages=passed,
            stage=stage,
            function=function,
            busy_seconds=ran,
            held=bool(wait.held),
            inline=self._computes_inline(),
            array_bytes=stack.fetched_bytes or stack.array_bytes,
            put_bytes=stack.put_bytes,
        )
        if stage:
            self._steps.saw_compiling(seen)
        else:
            self._steps.saw(seen, seconds)

    def _interpret(self, stack: Stack, stage: str, wait: Wait) -> Seen:
        """Return what the thread does here, after the classifier knows the calls that compiled since the last one."""
        while self._compiled_calls:
            file, line, numpy_bytes, compiling = self._compiled_calls.pop()
            self._classifier.note_compiled_line(file, line, numpy_bytes)
            if compiling is not None:
                self._classifier.compiling_at(compiling)
        if stage == "compile":
            self._classifier.compiling_at(stack)
        seen = self._classifier.classify(stack)
        if stage:
            return seen
        # without times of lines, nothing tells this work from that of a compiled function
        if (seen.doubtful or seen.is_beside_unknown) and self._steps.unavailable:
            return seen.while_locked(forced=False)
        if wait.held is False:
            return seen
        return seen.while_locked(forced=wait.forced, brief=wait.brief) if wait.held or seen.kind == COMPILED else seen

    def _computes_inline(self) -> bool:
        """Whether the thread that calls a compiled function may compute it itself, as on a CPU."""
        if self._inline is None and self._last_stages.get("compile", 0.0) > 0:
            try:
                self._inline = sys.modules["jax"].default_backend() == "cpu"
            except Exception:  # noqa: BLE001 - no such function, or a backend that fails: the program will hear of it
                self._inline = True
        return self._inline is not False

    def _send_window(self, now: float, least: str = "host_busy", *, final: bool = False) -> None:
        """Close the window, emit what it holds, and begin the next. `least`: state of time without samples."""
        own, delay = time.thread_time(), self._delay()
        self._window.note_delay(delay - self._last_delay, now)
        self._last_delay = delay
        counted = self._steps.collect(now)
        timed = self._steps.take_timed(counted, self._classifier.at_line, self._classifier.is_shared)
        event = self._window.event(now, own - self._own_began, least, timed)
        names, cache = debug_settings(), new_cache()
        named = [*names, CACHE_FOLDER] if cache else names
        if new := [name for name in named if name not in self._settings_sought]:
            self._settings_sought.update(new)
            self._settings_at |= settings_lines(new)
        at = {name: self._settings_at[name] for name in named if name in self._settings_at}
        if self.profiler is not None:
            profiled, self._profiled = self._profiled, self.profiler.seconds()
            event = replace(event, profiled_seconds=self._profiled - profiled, profiled_from=self.profiler.where)
        threads = self._others.collect()
        self._emit(replace(event, threads=threads, debug_settings=names, debug_settings_at=at, new_cache=cache))
        self._set_pace(own)
        transfers = self._window.transfers(now)
        self._window = SampleWindow(now)
        self._own_began, self._awake = own, 0.0
        for other in (counted, *self._steps.iterations.collect(now, final=final), transfers):
            if other is not None:
                self._emit(other)

    def _delay(self) -> float:
        return run_delay_seconds(self._task) or 0.0

    def _set_pace(self, own: float) -> None:
        """Set the interval to the next sample from the cost of this window's. `own`: CPU seconds of this thread."""
        if self._window.samples >= 10:
            ran, share = own - self._own_began, OWN_SHARE
            if self._close_left > 0:
                share = FIRST_SHARE if self._first_left > 0 else CLOSE_SHARE
            self._interval = interval(self._window.samples, self._awake, ran, share)

    @property
    def steps_ended(self) -> int | None:
        """A number that rises with each iteration that ends; None if nothing counts them at once."""
        return self._steps.iterations.progress

    def _held(self, seconds: float, ended_before: int | None) -> float:
        """Return for how much of a tick that switched the profiler on or off the program stood: all of it, if no step
        ended in what is time for several."""
        usual = self.standstill.usual_seconds
        stood = ended_before is not None and ended_before == self.steps_ended and 0 < _HELD_STEPS * usual <= seconds
        return seconds if stood else 0.0

    def _tick(self, now: float) -> None:
        for code, offset in self._steps.take_compiled_calls():
            self._classifier.calls_compiled(code, offset)
        if self._steps.unavailable and not self._steps_missed:
            self._steps_missed = True
            self._emit(WarningRaised(code="steps_not_counted", values={"cause": self._steps.unavailable}))
        arrays = self._arrays.count(now) if self._last_stages.get("compile", 0.0) > 0 else None
        if arrays is not None:
            self._emit(arrays)
        running = self._ledger.running()
        iterations = self._steps.iterations
        stage = next((item for item in running if not item.thread), None)
        self.standstill.look(now, iterations.progress, iterations.last_number, stage)
        for item in running:
            key = (item.thread, item.function, item.began_seconds, bool(item.made_by))
            if now - item.began_seconds > 0.5 and key not in self._stages_reported:
                if len(self._stages_reported) > 1_000:
                    self._stages_reported.clear()
                self._stages_reported.add(key)
                self._emit(item)
        self.on_tick(now)


class ArrayCounter:
    """Counts the live arrays of the process and the memory of its devices, seldom enough to cost next to nothing.

    Call `count` often, once the program itself has compiled something: counting must never start a backend.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._next = 0.0
        self._reported: tuple[object, ...] = ()
        self._reported_at = 0.0
        self._counted = 0

    def count(self, now: float) -> ArraysCounted | None:
        """Return the live arrays; None if it is too early, if nothing changed lately, or if JAX cannot list them."""
        jax = sys.modules.get("jax")
        if jax is None or now < self._next:
            return None
        began = self._clock()
        try:
            arrays = size = 0
            for array in jax.live_arrays():
                try:
                    size += int(array.nbytes)
                    arrays += 1
                except RuntimeError:  # deleted or donated since the list was made
                    continue
            from jaxprof.engine.measure.jax_devices import device_name  # imports jax, which the program has done by now

            devices = {}
            for device in jax.local_devices():
                statistics = device.memory_stats()
                if statistics and isinstance(statistics.get("bytes_in_use"), int):
                    devices[device_name(device)] = statistics["bytes_in_use"]
        except (AttributeError, RuntimeError):  # a backend that is shutting down, or one that cannot list its arrays
            self._next = now + 10 * COUNTED_EVERY_SECONDS
            return None
        self._counted += 1
        interval = COUNTED_AT_FIRST_SECONDS if self._counted < FIRST_COUNTS else COUNTED_EVERY_SECONDS
        self._next = now + max(interval, (self._clock() - began) / COUNTING_SHARE)
        programs, host_bytes = _live_programs(jax), _resident_bytes()
        counted = (arrays, size, tuple(devices.items()), programs, (host_bytes or 0) // RESIDENT_STEP_BYTES)
        if counted == self._reported and now - self._reported_at < 30 * COUNTED_EVERY_SECONDS:
            return None
        self._reported, self._reported_at = counted, now
        return ArraysCounted(
            monotonic_seconds=now, count=arrays, bytes=size, devices=devices, programs=programs, host_bytes=host_bytes
        )


def _live_programs(jax: Any) -> int | None:
    """Return the number of compiled programs that the first device's backend holds; None if it does not say so."""
    try:
        return len(jax.local_devices()[0].client.live_executables())
    except (AttributeError, IndexError, RuntimeError):
        return None


def _resident_bytes() -> int | None:
    """Return the resident memory of this process; None if the system does not say so."""
    return read_figure("/proc/self/statm", lambda text: int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE"))
