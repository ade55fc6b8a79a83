"""The event types: the one language between engine, log, screens and reports.

Everything that happens is one stream of these frozen values. A session file is a header line, then an event per
line, as JSON: `{"type": "phase_ended", "seq": 17, "run": "r2", "monotonic_seconds": 81.25, "phase": "compile",
"seconds": 0.038}`. Units are in the field names; `None` means unknown, or does not apply, and is never 0.

Standard library only: the engine imports this in the user's own environment. What can be derived from an event
(a median, a kernel table) is derived by whoever shows it, and is not sent.

History of the schema (a minor version adds types or optional fields, a major one changes a meaning):
1.0  the first.
1.1  programs: scripts and what is recorded of them.
1.2  of a compilation: arguments from NumPy, donations without use, factories, cleared caches. Which process of a job
     it is, once that is known.
1.3  of a planned run: all its options (check, capture, constants, cache, seed).
1.4  measuring in turns: launches, blocks of samples, the side of a run in a comparison.
1.5  comparisons: what their sides are, and how far their results are apart.
1.6  of a planned run: arguments that are donated to try it, and made anew for each call.
1.7  of the header: the job. Of a planned run: the batch that it is of, and how long it was expected to take.
1.8  of a program: the passes of its hot loop; when it was stopped; of a sample window, how long the main thread was
     blocked by its device.
1.9  of runs in turns: the first call of a block, and the series `alone` and `settling`. Of a program: the exception
     that ended it.
1.10 of a program: the lines that name its debug settings; times in which others had its processor. Of a sampled
     line: the library that calls from there, and kinds for what no stack shows (`inline`, `unseen`, `contended`).
     Of a run: its source files, by their contents.
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
        "JaxImported", "LoopSite", "Note", "PASSES_FOUND_BY", "PROGRAM_STATES", "ProcessIdentified",
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
"""By module. Making a dataclass takes up to a millisecond, so a process loads only those that it needs."""
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_load = lazy_names("jaxprof.events", _HOME)

if not TYPE_CHECKING:  # a wrong name is an error for a type checker

    def __getattr__(name: str) -> Any:
        """Loads a name on its first use, and keeps it: these are used at every event."""
        value = _load(name)
        globals()[name] = value
        return value


def event_type(name: str) -> type[Event] | None:
    """The type of the event called `name` in the log: `RunPlanned` for `run_planned`. None if this version has none."""
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
