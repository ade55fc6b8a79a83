"""The life of a run: planned, phase by phase, samples, texts, its end; and the comparison that it is a side of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jaxprof.base.values import field, frozen
from jaxprof.events.base import DEFAULT_BUDGET_SECONDS, FLAT, NOWHERE, Event, Scalar, SourceLocation

if TYPE_CHECKING:
    from jaxprof.base.errors import JaxprofError

COUNTED_BY_XLA = "compiled.cost_analysis"
ESTIMATED_BY = "workload's own estimate"
"""Value of `CostReported.source` for the estimate of a workload; `COUNTED_BY_XLA` is that for XLA's cost analysis."""


@frozen(kw_only=True)
class RunSpec:
    """Which variant of which workload is run, where, and how it is measured."""

    workload: str
    variant: str
    how: str
    """How the variant is executed: `numpy`, `eager` (op by op), `jit`; `compile`: lowered and compiled, not run;
    `imported`: read from a profile; `program`: a program of the user's, recorded while it runs."""
    device: str
    """Device as `platform:number`, e.g. `cpu:0`, `cuda:1`."""
    parameters: dict[str, Scalar] = field(default_factory=dict)
    preset: str = ""
    baseline: str = ""
    """Id of the run that this one is compared with; empty for the baseline itself."""
    budget_seconds: float | None = None
    """Seconds for which the steady run may be sampled; None if nothing is timed."""
    max_seconds: float | None = None
    """Limit for the whole run in seconds, from the end of start-up; None if there is none."""
    precision: str = ""
    """The requested matrix precision: empty for JAX's default, or `highest`."""
    target: str = ""
    """The user's function as `/path/file.py:function` or `module:function`, so that it can be run again from a log.
    Empty for a built-in workload, and for a function that cannot be addressed by name."""
    arguments: tuple[str, ...] = ()
    """The arguments of a user's function without declared inputs, as `--arg` takes them: `f32[1024,1024]`."""
    inputs_from: str = ""
    """Target whose inputs the function is called with (the baseline's); empty if it declares its own."""
    argv: tuple[str, ...] = ()
    """`sys.argv` while the user's file is imported, as at the start of the program; empty for the file alone."""
    keep_constants: bool = False
    compilation_cache: bool = False
    """Whether the user's persistent compilation cache stays on."""
    check: bool = True
    capture: bool = True
    """Whether some calls, and one compile, are repeated under the profiler after the timing."""
    seed: int = 0
    launches: int = 1
    """How many fresh processes measure the run; they share the budget."""
    side: str = ""
    """Name of the run's side in a comparison: `A`, `B`... Empty for all other runs."""
    trial: str = ""
    """Name of the change to the program that the run tries (`findings.trials`); empty for none."""
    trial_at: SourceLocation = NOWHERE
    """Line whose calls are changed; without a file, all calls."""
    until_half_width: float | None = None
    """Stop starting launches once half the 95 % interval is this narrow, as a share; None to make all."""

    @property
    def timing_seconds(self) -> float:
        """Seconds for which the steady run is sampled."""
        return DEFAULT_BUDGET_SECONDS if self.budget_seconds is None else self.budget_seconds


@frozen(kw_only=True)
class RunPlanned(Event):
    """A run joined the queue. In the log, the fields of `spec` are fields of the event."""

    spec: RunSpec = field(metadata=FLAT)
    batch: int | None = None
    """Number of the batch, from 1: runs that joined the queue together share it. None for a run that joined no
    queue."""


@frozen(kw_only=True)
class WorkerStarted(Event):
    pid: int
    python: str
    """Path of the interpreter."""
    launch: int = 1
    """Number of the launch, from 1: a run of several launches has a fresh process for each."""


@frozen(kw_only=True)
class RevisionRead(Event):
    """The git revision of the user's file that a run measures, read when the run began."""

    repository: str
    commit: str
    """Abbreviated hash of HEAD."""
    dirty: bool | None = None
    """Whether tracked files had changes that were not committed; None if git took too long to answer."""


@frozen(kw_only=True)
class PhaseStarted(Event):
    """A phase began; screens let its clock tick from here."""

    phase: str
    """One of `STARTUP_PHASES` or `PHASES`, or another word for what the engine does (`inputs`, `check`,
    `dispatch`)."""


@frozen(kw_only=True)
class PhaseEnded(Event):
    """A phase ended. For a sampled phase (`run`, transfers), `seconds` is the duration of the whole sampling."""

    phase: str
    seconds: float | None
    bytes: int | None = None
    """Bytes moved by one call of a transfer phase."""
    zero_copy: bool | None = None
    """True if no byte was moved because host and device share the buffer; None if the phase moves no data."""
    page_faults: float | None = None
    """Minor page faults of a call of the steady run, in all threads; None in other phases, and if not counted."""
    kernel_share: float | None = None
    """Share of the CPU time of these calls that was spent in the operating system's kernel."""
    note: str = ""


@frozen(kw_only=True)
class SamplesTaken(Event):
    """Raw samples in seconds a call: each is the time of `calls_per_sample` calls, divided by their number."""

    series: str
    """One of `SERIES`."""
    seconds: list[float]
    calls_per_sample: int = 1
    block: int | None = None
    """Number of the turn, where runs take turns: the blocks of all runs of a session are numbered in one order."""
    first_seconds: float | None = None
    """Seconds of the block's first call, after the pause, if it is not among `seconds`, which have settled."""


@frozen(kw_only=True)
class TurnAwaited(Event):
    """The engine is warm and waits for its turn. Not written to the log."""

    call_seconds: float
    """Duration of one sample in seconds."""


@frozen(kw_only=True)
class ProgressMade(Event):
    """Progress of the current run; `fraction` is the used share of its time budget, from 0 to 1."""

    fraction: float | None = None
    remaining_seconds: float | None = None
    note: str = ""


@frozen(kw_only=True)
class TextRecorded(Event):
    """A text of the run: `jaxpr`, `stablehlo`, `hlo`, `timeline`... A long text is stored once, by content hash."""

    name: str
    text: str = ""
    digest: str = ""
    """SHA-256 of the UTF-8 text in hex, if the text is in `TextChunk` events; `text` is empty then."""
    bytes: int = 0
    """Length of the whole text in UTF-8 bytes."""


@frozen(kw_only=True)
class TextChunk(Event):
    """One piece of a long text: zlib-compressed, base64, at most 256 KiB. Decoded only when the text is shown."""

    digest: str
    index: int
    count: int
    data: str


@frozen(kw_only=True)
class CostReported(Event):
    """The cost of one call from a source other than the client: the estimate of a workload that is not compiled as a
    whole. Older versions wrote XLA's cost analysis here, which counts the body of a loop once; readers ignore it."""

    flops: float | None = None
    bytes_accessed: float | None = None
    transcendentals: float | None = None
    source: str = COUNTED_BY_XLA


@frozen(kw_only=True)
class MemoryReported(Event):
    """Memory of the compiled program (`memory_analysis`), and of the allocator (accelerators only)."""

    argument_bytes: int | None = None
    output_bytes: int | None = None
    temporary_bytes: int | None = None
    alias_bytes: int | None = None
    generated_code_bytes: int | None = None
    peak_bytes: int | None = None
    """XLA's own estimate of the program's peak memory."""
    allocator_peak_bytes: int | None = None
    """Peak of the device allocator in this process, measured; None on CPU."""
    allocator_limit_bytes: int | None = None


@frozen(kw_only=True)
class CheckReported(Event):
    """Whether the result of a run is correct."""

    passed: bool | None
    """None if the result could not be checked; `note` says why."""
    max_relative_error: float | None = None
    """Largest error of an array, divided by the array's largest magnitude."""
    tolerance: float | None = None
    """Relative tolerance of each number; `workloads.check` defines what it is relative to."""
    against: str = ""
    """Reference that the result was compared with: `numpy twin`, `known answer`, `finite differences`."""
    precision: str = ""
    """Effective precision of matrix products, if there are any: `float32`, `tf32`, `bfloat16 passes`."""
    note: str = ""
    elements: int | None = None
    """Count of numbers in the expected result; None if they were not compared one by one."""
    wrong_elements: int | None = None
    worst_at: str = ""
    """Position of the largest error, `['w'][3, 5]`; empty for a single number, and if all are equal."""
    worst_got: str = ""
    """The wrong number as text, because it may be NaN, complex, or anything else; empty if all are equal."""
    worst_expected: str = ""
    unstable_elements: int | None = None
    """How many numbers of the expected result are as far off once its inputs differ by their rounding; only where that
    is why a result beyond the tolerance is not called wrong."""


@frozen(kw_only=True)
class CompileObserved(Event):
    """One stage of one compilation that JAX announced; op-by-op variants have many."""

    function: str
    stage: str
    """`trace`, `lower` or `compile`."""
    seconds: float


@frozen(kw_only=True)
class DeviceReading(Event):
    """One live reading of one device, or several folded into one; None for values that the device does not report."""

    device: str
    count: int = 1
    """Number of readings that were folded: use, power, clock and load are their means, memory, temperature and errors
    their maxima; all else is the last one's, as is the time."""
    utilisation: float | None = None
    """Share of the time in which the device was busy, from 0 to 1."""
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    temperature_celsius: float | None = None
    clock_hertz: float | None = None
    clock_limit_hertz: float | None = None
    load_average: float | None = None
    core_utilisation: list[float] = field(default_factory=list)
    """CPU only: the share of each core that this process may use."""
    throttle_reasons: list[str] = field(default_factory=list)
    ecc_errors: int | None = None
    """Errors in its memory that ECC could not correct since the driver was loaded."""
    fault: str = ""
    """Why it does not work at all: `fell off the bus`."""
    processes: list[dict[str, Scalar | None]] = field(default_factory=list)
    """Processes that use the device: pid, name, user, memory_bytes."""


@frozen(kw_only=True)
class RunFinished(Event):
    """The engine's final event of a run."""

    status: str
    """`ok`, `failed`, `cancelled` or `timed out`; without this event, the client reports `crashed`."""
    error: str = ""
    advice: str = ""
    traceback: str = ""
    out_of_memory: bool = False
    """Whether the run failed because the host or the device had too little free memory."""

    @classmethod
    def of(cls, why: JaxprofError, status: str = "failed", *, run: str = "") -> RunFinished:
        return cls(run=run, status=status, error=why.what, advice=why.hint)


@frozen(kw_only=True)
class RunClosed(Event):
    """Closes a run in the log with its summary, so that listing sessions does not require folding them."""

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
    spent: dict[str, float] = field(default_factory=dict)
    """Seconds of a program by state, as far as it was sampled; empty for other runs."""

    @classmethod
    def of(cls, run: str, spec: RunSpec, finished: RunFinished, **figures: Any) -> RunClosed:
        """Return the summary of a run of `spec` that has ended; `figures`: the other fields."""
        return cls(
            run=run,
            workload=spec.workload,
            variant=spec.variant,
            device=spec.device,
            status=finished.status,
            error=finished.error,
            advice=finished.advice,
            **figures,
        )


@frozen(kw_only=True)
class SessionClosed(Event):
    """The writer ended normally; a session without this event was interrupted, or is still being written."""

    reason: str = "finished"
    """`finished`, `interrupted`, or the name of the signal."""


@frozen(kw_only=True)
class SideSpec:
    """What distinguishes one side of a comparison, in addition to its run's own spec."""

    label: str
    """`A`, `B`..., as in `RunSpec.side`."""
    title: str
    """Title of the side for readers: `train.py:step at HEAD~1 (19789fa)`."""
    python: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables that were set for the side."""
    precision: str = ""
    """Requested matrix precision; empty if none was requested."""
    revision: str = ""
    """Requested git revision, `HEAD~1`; empty for the files on disk."""
    commit: str = ""
    """Abbreviated hash of the side's commit, with `--git`; for the files on disk, that of HEAD."""
    repository: str = ""
    dirty: bool | None = None
    """Whether the side's files differ from `commit`; None without `--git`."""
    finding: str = ""
    """Code of the finding that proposes the change that the side tries; empty for none."""


@frozen(kw_only=True)
class ComparisonPlanned(Event):
    """A comparison was planned. `run` is the run of the first side, A; the other sides' runs have it as baseline."""

    sides: list[SideSpec] = field(default_factory=list)
    """The sides in order: A, B..."""
    margin: float
    """Two sides within this share of each other are called the same."""
    group_seconds: float | None = None
    """Seconds for which all sides together may be measured; None for as long as their launches take."""
    inputs: list[str] = field(default_factory=list)
    """Dtype and shape of each array that all sides are called with."""
    same_inputs: bool = False
    """Whether the values of these arrays are the same for all sides, too."""
    notes: list[str] = field(default_factory=list)
    """Differences between the sides, in words."""


@frozen(kw_only=True)
class TrialReached(Event):
    """The change that a run tries has reached its program."""

    lines: list[SourceLocation] = field(default_factory=list)
    """Lines whose calls were changed; empty for a change of the whole program."""


@frozen(kw_only=True)
class RemedyTried(Event):
    """A program that ran out of memory was compiled once more with a change that needs less, and not run."""

    remedy: str
    """`donate`, `checkpoint_scan`, `checkpoint`, `half` or `bfloat16`."""
    subject: str = ""
    """Names of the arguments or of the function that the change is about."""
    location: SourceLocation = NOWHERE
    """Line of the function or the loop."""
    size: int | None = None
    """Rows that are left of a halved argument."""
    peak_bytes: int = 0
    """Memory that the program needs then, as XLA reports it, and the part of it that no argument and no result is."""
    temporary_bytes: int | None = None


@frozen(kw_only=True)
class ResultsCompared(Event):
    """How far the result of a side is from its baseline's, array by array."""

    alike: bool
    """Whether the two have the same arrays: number, shapes and dtypes."""
    agree: bool
    """Whether the results differ by no more than two ways to compute the same thing do."""
    relative: float | None = None
    """The largest error, divided by the largest magnitude of its array. None if the arrays are not alike, and if one
    number is NaN or infinite and the other is not."""
    where: str = ""
    """The array with the largest error, if there are several arrays."""
    note: str = ""
    """What is not alike, or why nothing could be compared."""

    @property
    def equal(self) -> bool:
        """Whether the two results are equal number by number."""
        return self.alike and self.relative == 0

    @property
    def how_far(self) -> str:
        """The distance of two results that are alike, as text: `by 3.0e-02 in ['w']`."""
        where = f" in {self.where}" if self.where else ""
        return f"where one of them is not finite{where}" if self.relative is None else f"by {self.relative:.1e}{where}"


INLINE_BYTES = 64 * 1024
"""Size of the longest text that its event holds. Of a longer one, such as the megabytes of an HLO module, the log keeps
zlib-compressed base64 chunks, once for each content: the runs of a session have many texts, some of them equal."""
CHUNK_CHARACTERS = 256 * 1024
"""Largest number of base64 characters in one chunk."""


def in_pieces(event: Event) -> Iterator[Event]:
    """Yield `event`; for a long text, its chunks and the event that names them. The maker of a text splits it, so that
    no reader of events meets a line as long as a module."""
    if isinstance(event, TextRecorded) and event.text:
        yield from split(event.name, event.text, event.run, event.monotonic_seconds)
    else:
        yield event


def split(name: str, text: str, run: str = "", monotonic_seconds: float = 0.0) -> Iterator[TextChunk | TextRecorded]:
    """Yield the events that record `text`: one event, or its chunks and then the event that names them."""
    raw = text.encode("utf-8", "backslashreplace")
    if len(raw) <= INLINE_BYTES:
        yield TextRecorded(run=run, monotonic_seconds=monotonic_seconds, name=name, text=text, bytes=len(raw))
        return
    import base64
    import hashlib
    import zlib

    digest = hashlib.sha256(raw).hexdigest()
    data = base64.b64encode(zlib.compress(raw, 6)).decode("ascii")
    pieces = [data[start : start + CHUNK_CHARACTERS] for start in range(0, len(data), CHUNK_CHARACTERS)]
    for index, piece in enumerate(pieces):
        yield TextChunk(
            run=run,
            monotonic_seconds=monotonic_seconds,
            digest=digest,
            index=index,
            count=len(pieces),
            data=piece,
        )
    yield TextRecorded(run=run, monotonic_seconds=monotonic_seconds, name=name, digest=digest, bytes=len(raw))
