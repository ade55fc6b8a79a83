"""The contents of a run's profile: kernels, steps, compiler passes, memory, and whether to trust it."""

from __future__ import annotations

from jaxprof.base.values import field, frozen
from jaxprof.events.base import Event


@frozen(kw_only=True)
class KernelLaunch:
    """How a GPU launched a kernel; None for what the profile does not report."""

    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int | None = None
    private_bytes: int | None = None
    group_bytes: int | None = None
    occupancy: float | None = None


@frozen(kw_only=True)
class KernelTimes:
    """Times of one HLO op on one device, over all its executions."""

    name: str
    device: str = ""
    module: str = ""
    program: str | None = None
    """Id of the program, as text because it may exceed the numbers that JSON readers can hold."""
    count: int = 0
    total_seconds: float = 0.0
    self_seconds: float = 0.0
    wall_seconds: float = 0.0
    median_seconds: float = 0.0
    minimum_seconds: float = 0.0
    maximum_seconds: float = 0.0
    kernels: tuple[str, ...] = ()
    """Names of the op's kernels on the device."""
    launch: KernelLaunch | None = None
    """Launch of the longest kernel; None if the profile does not report it."""


@frozen(kw_only=True)
class CopyTimes:
    """The copies in one direction on one device."""

    direction: str = "unknown"
    """`host to device`, `device to host`, `device to device`, `host to host`, `peer to peer`, `fill` or `unknown`."""
    device: str = ""
    count: int = 0
    total_seconds: float = 0.0
    bytes: int | None = None
    """Bytes of all copies together; None if one of them does not report its size."""


@frozen(kw_only=True)
class StepParts:
    """Seconds of a step by kind of activity; they add up to the step."""

    kernels: float = 0.0
    transfers: float = 0.0
    collectives_exposed: float = 0.0
    launch_gaps: float = 0.0
    idle: float = 0.0


@frozen(kw_only=True)
class StepTimes:
    """Times of one step on one device."""

    name: str = ""
    device: str = ""
    start_seconds: float
    seconds: float
    complete: bool = True
    """False if the profile began or ended within the step."""
    parts: StepParts
    collectives_overlapped_seconds: float = 0.0
    to_next: bool = True
    """False for the last of a device's `modules`: it ends with its own execution, not where the next one begins, so it
    is shorter than the others and cannot be compared with them."""


@frozen(kw_only=True)
class IdleCause:
    """What the host did while a device was idle."""

    cause: str
    """`compile`, `copy`, `wait` (for the device), `launch` (a program was called, but had not reached the device),
    `host` (the host's own work, whose name is known), or `unknown`."""
    seconds: float
    name: str = ""
    """Annotation or Python function that took most of the time; empty for causes other than `host`."""


@frozen(kw_only=True)
class StepsDevice:
    """Totals of one device over the whole profile."""

    device: str
    found_by: str = ""
    """How the steps were found, as in `StepsMeasured`; empty in a file that does not say."""
    steps: int | None = None
    """Number of steps, including those that are not listed."""
    span_seconds: float | None = None
    busy_seconds: float | None = None
    idle_seconds: float | None = None
    idle_causes: tuple[IdleCause, ...] = ()
    """Causes of the idle time within steps, longest first; empty if unknown."""


@frozen(kw_only=True)
class PassTimes:
    """A phase or pass of the compiler, with the passes inside it."""

    name: str
    stage: str = "other"
    seconds: float = 0.0
    self_seconds: float = 0.0
    """Seconds without `children`."""
    count: int = 1
    children: tuple[PassTimes, ...] = ()


@frozen(kw_only=True)
class TrustCheck:
    """One checked aspect of a capture."""

    code: str
    verdict: str = "unknown"
    """`good`, `doubt`, `bad` or `unknown`."""
    message: str = ""
    advice: str = ""


@frozen(kw_only=True)
class HeldBuffer:
    """A slot in the program's memory, described by one of the values that occupy it."""

    bytes: int
    kind: str = ""
    """`argument`, `output`, `temporary` or `constant`."""
    instruction: str = ""
    shape: str = ""
    op_name: str = ""
    file: str = ""
    line: int | None = None
    shared_with: int = 0
    """Number of other values that occupy the same slot at other times."""


@frozen(kw_only=True)
class CaptureTaken(Event):
    """A profile was recorded, or an existing one was read."""

    kind: str
    """`run` (steady calls), `compile`, `attribution` (a run with command buffers off) or `imported`."""
    platform: str = ""
    """Platform on which the profile's HLO ops ran: `cpu`, `gpu` or `tpu`; empty if it has none."""
    calls: int | None = None
    seconds_with: float | None = None
    """Median seconds per call while the profiler was on; the difference from the run's own median is the overhead."""
    wall_seconds: float | None = None
    """Time from the first to the last event of the profile."""
    events: int | None = None
    bytes: int | None = None
    """Size of the raw file."""
    path: str = ""
    """Path of the raw file; empty if it was not kept."""


@frozen(kw_only=True)
class KernelsMeasured(Event):
    """Times of HLO ops in a profile, one row for each op on each device."""

    kind: str
    """Kind of the capture, as in `CaptureTaken`."""
    calls: int | None = None
    """Calls of the program in the profile, from which times per call are derived."""
    rows: list[KernelTimes] = field(default_factory=list)
    transfers: list[CopyTimes] = field(default_factory=list)
    unattributed_seconds: dict[str, float] = field(default_factory=dict)
    """Seconds on each device that belong to no HLO op."""


@frozen(kw_only=True)
class StepsMeasured(Event):
    """Where the time of each step went; the parts of a step add up to the step."""

    found_by: str
    """How the steps of the first device were found: `annotation`, `modules` (executions of the program) or `whole`
    (neither: the profile as one step); `devices` has this for each device."""
    steps: list[StepTimes] = field(default_factory=list)
    devices: list[StepsDevice] = field(default_factory=list)


@frozen(kw_only=True)
class ModuleCompiles:
    """Compiles of all modules of one name."""

    module: str = ""
    """Empty if no pass of the compiler names it."""
    count: int
    seconds: float
    """Total of the compiles; several may run at once."""


@frozen(kw_only=True)
class CompilePasses(Event):
    """Where the time of a compile went: XLA's phases and passes."""

    tree: PassTimes
    modules: tuple[ModuleCompiles, ...] = ()
    """What was compiled, longest first; empty in a file that does not say."""
    idle_seconds: float | None = None
    """Time within the compiles in which no device ran anything; None if no device is recorded, or a file does not
    say."""


@frozen(kw_only=True)
class TrustReported(Event):
    """Whether a capture can be trusted: one row for each checked aspect."""

    kind: str
    rows: list[TrustCheck] = field(default_factory=list)


@frozen(kw_only=True)
class BuffersReported(Event):
    """The parts of the program's peak memory."""

    source: str
    """`buffer assignment` (the executable's own), `memory analysis` (sums only) or `request` (only `asked_bytes`)."""
    peak_bytes: int | None = None
    """Largest number of bytes that the program holds at once; the sum of `parts`."""
    parts: dict[str, int] = field(default_factory=dict)
    """Bytes of each kind: `argument`, `output`, `temporary`, `constant`."""
    buffers: list[HeldBuffer] = field(default_factory=list)
    """Buffers, largest first."""
    live_bytes: list[int] = field(default_factory=list)
    """Live bytes after each instruction of the schedule, thinned to at most 4096 points."""
    asked_bytes: int | None = None
    """Requested bytes, after an out-of-memory failure."""
    free_bytes: int | None = None
    """Bytes that were free for them, beside the arguments; None if that is unknown."""
