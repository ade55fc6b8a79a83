"""Measure the runs of a comparison in turns: their engines live at the same time and take short blocks of samples in
balanced order, so that a disturbance of the machine affects all of them alike.

Each launch has fresh processes. Work that happens once in a process (import, trace, compile, first call) is measured
one process at a time, before the turns; the work after the steady run likewise, after the turns.

One process works at a time, and the others are frozen, because the threads of a waiting process go on spinning (those
of OpenBLAS, which NumPy uses, slow a matrix product under jit down by a factor of 1.7). A process that holds an
accelerator is not frozen: it only waits. Two checks guard the turns themselves. Whole
blocks in the first launch show how soon calls settle after another run's turn; samples count only from there. And each
run is sampled alone before anybody's turn: where these samples differ from those of its turns, `analysis` takes the
samples measured alone.

Where the number of launches is not fixed, they end when the intervals are narrow enough, or when the time is over. More
launches are worth more than longer turns: two processes of one program differ, and a disturbance of a second affects
one launch. So turns are short enough for `WANTED_LAUNCHES` to fit, but not too short to be informative. The rule never
looks at a verdict: measuring until a verdict appears finds one even for two runs of the same program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxprof.base.errors import JaxprofError
from jaxprof.base.units import seconds
from jaxprof.devices.inventory.placement import PREALLOCATE, WorkerEnvironment
from jaxprof.engine.protocol.request import TurnRequest, TurnsOverRequest
from jaxprof.events import (
    DeviceReading,
    Event,
    LogLine,
    PhaseEnded,
    PhaseStarted,
    ProgressMade,
    RunFinished,
    SamplesTaken,
    TurnAwaited,
    WarningRaised,
    WorkerStarted,
)
from jaxprof.runner.engine_process import EngineProcess, EngineRun
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.requests import timing_request
from jaxprof.runner.session_recorder import BATCH_SECONDS, SessionRecorder
from jaxprof.session import Session
from jaxprof.stats.blocks import BLOCK_SECONDS, settling_seconds
from jaxprof.stats.turns import (
    ALONE_SAMPLES,
    ALONE_SECONDS,
    ALONE_SHARE,
    ALONE_WARM_IN_SECONDS,
    LEAST_BLOCKS,
    UNPROBED_WARM_IN_SECONDS,
    plan_probes,
    plan_turns,
)

LEAST_LAUNCHES = 3
"""Never stop before this many launches: two give an interval six times as wide as that of five."""
WANTED_LAUNCHES = 5
"""Launches that should fit into the time, if their turns can be made short enough."""
LEAST_TURNS_SECONDS = 2.0
"""Shortest duration of a launch's turns. Beside a neighbour that works in bursts, one second of turns gave a launch six
to fourteen pairs of blocks, which was worth less than the fifth launch that it made room for."""
LONGER = 1.5
"""`LEAST_LAUNCHES` may take this many times the given time, or `LEAST_SECONDS`; otherwise there is one launch."""
LEAST_SECONDS = 120.0


class LaunchRule:
    """The rule that ends the launches of one group of runs. Its time begins when it is made."""

    def __init__(
        self, seconds: float | None, half_width: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds`: for the whole group; `half_width`: of each speed-up's 95 % interval. None: no limit."""
        self._seconds, self._half_width, self._clock = seconds, half_width, clock
        self._began = self._last = clock()
        self._took: list[float] = []

    @classmethod
    def of(cls, plans: Sequence[PlannedRun]) -> LaunchRule | None:
        """Return the rule in the baseline's plan; None if the runs are not sides of a comparison."""
        head = plans[0]
        if not head.spec.side:
            return None
        return cls(head.group_seconds, head.spec.until_half_width)

    def is_over(self, turns_seconds: float = math.inf) -> bool:
        """Return whether the turns of this launch, which have lasted `turns_seconds`, must end so that the wanted
        launches fit into the time."""
        if self._seconds is None or turns_seconds < LEAST_TURNS_SECONDS:
            return False
        begun = self._last - self._began
        launches = max(1, WANTED_LAUNCHES - len(self._took))
        return self._clock() - self._last >= (self._seconds - begun) / launches

    def ends(self, session: Session, runs: Sequence[str]) -> bool:
        """Return whether the launch just finished is the last. `runs`: those still measured, the baseline first."""
        now = self._clock()
        self._took.append(now - self._last)
        self._last = now
        expected = max(self._took[1:] or self._took)  # the first one alone captures, checks and times copies
        missing = max(1, LEAST_LAUNCHES - len(self._took))
        if self._seconds is not None:
            few = len(self._took) < LEAST_LAUNCHES
            allowed = max(LONGER * self._seconds, LEAST_SECONDS) if few else self._seconds
            if now - self._began + missing * expected > allowed:
                return True
        if self._half_width is None or len(self._took) < LEAST_LAUNCHES:
            return False
        from jaxprof.analysis.runs.speedup import compare_times
        from jaxprof.stats.comparison import narrow_enough

        baseline = session.runs[runs[0]]
        others = [session.runs[run] for run in runs[1:]]
        return all(narrow_enough(compare_times(session, baseline, run), self._half_width) for run in others)


WAITING = "waiting"
"""Phase of an engine that is warm while other engines start."""
MOST_COLD_SECONDS = 30.0
"""A run that takes longer than both this and its budget to start and compile has one launch."""
_RECORDED_EVERY_LAUNCH = (PhaseStarted, PhaseEnded, SamplesTaken, LogLine, DeviceReading)
"""Events recorded of every launch; the others do not depend on the process and are recorded once."""


@dataclass(slots=True)
class Side:
    """One run of a group, over all its launches."""

    run: str
    plan: PlannedRun
    placement: WorkerEnvironment | None = None
    engine: EngineRun | None = None
    process: EngineProcess | None = None
    """Child that works on the run now, for whoever cancels it."""
    call_seconds: float = 0.0
    warm_in_seconds: float | None = None
    """Seconds until its calls settle after another run's turn; None before that is probed."""
    warm_seconds: float | None = None
    """Monotonic time when it was ready for its first turn."""
    finished: RunFinished | None = None
    """The event that ends the run, as soon as a launch has failed."""
    cold_seconds: float = 0.0
    """Seconds from the start of its last process to its first turn, or to its end if it had no steady run."""
    spent_seconds: float = 0.0
    """Seconds its engines have worked on it, without the turns of others."""
    launches: int = 0
    cancelled: bool = False

    @property
    def left_seconds(self) -> float | None:
        """Seconds that the run's hard cap leaves for further launches; None without a cap."""
        most = self.plan.spec.max_seconds
        return None if most is None else most - self.spent_seconds

    @property
    def has_turns(self) -> bool:
        """Whether its process goes on: not after a failure, nor after the hard cap, at which a launch succeeds."""
        return self.finished is None and self.engine is not None

    @property
    def name(self) -> str:
        """Name of the run for messages: `jit on cpu:0`; `B, jit on cpu:0` for a side of a comparison."""
        spec = self.plan.spec
        return f"{f'{spec.side}, ' if spec.side else ''}{spec.variant} on {spec.device}"


class Group:
    """Runs that are compared with each other. Only the thread that runs the queue uses it."""

    def __init__(
        self,
        sides: Sequence[Side],
        recorder: SessionRecorder,
        *,
        environment_for: Callable[[PlannedRun], WorkerEnvironment],
        start: Callable[[Side, WorkerEnvironment], EngineRun],
        after_first: Callable[[Side], object],
        next_block: Callable[[], int],
    ) -> None:
        """`start`: starts a worker, which `cancel` reaches from then on. `after_first`: called when a first launch
        has succeeded, with its process closed. `next_block`: returns the number of a block."""
        self.sides = sides
        self._recorder = recorder
        self._environment_for, self._start = environment_for, start
        self._after_first, self._next_block = after_first, next_block
        self._launches = max(side.plan.spec.launches for side in sides)
        self._warned: set[tuple[str, str]] = set()
        on_tpus = sum(side.plan.spec.device.partition(":")[0] == "tpu" for side in sides)
        self._apart_reason = "one process at a time can use a tpu" if on_tpus > 1 else ""
        """Why the sides cannot live at the same time; empty if they can."""
        self._rule = LaunchRule.of([side.plan for side in sides])

    def measure(self) -> None:
        if self._apart_reason:
            self._measure_apart(self._apart_reason)
        for launch in range(1, self._launches + 1):
            active = [side for side in self.sides if self._is_active(side)]
            if not active or launch > self._launches or (launch > 1 and self._has_enough(active, launch - 1)):
                break
            # Each launch begins with another side, so that none always has the first turn.
            first = (launch - 1) % len(active)
            active = [*active[first:], *active[:first]]
            if len(active) > 1 and not self._apart_reason:
                self._launch_together(launch, active)
                if not self._apart_reason:
                    continue
                active = [side for side in active if side.finished is None and side.launches < launch]
            for side in active:
                self._launch_together(launch, [side])
        for side in self.sides:
            if side.finished is None:
                self._end(side, RunFinished(run=side.run, status="ok"))

    def _is_active(self, side: Side) -> bool:
        if side.finished is None and side.cancelled:
            self._end(side, RunFinished(run=side.run, status="cancelled", error="cancelled"))
        return side.finished is None

    def _has_enough(self, active: Sequence[Side], done: int) -> bool:
        """Return whether `done` launches are enough. With a rule, width and time decide that, never a verdict."""
        if self._rule is None:
            return self._next_launch_too_long(active, done)
        if active[0] is not self.sides[0] or len(active) == 1:
            return True  # nothing is left to compare
        if any(side.left_seconds is not None and side.left_seconds < side.cold_seconds for side in active):
            return True  # it would reach its hard cap before its first call
        return self._rule.ends(self._recorder.session, [side.run for side in active])

    def _next_launch_too_long(self, active: Sequence[Side], done: int) -> bool:
        """Return whether another launch after `done` would cost more than it is worth; if so, warn."""
        for side in active:
            cold, left = side.cold_seconds, side.left_seconds
            if cold > max(MOST_COLD_SECONDS, side.plan.spec.timing_seconds):
                why = f"starting and compiling {side.name} takes {seconds(cold)}"
                fix = f"--budget {math.ceil(cold) + 1} gives it {self._launches} launches."
            elif left is not None and left < cold:
                why = f"the hard cap leaves {side.name} no time for another"
                fix = "Give a larger --max-seconds, or ask for fewer --launches."
            else:
                continue
            launches = f"measured in {done} of {self._launches} launches"
            for measured in active:
                self._warn(measured, "fewer_launches", f"{launches}: {why}", fix)
            return True
        return False

    def _launch_together(self, launch: int, sides: Sequence[Side]) -> None:
        """Measure one launch of all `sides`. If they do not fit together, stop early and set `_apart_reason`."""
        ready: list[Side] = []
        try:
            for side in sides:
                if ready and not self._fits(len(sides) - len(ready)):
                    self._measure_apart("the machine's memory does not hold all of them at the same time")
                    return
                if not self._is_active(side):
                    continue
                reached = self._warm(side, launch, shared=len(sides) > 1)
                if isinstance(reached, TurnAwaited):
                    side.call_seconds = reached.call_seconds
                    if len(sides) > 1:
                        self._sample_alone(side, launch)
                    side.warm_seconds = time.monotonic()
                    if side.has_turns:
                        self._suspend(side)
                        self._recorder.emit(PhaseStarted(run=side.run, phase=WAITING))
                        ready.append(side)
                elif ready and reached.out_of_memory:
                    self._measure_apart(f"{side.name} ran out of memory beside the others")
                    return
                else:
                    self._launch_over(side, launch, reached)
            if self._rule is None and launch == 1 and self._launches > 1 and self._next_launch_too_long(ready, 1):
                self._launches = 1  # which has the whole budget
            self._take_turns(launch, ready)
            for side in ready:
                if side.finished is None and side.engine is not None:  # what comes after the steady run, and its end
                    began = time.monotonic()
                    side.engine.process.thaw()
                    side.engine.send(TurnsOverRequest())
                    last = side.engine.follow()
                    side.spent_seconds += time.monotonic() - began
                    self._launch_over(side, launch, last)
                    self._close(side)
        finally:
            for side in sides:
                self._close(side)
        for side in sides:
            if side.launches == launch == 1:
                self._after_first(side)

    def _measure_apart(self, why: str) -> None:
        self._apart_reason = why
        for side in self.sides:
            self._warn(
                side,
                "measured_apart",
                f"measured one process after the other, not in turns: {why}",
                "The comparison includes any slow change of the machine between them; a smaller size may fit.",
            )

    def _fits(self, more: int) -> bool:
        """Return whether `more` engines fit in memory, each as large as the largest one so far."""
        import psutil

        sizes = []
        for side in self.sides:
            if side.engine is not None:
                try:
                    sizes.append(psutil.Process(side.engine.process.pid).memory_info().rss)
                except psutil.Error:
                    continue
        # The engines still to be started must not need all of the free memory.
        return not sizes or max(sizes) * more <= 0.8 * psutil.virtual_memory().available

    def _warm(self, side: Side, launch: int, *, shared: bool) -> TurnAwaited | RunFinished:
        """Start an engine and follow it to its first turn, or to the end of a run that has none."""
        began = time.monotonic()
        try:
            if side.placement is None:
                side.placement = self._environment_for(side.plan)
            if not shared or side.plan.spec.device.startswith("cpu:"):
                placement = side.placement
            else:  # the first engine would otherwise take most of the device's memory from the others
                placement = replace(side.placement, environment={**side.placement.environment, PREALLOCATE: "false"})
            side.engine = self._start(side, placement)
        except JaxprofError as error:
            return RunFinished.of(error, run=side.run)
        process = side.engine.process
        self._recorder.emit(WorkerStarted(run=side.run, pid=process.pid, python=process.python, launch=launch))
        for text in placement.notes if launch == 1 else ():
            self._recorder.emit(WarningRaised(run=side.run, code="placement", message=text))

        def is_new(event: Event) -> bool:
            if isinstance(event, WarningRaised):
                return not any(raised.code == event.code for raised in self._recorder.session.runs[side.run].warnings)
            return isinstance(event, _RECORDED_EVERY_LAUNCH)

        side.engine.keep = None if launch == 1 else is_new
        request = timing_request(side.run, side.plan, placement.device)
        spec = replace(request.spec, max_seconds=side.left_seconds)
        side.engine.send(replace(request, spec=spec, launch=launch, in_turns=True))
        side.engine.record_readings()
        reached = side.engine.follow(lambda event: isinstance(event, TurnAwaited))
        side.cold_seconds = time.monotonic() - began
        side.spent_seconds += side.cold_seconds
        assert isinstance(reached, TurnAwaited | RunFinished)
        return reached

    def _take_turns(self, launch: int, sides: Sequence[Side]) -> None:
        if not sides:
            return
        budget = min(side.plan.spec.timing_seconds for side in sides) / self._launches
        unknown = [side for side in sides if side.warm_in_seconds is None]
        if len(sides) > 1 and unknown:  # find how soon their calls settle
            probes = plan_probes([side.call_seconds for side in sides])
            blocks: dict[str, list[list[float]]] = {side.run: [] for side in sides}
            for index in probes.order:
                side = sides[index]
                if side.has_turns:
                    blocks[side.run].append(
                        self._block(side, launch, "settling", probes.block_seconds, probes.most_samples)
                    )
                    self._suspend(side)
            for side in unknown:
                unprobed = UNPROBED_WARM_IN_SECONDS if side.call_seconds < UNPROBED_WARM_IN_SECONDS else 0.0
                side.warm_in_seconds = settling_seconds(blocks[side.run]) if probes.order else unprobed
        plan = plan_turns(
            [side.call_seconds for side in sides],
            budget,
            launch=launch,
            launches=self._launches,
            block_seconds=BLOCK_SECONDS,
            warm_in_seconds=[side.warm_in_seconds or 0.0 for side in sides],
        )
        whole = math.fsum(
            max(plan.block_seconds, sides[index].call_seconds) + (sides[index].warm_in_seconds or 0.0)
            for index in plan.order
        )
        self._progress(launch, sides, 0.0, whole)
        reported_seconds = began = time.monotonic()
        for side in sides:
            waited = began - (side.warm_seconds or began)
            self._recorder.emit(PhaseEnded(run=side.run, phase=WAITING, seconds=waited))
            self._recorder.emit(PhaseStarted(run=side.run, phase="run"))
        for number, index in enumerate(plan.order, start=1):
            if sides[index].has_turns:
                warm_in_seconds = sides[index].warm_in_seconds or 0.0
                self._block(sides[index], launch, "run", plan.block_seconds, plan.most_samples, warm_in_seconds)
                self._suspend(sides[index])
            now = time.monotonic()
            if now - reported_seconds >= BATCH_SECONDS:
                reported_seconds = now
                share = number / len(plan.order)
                self._progress(launch, sides, share, (now - began) / share)
            rounds, rest = divmod(number, len(sides))
            if self._rule is not None and not rest and rounds >= LEAST_BLOCKS and self._rule.is_over(now - began):
                break  # all sides have had as many blocks

    def _sample_alone(self, side: Side, launch: int) -> None:
        """Sample the calls of a side in one go, with no other side's turn before them."""
        budget = ALONE_SHARE * side.plan.spec.timing_seconds / self._launches
        self._block(side, launch, "alone", min(ALONE_SECONDS, budget), ALONE_SAMPLES, ALONE_WARM_IN_SECONDS)

    def _block(
        self, side: Side, launch: int, series: str, block_seconds: float, most: int, warm_in_seconds: float = 0.0
    ) -> list[float]:
        """Run one block of a side while the others wait; return its samples, or none if its launch ended."""
        assert side.engine is not None
        began = time.monotonic()
        side.engine.process.thaw()
        number = self._next_block()
        side.engine.send(
            TurnRequest(
                block=number, seconds=block_seconds, most_samples=most, warm_in_seconds=warm_in_seconds, series=series
            )
        )
        event = side.engine.follow(lambda event: isinstance(event, SamplesTaken) and event.block == number)
        side.spent_seconds += time.monotonic() - began
        if isinstance(event, SamplesTaken):
            return event.seconds
        self._launch_over(side, launch, event)
        self._close(side)  # it has ended the run, and would wait for ever
        return []

    def _suspend(self, side: Side) -> None:
        """Freeze the side's process until its next turn. One that holds an accelerator must not be stopped, because
        others wait for its driver: it only waits."""
        if side.engine is not None and side.plan.spec.device.startswith("cpu:"):
            side.engine.process.freeze()

    def _progress(self, launch: int, sides: Sequence[Side], share: float, whole_seconds: float) -> None:
        """Emit the progress of the sides: a `share` of this launch is over, whose turns take about `whole_seconds`."""
        left = whole_seconds * (1 - share)
        if self._rule is None:
            cold = math.fsum(side.cold_seconds for side in sides)
            left += (self._launches - launch) * (cold + whole_seconds)
        note = f"launch {launch} of {self._launches}" if self._launches > 1 else ""
        if len(sides) > 1:
            note = f"{note}, in turns with {len(sides) - 1} more".removeprefix(", ")
        for side in sides:
            if side.finished is None:
                fraction = (launch - 1 + share) / self._launches
                self._recorder.emit(ProgressMade(run=side.run, fraction=fraction, remaining_seconds=left, note=note))
        self._recorder.flush_when_due()

    def _launch_over(self, side: Side, launch: int, last: Event) -> None:
        assert isinstance(last, RunFinished)
        if last.status == "ok":
            side.launches = launch
            return
        if launch > 1 and last.error:
            last = replace(last, error=f"launch {launch} of {self._launches}: {last.error}")
        self._end(side, last)

    def _end(self, side: Side, finished: RunFinished) -> None:
        side.finished = finished
        self._close(side)
        self._recorder.close_run(side.run, finished)

    def _close(self, side: Side) -> None:
        if side.engine is not None:
            engine, side.engine = side.engine, None
            engine.close()

    def _warn(self, side: Side, code: str, message: str, fix: str) -> None:
        if side.finished is None and (side.run, code) not in self._warned:
            self._warned.add((side.run, code))
            self._recorder.emit(WarningRaised(run=side.run, code=code, message=message, advice=fix))
