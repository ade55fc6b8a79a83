"""Runs that are compared are measured in turns: their engines live at the same time and take short blocks of samples in
balanced order, so that what disturbs the machine disturbs all of them alike.

Each launch has fresh processes. What happens once in a process (import, trace, compile, first call) is measured one
process at a time, before the turns; the rest of a run likewise, after them.

One process works at a time, and the others are frozen: the threads of a waiting one go on spinning (those of OpenBLAS,
which NumPy uses, cost a product of matrices under jit 1.7 times its time). A process that holds an accelerator is not
frozen: it waits, and it is checked that it does. Two things guard the turns themselves. Whole blocks in the first
launch show how soon calls settle after the turn of another, and from there on they count. And each run is sampled in
one go before anybody's turn: where that differs from its turns, `analysis` takes the one alone.

Where the number of launches is not fixed, they end at a width of the intervals, or in time. Launches come before the
length of their turns: two processes of one program differ, and what disturbs the machine for a second disturbs one
launch. So turns are as short as it takes for `WANTED_LAUNCHES` to fit, and no shorter than shows something. The rule
never looks at a verdict: whoever measures until one comes finds one for two runs of the same program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxprof.devices.inventory.placement import PREALLOCATE, WorkerEnvironment
from jaxprof.engine.protocol.request import RunRequest, TurnRequest, TurnsOverRequest
from jaxprof.errors import JaxprofError
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
from jaxprof.runner.engine_run import EngineRun
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.session_recorder import BATCH_SECONDS, SessionRecorder
from jaxprof.session import Session
from jaxprof.stats import BLOCK_SECONDS, TurnPlan, plan_turns
from jaxprof.stats.turns import (
    ALONE_SAMPLES,
    ALONE_SECONDS,
    ALONE_SHARE,
    ALONE_WARM_IN_SECONDS,
    LEAST_BLOCKS,
    UNPROBED_WARM_IN_SECONDS,
    plan_probes,
    settling_seconds,
)
from jaxprof.units import percent, seconds

LEAST_LAUNCHES = 3
"""Before that nothing ends them. Two say next to nothing: their interval is six times as wide as that of five."""
WANTED_LAUNCHES = 5
"""So many have to fit into the time, if their turns can be made short enough."""
LEAST_TURNS_SECONDS = 2.0
"""The turns of a launch last at least so long: beside a neighbour that works in bursts, one second of turns gave a
launch six to fourteen pairs of blocks, which said less than the fifth launch that it made room for."""
LONGER = 1.5
"""The least launches may take so many times the time that was given, or `LEAST_SECONDS`; else there is one launch."""
LEAST_SECONDS = 120.0


class LaunchRule:
    """The rule of one group of runs. Its time begins when it is made."""

    def __init__(
        self, seconds: float | None, half_width: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds`: of the whole group; `half_width`: of each speed-up's 95 % interval, as a share. None: no limit."""
        self._seconds, self._half_width, self._clock = seconds, half_width, clock
        self._began = self._last = clock()
        self._took: list[float] = []

    @classmethod
    def of(cls, plans: Sequence[PlannedRun]) -> LaunchRule | None:
        """The rule that the baseline's plan states; None if the runs are no sides of a comparison."""
        head = plans[0]
        if not head.spec.side:
            return None
        return cls(head.group_seconds, head.spec.until_half_width)

    def is_over(self, turns_seconds: float = math.inf) -> bool:
        """Whether the turns of this launch are over, which have lasted `turns_seconds`: so that the launches that are
        wanted fit into the time."""
        if self._seconds is None or turns_seconds < LEAST_TURNS_SECONDS:
            return False
        begun = self._last - self._began
        launches = max(1, WANTED_LAUNCHES - len(self._took))
        return self._clock() - self._last >= (self._seconds - begun) / launches

    def ends(self, session: Session, runs: Sequence[str]) -> bool:
        """Called after each launch: whether there is no other. `runs`: those still measured, the baseline first."""
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
        return len(self._took) >= LEAST_LAUNCHES and self._narrow(session, runs)

    def _narrow(self, session: Session, runs: Sequence[str]) -> bool:
        from jaxprof.analysis.speedup import compared
        from jaxprof.stats import narrow_enough

        if self._half_width is None:
            return False
        baseline = session.runs[runs[0]]
        others = [session.runs[run] for run in runs[1:]]
        return all(narrow_enough(compared(session, baseline, run), self._half_width) for run in others)


WAITING = "waiting"
"""The phase of an engine that is warm, while others are started."""
MEMORY_SHARE = 0.8
"""The largest share of the free memory that the engines still to be started may need to live together."""
MOST_COLD_SECONDS = 30.0
"""A run that takes longer than this, and than its budget, to start and compile has one launch."""
IDLE_SHARE = 0.05
"""A process that waits for its turn, and is not frozen, may use this share of a core."""
_EXCLUSIVE_PLATFORMS = ("tpu",)
"""One process at a time can hold such a device."""
_OF_EACH_LAUNCH = (PhaseStarted, PhaseEnded, SamplesTaken, LogLine, DeviceReading)
"""What is recorded of every launch; the rest of a run does not depend on the process and is recorded once."""


@dataclass(slots=True)
class Rest:
    """What the process of a side that cannot be frozen does while it waits."""

    waited_seconds: float = 0.0
    used_seconds: float = 0.0
    """Processor time meanwhile."""
    began: tuple[float, float] | None = None
    """When the present wait began, and the processor time until then."""

    def begin(self, used_seconds: float) -> None:
        """The process has nothing to do from now on, after `used_seconds` of processor time in all."""
        self.began = time.monotonic(), used_seconds

    def end(self, used_seconds: float) -> None:
        """The process gets its turn."""
        if self.began is not None:
            self.waited_seconds += time.monotonic() - self.began[0]
            self.used_seconds += used_seconds - self.began[1]
            self.began = None

    @property
    def share(self) -> float:
        """Of a core, while it waited; 0 where it hardly waited."""
        return self.used_seconds / self.waited_seconds if self.waited_seconds > LEAST_WAIT_SECONDS else 0.0


LEAST_WAIT_SECONDS = 0.2


@dataclass(slots=True)
class Side:
    """One run of a group, over all its launches."""

    run: str
    plan: PlannedRun
    placement: WorkerEnvironment | None = None
    at_work: EngineRun | None = None
    call_seconds: float = 0.0
    warm_in_seconds: float | None = None
    """How soon its calls settle after another's turn, once that was looked at; None before, and where nobody else has
    turns."""
    rest: Rest | None = None
    """Its wait for a turn, where it is not frozen meanwhile."""
    warm_seconds: float | None = None
    """When it was ready for its first turn, on the monotonic clock."""
    finished: RunFinished | None = None
    """Its end, as soon as one launch has not gone well."""
    cold_seconds: float = 0.0
    """From the start of its last process to its first turn, or to its end without the steady run."""
    spent_seconds: float = 0.0
    """How long its engines have worked on it, without the turns of others."""
    launches: int = 0
    """Launches that went well."""
    cancelled: bool = False

    @property
    def left_seconds(self) -> float | None:
        """What the hard cap of the run leaves for further launches; None without a cap."""
        most = self.plan.spec.max_seconds
        return None if most is None else most - self.spent_seconds

    @property
    def has_turns(self) -> bool:
        """Whether its process of this launch goes on: not after a failure, nor after the hard cap, which ends a launch
        well."""
        return self.finished is None and self.at_work is not None

    @property
    def name(self) -> str:
        """`jit on cpu:0`; `B, jit on cpu:0` for a side of a comparison."""
        spec = self.plan.spec
        return f"{f'{spec.side}, ' if spec.side else ''}{spec.variant} on {spec.device}"


@dataclass(frozen=True, slots=True)
class Services:
    """What a group needs of the queue that it is taken from."""

    recorder: SessionRecorder
    python: Callable[[PlannedRun], str]
    """Path of the interpreter of a run's processes."""
    place: Callable[[PlannedRun], WorkerEnvironment]
    start: Callable[[Side, WorkerEnvironment], EngineRun]
    """Starts a worker, and makes it the one to cancel."""
    request: Callable[[Side, str], RunRequest]
    after_first: Callable[[Side], object]
    """Called when a run's first launch has gone well, with its process closed."""
    next_block: Callable[[], int]


class Group:
    """Runs that are compared with each other. It belongs to the thread that drives the queue."""

    def __init__(self, sides: Sequence[Side], services: Services) -> None:
        self.sides = sides
        self._services = services
        self._recorder = services.recorder
        self._launches = max(side.plan.spec.launches for side in sides)
        self._told: set[tuple[str, str]] = set()
        platforms = [side.plan.spec.device.partition(":")[0] for side in sides]
        exclusive = [name for name in platforms if name in _EXCLUSIVE_PLATFORMS]
        self._apart = f"one process at a time can use a {exclusive[0]}" if len(exclusive) > 1 else ""
        """Why the sides cannot live at the same time; empty if they can."""
        self._rule = LaunchRule.of([side.plan for side in sides])

    def measure(self) -> None:
        """Measures all launches of all sides, and closes their runs."""
        if self._apart:
            self._keep_apart(self._apart)
        for launch in range(1, self._launches + 1):
            active = [side for side in self.sides if self._goes_on(side)]
            if not active or launch > self._launches or (launch > 1 and self._enough(active, launch - 1)):
                break
            first = (launch - 1) % len(active)
            self._launch(launch, [*active[first:], *active[:first]])
        for side in self.sides:
            if side.finished is None:
                self._end(side, RunFinished(run=side.run, status="ok"))

    def _goes_on(self, side: Side) -> bool:
        if side.finished is None and side.cancelled:
            self._end(side, RunFinished(run=side.run, status="cancelled", error="cancelled"))
        return side.finished is None

    def _enough(self, active: Sequence[Side], done: int) -> bool:
        """Whether there is no launch after `done`. With a rule, width and time decide that, never a verdict."""
        if self._rule is None:
            return self._too_long(active, done)
        if active[0] is not self.sides[0] or len(active) == 1:
            return True  # nothing is left to compare
        return self._rule.ends(self._recorder.session, [side.run for side in active])

    def _too_long(self, active: Sequence[Side], done: int) -> bool:
        """Whether another launch after `done` would cost more than it tells; then that is reported."""
        for side in active:
            cold, left = side.cold_seconds, side.left_seconds
            if cold > max(MOST_COLD_SECONDS, side.plan.spec.timing_seconds):
                why = f"starting and compiling {side.name} takes {seconds(cold)}"
                advice = f"--budget {math.ceil(cold) + 1} gives it {self._launches} launches."
            elif left is not None and left < cold:
                why = f"the hard cap leaves {side.name} no time for another"
                advice = "Give a larger --max-seconds, or ask for fewer --launches."
            else:
                continue
            for each in active:
                launches = f"measured in {done} of {self._launches} launches"
                self._warn(each, "fewer_launches", f"{launches}: {why}", advice)
            return True
        return False

    def _launch(self, launch: int, sides: Sequence[Side]) -> None:
        if len(sides) > 1 and not self._apart:
            self._together(launch, sides)
            if not self._apart:
                return
            sides = [side for side in sides if side.finished is None and side.launches < launch]
        for side in sides:
            self._together(launch, [side])

    def _together(self, launch: int, sides: Sequence[Side]) -> None:
        """One launch of all `sides`. Where they do not fit beside each other, stops early and sets `_apart`."""
        ready: list[Side] = []
        try:
            for side in sides:
                if ready and not self._fits(len(sides) - len(ready)):
                    self._keep_apart("the machine's memory does not hold all of them at the same time")
                    return
                if not self._goes_on(side):
                    continue
                reached = self._warm(side, launch, shared=len(sides) > 1)
                if isinstance(reached, TurnAwaited):
                    side.call_seconds = reached.call_seconds
                    if len(sides) > 1:
                        self._alone(side, launch)
                    side.warm_seconds = time.monotonic()
                    if side.has_turns:
                        self._put_to_rest(side)
                        self._recorder.emit(PhaseStarted(run=side.run, phase=WAITING))
                        ready.append(side)
                elif ready and reached.out_of_memory:
                    self._keep_apart(f"{side.name} ran out of memory beside the others")
                    return
                else:
                    self._launch_over(side, launch, reached)
            if self._rule is None and launch == 1 and self._launches > 1 and self._too_long(ready, 1):
                self._launches = 1  # which has the whole budget
            self._take_turns(launch, ready)
            for side in ready:
                self._conclude(side, launch)
        finally:
            for side in sides:
                self._close(side)
        for side in sides:
            if side.launches == launch == 1:
                self._services.after_first(side)

    def _keep_apart(self, why: str) -> None:
        self._apart = why
        for side in self.sides:
            self._warn(
                side,
                "measured_apart",
                f"not measured in turns, but one process after the other: {why}",
                "A slow change of the machine between them is in the comparison; a smaller size may fit.",
            )

    def _fits(self, more: int) -> bool:
        """Whether so many more engines fit in memory, each as large as the largest one so far."""
        import psutil

        sizes = []
        for side in self.sides:
            if side.at_work is not None:
                try:
                    sizes.append(psutil.Process(side.at_work.process.pid).memory_info().rss)
                except psutil.Error:
                    continue
        return not sizes or max(sizes) * more <= MEMORY_SHARE * psutil.virtual_memory().available

    def _warm(self, side: Side, launch: int, *, shared: bool) -> TurnAwaited | RunFinished:
        """Starts an engine and follows it to its first turn, or to the end of a run that has none."""
        began = time.monotonic()
        try:
            placement = self._placement(side, shared=shared)
            side.at_work = self._services.start(side, placement)
        except JaxprofError as error:
            return RunFinished(run=side.run, status="failed", error=error.what, advice=error.hint)
        process = side.at_work.process
        python = self._services.python(side.plan)
        self._recorder.emit(WorkerStarted(run=side.run, pid=process.pid, python=python, launch=launch))
        for text in placement.notes if launch == 1 else ():
            self._recorder.emit(WarningRaised(run=side.run, code="placement", message=text))
        side.at_work.keep = None if launch == 1 else lambda event: self._of_a_later_launch(side, event)
        request = self._services.request(side, placement.device)
        spec = replace(request.spec, max_seconds=side.left_seconds)
        side.at_work.send(replace(request, spec=spec, launch=launch, in_turns=True))
        side.at_work.tell_readings()
        reached = side.at_work.follow(lambda event: isinstance(event, TurnAwaited))
        side.cold_seconds = time.monotonic() - began
        side.spent_seconds += side.cold_seconds
        assert isinstance(reached, TurnAwaited | RunFinished)
        return reached

    def _placement(self, side: Side, *, shared: bool) -> WorkerEnvironment:
        if side.placement is None:
            side.placement = self._services.place(side.plan)
        if not shared or side.plan.spec.device.startswith("cpu:"):
            return side.placement
        # The first engine would otherwise take most of the device's memory from the others.
        return replace(side.placement, environment={**side.placement.environment, PREALLOCATE: "false"})

    def _of_a_later_launch(self, side: Side, event: Event) -> bool:
        if isinstance(event, WarningRaised):
            return not any(raised.code == event.code for raised in self._recorder.session.runs[side.run].warnings)
        return isinstance(event, _OF_EACH_LAUNCH)

    def _take_turns(self, launch: int, sides: Sequence[Side]) -> None:
        """Gives all sides their blocks of the steady run."""
        if not sides:
            return
        budget = min(side.plan.spec.timing_seconds for side in sides) / self._launches
        self._probe(launch, sides)
        plan = plan_turns(
            [side.call_seconds for side in sides],
            budget,
            launch=launch,
            launches=self._launches,
            block_seconds=BLOCK_SECONDS,
            warm_in_seconds=[side.warm_in_seconds or 0.0 for side in sides],
        )
        reported_seconds = 0.0
        began = time.monotonic()
        for side in sides:
            waited = began - (side.warm_seconds or began)
            self._recorder.emit(PhaseEnded(run=side.run, phase=WAITING, seconds=waited))
            self._recorder.emit(PhaseStarted(run=side.run, phase="run"))
        for number, index in enumerate(plan.order, start=1):
            if sides[index].has_turns:
                self._turn(sides[index], launch, plan)
                self._put_to_rest(sides[index])
            now = time.monotonic()
            if now - reported_seconds >= BATCH_SECONDS:
                reported_seconds = now
                self._progress(launch, sides, number / len(plan.order), now - began)
            rounds, rest = divmod(number, len(sides))
            if self._rule is not None and not rest and rounds >= LEAST_BLOCKS and self._rule.is_over(now - began):
                break  # all sides have had as many blocks

    def _alone(self, side: Side, launch: int) -> None:
        """Its calls in one go, with nobody's turn before them."""
        budget = ALONE_SHARE * side.plan.spec.timing_seconds / self._launches
        self._block(side, launch, "alone", min(ALONE_SECONDS, budget), ALONE_SAMPLES, ALONE_WARM_IN_SECONDS)

    def _probe(self, launch: int, sides: Sequence[Side]) -> None:
        """Finds how soon the calls of each side settle, where that is not known yet."""
        unknown = [side for side in sides if side.warm_in_seconds is None]
        if len(sides) < 2 or not unknown:
            return
        plan = plan_probes([side.call_seconds for side in sides])
        blocks: dict[str, list[list[float]]] = {side.run: [] for side in sides}
        for index in plan.order:
            side = sides[index]
            if side.has_turns:
                blocks[side.run].append(self._block(side, launch, "settling", plan.block_seconds, plan.most_samples))
                self._put_to_rest(side)
        for side in unknown:
            short = side.call_seconds < UNPROBED_WARM_IN_SECONDS
            unprobed = UNPROBED_WARM_IN_SECONDS * short
            side.warm_in_seconds = settling_seconds(blocks[side.run]) if plan.order else unprobed

    def _turn(self, side: Side, launch: int, plan: TurnPlan) -> None:
        self._block(side, launch, "run", plan.block_seconds, plan.most_samples, side.warm_in_seconds or 0.0)

    def _block(
        self, side: Side, launch: int, series: str, block_seconds: float, most: int, warm_in_seconds: float = 0.0
    ) -> list[float]:
        """One block of a side, the only one that works meanwhile; its samples, or none where its launch ended."""
        assert side.at_work is not None
        began = time.monotonic()
        self._wake(side)
        number = self._services.next_block()
        side.at_work.send(
            TurnRequest(
                block=number,
                seconds=block_seconds,
                most_samples=most,
                warm_in_seconds=warm_in_seconds,
                series=series,
            )
        )
        event = side.at_work.follow(lambda event: isinstance(event, SamplesTaken) and event.block == number)
        side.spent_seconds += time.monotonic() - began
        if isinstance(event, SamplesTaken):
            return event.seconds
        self._launch_over(side, launch, event)
        self._close(side)  # it has ended the run, and would wait for ever
        return []

    def _put_to_rest(self, side: Side) -> None:
        """It has nothing to do until `_wake`. On an accelerator it may not be stopped: others wait for its driver."""
        if side.at_work is None:
            return
        if side.plan.spec.device.startswith("cpu:"):
            side.at_work.freeze()
        elif (used := side.at_work.processor_seconds()) is not None:
            side.rest = side.rest or Rest()
            side.rest.begin(used)

    def _wake(self, side: Side) -> None:
        assert side.at_work is not None
        side.at_work.thaw()
        if side.rest is not None and (used := side.at_work.processor_seconds()) is not None:
            side.rest.end(used)

    def _progress(self, launch: int, sides: Sequence[Side], share: float, spent: float) -> None:
        left = spent / share * (1 - share)
        if self._rule is None:
            cold = math.fsum(side.cold_seconds for side in sides)
            left += (self._launches - launch) * (cold + spent / share)
        note = f"launch {launch} of {self._launches}" if self._launches > 1 else ""
        if len(sides) > 1:
            note = f"{note}, in turns with {len(sides) - 1} more".removeprefix(", ")
        for side in sides:
            if side.finished is None:
                fraction = (launch - 1 + share) / self._launches
                self._recorder.emit(ProgressMade(run=side.run, fraction=fraction, remaining_seconds=left, note=note))
        self._recorder.flush_when_due()

    def _conclude(self, side: Side, launch: int) -> None:
        """The rest of one launch: what comes after the steady run, and the end of the process."""
        if side.finished is not None or side.at_work is None:
            return
        began = time.monotonic()
        self._wake(side)
        self._report_unrest(side)
        side.at_work.send(TurnsOverRequest())
        last = side.at_work.follow()
        side.spent_seconds += time.monotonic() - began
        self._launch_over(side, launch, last)
        self._close(side)

    def _report_unrest(self, side: Side) -> None:
        rest, side.rest = side.rest, None
        if rest is not None and rest.share > IDLE_SHARE:
            self._warn(
                side,
                "not_idle",
                f"used {percent(rest.share)} of a core while others had their turns",
                "Threads that spin take time from the others: compare the runs measured alone.",
            )

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
        if side.at_work is not None:
            at_work, side.at_work = side.at_work, None
            at_work.close()

    def _warn(self, side: Side, code: str, message: str, advice: str) -> None:
        if side.finished is None and (side.run, code) not in self._told:
            self._told.add((side.run, code))
            self._recorder.emit(WarningRaised(run=side.run, code=code, message=message, advice=advice))
