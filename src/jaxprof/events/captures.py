"""What a profile of a run says: kernels, steps, passes, memory, and whether to trust it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxprof.events.base import Event


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
