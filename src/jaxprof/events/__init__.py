"""The event types: the one language between engine, log, screens and reports.

Everything that happens is one stream of these frozen values. A session file is one header line and then one of them
a line, as JSON: `{"type": "phase_ended", "seq": 17, "run": "r2", "monotonic_seconds": 81.25, "phase": "compile",
"seconds": 0.038}`. Units are in the field names; `None` means unknown, or does not apply, and is never 0.

Standard library only: the engine imports this in the user's own environment. What can be derived from an event
(a median, a kernel table) is derived by whoever shows it, and is not sent.

History of the schema (a minor version adds types or optional fields, a major one changes a meaning):
1.0  the first.
1.1  programs: scripts and what is recorded of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.events.base import PHASES, SCHEMA_MAJOR, SCHEMA_MINOR, SERIES, STARTUP_PHASES, STATUSES, Event, Scalar
from jaxprof.lazy import lazy_names

if TYPE_CHECKING:
    from jaxprof.events.captures import (
        BuffersReported,
        CaptureTaken,
        CompilePasses,
        KernelsMeasured,
        StepsMeasured,
        TrustReported,
    )
    from jaxprof.events.common import EnvironmentRead, Heartbeat, LogLine, WarningRaised
    from jaxprof.events.programs import (
        CACHE_STATES,
        PROGRAM_STATES,
        REASONS,
        STAGES,
        ArraysCounted,
        CaptureWindow,
        Compiled,
        JaxImported,
        ProgramEnded,
        ProgramSampled,
        ProgramStarted,
        StageRunning,
        StepsCounted,
        TransfersSeen,
    )
    from jaxprof.events.runs import (
        CheckReported,
        CompileObserved,
        CostReported,
        DeviceReading,
        MemoryReported,
        PhaseEnded,
        PhaseStarted,
        ProgressMade,
        RunClosed,
        RunFinished,
        RunPlanned,
        SamplesTaken,
        SessionClosed,
        TextChunk,
        TextRecorded,
        WorkerStarted,
    )
    from jaxprof.events.wire import Header, encode, finite, run_number

    EVENT_TYPES: dict[str, type[Event]]
    """Every event type of this version, by its name in the log."""

_HOME = {
    **dict.fromkeys(
        ("BuffersReported", "CaptureTaken", "CompilePasses", "KernelsMeasured", "StepsMeasured", "TrustReported"),
        "captures",
    ),
    **dict.fromkeys(("EnvironmentRead", "Heartbeat", "LogLine", "WarningRaised"), "common"),
    **dict.fromkeys(
        (
            "CACHE_STATES",
            "PROGRAM_STATES",
            "REASONS",
            "STAGES",
            "ArraysCounted",
            "CaptureWindow",
            "Compiled",
            "JaxImported",
            "ProgramEnded",
            "ProgramSampled",
            "ProgramStarted",
            "StageRunning",
            "StepsCounted",
            "TransfersSeen",
        ),
        "programs",
    ),
    **dict.fromkeys(
        (
            "CheckReported",
            "CompileObserved",
            "CostReported",
            "DeviceReading",
            "MemoryReported",
            "PhaseEnded",
            "PhaseStarted",
            "ProgressMade",
            "RunClosed",
            "RunFinished",
            "RunPlanned",
            "SamplesTaken",
            "SessionClosed",
            "TextChunk",
            "TextRecorded",
            "WorkerStarted",
        ),
        "runs",
    ),
    **dict.fromkeys(
        ("Header", "encode", "finite", "run_number"),
        "wire",
    ),
}
"""Name → its module. A dataclass takes a millisecond to be made: a recorded program loads those that it needs."""


_load = lazy_names("jaxprof.events", _HOME)


def __getattr__(name: str) -> Any:
    """Loads a name on its first use, and keeps it: these are used at every event."""
    if name == "EVENT_TYPES":
        found: list[Any] = [_load(one) for one in _HOME]
        value: Any = {item.type: item for item in found if isinstance(item, type) and issubclass(item, Event)}
    else:
        value = _load(name)
    globals()[name] = value
    return value


__all__ = [
    "CACHE_STATES",
    "EVENT_TYPES",
    "PHASES",
    "PROGRAM_STATES",
    "REASONS",
    "SCHEMA_MAJOR",
    "SCHEMA_MINOR",
    "SERIES",
    "STAGES",
    "STARTUP_PHASES",
    "STATUSES",
    "ArraysCounted",
    "BuffersReported",
    "CaptureTaken",
    "CaptureWindow",
    "CheckReported",
    "CompileObserved",
    "CompilePasses",
    "Compiled",
    "CostReported",
    "DeviceReading",
    "EnvironmentRead",
    "Event",
    "Header",
    "Heartbeat",
    "JaxImported",
    "KernelsMeasured",
    "LogLine",
    "MemoryReported",
    "PhaseEnded",
    "PhaseStarted",
    "ProgramEnded",
    "ProgramSampled",
    "ProgramStarted",
    "ProgressMade",
    "RunClosed",
    "RunFinished",
    "RunPlanned",
    "SamplesTaken",
    "Scalar",
    "SessionClosed",
    "StageRunning",
    "StepsCounted",
    "StepsMeasured",
    "TextChunk",
    "TextRecorded",
    "TransfersSeen",
    "TrustReported",
    "WarningRaised",
    "WorkerStarted",
    "encode",
    "finite",
    "run_number",
]
