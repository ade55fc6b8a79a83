"""The event types: the one language between engine, log, screens and reports.

Everything that happens is one stream of these frozen values. A session file is one header line and then one of them
a line, as JSON: `{"type": "phase_ended", "seq": 17, "run": "r2", "monotonic_seconds": 81.25, "phase": "compile",
"seconds": 0.038}`. Units are in the field names; `None` means unknown, or does not apply, and is never 0.

Standard library only: the engine imports this in the user's own environment. What can be derived from an event
(a median, a kernel table) is derived by whoever shows it, and is not sent.

History of the schema (a minor version adds types or optional fields, a major one changes a meaning):
1.0  the first.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

SCHEMA_MAJOR = 1
SCHEMA_MINOR = 0

Scalar = bool | int | float | str

STARTUP_PHASES = ("import", "backend_init", "warm_up")
"""What a fresh process pays before its program is looked at; kept apart so that `compile` is the program's own."""

PHASES = ("trace", "lower", "compile", "transfer_in", "first_run", "run", "transfer_out")
"""The phases of a run, in the order in which a call goes through them."""

STATUSES = ("ok", "failed", "cancelled", "crashed")

SERIES = ("run", "dispatch", "pipelined", "transfer_in", "transfer_out")
"""Kinds of raw samples: a blocked call, the time until the call returned, one of many calls of which only the last is
awaited, and the two directions of copying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries."""

    type: ClassVar[str] = ""

    seq: int = 0
    """Position in the log, from 1; given by the one writer of the file."""
    run: str = ""
    """The run that it belongs to; empty for the session as a whole."""
    monotonic_seconds: float = 0.0
    """When it happened, on the machine's monotonic clock; the header pairs that clock with the wall clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlanned(Event):
    """A run joined the queue."""

    type: ClassVar[str] = "run_planned"

    workload: str
    variant: str
    how: str
    """How the variant is executed: `numpy`, `eager` (op by op), `jit`; `compile`: lowered and compiled, not run."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Event):
    """The engine's process for this run is there."""

    type: ClassVar[str] = "worker_started"

    pid: int
    python: str
    """Path of the interpreter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRead(Event):
    """What the engine's process found around it: versions, devices, settings. An allow-list, never `os.environ`."""

    type: ClassVar[str] = "environment_read"

    python: str
    numpy: str
    jax: str | None = None
    jaxlib: str | None = None
    devices: list[dict[str, Any]] = field(default_factory=list)
    """One for each device that JAX sees: id, platform, kind, process, memory_limit_bytes, core_count, ..."""
    settings: dict[str, Scalar | None] = field(default_factory=dict)
    """Settings that change a measurement: x64, matmul precision, XLA_FLAGS, BLAS and its threads, preallocation."""


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
class WarningRaised(Event):
    """Something that makes the numbers mean less, or something else, than they seem to; with what to do about it."""

    type: ClassVar[str] = "warning_raised"

    code: str
    message: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine(Event):
    """A line that the engine's process wrote to its stdout or stderr."""

    type: ClassVar[str] = "log_line"

    stream: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Event):
    """The engine's process is alive, also in the middle of a long compile. Not written to the log."""

    type: ClassVar[str] = "heartbeat"


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
class CaptureTaken(Event):
    """A profile was recorded, or somebody else's was read."""

    type: ClassVar[str] = "capture_taken"

    kind: str
    """`run` (steady calls), `compile`, `attribution` (a run with command buffers off) or `imported`."""
    platform: str = ""
    """`cpu`, `gpu` or `tpu`: where the HLO ops of the profile ran; empty where it has none."""
    calls: int | None = None
    seconds_with: float | None = None
    """Median seconds a call while the profiler was on; beside the run's own median it is the disturbance."""
    wall_seconds: float | None = None
    """From the first to the last event of the profile."""
    events: int | None = None
    bytes: int | None = None
    """Size of the raw file."""
    path: str = ""
    """Where the raw file is; empty where it was not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelsMeasured(Event):
    """Times of HLO ops in a profile, one row for each op on each device."""

    type: ClassVar[str] = "kernels_measured"

    kind: str
    """As of the `CaptureTaken` that it belongs to."""
    calls: int | None = None
    """Calls of the program in the profile, so that `per call` can be derived."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """module, program, name, device, count, total_seconds, self_seconds, wall_seconds, median_seconds,
    minimum_seconds, maximum_seconds, kernels (names on the device), launch (grid, block, registers...), uncertain."""
    transfers: list[dict[str, Any]] = field(default_factory=list)
    """direction, device, count, total_seconds, bytes."""
    unattributed_seconds: dict[str, float] = field(default_factory=dict)
    """Time on each device that belongs to no HLO op."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsMeasured(Event):
    """Where the time of each step went; the parts of a step add up to it."""

    type: ClassVar[str] = "steps_measured"

    found_by: str
    """`annotation`, `modules` (executions of the program) or `whole` (neither: the profile as one step)."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    """name, device, start_seconds, seconds, complete, parts {kernels, transfers, collectives_exposed, launch_gaps,
    idle}, collectives_overlapped_seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePasses(Event):
    """Where the time of a compile went: XLA's phases and passes."""

    type: ClassVar[str] = "compile_passes"

    tree: dict[str, Any]
    """name, stage, seconds, self_seconds, count, children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustReported(Event):
    """Whether a capture can be trusted: one row for each thing that was looked at."""

    type: ClassVar[str] = "trust_reported"

    kind: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    """code, verdict (`good`, `doubt`, `bad`, `unknown`), message, advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuffersReported(Event):
    """What the peak memory of the program is made of."""

    type: ClassVar[str] = "buffers_reported"

    source: str
    """`buffer assignment` (the executable's own), `memory analysis` (sums only) or `request` (only `asked_bytes`)."""
    peak_bytes: int | None = None
    """What the program holds at most; the sum of `parts`."""
    parts: dict[str, int] = field(default_factory=dict)
    """Bytes of each kind: `argument`, `output`, `temporary`, `constant`."""
    buffers: list[dict[str, Any]] = field(default_factory=list)
    """bytes, kind, instruction, shape, op_name, file, line, shared_with (how many other values take the same place at
    other times); largest first."""
    live_bytes: list[int] = field(default_factory=list)
    """Live size after each instruction of the schedule (thinned to at most 4096 points)."""
    asked_bytes: int | None = None
    """After an out-of-memory failure: what was asked for."""


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


EVENT_TYPES: dict[str, type[Event]] = {
    cls.type: cls for cls in list(globals().values()) if isinstance(cls, type) and issubclass(cls, Event) and cls.type
}
"""Every event type of this version, by its name in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a session file."""

    format: str = "jaxprof"
    schema_major: int = SCHEMA_MAJOR
    schema_minor: int = SCHEMA_MINOR
    jaxprof: str = ""
    session: str = ""
    created: str = ""
    """UTC, ISO 8601 with a trailing Z."""
    host: str = ""
    process_index: int = 0
    process_count: int = 1
    command: list[str] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    wall_seconds: float = 0.0
    """Unix time at the moment when the monotonic clock showed `monotonic_seconds`."""
    monotonic_seconds: float = 0.0


def encode(event: Event) -> bytes:
    """One line of JSON without its line break. Standard library only, for the engine's side of the pipe.

    Raises ValueError for NaN and infinity: a reader would turn them into null, which means unknown.
    """
    payload: dict[str, Any] = {"type": event.type}
    for item in fields(event):
        payload[item.name] = getattr(event, item.name)
    try:
        return json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )
    except ValueError as error:
        raise ValueError(f"{event.type} holds a number that is not finite") from error


def finite(value: float | None) -> float | None:
    """`value`, or None (unknown) where it is NaN or infinite, or None already."""
    return value if value is not None and math.isfinite(value) else None


_RUN_NUMBER = re.compile(r"r(\d+)$")


def run_number(run: str) -> int:
    """The number in a run id (`r12` → 12), for ordering; 0 for any other text."""
    match = _RUN_NUMBER.match(run)
    return int(match.group(1)) if match else 0
