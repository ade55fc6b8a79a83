"""The state of one run, as its events report it, and of what was recorded inside a program. Raw samples and facts only:
`analysis` derives the statistics and tables on display."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from jaxprof import events as e
from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events.base import open_status

IMPORTED = "imported"
"""Value of `how` for the runs of an imported profile."""
UNLIKE_RESULTS = "unlike_results"
"""Code of the warning that a side of a comparison returns other arrays than its baseline."""
ENTRIES_AT_MOST = 100_000
"""Largest number of entries in one `StepsTaken`: fifty times what the recorder sends."""
LOG_LINES_KEPT = 10_000
"""Lines of the child's output held in memory for each run; the file has all of them."""


@dataclass(slots=True)
class Phase:
    """One phase of a run. `seconds` is None while it is running, and if it could not be measured."""

    name: str
    started_seconds: float | None = None
    """Monotonic time when it started."""
    ended_seconds: float | None = None
    seconds: float | None = None
    bytes: int | None = None
    zero_copy: bool | None = None
    page_faults: float | None = None
    kernel_share: float | None = None
    note: str = ""


@dataclass(slots=True)
class Series:
    """Raw samples of one kind, in seconds per call."""

    seconds: list[float] = field(default_factory=list)
    calls_per_sample: int = 1


@frozen
class Turn:
    """The samples of one turn of the steady run, in seconds a call."""

    number: int
    """Number of the turn among the blocks of all runs of the session."""
    seconds: tuple[float, ...]
    first_seconds: float | None = None
    """Seconds of the first call after the pause, if it does not count."""


@dataclass(slots=True)
class RunLaunch:
    """One fresh process that measured a run. A field that is `None` or empty did not happen in it, or not yet."""

    number: int
    """Number of the launch, from 1."""
    started_seconds: float | None = None
    """Monotonic time when the process started."""
    phases: dict[str, Phase] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    """Turns of its steady run, in order; empty where one run was measured after the other."""
    alone: list[float] = field(default_factory=list)
    """Seconds of each call measured alone, before the first turn."""


@frozen
class RunEnd:
    """The end of a run: one of `events.STATUSES`, or `interrupted`; `queued`, `running` while it is written."""

    status: str
    error: str
    hint: str

    @property
    def over(self) -> bool:
        return self.status not in ("queued", "running")

    @property
    def text(self) -> str:
        """How it ended and why: `failed: out of memory`, `cancelled in phase run`."""
        return self.error if self.error.startswith(self.status) else f"{self.status}: {self.error}".removesuffix(": ")


def are_iterations(event: e.StepsTaken) -> bool:
    """Return whether the entries of an event from outside can be successive iterations: as many counts as times, none
    of them negative or out of bounds."""
    counts = event.counts
    # Tables of floating-point numbers could not distinguish iterations with larger numbers.
    return (
        0 < len(event.seconds) <= ENTRIES_AT_MOST
        and (not counts or (len(counts) == len(event.seconds) and min(counts) >= 1))
        and min(event.seconds) >= 0.0
        and event.began_seconds >= 0.0
        and abs(event.first) + event.count <= (1 << 53)  # a float holds these exactly
    )


@dataclass(slots=True)
class RecordedProgram:
    """The part of a run that only a program has. Every list is in order of arrival."""

    started: e.ProgramStarted | None = None
    jax: e.JaxImported | None = None
    """The import of JAX; None until it is imported."""
    compiled: list[e.Compiled] = field(default_factory=list)
    running: dict[str, e.StageRunning] = field(default_factory=dict)
    """Current stage by thread name (empty: the main thread)."""
    sampled: list[e.ProgramSampled] = field(default_factory=list)
    steps: list[e.StepsCounted] = field(default_factory=list)
    iterations: list[e.StepsTaken] = field(default_factory=list)
    arrays: list[e.ArraysCounted] = field(default_factory=list)
    transfers: list[e.TransfersSeen] = field(default_factory=list)
    windows: list[e.CaptureWindow] = field(default_factory=list)
    pauses: list[e.ProgramStopped] = field(default_factory=list)
    """Pauses of the process; one that was found in two ways is here twice."""
    ended: e.ProgramEnded | None = None
    standstill: e.StandstillSeen | None = None
    """The last word from inside on a time without iterations; it may be `over`."""
    stalls: list[tuple[e.SourceLocation, float]] = field(default_factory=list)
    """Line and seconds of each time without iterations that is over: of one iteration that took so long."""
    silence: e.SilenceSeen | None = None
    """The last word from outside on a recorder that is not heard of; it may be `over`."""
    empty_call: e.EmptyCallTimed | None = None
    """Time of an empty call; None if it was not needed, or could not be measured."""

    def apply(self, event: e.Event) -> None:
        """Fold one event of the program; other events are ignored."""
        last = self.sampled[-1] if self.sampled else None
        if isinstance(event, e.ProgramSampled) and last is not None and event.sites == last.sites:
            event = replace(event, sites=last.sites)  # a list in memory for as long as the program is in the same loops
        kind = type(event)
        stood = self.standstill
        if isinstance(event, e.StandstillSeen) and event.over and stood is not None and not stood.over:
            self.stalls.append((stood.at, event.monotonic_seconds - stood.since_seconds))
        if kind in _PROGRAM_KEPT:
            setattr(self, _PROGRAM_KEPT[kind], event)
        elif kind in _PROGRAM_LISTED:
            getattr(self, _PROGRAM_LISTED[kind]).append(event)
        if isinstance(event, e.StageRunning):
            self.running[event.thread] = event
        elif isinstance(event, e.Compiled):
            self.running.pop(event.thread, None)
        elif isinstance(event, e.ProgramStopped) and event.seconds >= 0:
            self.pauses.append(event)
        elif isinstance(event, e.ProgramEnded):
            # A trace that fails has no row, a compile that fails has one: without one it was cut off.
            self.running = {key: stage for key, stage in self.running.items() if stage.stage == "compile"}

    @property
    def is_seen(self) -> bool:
        """Whether anything is known of it besides its start."""
        return bool(self.ended or self.jax or self.running or self.compiled or self.sampled)

    @property
    def open_stages(self) -> list[e.StageRunning]:
        """Stages that go on, the main thread's first. One of its stages that later samples do not show is over."""
        last = self.sampled[-1] if self.sampled else None
        return [
            stage
            for thread, stage in sorted(self.running.items())
            if thread
            or last is None
            or last.began_seconds <= stage.began_seconds
            or last.states.get(stage.stage, 0.0) > 0
        ]


_PROGRAM_KEPT: dict[type[e.Event], str] = {
    e.ProgramStarted: "started",
    e.JaxImported: "jax",
    e.ProgramEnded: "ended",
    e.EmptyCallTimed: "empty_call",
    e.StandstillSeen: "standstill",
    e.SilenceSeen: "silence",
}
_PROGRAM_LISTED: dict[type[e.Event], str] = {
    e.Compiled: "compiled",
    e.ProgramSampled: "sampled",
    e.StepsCounted: "steps",
    e.StepsTaken: "iterations",
    e.ArraysCounted: "arrays",
    e.TransfersSeen: "transfers",
    e.CaptureWindow: "windows",
}
PROGRAM_EVENTS = (*_PROGRAM_KEPT, *_PROGRAM_LISTED, e.StageRunning, e.ProgramStopped)
"""Types of events recorded inside a program."""


@dataclass(slots=True, eq=False)
class Run:
    """The state of one run so far."""

    id: str
    plan: e.RunSpec
    """The run as it was requested."""
    batch: int | None = None
    """Number shared by the runs that joined the queue together; None if none was recorded."""
    status: str = "queued"
    """One of `queued`, `running`, or `events.STATUSES`."""
    pid: int | None = None
    python: str = ""
    started_seconds: float | None = None
    ended_seconds: float | None = None
    launches: list[RunLaunch] = field(default_factory=list)
    phases: dict[str, Phase] = field(default_factory=dict)
    """Phases of the first launch, by name."""
    current_phase: str = ""
    series: dict[str, Series] = field(default_factory=dict)
    """Samples of all launches, in the order in which they were taken."""
    fraction: float | None = None
    remaining_seconds: float | None = None
    """Estimated seconds left for measuring its group at `progress_seconds`."""
    progress_seconds: float | None = None
    """Monotonic time of the last report of progress."""
    note: str = ""
    environment: e.EnvironmentRead | None = None
    sources: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the source files that it names, by path, as they were while it ran."""
    revision: e.RevisionRead | None = None
    texts: dict[str, e.TextRecorded] = field(default_factory=dict)
    cost: e.CostReported | None = None
    memory: e.MemoryReported | None = None
    check: e.CheckReported | None = None
    compiles: list[e.CompileObserved] = field(default_factory=list)
    captures: dict[str, e.CaptureTaken] = field(default_factory=dict)
    """Captures by kind: `run`, `compile`, `attribution`, `imported`."""
    measured: dict[str, e.KernelsMeasured] = field(default_factory=dict)
    """Kernel times by the kind of their capture."""
    steps: e.StepsMeasured | None = None
    compile_passes: e.CompilePasses | None = None
    trust: dict[str, e.TrustReported] = field(default_factory=dict)
    buffers: e.BuffersReported | None = None
    warnings: list[e.WarningRaised] = field(default_factory=list)
    log: deque[e.LogLine] = field(default_factory=lambda: deque(maxlen=LOG_LINES_KEPT))
    comparison: e.ComparisonPlanned | None = None
    """The comparison that this run is the first side of; None otherwise."""
    results: e.ResultsCompared | None = None
    """How far the run's result is from that of the first side; None if the two were not compared."""
    trial: e.TrialReached | None = None
    """Where the change that the run tries has reached the program; None if it tries none, or has reached nothing."""
    remedies: list[e.RemedyTried] = field(default_factory=list)
    """Changes that were compiled after it ran out of memory."""
    program: RecordedProgram | None = None
    finished: e.RunFinished | None = None
    closed: e.RunClosed | None = None
    deserted: bool = True
    """Whether its session has no writer any more, as far as is known."""

    def end(self, *, deserted: bool) -> RunEnd:
        """Return how the run ended; every view shows this. `deserted`: its session has no writer any more, a run that
        was not over never will be. Only a session that is being written has `queued` and `running` runs."""
        if self.over or not deserted:
            return RunEnd(self.status, self.error, self.hint)
        again = "Run it again to get its result."
        if self.status == "queued" and not self.is_program:
            return RunEnd("cancelled", "the session ended before this run began", again)
        where = f", in phase {self.current_phase}" if self.current_phase else ""
        return RunEnd(open_status(live=False), f"the session was interrupted in the middle of this run{where}", again)

    @property
    def shown(self) -> RunEnd:
        """How the run ended, as a screen shows it."""
        return self.end(deserted=self.deserted)

    @property
    def cut_compile_seconds(self) -> float | None:
        """How long its first launch had been compiling when the run was ended from outside; None if it was not."""
        phase = self.phases.get("compile")
        if phase is None or phase.ended_seconds is not None or self.status not in ("timed out", "cancelled"):
            return None
        if phase.started_seconds is None or self.ended_seconds is None:
            return None
        return self.ended_seconds - phase.started_seconds

    @property
    def present_phases(self) -> dict[str, Phase]:
        """Phases of the launch that was started last, by name."""
        return self.launches[-1].phases if self.launches else self.phases

    @property
    def error(self) -> str:
        """Why the run failed; empty if it did not."""
        if self.closed is not None and self.closed.error:
            return self.closed.error
        return self.finished.error if self.finished is not None else ""

    @property
    def hint(self) -> str:
        """The hint of the error, or an empty text."""
        if self.closed is not None and self.closed.advice:
            return self.closed.advice
        return self.finished.advice if self.finished is not None else ""

    @property
    def over(self) -> bool:
        return self.status not in ("queued", "running")

    @property
    def is_program(self) -> bool:
        """Whether the run is a user's program, recorded while it ran."""
        return self.plan.how == "program" or self.program is not None

    @property
    def label(self) -> str:
        """Name of the run, for people: `selu jit cpu:0`; `A selu jit cpu:0` for a side of a comparison."""
        plan = self.plan
        return " ".join([*([plan.side] if plan.side else []), plan.workload, plan.variant, plan.device])

    @property
    def as_baseline(self) -> str:
        return self.plan.side or self.plan.variant

    @property
    def variant(self) -> str:
        """The variant, `jit`; `A jit` for a side of a comparison."""
        return f"{self.plan.side} {self.plan.variant}".lstrip()

    @property
    def device_kind(self) -> str:
        """Kind of its device, `NVIDIA H100 80GB HBM3`; if it was not reported, the platform. A worker may number its
        device differently from the plan."""
        platform = self.plan.device.partition(":")[0]
        devices = self.environment.devices if self.environment is not None else []
        own = [device for device in devices if device.get("id") == self.plan.device]
        own += [device for device in devices if device.get("platform") == platform]
        return str(own[0]["kind"]) if own and own[0].get("kind") else platform

    def samples(self, series: str) -> list[float]:
        """Return the raw samples of a series, in seconds per call; empty if there are none."""
        recorded = self.series.get(series)
        return recorded.seconds if recorded is not None else []
