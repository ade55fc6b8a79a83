"""The life of a run: planned, phase by phase, its samples and texts, its end; and the comparison whose side it is."""

from __future__ import annotations

from typing import ClassVar

from jaxprof.events.base import FLAT, Event, Scalar
from jaxprof.light_dataclass import dataclass, field

COUNTED_BY_XLA = "compiled.cost_analysis"
ESTIMATED_BY = "workload's own estimate"
"""Sources of a cost."""
DEFAULT_BUDGET_SECONDS = 2.0
DEFAULT_LAUNCHES = 3
"""Fresh processes for each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Which variant of which workload is run, where, and how it is measured."""

    workload: str
    variant: str
    how: str
    """How the variant is executed: `numpy`, `eager` (op by op), `jit`; `compile`: lowered and compiled, not run;
    `imported`: read from a profile; `program`: a program of the user's, recorded while it runs."""
    device: str
    """`platform:number`, e.g. `cpu:0`, `cuda:1`."""
    parameters: dict[str, Scalar] = field(default_factory=dict)
    preset: str = ""
    baseline: str = ""
    """Id of the run that this one is compared with; empty for the baseline itself."""
    budget_seconds: float | None = None
    """How long the steady run may be sampled; None if nothing is timed."""
    max_seconds: float | None = None
    """Hard cap for the whole run, from the end of start-up."""
    precision: str = ""
    """The requested matrix precision: empty for JAX's default, or `highest`."""
    target: str = ""
    """The target of a user's function, `/path/file.py:function` or `module:function`, so that it can be run again
    from a log. Empty for a built-in workload, and for a function that no name leads to."""
    arguments: tuple[str, ...] = ()
    """The arguments of a user's function without declared inputs, as `--arg` takes them: `f32[1024,1024]`."""
    inputs_from: str = ""
    """The target whose inputs it is called with, for want of its own: that of the baseline. Empty: its own."""
    argv: tuple[str, ...] = ()
    """`sys.argv` while the user's file is imported, as its program was started; empty: the file alone."""
    keep_constants: bool = False
    compilation_cache: bool = False
    """Whether the user's persistent compilation cache stays on."""
    check: bool = True
    capture: bool = True
    """Whether some calls, and one compile, are repeated under the profiler after the timing."""
    keep_trace: bool = False
    """Whether the raw profile is kept beside the session."""
    seed: int = 0
    launches: int = 1
    """How many fresh processes measure it, among which the budget is divided."""
    side: str = ""
    """Its name in a comparison: `A`, `B`... Empty for all other runs."""
    until_half_width: float | None = None
    """Launches end once half the 95 % interval of the speed-up is this narrow, as a share; None: when all are done."""
    donated: tuple[int, ...] = ()
    """Arrays of its arguments, by their number, that are donated although the function itself does not: what a fix that
    is tried changes."""
    fresh_arguments: bool = False
    """Whether each call gets arguments of its own, as one that donates them needs: so both sides of it are called."""

    @property
    def timing_seconds(self) -> float:
        """How long a run that is timed is sampled."""
        return DEFAULT_BUDGET_SECONDS if self.budget_seconds is None else self.budget_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlanned(Event):
    """A run joined the queue. In the log the fields of `spec` are fields of the event."""

    type: ClassVar[str] = "run_planned"

    spec: RunSpec = field(metadata=FLAT)
    batch: int | None = None
    """Its batch, from 1: runs that joined the queue together have one number. None where they joined no queue, and in
    sessions of schema 1.6 and before."""
    expected_seconds: float | None = None
    """How long it and the runs that are measured together with it were expected to take, on the first of them. An
    estimate; None on the others, and where nothing was known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Event):
    """The engine's process for this run has started."""

    type: ClassVar[str] = "worker_started"

    pid: int
    python: str
    """Path of the interpreter."""
    launch: int = 1
    """Which of the run's processes it is: a run of several launches has a fresh process for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRead(Event):
    """The git revision of the user's file that a run measures, as it was when the run began."""

    type: ClassVar[str] = "revision_read"

    repository: str
    """Its folder."""
    commit: str
    """The abbreviated hash of HEAD."""
    dirty: bool | None = None
    """Whether tracked files had changes that were not committed; None: git took too long to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted(Event):
    """A phase began; screens let its clock tick from here."""

    type: ClassVar[str] = "phase_started"

    phase: str
    """One of `STARTUP_PHASES`, `PHASES`, or a word for what the engine does besides (`inputs`, `check`, `dispatch`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnded(Event):
    """A phase is over. For a sampled phase (`run`, transfers) `seconds` is what the whole sampling took."""

    type: ClassVar[str] = "phase_ended"

    phase: str
    seconds: float | None
    bytes: int | None = None
    """Bytes moved by one call of a transfer phase."""
    zero_copy: bool | None = None
    """True if no byte was moved because host and device share the buffer."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesTaken(Event):
    """Raw samples, seconds a call: each is the time of `calls_per_sample` calls, divided by their number."""

    type: ClassVar[str] = "samples_taken"

    series: str
    """One of `SERIES`."""
    seconds: list[float]
    calls_per_sample: int = 1
    block: int | None = None
    """The number of its turn, where runs are measured in turns: the blocks of all runs of a session have one order."""
    first_seconds: float | None = None
    """The first call of the block, after the pause, where it is not among `seconds`: the calls of a block count from
    where they have settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAwaited(Event):
    """The engine is warm and waits for its turn. Not written to the log."""

    type: ClassVar[str] = "turn_awaited"

    call_seconds: float
    """What one sample takes, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressMade(Event):
    """How far the current run has come. `fraction` is of its time budget, in 0..1."""

    type: ClassVar[str] = "progress_made"

    fraction: float | None = None
    remaining_seconds: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRecorded(Event):
    """A text of the run: `jaxpr`, `stablehlo`, `hlo`, `timeline`... A long one is kept once, by content hash."""

    type: ClassVar[str] = "text_recorded"

    name: str
    text: str = ""
    digest: str = ""
    """SHA-256 of the UTF-8 text, in hex, when it is kept in `TextChunk` events; then `text` is empty."""
    bytes: int = 0
    """Length of the whole text in UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChunk(Event):
    """One piece of a long text: zlib-compressed, base64, at most 256 KiB a piece; decoded when it is looked at."""

    type: ClassVar[str] = "text_chunk"

    digest: str
    index: int
    count: int
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReported(Event):
    """The cost of one call, as somebody else than the client counts it: the estimate of a workload that is not compiled
    as a whole. Older versions wrote XLA's cost analysis here, which takes the body of a loop once: it is not read."""

    type: ClassVar[str] = "cost_reported"

    flops: float | None = None
    bytes_accessed: float | None = None
    transcendentals: float | None = None
    source: str = COUNTED_BY_XLA


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReported(Event):
    """Memory of the compiled program (`memory_analysis`) and of the allocator (accelerators only)."""

    type: ClassVar[str] = "memory_reported"

    argument_bytes: int | None = None
    output_bytes: int | None = None
    temporary_bytes: int | None = None
    alias_bytes: int | None = None
    generated_code_bytes: int | None = None
    peak_bytes: int | None = None
    """XLA's own estimate of the program's peak."""
    allocator_peak_bytes: int | None = None
    """Measured: the device allocator's peak in this process; unknown on CPU."""
    allocator_limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReported(Event):
    """Whether the result is right."""

    type: ClassVar[str] = "check_reported"

    passed: bool | None
    """None if it could not be checked; `note` says why."""
    max_relative_error: float | None = None
    """Largest error of an array over its largest magnitude."""
    tolerance: float | None = None
    """Relative, of each number; `workloads.check` says what it is relative to."""
    against: str = ""
    """What the result was compared with: `numpy twin`, `known answer`, `finite differences`."""
    precision: str = ""
    """The effective precision of matrix products, if there are any: `float32`, `tf32`, `bfloat16 passes`."""
    note: str = ""
    elements: int | None = None
    """Numbers of the expected result; None in sessions of jaxprof 0.1.0, which did not compare them one by one."""
    wrong_elements: int | None = None
    worst_at: str = ""
    """The number that is furthest off, `['w'][3, 5]`; empty for a result of one number, and if all are equal."""
    worst_got: str = ""
    """As text, because it may be NaN, complex, or anything else; empty if all are equal."""
    worst_expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileObserved(Event):
    """One stage of one compilation that JAX announced (op-by-op variants make many)."""

    type: ClassVar[str] = "compile_observed"

    function: str
    stage: str
    """`trace`, `lower` or `compile`."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading(Event):
    """One live reading of one device. None for what a device does not report."""

    type: ClassVar[str] = "device_reading"

    device: str
    utilisation: float | None = None
    """Share of the time in which it was busy, in 0..1."""
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    temperature_celsius: float | None = None
    clock_hertz: float | None = None
    clock_limit_hertz: float | None = None
    load_average: float | None = None
    core_utilisation: list[float] = field(default_factory=list)
    """CPU only: one share for each core that this process may use."""
    throttle_reasons: list[str] = field(default_factory=list)
    processes: list[dict[str, Scalar | None]] = field(default_factory=list)
    """Who uses it: pid, name, user, memory_bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """The engine's final event of a run."""

    type: ClassVar[str] = "run_finished"

    status: str
    """`ok`, `failed`, `cancelled` or `timed out`; the client uses `crashed` for an engine that ended without this
    event."""
    error: str = ""
    advice: str = ""
    traceback: str = ""
    out_of_memory: bool = False
    """Whether it failed because the host or the device has too little memory free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClosed(Event):
    """Closes a run in the log with its summary, so that a listing of sessions need not fold them."""

    type: ClassVar[str] = "run_closed"

    workload: str
    variant: str
    device: str
    status: str
    """One of `STATUSES`."""
    error: str = ""
    advice: str = ""
    median_seconds: float | None = None
    ci95_seconds: list[float] | None = None
    wall_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosed(Event):
    """The writer ended in good order; a session without it was interrupted, or is still being written."""

    type: ClassVar[str] = "session_closed"

    reason: str = "finished"
    """`finished`, `interrupted`, or the name of the signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSpec:
    """What distinguishes one side, beside what its run says of itself."""

    label: str
    """`A`, `B`..., as in `RunSpec.side`."""
    title: str
    """What it is, for people: `train.py:step at HEAD~1 (19789fa)`."""
    python: str = ""
    """Path of its interpreter."""
    environment: dict[str, str] = field(default_factory=dict)
    """The variables that were set for it."""
    precision: str = ""
    """The matrix precision that was asked for it; empty: none."""
    revision: str = ""
    """The git revision as it was asked for, `HEAD~1`; empty: the files on disk."""
    commit: str = ""
    """With `--git`, the abbreviated hash of its commit; of the files on disk, that of HEAD."""
    repository: str = ""
    """With `--git`, the repository's folder."""
    dirty: bool | None = None
    """With `--git`, whether its files differ from `commit`; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlanned(Event):
    """Sides are compared. `run` is that of the first one, A; the runs of the others have it as their baseline."""

    type: ClassVar[str] = "comparison_planned"

    sides: list[SideSpec] = field(default_factory=list)
    """A, B... in order."""
    margin: float
    """Within this share of each other, two sides are called the same."""
    group_seconds: float | None = None
    """How long all sides may be measured together; None: as long as their launches take."""
    inputs: list[str] = field(default_factory=list)
    """Dtype and shape of each array that all sides are called with."""
    same_inputs: bool = False
    """Whether the numbers in them are the same, too."""
    notes: list[str] = field(default_factory=list)
    """What differs between the sides, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsCompared(Event):
    """How far the result of a side is from its baseline's, array by array."""

    type: ClassVar[str] = "results_compared"

    alike: bool
    """Whether the two have the same arrays: number, shapes and dtypes."""
    agree: bool
    """Whether they differ by no more than two ways to compute the same."""
    relative: float | None = None
    """The largest error over the largest magnitude of its array. None if not alike, and where one is NaN or infinite
    and the other is not."""
    ulps: int | None = None
    """The largest error in units of the last place of the largest magnitude of its array; None without floating-point
    arrays, and where `relative` is None."""
    where: str = ""
    """The array of the largest error, if there are several."""
    note: str = ""
    """What is not alike, or why nothing could be compared."""

    @property
    def equal(self) -> bool:
        """Whether they are the same number by number."""
        return self.alike and self.relative == 0

    @property
    def how_far(self) -> str:
        """`by 3.0e-02 in ['w']`, of two results that are alike."""
        where = f" in {self.where}" if self.where else ""
        return f"where one of them is not finite{where}" if self.relative is None else f"by {self.relative:.1e}{where}"
