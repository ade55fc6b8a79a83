"""The life of a run: planned, phase by phase, its samples and texts, its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from jaxprof.events.base import Event, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlanned(Event):
    """A run joined the queue."""

    type: ClassVar[str] = "run_planned"

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
    max_seconds: float | None = None
    precision: str = ""
    """Matrix precision that was asked for: empty for JAX's default, or `highest`."""
    target: str = ""
    """Where a user's function was found, so that it can be run again: `/path/file.py:function`, `module:function`.
    Empty for a built-in workload, and where no name leads to it."""
    arguments: list[str] = field(default_factory=list)
    """The specs of a user's function's arguments, as `--arg` takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Event):
    """The engine's process for this run is there."""

    type: ClassVar[str] = "worker_started"

    pid: int
    python: str
    """Path of the interpreter."""


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
    """True where no byte was moved because host and device share the buffer."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesTaken(Event):
    """Raw samples, seconds a call: each is the time of `calls_per_sample` calls, divided by their number."""

    type: ClassVar[str] = "samples_taken"

    series: str
    """One of `SERIES`."""
    seconds: list[float]
    calls_per_sample: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressMade(Event):
    """How far the current run is. `fraction` is of its time budget, in 0..1."""

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
    """What XLA says that one call costs, before it is run."""

    type: ClassVar[str] = "cost_reported"

    flops: float | None = None
    bytes_accessed: float | None = None
    transcendentals: float | None = None
    source: str = "compiled.cost_analysis"


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
    """Whether the result is the right one."""

    type: ClassVar[str] = "check_reported"

    passed: bool | None
    """None where it could not be checked; `note` says why."""
    max_relative_error: float | None = None
    tolerance: float | None = None
    against: str = ""
    """What the result was held against: `numpy twin`, `known answer`, `finite differences`."""
    precision: str = ""
    """The effective precision of matrix products, where there are any: `float32`, `tf32`, `bfloat16 passes`."""
    note: str = ""


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
    """One live reading of one device. What a device does not tell is None."""

    type: ClassVar[str] = "device_reading"

    device: str
    utilisation: float | None = None
    """Share of the time that it was busy, in 0..1."""
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
    """The engine's last word on a run."""

    type: ClassVar[str] = "run_finished"

    status: str
    """`ok`, `failed` or `cancelled`; `crashed` is the client's word for an engine that said nothing."""
    error: str = ""
    advice: str = ""
    traceback: str = ""


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
    """The writer ended in good order; a session without it was cut off, or is still being written."""

    type: ClassVar[str] = "session_closed"

    reason: str = "finished"
    """`finished`, `interrupted`, or the name of the signal."""
