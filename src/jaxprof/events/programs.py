"""What is recorded inside a program while it runs: its compilations, where its time goes, its arrays and transfers.

A program is a run like any other (`RunPlanned.how` is `program`): it is planned, a worker starts, it writes log lines,
it finishes. These events say what only a program has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxprof.events.base import Event

STAGES = ("trace", "lower", "compile")
"""The stages of a compilation."""

CACHE_STATES = ("hit", "miss", "off")
"""What the persistent compilation cache did for a compilation; None where it cannot be known."""

REASONS = (
    "first",
    "shape",
    "dtype",
    "weak_type",
    "structure",
    "static_argument",
    "new_function",
    "sharding",
    "config",
    "unknown",
)
"""Why a function was compiled: the first time, or what differed from the nearest compilation before."""

PROGRAM_STATES = (
    "import",
    "data",
    "trace",
    "lower",
    "compile",
    "transfer",
    "device_busy",
    "host_busy",
    "waiting",
)
"""What the program's main thread is doing, one at a time, so that they add up to the wall time.

`device_busy`: inside a compiled function or blocked until its result is there; `waiting`: blocked on anything else;
`data`: in an iterator or loader that feeds the loop; `host_busy`: Python, NumPy, and JAX's own dispatch op by op.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStarted(Event):
    """The program was started, or started to be recorded."""

    type: ClassVar[str] = "program_started"

    argv: list[str]
    """As the program sees `sys.argv`; for a module, with `-m` and its name in front."""
    how: str
    """`script`, `module`, `record` (it records itself) or `cell`."""
    directory: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    """What was asked for besides: the capture window, the function to measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxImported(Event):
    """From here on JAX is watched."""

    type: ClassVar[str] = "jax_imported"

    seconds: float | None
    """What its import took; None where it had been imported before the recording began."""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRunning(Event):
    """A stage of a compilation has been going on for a while; said once, screens let its clock tick from there."""

    type: ClassVar[str] = "stage_running"

    function: str
    stage: str
    """One of `STAGES`."""
    began_seconds: float
    """Monotonic."""
    called_from: dict[str, Any] = field(default_factory=dict)
    """file, line, function."""
    thread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled(Event):
    """One row of the ledger: one compilation, or `count` of them where many were put together."""

    type: ClassVar[str] = "compiled"

    function: str
    """As JAX names it: `train_step`, `<lambda>`, `add`."""
    began_seconds: float = 0.0
    """Monotonic: when its first stage began."""
    called_from: dict[str, Any] = field(default_factory=dict)
    """file, line, function of the user's innermost frame; empty where there is none."""
    defined_at: dict[str, Any] = field(default_factory=dict)
    """file, line of the compiled function; empty where it cannot be known."""
    thread: str = ""
    """Empty for the main thread."""
    trace_seconds: float | None = None
    lower_seconds: float | None = None
    compile_seconds: float | None = None
    """A stage that did not happen is None: a trace that was still there, a program that was only lowered."""
    cache: str | None = None
    """One of `CACHE_STATES`."""
    saved_seconds: float | None = None
    """What a hit of the persistent cache saved, as JAX reckons it."""
    operations: int | None = None
    """Size of the program: its StableHLO operations, those of its functions included."""
    constants: list[dict[str, Any]] = field(default_factory=list)
    """Large constants in the program: type (`f32[300,300]`), bytes; largest first."""
    signature: list[dict[str, Any]] = field(default_factory=list)
    """One for each leaf of the arguments: name, type (`f32[4]`, or the value of a static one), static, weak_type,
    sharding; at most 64, the rest is counted in `signature_more`."""
    signature_more: int = 0
    reason: str = ""
    """In words; empty for a plain `first`."""
    reason_code: str = "unknown"
    """One of `REASONS`."""
    op_by_op: bool = False
    """One primitive, compiled because it was called outside any jit."""
    library: bool = False
    """Defined inside jax itself or another library (site-packages), and not by the user."""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSampled(Event):
    """Where the main thread was in a stretch of time, by samples of its stack and by the stages that JAX announced."""

    type: ClassVar[str] = "program_sampled"

    began_seconds: float
    """Monotonic; the stretch ends at `monotonic_seconds`, and the stretches of a program leave no gap."""
    samples: int
    states: dict[str, float] = field(default_factory=dict)
    """Seconds in each of `PROGRAM_STATES`; they add up to the stretch. Trace, lower and compile are exact."""
    lines: list[dict[str, Any]] = field(default_factory=list)
    """file, line, function, state, seconds, call (what is called there: `float()`, `.item()`, `train_step`): the user's
    innermost lines that took most of the stretch."""
    own_seconds: float | None = None
    """What recording itself took of it, CPU time of its thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsCounted(Event):
    """Iterations of the program's hottest loop in a stretch of time."""

    type: ClassVar[str] = "steps_counted"

    where: dict[str, Any]
    """file, line, function of the loop's line; or the `name` of a step annotation."""
    found_by: str
    """`monitoring` (counted exactly) or `annotation`."""
    count: int
    seconds: float
    """Of the `count` intervals together."""
    intervals_seconds: list[float] = field(default_factory=list)
    """Single ones, thinned to at most 100 a stretch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraysCounted(Event):
    """The live arrays of the process, and the memory of its devices."""

    type: ClassVar[str] = "arrays_counted"

    count: int
    bytes: int
    devices: dict[str, int] = field(default_factory=dict)
    """Bytes in use by the allocator of each device; devices that do not tell are absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransfersSeen(Event):
    """Copies between host and device that nobody asked for in words."""

    type: ClassVar[str] = "transfers_seen"

    rows: list[dict[str, Any]] = field(default_factory=list)
    """direction (`host_to_device`, `device_to_host`, `device_to_device`), count, bytes (None: unknown), seconds (None:
    unknown), file, line, source (`guard`: JAX's transfer guard said it, exact but without a line; `samples`: seen in
    stack samples, the count is of samples), type (`f32[4]`, of a `guard`; empty where it did not tell, as on the fast
    path of jitted calls). Rows of one kind add up from event to event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureWindow(Event):
    """The profiler was switched on in the running program, or could not be."""

    type: ClassVar[str] = "capture_window"

    state: str
    """`began`, `ended` or `failed`."""
    path: str = ""
    """The folder with the profile, once it has ended."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnded(Event):
    """The program is over."""

    type: ClassVar[str] = "program_ended"

    exit_code: int | None
    """As a shell has it: 128+n after signal n. None where it cannot be known (it records itself, or was cut off)."""
    wall_seconds: float
    """From the start of its process (or of the recording) to its end."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    """code, message: what was not seen, and why (`no_jax`, `forked`, `replaced`, `pipe_closed`, `not_unwound`)."""
