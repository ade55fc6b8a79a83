"""What is recorded inside a program while it runs: its compilations, where its time goes, its arrays and transfers.

A program is a run like any other (`RunPlanned.how` is `program`): it is planned, a worker starts, it writes log lines,
and it finishes. The events of this module are those that only a program has.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern
from typing import Any, TypeVar

from jaxprof.base.values import field, frozen
from jaxprof.events.base import NOWHERE, Event, SourceLocation

STAGES = ("trace", "lower", "compile")

SPELL_EVENTS = 500
"""Most beginnings of lines and iterations in one spell of timing a loop, at about 0.3 µs each. By it a reader knows
whether a spell of brief steps was full."""

CACHE_STATES = ("hit", "miss", "off")
"""What the persistent compilation cache did for a compilation."""

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
"""Why a function was compiled: for the first time, or because of this difference from an earlier compilation."""

DIFFERENCES = {
    "closure": "closure",
    "new_function": "new_function",
    "another_function": "new_function",
    "inner_function": "new_function",
    "static_argument": "static_argument",
    "unequal_object": "static_argument",
    "static_part": "structure",
    "containers": "structure",
    "passed_by": "structure",
    "keyword_order": "structure",
    "added": "structure",
    "removed": "structure",
    "argument_order": "structure",
    "shape": "shape",
    "dtype": "dtype",
    "weak_type": "weak_type",
    "sharding": "sharding",
    "config": "config",
    "jit_option": "config",
}
"""Kind of a difference from the earlier compilation → its reason of `REASONS`. The most informative kinds come first: a
compilation with several differences has the reason of the first of them."""

REASON_KINDS = (
    *DIFFERENCES,
    "more",
    "first_under",
    "traced_before",
    "caches_cleared",
    "evicted",
    "arguments_unknown",
    "failed",
)
"""Kinds of `CompileReason`."""

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
    "paused",
)
"""What the program's main thread is doing. The states exclude one another, so their times add up to the wall time.

`device_busy`: inside a compiled function, or blocked until its result is ready; `waiting`: blocked on anything else;
`data`: in an iterator or loader that feeds the loop; `host_busy`: Python, NumPy, and JAX's own dispatch op by op;
`paused`: the whole process was paused, by a signal or with its container, or held by the profiler of a capture;
`import`: import statements, and the start of JAX's backend.
"""

STOP_WITNESSES = ("state", "standstill", "clock", "pressure", "capture")
"""Ways to detect a pause of the process; the values of `ProgramStopped.found_by`."""
STOP_UNSURE_SECONDS = 0.1
"""Interval between two looks at a process, by which the begin and the end of a pause are uncertain."""


@frozen(kw_only=True)
class ProgramStarted(Event):
    """The program has started, or its recording has."""

    argv: list[str]
    """`sys.argv` as the program sees it; for a module, with `-m` and the module's name in front."""
    how: str
    """`script`, `module`, `record` (it records itself) or `cell`."""
    directory: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    """Other options of the recording: the capture window, the function to measure."""


@frozen(kw_only=True)
class JaxImported(Event):
    """JAX has been imported, and is watched from here on."""

    seconds: float | None
    """Seconds that the import took; None if JAX was imported before the recording began."""
    version: str = ""


@frozen(kw_only=True)
class ProcessIdentified(Event):
    """Which process of a multi-process job this is. Sent once JAX knows, which is after the session's header."""

    index: int
    count: int


@frozen(kw_only=True)
class LineOperations:
    """Operations of a program that one line of its source made."""

    file: str = ""
    line: int | None = None
    name: str = ""
    """JAX's name of the operations: `sin`, `dot_general`."""
    share: float = 0.0
    """Share of all operations of the program, by a sample of them."""

    @property
    def location(self) -> SourceLocation:
        return SourceLocation(self.file, self.line)


@frozen(kw_only=True)
class StageRunning(Event):
    """A stage of a compilation has been running for a while. Sent once, and again when its operations are known;
    screens let its clock tick from then on."""

    function: str
    stage: str
    """One of `STAGES`."""
    began_seconds: float
    """Monotonic time at which the stage began."""
    called_from: SourceLocation = NOWHERE
    thread: str = ""
    defined_at: SourceLocation = NOWHERE
    operations: int | None = None
    made_by: list[LineOperations] = field(default_factory=list)
    """While it compiles, as in `Compiled`."""


@frozen(kw_only=True)
class SignatureLeaf:
    """One leaf of the arguments of a compiled function, or one static argument."""

    name: str = ""
    type: str = ""
    """Type of the leaf, such as `f32[4]`, or the value of a static argument."""
    static: bool = False
    weak_type: bool = False
    sharding: str = ""
    """Sharding; empty if the array is not committed to a device."""
    bytes: int | None = None
    """Size of a NumPy array, which every call with such an argument copies to the device; None for other arguments."""
    narrowed: str = ""
    """Dtype of a NumPy array that every call converts, because JAX makes 64-bit types 32-bit; empty for other
    arguments."""
    replaced: bool = False
    """Whether only the first call gets the NumPy array, whose place the result then takes (`params = step(params)`)."""
    zero_copy: bool = False
    """Whether the device uses the NumPy array's memory without a copy."""

    @property
    def from_numpy(self) -> bool:
        """Whether the argument was a NumPy array."""
        return self.bytes is not None


@frozen(kw_only=True)
class ProgramArray:
    """An array of a compiled program: a constant, or a donated argument."""

    name: str = ""
    """Name of the argument; empty for a constant."""
    type: str = ""
    """Type, such as `f32[300,300]`."""
    bytes: int | None = None


@frozen(kw_only=True)
class ClosureChange:
    """A closure variable whose value differs from that at the earlier compilation."""

    name: str = ""
    before: str = ""
    """The value as text, in the same form as `now`."""
    now: str = ""


@frozen(kw_only=True)
class CompileReason:
    """One difference from the nearest earlier compilation, or another reason for a compilation. The reader makes the
    sentence, from this and from the fields of `Compiled`."""

    kind: str
    """One of `REASON_KINDS`."""
    name: str = ""
    """Path of the argument or of the node that differs, or name of the option."""
    before: str = ""
    """Type, sharding or value at the earlier compilation, in the notation of `SignatureLeaf`, with `weak` before a weak
    type. Long values are shortened to the part that differs; the value of an option that is not set is empty. For
    `passed_by`: `keyword` or `positional`."""
    now: str = ""
    """The same at this compilation. For `first_under`, the transformations; for `failed`, the type of the exception."""
    leaves: dict[str, int] = field(default_factory=dict)
    """For `added` and `removed`: the paths at which the trees begin to differ, each with its number of leaves."""
    more: int = 0
    """Number of paths beyond those of `leaves`; for `more`, the number of differences that are not listed."""


@frozen(kw_only=True)
class Compiled(Event):
    """One row of the ledger: one compilation, or `count` similar ones merged into a row."""

    function: str
    """JAX's name for the function: `train_step`, `<lambda>`, `add`."""
    began_seconds: float = 0.0
    """Monotonic time at which the first stage began."""
    called_from: SourceLocation = NOWHERE
    """The user's innermost frame; `NOWHERE` if there is none."""
    defined_at: SourceLocation = NOWHERE
    """Definition of the compiled function; `NOWHERE` if unknown."""
    thread: str = ""
    """Name of the thread that compiled; empty for the main thread."""
    trace_seconds: float | None = None
    lower_seconds: float | None = None
    compile_seconds: float | None = None
    """Seconds of each stage; None for one that did not happen, as when a trace was reused or a program only lowered."""
    cache: str | None = None
    """One of `CACHE_STATES`; None if unknown."""
    saved_seconds: float | None = None
    """Seconds that a hit of the persistent cache saved, as JAX estimates them."""
    operations: int | None = None
    """Number of StableHLO operations in the program, including those of the functions that it calls, without those of
    JAX's functions for random bits, which it unrolls for accelerators."""
    checksum: int | None = None
    """Checksum of the names of these operations, in order: where two programs have different ones, they differ in more
    than their constants and sizes."""
    callbacks: bool = False
    """Whether the program calls Python (`jax.pure_callback`, `jax.debug.print`)."""
    made_by: list[LineOperations] = field(default_factory=list)
    """Lines that made most operations of a large program, or of one with large constants, most first."""
    constants: list[ProgramArray] = field(default_factory=list)
    """Large constants in the program, largest first."""
    signature: list[SignatureLeaf] = field(default_factory=list)
    """The first 64 leaves of the arguments."""
    signature_more: int = 0
    """Number of leaves beyond those of `signature`."""
    numpy_bytes: int = 0
    """Bytes that every call copies from NumPy arrays to the device, over all arguments, including those beyond the
    64th. Arguments that are replaced or used without a copy do not count."""
    numbers: int = 0
    """Python's numbers among the arguments, each of which every call copies to the device; 0 where the program does not
    take all of its arguments."""
    reason_code: str = "unknown"
    """One of `REASONS`."""
    reasons: list[CompileReason] = field(default_factory=list)
    """What the reason is in detail, most informative first; empty for a plain `first`."""
    made_at: SourceLocation = NOWHERE
    """The call of `factory`, if the reason is `closure`; `NOWHERE` if it was not found."""
    factory: str = ""
    """The function that makes a new compiled function at each call, if the reason is `closure`."""
    closure: list[ClosureChange] = field(default_factory=list)
    """The closure variables that changed, if the reason is `closure`."""
    cleared_at: SourceLocation = NOWHERE
    """The last `jax.clear_caches()`, if the reason is `caches_cleared`."""
    unused_donations: list[ProgramArray] = field(default_factory=list)
    """The donated arguments whose buffer no output of the program can reuse."""
    op_by_op: bool = False
    """Whether this is a single primitive, compiled because it was called outside any jit."""
    library: bool = False
    """Whether the function is defined in JAX or another library (site-packages), not by the user."""
    through: str = ""
    """The library other than JAX that the user's line called, such as `flax.linen`, if it called the function."""
    count: int = 1
    """Number of compilations in this row."""


@frozen(kw_only=True)
class SampledLine:
    """Time of one user line in a sample window, in one state and kind."""

    file: str = ""
    line: int | None = None
    function: str = ""
    state: str = ""
    """One of `PROGRAM_STATES`."""
    seconds: float = 0.0
    call: str = ""
    """The call in that line: `float()`, `.item()`, `train_step`."""
    kind: str = ""
    """What the line does, finer than its state: `host`, `call` (the Python code around the call of a compiled
    function), `read` (`np.asarray`), `dispatch` (an operation outside any jit), `compiled`, `fed` (a compiled function
    that gets NumPy arrays), `inline` (a compiled function in whose call the thread runs without the interpreter's lock:
    it launches or computes), `callback` (Python that a compiled function calls), `sync`, `transfer`, `data`, `unseen`
    (the interpreter's lock was held, and it is unknown by what), `contended` (the thread waited for that lock),
    `preempted` (it waited for a processor, in a call in which it may have waited for the device before), or a
    stage."""
    bytes: int | None = None
    """Size of the largest array that was read in that line; None if unknown."""
    put_bytes: int | None = None
    """Size of the largest array that was put on a device in that line; None if unknown."""
    sites: list[int] = field(default_factory=list)
    """Indices into `ProgramSampled.sites`: the loops around the line, innermost first."""
    through: str = ""
    """The library whose Python code is between the line and the compiled function, such as `flax.nnx`. For the kind
    `callback`, the user's function that is called back."""

    def __post_init__(self) -> None:
        for name in ("file", "function", "state", "kind"):  # once in memory: each second of a loop shows the same lines
            object.__setattr__(self, name, intern(str(getattr(self, name))))

    @property
    def location(self) -> SourceLocation:
        return SourceLocation(self.file, self.line, self.function)


@frozen(kw_only=True)
class LoopSite:
    """A loop around a line, with the line that is executed in the loop's function."""

    file: str
    function: str = ""
    loop_line: int
    last_line: int
    line: int
    call: str = ""
    library: bool = False
    """Whether the loop is in a library, not in the user's code."""
    conditional: bool = False
    """Whether the line is under a condition, so that not every iteration executes it."""
    unchanging: bool = False
    """Whether the line puts data on a device that nothing in the loop changes, as far as the source shows."""
    between: bool = False
    """Whether the line computes an argument of a compiled function from results of the loop's compiled functions, so
    that it can neither run ahead nor be left out."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Identifies the loop: file, function and first line."""
        return self.file, self.function, self.loop_line

    @property
    def location(self) -> SourceLocation:
        """The line as a source location in the loop's function."""
        return SourceLocation(self.file, self.line, self.function)


UNROLLED, IMPORTS = "unrolled", "imports"


@frozen(kw_only=True)
class StatementTime:
    """Time below one statement of the user's code in a sample window."""

    kind: str = ""
    """`UNROLLED`: a loop of a function that is being traced, so that each iteration becomes operations of its own;
    with the time of the loops inside it. `IMPORTS`: an import, or a call of `importlib.import_module`, without those
    inside it."""
    where: SourceLocation = NOWHERE
    """The loop's first line, or the line of the import."""
    name: str = ""
    """The function that is traced, as in `Compiled.function`, or the module that is imported; empty if unknown."""
    seconds: float = 0.0
    jax_seconds: float = 0.0
    """Part of the seconds in which JAX was at work below an import, which then runs the program; all of them if the
    import is of a library that uses JAX itself."""


@frozen(kw_only=True)
class TimedLine:
    line: int
    seconds: float
    """Seconds, including everything that the line calls."""
    hits: int
    """How many times the line began."""


@frozen(kw_only=True)
class ThreadTime:
    """What another Python thread of the program did in a sample window."""

    name: str = ""
    at: SourceLocation = NOWHERE
    """The user's line at which most samples saw it that found the interpreter's lock held."""
    cpu_seconds: float
    """How long it ran."""
    delay_seconds: float = 0.0
    """How long it was ready to run while others had the processors; it kept the lock if it held it."""
    samples: int = 0


@frozen(kw_only=True)
class ProgramSampled(Event):
    """Where the main thread was in one sample window, from stack samples and the stages that JAX announces."""

    began_seconds: float
    """Monotonic time. The window ends at `monotonic_seconds`; the windows of a program leave no gap."""
    samples: int
    states: dict[str, float] = field(default_factory=dict)
    """Seconds in each of `PROGRAM_STATES`, which add up to the window. Trace, lower and compile are exact."""
    lines: list[SampledLine] = field(default_factory=list)
    """The user's innermost lines that took the most time in the window."""
    sites: list[LoopSite] = field(default_factory=list)
    """The loops to which the lines refer by index."""
    statements: list[StatementTime] = field(default_factory=list)
    """Loops that tracing unrolled and imports, with their time."""
    own_seconds: float | None = None
    """CPU seconds of the recording thread in the window."""
    delay_seconds: float | None = None
    """Seconds outside the stages in which the main thread was ready to run and the system ran others."""
    device_wait_seconds: float | None = None
    """Seconds for which the device blocked the main thread, by the thread's CPU clock: it did not run, did not wait for
    a processor, and was not blocked elsewhere. None if the system has no such clock."""
    threads: list[ThreadTime] = field(default_factory=list)
    """The program's other Python threads that ran in the window."""
    profiled_seconds: float = 0.0
    """Seconds for which the program itself had JAX's profiler on."""
    profiled_from: SourceLocation = NOWHERE
    """The program's line that switched the profiler on last."""
    debug_settings: list[str] = field(default_factory=list)
    """The options of `jax.config` for finding faults that were on for the whole process at the end of the window."""
    debug_settings_at: dict[str, SourceLocation] = field(default_factory=dict)
    """The user's source line that names an option, by option; only for options that exactly one line names. With
    `new_cache`, also that of the cache's folder."""
    new_cache: str = ""
    """What makes the folder of the persistent compilation cache another one at each start: `temporary` (made by
    `tempfile`), or what its name holds: `process`, `job`, `random` or `time`. Empty if nothing shows that it is."""


@frozen(kw_only=True)
class StepsCounted(Event):
    """Iterations of the program's hottest loop in one sample window."""

    where: SourceLocation
    """First line of the loop."""
    count: int
    seconds: float
    """Total duration of the `count` intervals."""
    intervals_seconds: list[float] = field(default_factory=list)
    """Durations of single iterations, thinned to at most 100 a window."""
    lines: list[TimedLine] = field(default_factory=list)
    """Times of the loop's lines over those intervals."""


ITERATIONS_FOUND_BY = ("monitoring", "number")
"""How iterations were detected: by an event of Python for each, or by the loop's counter, read with samples."""


@frozen(kw_only=True)
class StepsTaken(Event):
    """Consecutive iterations of the program's hot loop, without a gap. Those after a gap are another event."""

    where: SourceLocation
    """First line of the loop."""
    found_by: str
    """One of `ITERATIONS_FOUND_BY`. With `number`, the counts are exact and the times are those of the samples: an
    entry began and ended up to one sampling interval earlier."""
    first: int
    """Number of the first iteration: the value of the loop's own counter, else the number seen before."""
    numbered_by: str = ""
    """Local variable that counts the iterations; empty if they are numbered from the first one seen."""
    began_seconds: float
    """Monotonic time at which the first iteration began."""
    seconds: list[float]
    """Seconds by entry: of one iteration, or of several together where `counts` says so."""
    counts: list[int] = field(default_factory=list)
    """Iterations in each entry; empty if every entry is one iteration."""

    @property
    def count(self) -> int:
        """Number of iterations in the event."""
        return sum(self.counts) if self.counts else len(self.seconds)

    @property
    def ended_seconds(self) -> float:
        """Monotonic time at which the last iteration ended."""
        return self.began_seconds + sum(self.seconds)


@frozen(kw_only=True)
class SystemWait:
    """What the system shows of a thread: unlike its stack, this cannot be stale."""

    state: str = ""
    """Letter of the state in `/proc`: R, S, D or T; empty if it cannot be read."""
    call: str = ""
    """The system call in which the thread is blocked: `read`, `futex`; empty if it runs, or if that is unknown."""
    file: str = ""
    """What the call waits for: a path, or `socket`, `pipe`, `event`; empty if unknown."""


@frozen(kw_only=True)
class ThreadStack:
    """The Python frames of one thread."""

    name: str = ""
    frames: list[SourceLocation] = field(default_factory=list)
    """Innermost first."""


@frozen(kw_only=True)
class StandstillSeen(Event):
    """No iteration of the program's loops has ended for a while, or, before a few have, its main thread has neither run
    nor moved. Sent again for as long as that lasts, with the state
    at that moment, and once more when one has ended. Whether it is a standstill, the reader decides."""

    since_seconds: float
    """Monotonic time at which the last iteration was seen to end, or at which the thread was last seen to run."""
    over: bool = False
    """Whether another iteration has ended."""
    usual_seconds: float = 0.0
    """Median time between two iterations that were seen to end; 0 before a few have."""
    longest_seconds: float = 0.0
    """Longest such time before this one."""
    step: int | None = None
    """Number of the last finished iteration of the hot loop; None if they are not numbered."""
    at: SourceLocation = NOWHERE
    """The user's innermost line in the main thread."""
    call: str = ""
    kind: str = ""
    """What the line does, as in `SampledLine`."""
    inner: SourceLocation = NOWHERE
    """The innermost frame of all, such as `Queue.get`."""
    still_seconds: float = 0.0
    """Monotonic time since which the user's frames have been at the same instructions."""
    busy_share: float | None = None
    """CPU time of the main thread since the last such event, or in the last seconds, as a share of the time."""
    process_share: float | None = None
    """The same of the whole process; more than 1 where several threads run."""
    moved_bytes_per_second: float | None = None
    """What the process has read and written meanwhile; None if the system does not count it."""
    collections: int = 0
    """Full garbage collections meanwhile."""
    stage: str = ""
    """The stage of a compilation that the main thread is in; `function` and `stage_seconds` belong to it."""
    function: str = ""
    stage_seconds: float = 0.0
    """How long that stage has been running."""
    wait: SystemWait = field(default_factory=SystemWait)
    """What the system shows of the main thread."""
    threads: list[ThreadStack] = field(default_factory=list)
    """All threads of Python at this moment, the main thread first."""


@frozen(kw_only=True)
class SilenceSeen(Event):
    """The recorder in the program has not been heard of for a while, by the process that records it from outside: the
    program is stopped, or native code holds the interpreter's lock. Sent again for as long as that lasts."""

    silent_seconds: float
    """Monotonic time of the last word from inside."""
    over: bool = False
    since_seconds: float | None = None
    """Monotonic time at which the last iteration was seen to end, by that word; None if none was."""
    usual_seconds: float = 0.0
    step: int | None = None
    wait: SystemWait = field(default_factory=SystemWait)
    at: SourceLocation = NOWHERE
    """The user's innermost line in the main thread, from the memory of the process."""
    threads: list[ThreadStack] = field(default_factory=list)
    """The main thread, if its frames can be read."""
    busy_share: float | None = None
    """CPU time of the process since the last such event, as a share of the time."""


@frozen(kw_only=True)
class ProgramStopped(Event):
    """The process was paused for a while. A pause that is detected in two ways is reported twice."""

    began_seconds: float
    """Monotonic time; its uncertainty is half the interval between two checks."""
    seconds: float
    found_by: str
    """One of `STOP_WITNESSES`. `state`: the recording process saw that a signal had stopped the program. `standstill`:
    the program's own sampler did not run, and only a pause can explain it, as when the whole process group or container
    is paused. `clock`: the machine was suspended; the monotonic clock leaves these seconds out, so they are no part of
    any other time. `pressure`: the program's own sampler did not run while threads of the machine waited for a
    processor; others may have had the processor, so this is no pause. `capture`: JAX's profiler was switched on or off
    for a capture window, and no step ended meanwhile, which usually takes a fraction of that."""
    recorder_ran: bool | None = None
    """Whether the recording process ran in its middle; None if that process noted nothing of it."""

    def holds(self, moments: Iterable[float]) -> bool:
        """Whether one of these monotonic times lies in its middle."""
        began, ended = self.began_seconds + STOP_UNSURE_SECONDS, self.began_seconds + self.seconds - STOP_UNSURE_SECONDS
        return any(began < at < ended for at in moments)


@frozen(kw_only=True)
class ArraysCounted(Event):
    """The live arrays of the process, and the memory of its devices."""

    count: int
    bytes: int
    devices: dict[str, int] = field(default_factory=dict)
    """Bytes in use by each device's allocator; without devices that do not report them."""
    programs: int | None = None
    """Number of compiled programs that the process holds; None if unknown."""
    host_bytes: int | None = None
    """Resident memory of the process; None if unknown."""


@frozen(kw_only=True)
class CopiesSeen:
    """Copies of one kind since the last event, so that the rows of a kind add up over the events."""

    direction: str = "unknown"
    """`host_to_device` or `device_to_host`."""
    count: int = 0
    """Number of stack samples in which they were seen."""
    seconds: float | None = None
    file: str = ""
    """File of the line that copies; empty if unknown."""
    line: int | None = None
    function: str = ""
    call: str = ""

    @property
    def where(self) -> SourceLocation | None:
        return SourceLocation(self.file, self.line, self.function) if self.file else None


@frozen(kw_only=True)
class TransfersSeen(Event):
    """Copies between host and device that the program did not request explicitly."""

    rows: list[CopiesSeen] = field(default_factory=list)


@frozen(kw_only=True)
class EmptyCallTimed(Event):
    """How long a call of an almost empty compiled function takes with the program's Python and JAX, here."""

    seconds: float
    """CPU seconds of one call, in the quietest batch of calls."""
    arrays: int = 1
    """Arrays among the arguments of the call."""
    numbers: int = 0
    """Python's numbers among them."""


WINDOW_FOLDER = "jaxprof-window-"
"""Begin of the name of a folder for the profile of a window."""


@frozen(kw_only=True)
class CaptureWindow(Event):
    """The profiler was switched on or off in the running program, or the capture failed."""

    state: str
    """`began`, `ended` or `failed`."""
    path: str = ""
    """Folder of the profile, which is there once the capture has ended."""
    code: str = ""
    """Why it failed or ended early: `uncounted`, `too_long` or `taken_over` (by the program's own use of the profiler)
    if it ended early; `ended_uncounted`, `nothing_compiled`, `not_started`, `not_stopped` or `no_file` if it failed."""
    seconds: float | None = None
    """Limit that ended it."""
    error: str = ""
    """What the profiler raised."""


@frozen(kw_only=True)
class Note:
    """Something that was not recorded, and why. The reader makes the sentence."""

    code: str = ""
    """`no_jax`, `pipe_full`, `not_recorded`, `not_unwound` or `child_processes`."""
    lost: int = 0
    """Number of events lost, for `pipe_full`."""
    seconds: float = 0.0
    """CPU time of all child processes that have ended, for `child_processes`."""
    by_signal: bool = False
    """Whether a signal ended the program, for `not_unwound`."""
    shadowed: bool = False
    """Whether `import jax` finds a jax.py in the program's folder, for `no_jax`."""


@frozen(kw_only=True)
class LineArrays:
    """Arrays of the process that one line of the user's has made."""

    location: SourceLocation
    """The user's innermost line; `NOWHERE` if there is none."""
    count: int
    bytes: int


@frozen(kw_only=True)
class ProgramEnded(Event):
    """The program is over."""

    exit_code: int | None
    """Exit code as in a shell: 128+n after signal n. None if unknown (recording itself, or interrupted)."""
    wall_seconds: float
    """Wall time from the start of the process (or of the recording) to its end."""
    notes: list[Note] = field(default_factory=list)
    error: str = ""
    """The exception that ended the program, and the first line of its message. Empty without one, after an interrupt,
    after `sys.exit`, and before JAX was imported."""
    error_at: SourceLocation = NOWHERE
    """The user's line that raised the exception, or that called the code that did."""
    error_seconds: float | None = None
    """Monotonic time at which the exception was raised, approximately; None without one."""
    error_details: str = ""
    """The other lines of the message, if memory ran out: the buffers, and the state of the allocator."""
    shadowed_by: SourceLocation = NOWHERE
    """The user's file that was imported under the name of a module of the standard library or of a package, if the
    exception came from that import, or named what the file lacks."""
    arrays: list[LineArrays] = field(default_factory=list)
    """Arrays that were alive when memory ran out, most bytes first; empty for every other end."""


KEEPS = 0.7
"""Share of the outer loop's seconds, and of its work with JAX, that an inner loop must hold to be chosen instead."""

_Key = TypeVar("_Key")


def hot_loop(seen: Iterable[tuple[tuple[_Key, ...], float, bool]]) -> _Key | None:
    """Return the program's hot loop, the same in the recorder, which times it, and in the readers of its recording:
    the innermost loop that holds most of the loop time and most of the work with JAX. So it is no loop inside a data
    loader, which does not call JAX, and not the loop over epochs around the loop over batches. None if JAX works in no
    loop.

    Each sample is (loops around a line, innermost first; seconds; whether JAX worked).
    """
    seconds: dict[_Key, float] = {}
    work: dict[_Key, float] = {}
    depth: dict[_Key, int] = {}
    for around, took, works in seen:
        for index, key in enumerate(around):
            seconds[key] = seconds.get(key, 0.0) + took
            depth[key] = max(depth.get(key, 0), index)
            if works:
                work[key] = work.get(key, 0.0) + took
    if not work:
        return None
    root = max(work, key=lambda key: (seconds[key], depth[key]))
    inside = [key for key in work if work[key] >= KEEPS * work[root] and seconds[key] >= KEEPS * seconds[root]]
    return min(inside, key=lambda key: (depth[key], seconds[key]))
