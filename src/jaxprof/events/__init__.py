"""The event types: the common language of engine, log, screens and reports.

Everything that happens is one stream of these frozen values. A session file is a header line, then one event per
line, as JSON: `{"type": "phase_ended", "seq": 17, "run": "r2", "monotonic_seconds": 81.25, "phase": "compile",
"seconds": 0.038}`. Units are in the field names; `None` means unknown, or does not apply, and is never 0.

Standard library only: the engine imports this in the user's own environment. Whatever can be derived from an event
(a median, a kernel table) is derived by the code that shows it, and is not sent.

A minor version of the schema adds types or optional fields, a major one changes a meaning; docs/sessions.md has its
history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.base import lazy_names
from jaxprof.events.base import Event as Event

if TYPE_CHECKING:
    from jaxprof.events.base import *  # noqa: F403
    from jaxprof.events.captures import *  # noqa: F403
    from jaxprof.events.programs import *  # noqa: F403
    from jaxprof.events.runs import *  # noqa: F403

_NAMES = {
    "base": (
        "DEFAULT_BUDGET_SECONDS", "DEFAULT_LAUNCHES", "EnvironmentRead", "Event", "Header", "Heartbeat", "LogLine",
        "NOWHERE", "PHASES", "SAMPLED_PHASES", "SCHEMA_MAJOR", "SCHEMA_MINOR", "SERIES", "STARTUP_PHASES", "STATUSES",
        "Scalar", "SourceFile", "SourceLocation", "SourcesRead", "WarningRaised", "encode", "finite",
    ),
    "captures": (
        "BuffersReported", "CaptureTaken", "CompilePasses", "CopyTimes", "HeldBuffer", "IdleCause",
        "KernelLaunch", "KernelTimes", "KernelsMeasured", "ModuleCompiles", "PassTimes", "StepParts", "StepTimes",
        "StepsDevice", "StepsMeasured", "TrustCheck", "TrustReported",
    ),
    "programs": (
        "ArraysCounted", "CACHE_STATES", "CaptureWindow", "ClosureChange", "CompileReason", "Compiled", "CopiesSeen",
        "DIFFERENCES", "EmptyCallTimed", "ITERATIONS_FOUND_BY", "JaxImported", "LineArrays", "LineOperations",
        "LoopSite", "Note", "PROGRAM_STATES", "ProcessIdentified", "ProgramArray", "ProgramEnded", "ProgramSampled",
        "ProgramStarted", "ProgramStopped", "REASONS", "REASON_KINDS", "STAGES", "STOP_UNSURE_SECONDS",
        "STOP_WITNESSES", "SampledLine", "SignatureLeaf", "SilenceSeen", "StageRunning", "StandstillSeen",
        "StatementTime", "StepsCounted", "StepsTaken", "SystemWait", "ThreadStack", "ThreadTime", "TimedLine",
        "TransfersSeen", "WINDOW_FOLDER",
    ),
    "runs": (
        "COUNTED_BY_XLA", "CheckReported", "ComparisonPlanned", "CompileObserved", "CostReported",
        "DeviceReading", "ESTIMATED_BY", "MemoryReported", "PhaseEnded", "PhaseStarted", "ProgressMade",
        "RemedyTried", "ResultsCompared", "RevisionRead", "RunClosed", "RunFinished", "RunPlanned", "RunSpec",
        "SamplesTaken", "SessionClosed", "SideSpec", "TextChunk", "TextRecorded", "TrialReached", "TurnAwaited",
        "WorkerStarted",
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
    """Return the type of the event called `name` (`RunPlanned` for `run_planned`); None if this version has none."""
    class_name = "".join(word.capitalize() for word in name.split("_"))
    value = _load(class_name) if class_name in _HOME else None
    return value if isinstance(value, type) and issubclass(value, Event) and value.type == name else None


__all__ = ["event_type", *_HOME]
