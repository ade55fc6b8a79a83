"""The events of runs of every kind, programs included: environment, warnings, output, heartbeat.

Separate from `runs`, so that a recorded program loads only these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxprof.events.base import Event, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRead(Event):
    """What the engine's process found around it: versions, devices, settings. An allow-list, never `os.environ`."""

    type: ClassVar[str] = "environment_read"

    python: str
    numpy: str
    jax: str | None = None
    jaxlib: str | None = None
    devices: list[dict[str, Any]] = field(default_factory=list)
    """One for each device that JAX sees: id, platform, kind, process, memory_limit_bytes, core_count, ..."""
    settings: dict[str, Scalar | None] = field(default_factory=dict)
    """Settings that change a measurement: x64, matmul precision, XLA_FLAGS, BLAS and its threads, preallocation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A source file as it was while it ran."""

    file: str = ""
    """The whole path."""
    digest: str = ""
    """SHA-256 of its bytes, in hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesRead(Event):
    """The source files that a run names, by their contents: a checkout gives an unchanged file a new time."""

    type: ClassVar[str] = "sources_read"

    files: list[SourceFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningRaised(Event):
    """Something that makes the numbers mean less, or something else, than they seem to; with a hint."""

    type: ClassVar[str] = "warning_raised"

    code: str
    message: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine(Event):
    """A line that the engine's process wrote to its stdout or stderr."""

    type: ClassVar[str] = "log_line"

    stream: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Event):
    """The engine's process is alive, even during a long compile. Not written to the log.

    `run` is what it works at; an engine that waits for its client names none."""

    type: ClassVar[str] = "heartbeat"
