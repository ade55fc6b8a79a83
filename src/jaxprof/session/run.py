"""One run, as its events left it. Raw samples and facts only: `results` derives the statistics when shown."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from jaxprof.events import (
    BuffersReported,
    CaptureTaken,
    CheckReported,
    CompileObserved,
    CompilePasses,
    CostReported,
    EnvironmentRead,
    KernelsMeasured,
    LogLine,
    MemoryReported,
    RunClosed,
    RunFinished,
    RunPlanned,
    StepsMeasured,
    TextRecorded,
    TrustReported,
    WarningRaised,
)
from jaxprof.session.program import Program

LOG_LINES_KEPT = 10_000
"""Lines of the child's output held in memory for each run; the file has them all."""


@dataclass(slots=True)
class Phase:
    """One phase of a run. `seconds` is None while it goes on, and where it could not be measured."""

    name: str
    started_seconds: float | None = None
    """Monotonic."""
    ended_seconds: float | None = None
    seconds: float | None = None
    bytes: int | None = None
    zero_copy: bool | None = None
    note: str = ""


@dataclass(slots=True)
class Series:
    """Raw samples of one kind, in seconds a call."""

    seconds: list[float] = field(default_factory=list)
    calls_per_sample: int = 1


@dataclass(slots=True)
class Run:
    """What is known of one run so far."""

    id: str
    plan: RunPlanned
    status: str = "queued"
    """`queued`, `running`, or one of `events.STATUSES`."""
    pid: int | None = None
    python: str = ""
    started_seconds: float | None = None
    ended_seconds: float | None = None
    phases: dict[str, Phase] = field(default_factory=dict)
    current_phase: str = ""
    series: dict[str, Series] = field(default_factory=dict)
    fraction: float | None = None
    remaining_seconds: float | None = None
    note: str = ""
    environment: EnvironmentRead | None = None
    texts: dict[str, TextRecorded] = field(default_factory=dict)
    cost: CostReported | None = None
    memory: MemoryReported | None = None
    check: CheckReported | None = None
    compiles: list[CompileObserved] = field(default_factory=list)
    captures: dict[str, CaptureTaken] = field(default_factory=dict)
    """By kind: `run`, `compile`, `attribution`, `imported`."""
    measured: dict[str, KernelsMeasured] = field(default_factory=dict)
    """Kernel times by the kind of their capture."""
    steps: StepsMeasured | None = None
    compile_passes: CompilePasses | None = None
    trust: dict[str, TrustReported] = field(default_factory=dict)
    buffers: BuffersReported | None = None
    warnings: list[WarningRaised] = field(default_factory=list)
    log: deque[LogLine] = field(default_factory=lambda: deque(maxlen=LOG_LINES_KEPT))
    program: Program | None = None
    """Where the run is a program: what was recorded inside it."""
    finished: RunFinished | None = None
    closed: RunClosed | None = None

    @property
    def error(self) -> str:
        """What went wrong, or an empty text."""
        if self.closed is not None and self.closed.error:
            return self.closed.error
        return self.finished.error if self.finished is not None else ""

    @property
    def advice(self) -> str:
        """What mends the error, or an empty text."""
        if self.closed is not None and self.closed.advice:
            return self.closed.advice
        return self.finished.advice if self.finished is not None else ""

    @property
    def over(self) -> bool:
        """Whether nothing more will come of this run."""
        return self.status not in ("queued", "running")

    @property
    def label(self) -> str:
        """`selu jit cpu:0`, for people."""
        return f"{self.plan.workload} {self.plan.variant} {self.plan.device}"

    def samples(self, series: str) -> list[float]:
        """The raw samples of a series, seconds a call; empty where there are none."""
        found = self.series.get(series)
        return found.seconds if found is not None else []
