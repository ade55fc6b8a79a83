"""The fields that every event has, the values that several events use, and the events of runs of every kind, programs
included: environment, warnings, output, heartbeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxprof.light_dataclass import dataclass, field

SCHEMA_MAJOR = 1
SCHEMA_MINOR = 10

Scalar = bool | int | float | str

STARTUP_PHASES = ("import", "backend_init", "warm_up")
"""What a fresh process spends before its program starts; separate, so that `compile` is the program's own."""

PHASES = ("trace", "lower", "compile", "transfer_in", "first_run", "run", "transfer_out")
"""The phases of a run, in the order in which a call goes through them."""

STATUSES = ("ok", "failed", "cancelled", "crashed", "timed out")
"""How a run may end. `timed out`: past its hard cap without a sample, or silent for too long."""

SERIES = ("run", "dispatch", "pipelined", "transfer_in", "transfer_out", "alone", "settling")
"""Kinds of raw samples: a blocked call, the time until a call returned, one of many calls of which only the last is
awaited, and the two directions of copying. Of runs that take turns also blocked calls in one go, before any turn
(`alone`), and whole blocks that show how soon their calls settle (`settling`)."""


def unfinished(*, live: bool) -> str:
    """The status of what was started, and of which nobody has written the end."""
    return "running" if live else "interrupted"


def session_state(*, complete: bool, live: bool, reason: str) -> str:
    """What every view calls the state of a session: how it ended (`reason`) if that was not by its last run; else
    `complete`, `being written`, or `interrupted`."""
    if complete:
        return "complete" if reason in ("", "finished") else reason
    return "being written" if live else "interrupted"


FLAT: Mapping[str, bool] = {"flat": True}
"""Metadata of a field: its own fields replace it in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The fields that every event has."""

    type: ClassVar[str] = ""

    seq: int = 0
    """Position in the log, from 1; assigned by the one writer of the file."""
    run: str = ""
    """The run to which it belongs; empty for the session as a whole."""
    monotonic_seconds: float = 0.0
    """When it happened, on the machine's monotonic clock; the header relates that clock to the wall clock."""


_PARTS_KEPT = 2
"""How much is shown of a path outside the program's folder: the file and its folder, `flax/linear.py`."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of source. Without a file it is unknown, and false."""

    file: str = ""
    line: int | None = None
    function: str = ""
    """The enclosing function; empty if that is unknown."""

    def __bool__(self) -> bool:
        return bool(self.file)

    @property
    def text(self) -> str:
        """`/home/me/train.py:88`, the whole path."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def short(self, directory: str = "") -> str:
        """`train.py:88`: relative to the program's `directory`; for a file outside it, its last folder and its name."""
        from pathlib import PurePath  # the recorder, which shows no places, does without

        path = PurePath(self.file)
        if path.is_absolute():
            inside = directory and path.is_relative_to(directory)
            path = path.relative_to(directory) if inside else PurePath(*path.parts[-_PARTS_KEPT:])
        return str(path) if self.line is None else f"{path}:{self.line}"


NOWHERE = SourceLocation()
"""An unknown place."""


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
