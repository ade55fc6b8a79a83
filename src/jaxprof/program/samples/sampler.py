"""Where a program's time goes: one thread looks at the main thread's stack some fifty times a second.

It sees only what Python shows of another thread. That has a trap: our thread gets the interpreter's lock preferably
where the main thread lets go of it, so a plain sampler finds a program always at the same few calls. Therefore the
sampler measures how long it had to wait for the lock: if at all, then the main thread was running Python.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from jaxprof.events import Compiled, Event, StageRunning, WarningRaised
from jaxprof.program.samples.arrays import ArrayCounter
from jaxprof.program.samples.cpu_clock import CpuClock, RunningTest, own_switches, run_delay_seconds
from jaxprof.program.samples.lock_wait import Wait, judge_wait
from jaxprof.program.samples.stack import Stack, read_stack
from jaxprof.program.samples.states import Classifier, Seen
from jaxprof.program.samples.steps import StepCounter
from jaxprof.program.samples.stretch import Stretch
from jaxprof.program.samples.transfers import SampledTransfers

SHORTEST_INTERVAL: Final = 0.010
FIRST_INTERVAL: Final = 0.030
LONGEST_INTERVAL: Final = 0.100
OWN_SHARE: Final = 0.0035
"""Of one core: what the sampler lets itself cost; the interval follows from what a sample was seen to take."""
STRETCH_SECONDS: Final = 1.0
GROWTH: Final = 1 / 150
"""A stretch is as long as this share of the program's age, so that 1 000 make a day and 2 000 a year."""
TICK_SECONDS: Final = 0.25
STAGE_IS_LONG_SECONDS: Final = 0.5
_GOLDEN: Final = 0.6180339887498949


class LedgerView(Protocol):
    """What the sampler asks the ledger."""

    def stage_seconds(self) -> dict[str, float]:
        """Of the main thread: cumulative exclusive seconds by stage, the one that is going on included."""

    def running(self) -> list[StageRunning]:
        """The stages that are going on."""


class Sampler:
    """`start`, then events until `stop`. None of it raises into the program."""

    def __init__(
        self, emit: Callable[[Event], None], ledger: LedgerView, *, main_thread: int, began_seconds: float
    ) -> None:
        """`main_thread`: as `threading.get_ident` has it. `began_seconds`: monotonic, when the program began; the time
        from there to `start` counts as import."""
        self.on_tick: list[Callable[[float], None]] = []
        """Called with the monotonic time, on the sampler's thread, several times a second."""
        self._emit, self._ledger, self._main_thread = emit, ledger, main_thread
        self._began = began_seconds
        self._stop = _thread.allocate_lock()
        self._stop.acquire()
        self._over = _thread.allocate_lock()
        self._started = False
        self._interval = FIRST_INTERVAL
        self._task = _task(main_thread)
        self._cpu = CpuClock(main_thread)
        self._running_test = RunningTest(self._cpu)
        self._classifier = Classifier()
        self._arrays = ArrayCounter()
        self._steps = StepCounter(main_thread)
        self._transfers = SampledTransfers()
        self._stages_told: set[tuple[str, str, float]] = set()
        self._compiled_lines: list[tuple[str, int]] = []

    def start(self) -> None:
        """Begins to look, in a thread of its own that `threading` does not know."""
        if not self._started:
            self._started = True
            now = time.monotonic()
            self._stretch = Stretch(self._began)
            self._last_at, self._last_cpu, self._last_delay = now, self._cpu.seconds(), run_delay_seconds(self._task)
            self._last_stages = self._ledger.stage_seconds()
            self._over.acquire()
            _thread.start_new_thread(self._run, ())

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Ends with the last stretch; returns when the thread is over, or after the timeout."""
        if self._started and self._stop.locked():
            self._stop.release()
            if self._over.acquire(True, timeout_seconds):
                self._over.release()

    def compiled(self, event: Compiled) -> None:
        """The ledger's rows, where the recorder passes them on: calls on such a line are calls of compiled functions,
        also where the function is a local variable."""
        place = event.called_from
        if not event.op_by_op and not event.library and event.compile_seconds is not None and place:
            self._compiled_lines.append((str(place.get("file")), int(place.get("line") or 0)))

    def _run(self) -> None:
        try:
            self._sample_until_stopped()
        except Exception as error:  # noqa: BLE001 - the end of a thread; on stderr it would be the program's
            message = f"the sampler ended: {type(error).__name__}: {error}"
            self._emit(WarningRaised(code="sampler_failed", message=message))
        finally:
            self._over.release()

    def _sample_until_stopped(self) -> None:
        self._own_began = time.thread_time()
        now = self._last_at
        if now > self._began:
            self._send_stretch(now, least="import")
        next_tick = now
        turn = 0.0
        stopped = False
        try:
            while not stopped:
                turn = (turn + _GOLDEN) % 1.0  # not in step with the program's own loop
                pause = self._interval * (0.5 + turn)
                due = time.monotonic() + pause
                before = own_switches()
                stopped = self._stop.acquire(True, pause)
                now, after = time.monotonic(), own_switches()
                switches = None if before is None or after is None else after - before
                self._sample(now, judge_wait(now - due, switches), stopped=stopped)
                if stopped or now - self._stretch.began >= max(STRETCH_SECONDS, GROWTH * (now - self._began)):
                    self._send_stretch(now)
                if now >= next_tick or stopped:
                    next_tick = now + TICK_SECONDS
                    self._tick(now)
        finally:
            self._steps.close()

    def _sample(self, now: float, wait: Wait, *, stopped: bool) -> None:
        """Looks at the stack once, for the time since the last look. Nothing here may let go of the interpreter's lock
        before the stack is read: what the thread was at would be over."""
        self._running_test.begin()
        stages, cpu = self._ledger.stage_seconds(), self._cpu.seconds()
        seconds = now - self._last_at
        passed = {name: max(0.0, value - self._last_stages.get(name, 0.0)) for name, value in stages.items()}
        ran = None if cpu is None or self._last_cpu is None else max(0.0, cpu - self._last_cpu)
        self._last_at, self._last_cpu, self._last_stages = now, cpu, stages
        if stopped:  # the stack is at our own end
            self._stretch.add(None, seconds, running=True, stages=passed, busy_seconds=ran)
            return
        stack = read_stack(sys._current_frames().get(self._main_thread))
        running = self._running_test.end() is not False
        stage = self._main_stage() if any(passed.values()) else ""
        seen = self._understand(stack, stage, before=wait.let_in)
        share = ran / seconds if ran is not None and seconds > 0 else None
        running = running or wait.waited or (share is not None and share > seen.running_above)
        self._stretch.add(seen, seconds, running=running, stages=passed, stage=stage, busy_seconds=ran)
        if not stage:
            self._steps.saw(seen.loop, seconds)
            if seen.implicit and seen.line is not None:
                self._transfers.saw(seen.implicit, seen.line, seconds, stack.array_bytes)

    def _understand(self, stack: Stack, stage: str, *, before: bool) -> Seen:
        while self._compiled_lines:
            self._classifier.compiled_at(*self._compiled_lines.pop())
        if stage == "compile":
            self._classifier.compiling_at(stack)
        seen = self._classifier.classify(stack)
        return seen.before() if before and not stage else seen

    def _main_stage(self) -> str:
        return next((item.stage for item in self._ledger.running() if not item.thread), "")

    def _send_stretch(self, now: float, least: str = "host_busy") -> None:
        own, delay = time.thread_time(), run_delay_seconds(self._task)
        self._stretch.delayed(delay - self._last_delay, now)
        self._last_delay = delay
        self._emit(self._stretch.event(now, own - self._own_began, least))
        taken, self._stretch = self._stretch.samples, Stretch(now)
        if taken > 0:
            wanted = (own - self._own_began) / taken / OWN_SHARE
            self._interval = min(LONGEST_INTERVAL, max(SHORTEST_INTERVAL, wanted))
        self._own_began = own
        arrays = self._arrays.count(now) if self._last_stages.get("compile", 0.0) > 0 else None
        for event in (self._steps.collect(now), self._transfers.collect(now), arrays):
            if event is not None:
                self._emit(event)

    def _tick(self, now: float) -> None:
        for item in self._ledger.running():
            key = (item.thread, item.function, item.began_seconds)
            if now - item.began_seconds > STAGE_IS_LONG_SECONDS and key not in self._stages_told:
                if len(self._stages_told) > 1_000:
                    self._stages_told.clear()
                self._stages_told.add(key)
                self._emit(item)
        for listener in list(self.on_tick):
            try:
                listener(now)
            except Exception as error:  # noqa: BLE001 - one listener's failure must not end the samples
                self.on_tick.remove(listener)
                message = f"a listener of the sampler failed: {type(error).__name__}: {error}"
                self._emit(WarningRaised(code="sampler_failed", message=message))


def _task(thread: int) -> int:
    """The system's number of a thread, from Python's."""
    numbers = {item.ident: item.native_id for item in threading.enumerate()}
    return numbers.get(thread) or os.getpid()
