"""What is recorded inside a program while it runs: its compilations, where its time goes, its arrays and transfers.

A program is a run like any other (`RunPlanned.how` is `program`): it is planned, a worker starts, it writes log lines,
it finishes. These events say what only a program has.
"""

from __future__ import annotations

from typing import Any, ClassVar

from jaxprof.events.base import NOWHERE, Event, SourceLocation
from jaxprof.light_dataclass import dataclass, field

STAGES = ("trace", "lower", "compile")
"""The stages of a compilation."""

CACHE_STATES = ("hit", "miss", "off")
"""What the persistent compilation cache did for a compilation; None if it cannot be known."""

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
    "closure",
    "caches_cleared",
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
    "stopped",
)
"""What the program's main thread is doing, one at a time, so that they add up to the wall time.

`device_busy`: inside a compiled function or blocked until its result is there; `waiting`: blocked on anything else;
`data`: in an iterator or loader that feeds the loop; `host_busy`: Python, NumPy, and JAX's own dispatch op by op;
`stopped`: the whole process stood still, by a signal or with its container.
"""

STOP_WITNESSES = ("state", "standstill", "clock", "pressure")
"""How a stop was found, as in `ProgramStopped.found_by`."""


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
    """What was requested besides: the capture window, the function to measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxImported(Event):
    """From here on JAX is watched."""

    type: ClassVar[str] = "jax_imported"

    seconds: float | None
    """What its import took; None where it had been imported before the recording began."""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentified(Event):
    """Which process of a multi-process job this is, once JAX knows: the session's header was written before."""

    type: ClassVar[str] = "process_identified"

    index: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRunning(Event):
    """A stage of a compilation has been running for a while; sent once, and screens let its clock tick from there."""

    type: ClassVar[str] = "stage_running"

    function: str
    stage: str
    """One of `STAGES`."""
    began_seconds: float
    """Monotonic."""
    called_from: SourceLocation = NOWHERE
    thread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureLeaf:
    """One leaf of the arguments of a compiled function, or one static argument."""

    name: str = ""
    type: str = ""
    """`f32[4]`, or the value of a static one."""
    static: bool = False
    weak_type: bool = False
    sharding: str = ""
    """Empty where it is not committed to a device."""
    bytes: int | None = None
    """Of one that was a NumPy array: what every call with such an argument copies to the device; None for others."""
    replaced: bool = False
    """Only the first call is given NumPy's array: the result takes its place (`params = step(params)`)."""
    zero_copy: bool = False
    """The device uses NumPy's array where it is."""

    @property
    def from_numpy(self) -> bool:
        """Whether it was a NumPy array."""
        return self.bytes is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramArray:
    """An array of a compiled program: a constant, or a donated argument."""

    name: str = ""
    """Of the argument."""
    type: str = ""
    """`f32[300,300]`."""
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosureChange:
    """A variable of a factory that is not as before."""

    name: str = ""
    before: str = ""
    """Its value in words, as `now`."""
    now: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled(Event):
    """One row of the ledger: one compilation, or `count` of them where many were put together."""

    type: ClassVar[str] = "compiled"

    function: str
    """JAX's name for it: `train_step`, `<lambda>`, `add`."""
    began_seconds: float = 0.0
    """Monotonic: when its first stage began."""
    called_from: SourceLocation = NOWHERE
    """The user's innermost frame; `NOWHERE` where there is none."""
    defined_at: SourceLocation = NOWHERE
    """The compiled function; `NOWHERE` where it cannot be known."""
    thread: str = ""
    """Empty for the main thread."""
    trace_seconds: float | None = None
    lower_seconds: float | None = None
    compile_seconds: float | None = None
    """None for a stage that did not happen: a trace that was reused, a program that was only lowered."""
    cache: str | None = None
    """One of `CACHE_STATES`."""
    saved_seconds: float | None = None
    """What a hit of the persistent cache saved, as JAX estimates it."""
    operations: int | None = None
    """Size of the program: its StableHLO operations, those of its functions included."""
    constants: list[ProgramArray] = field(default_factory=list)
    """Large constants in the program, largest first."""
    signature: list[SignatureLeaf] = field(default_factory=list)
    """The leaves of the arguments; at most 64, the rest is counted in `signature_more`."""
    signature_more: int = 0
    numpy_bytes: int = 0
    """What every call copies from NumPy arrays to the device, of all the arguments, those beyond the 64th included,
    those that are replaced or not copied left out."""
    reason: str = ""
    """As text; empty for a plain `first`."""
    reason_code: str = "unknown"
    """One of `REASONS`."""
    made_at: SourceLocation = NOWHERE
    """The call of `factory`, for the reason `closure`; `NOWHERE` where it was not found."""
    factory: str = ""
    """For that reason: the function that makes a new one of this function each time."""
    closure: list[ClosureChange] = field(default_factory=list)
    """For that reason."""
    cleared_at: SourceLocation = NOWHERE
    """The last `jax.clear_caches()`, for the reason `caches_cleared`."""
    unused_donations: list[ProgramArray] = field(default_factory=list)
    """The donated arguments whose buffer no output of the program can take."""
    op_by_op: bool = False
    """One primitive, compiled because it was called outside any jit."""
    library: bool = False
    """Defined inside jax itself or another library (site-packages), and not by the user."""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledLine:
    """What one of the user's lines took of a sample window, in one way."""

    file: str = ""
    line: int | None = None
    function: str = ""
    state: str = ""
    """One of `PROGRAM_STATES`."""
    seconds: float = 0.0
    call: str = ""
    """What is called there: `float()`, `.item()`, `train_step`."""
    kind: str = ""
    """What is done there, finer than the state: `host`, `call` (the Python code around the call of a compiled
    function), `read` (`np.asarray`), `dispatch` (an operation outside any jit), `compiled`, `fed` (one that is given
    NumPy arrays), `inline` (one in whose call the thread runs without the interpreter's lock: it launches or
    computes), `callback` (Python that a compiled function calls), `sync`, `transfer`, `data`, `unseen` (the
    interpreter's lock was held, and it is not known by what), `contended` (the thread waited for a processor or for
    that lock), or a stage; empty in an older file."""
    bytes: int | None = None
    """Of the largest array that was read there."""
    sites: list[int] = field(default_factory=list)
    """Numbers of the loops around it, innermost first."""
    through: str = ""
    """The library whose Python code is between the line and the compiled function, such as `flax.nnx`; of kind
    `callback`: the user's function that is called back."""

    @property
    def place(self) -> SourceLocation:
        """The line alone."""
        return SourceLocation(self.file, self.line, self.function)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSite:
    """A loop around a line, and the line's place in the function of that loop."""

    file: str
    function: str = ""
    loop_line: int
    """The first line of the loop."""
    last_line: int
    line: int
    call: str = ""
    """What is called at the line."""
    library: bool = False
    """Whether the loop is not in the user's code."""
    conditional: bool = False
    """Whether the line is under a condition, and so not part of every pass."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells the loop from others: file, function and first line."""
        return self.file, self.function, self.loop_line

    @property
    def place(self) -> SourceLocation:
        """The line in the function of the loop."""
        return SourceLocation(self.file, self.line, self.function)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedLine:
    """A line of a loop, timed exactly."""

    line: int
    seconds: float
    """With all that it calls."""
    hits: int
    """How often it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSampled(Event):
    """Where the main thread was in one sample window, from samples of its stack and from the stages that JAX
    announced."""

    type: ClassVar[str] = "program_sampled"

    began_seconds: float
    """Monotonic; the window ends at `monotonic_seconds`, and the windows of a program leave no gap."""
    samples: int
    states: dict[str, float] = field(default_factory=dict)
    """Seconds in each of `PROGRAM_STATES`; they add up to the window. Trace, lower and compile are exact."""
    lines: list[SampledLine] = field(default_factory=list)
    """The user's innermost lines that took most of the sample window."""
    sites: list[LoopSite | None] = field(default_factory=list)
    """The loops to which the lines refer by number; None in the place of one that is damaged in the file."""
    own_seconds: float | None = None
    """What recording itself took of it: CPU time of its thread."""
    device_wait_seconds: float | None = None
    """For how long the main thread was blocked by the device, by its CPU clock: neither running, nor waiting for a
    processor, nor blocked elsewhere. None where the system has no such clock, and in an older file."""
    debug_settings: list[str] = field(default_factory=list)
    """The options of `jax.config` that were on for the whole process at its end and are there to find faults."""
    debug_settings_at: dict[str, SourceLocation] = field(default_factory=dict)
    """By option: the line of the user's source that names it, where there is one such line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsCounted(Event):
    """Iterations of the program's hottest loop in one sample window."""

    type: ClassVar[str] = "steps_counted"

    where: SourceLocation
    """The loop's line; `NOWHERE` for a step annotation."""
    found_by: str
    """`monitoring` (counted exactly), `annotation`, or in older recordings `tracing` (in short spells)."""
    count: int
    seconds: float
    """Of the `count` intervals together."""
    name: str = ""
    """Of a step annotation."""
    intervals_seconds: list[float] = field(default_factory=list)
    """Single ones, thinned to at most 100 a window."""
    lines: list[TimedLine] = field(default_factory=list)
    """The lines of the loop, over those intervals."""


PASSES_FOUND_BY = ("monitoring", "number")
"""How passes were seen: each by Python's own event for it, or by the loop's counter, which is read with the samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsTaken(Event):
    """Passes of the program's hot loop, one after another without a gap. The next stretch is another event."""

    type: ClassVar[str] = "steps_taken"

    where: SourceLocation
    """The loop's first line."""
    found_by: str
    """One of `PASSES_FOUND_BY`. By `number`, the counts are exact and the times those of the samples: an entry began
    and ended up to one interval of the samples earlier."""
    first: int
    """Number of the first pass: by the loop's own counter, else by how many of them were seen before it."""
    numbered_by: str = ""
    """The local variable that counts the passes; empty if there is none, and they are numbered from the first one
    seen."""
    began_seconds: float
    """Monotonic: when the first pass began."""
    seconds: list[float]
    """By entry: a pass, or some passes together where `counts` says so."""
    counts: list[int] = field(default_factory=list)
    """Passes in each entry; empty for one each."""

    @property
    def count(self) -> int:
        """How many passes it holds."""
        return sum(self.counts) if self.counts else len(self.seconds)

    @property
    def ended_seconds(self) -> float:
        """Monotonic: when the last pass ended."""
        return self.began_seconds + sum(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStopped(Event):
    """The program did not run for a while, and goes on, or has ended. The same stop may be found in two ways, and then
    comes twice."""

    type: ClassVar[str] = "program_stopped"

    began_seconds: float
    """Monotonic; half of the time between two looks is its uncertainty."""
    seconds: float
    found_by: str
    """One of `STOP_WITNESSES`. `state`: the recording process saw it stopped by a signal. `standstill`: its own sampler
    did not run, though nothing but a stop kept it from running; this is what a stop of the whole group, and of a
    container, leaves. `clock`: the machine was suspended, which the monotonic clock leaves out: these seconds are no
    part of any other time. `pressure`: its own sampler did not run, and threads of the machine waited for a processor
    meanwhile: others may have had it, so this is no stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraysCounted(Event):
    """The live arrays of the process, and the memory of its devices."""

    type: ClassVar[str] = "arrays_counted"

    count: int
    bytes: int
    devices: dict[str, int] = field(default_factory=dict)
    """Bytes in use by each device's allocator; devices that do not report them are absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesSeen:
    """Copies of one kind since the last time: the rows of one kind add up from event to event."""

    direction: str = "unknown"
    """`host_to_device`, `device_to_host` or `device_to_device`."""
    source: str = ""
    """`guard`: JAX's transfer guard said it, exact but without a line; `samples`: seen in stack samples, and the count
    is of samples."""
    type: str = ""
    """`f32[4]`, of a `guard`; empty where it did not tell, as on the fast path of jitted calls."""
    count: int = 0
    bytes: int | None = None
    seconds: float | None = None
    file: str = ""
    line: int | None = None
    function: str = ""
    call: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransfersSeen(Event):
    """Copies between host and device that the program did not request explicitly."""

    type: ClassVar[str] = "transfers_seen"

    rows: list[CopiesSeen] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureWindow(Event):
    """The profiler was switched on in the running program, or could not be."""

    type: ClassVar[str] = "capture_window"

    state: str
    """`began`, `ended` or `failed`."""
    path: str = ""
    """The folder with the profile, once it has ended."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What was not seen, and why."""

    code: str = ""
    """`no_jax`, `forked`, `replaced`, `pipe_closed`, `pipe_full`, `not_recorded` or `not_unwound`."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnded(Event):
    """The program is over."""

    type: ClassVar[str] = "program_ended"

    exit_code: int | None
    """As in a shell: 128+n after signal n. None if it cannot be known (it records itself, or was interrupted)."""
    wall_seconds: float
    """From the start of its process (or of the recording) to its end."""
    notes: list[Note] = field(default_factory=list)
    error: str = ""
    """The exception that ended it and the first line of its message; empty without one, after an interrupt, after
    `sys.exit`, and before jax was imported."""
    error_at: SourceLocation = NOWHERE
    """The user's line that raised it, or called what did."""
    error_seconds: float | None = None
    """Monotonic: about when it was raised."""
