"""The event types: the common language of engine, log, screens and reports.

Everything that happens is one stream of these frozen values. A session file is a header line, then one event per
line, as JSON: `{"type": "phase_ended", "seq": 17, "run": "r2", "monotonic_seconds": 81.25, "phase": "compile",
"seconds": 0.038}`. Units are in the field names; `None` means unknown, or does not apply, and is never 0.

Standard library only: the engine imports this in the user's own environment. Whatever can be derived from an event
(a median, a kernel table) is derived by the code that shows it, and is not sent.

History of the schema (a minor version adds types or optional fields, a major one changes a meaning):
1.0  First version.
1.1  Programs: scripts, and what is recorded of them.
1.2  Compilations: arguments from NumPy, unused donations, factories, cleared caches. Processes: the index in the job,
     once it is known.
1.3  Planned runs: all options (check, capture, constants, cache, seed).
1.4  Measuring in turns: launches, blocks of samples, the side of a run in a comparison.
1.5  Comparisons: their sides, and how far the results differ.
1.6  Planned runs: arguments that are donated as a trial, and arguments that are made anew for each call.
1.7  Header: the job. Planned runs: the batch, and the expected duration.
1.8  Programs: the iterations of the hot loop, pauses of the process. Sample windows: how long the device blocked the
     main thread.
1.9  Runs in turns: the first call of a block, the series `alone` and `settling`. Programs: the exception that ended
     them.
1.10 Programs: the lines that name the debug settings, times in which others had the processor. Sampled lines: the
     library between the line and the compiled function, and kinds for what no stack shows (`inline`, `unseen`,
     `contended`, `preempted`). Sample windows: how long the main thread waited for a processor. Programs: the time of
     an empty call, and which compiled programs call Python. Runs: the source files, by their contents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.events.base import (
    NOWHERE,
    PHASES,
    SCHEMA_MAJOR,
    SCHEMA_MINOR,
    SERIES,
    STARTUP_PHASES,
    STATUSES,
    EnvironmentRead,
    Event,
    Header,
    Heartbeat,
    LogLine,
    Scalar,
    SourceFile,
    SourceLocation,
    SourcesRead,
    WarningRaised,
    encode,
    finite,
    run_number,
)
from jaxprof.lazy import lazy_names

if TYPE_CHECKING:
    from jaxprof.events.captures import *  # noqa: F403
    from jaxprof.events.programs import *  # noqa: F403
    from jaxprof.events.runs import *  # noqa: F403

_NAMES = {
    "captures": (
        "BuffersReported", "CaptureTaken", "CompilePasses", "CopyTimes", "HeldBuffer", "IdleCause",
        "KernelLaunch", "KernelTimes", "KernelsMeasured", "PassTimes", "StepParts", "StepTimes",
        "StepsDevice", "StepsMeasured", "TrustCheck", "TrustReported",
    ),
    "programs": (
        "ArraysCounted", "CACHE_STATES", "CaptureWindow", "ClosureChange", "Compiled", "CopiesSeen",
        "EmptyCallTimed", "JaxImported", "LoopSite", "Note", "PASSES_FOUND_BY", "PROGRAM_STATES", "ProcessIdentified",
        "ProgramArray", "ProgramEnded", "ProgramSampled", "ProgramStarted", "ProgramStopped", "REASONS",
        "STAGES", "STOP_WITNESSES", "SampledLine", "SignatureLeaf", "StageRunning", "StepsCounted",
        "StepsTaken", "TimedLine", "TransfersSeen",
    ),
    "runs": (
        "COUNTED_BY_XLA", "CheckReported", "ComparisonPlanned", "CompileObserved", "CostReported",
        "DEFAULT_BUDGET_SECONDS", "DEFAULT_LAUNCHES", "DeviceReading", "ESTIMATED_BY", "MemoryReported",
        "PhaseEnded", "PhaseStarted", "ProgressMade", "ResultsCompared", "RevisionRead", "RunClosed",
        "RunFinished", "RunPlanned", "RunSpec", "SamplesTaken", "SessionClosed", "SideSpec", "TextChunk",
        "TextRecorded", "TurnAwaited", "WorkerStarted",
    ),
}  # fmt: skip
"""Names by module. Making a dataclass takes up to a millisecond, so a process loads only those that it needs."""
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_load = lazy_names("jaxprof.events", _HOME)

if not TYPE_CHECKING:  # a wrong name is an error for a type checker

    def __getattr__(name: str) -> Any:
        """Load a name on its first use, and keep it: these names are used at every event."""
        value = _load(name)
        globals()[name] = value
        return value


def event_type(name: str) -> type[Event] | None:
    """Return the type of the event called `name` in the log (`RunPlanned` for `run_planned`), or None if this version
    has none."""
    class_name = "".join(word.capitalize() for word in name.split("_"))
    value = _load(class_name) if class_name in _HOME else globals().get(class_name)
    return value if isinstance(value, type) and issubclass(value, Event) and value.type == name else None


__all__ = [
    "NOWHERE",
    "PHASES",
    "SCHEMA_MAJOR",
    "SCHEMA_MINOR",
    "SERIES",
    "STARTUP_PHASES",
    "STATUSES",
    "EnvironmentRead",
    "Event",
    "Header",
    "Heartbeat",
    "LogLine",
    "Scalar",
    "SourceFile",
    "SourceLocation",
    "SourcesRead",
    "WarningRaised",
    "encode",
    "event_type",
    "finite",
    "run_number",
    *_HOME,
]
