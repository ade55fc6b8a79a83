"""The basis of all events: the fields that every event has, values that several events use, the events of runs of every
kind (environment, warnings, output, heartbeat), and the log's format (its header, and one event as a line of JSON).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from jaxprof.base.values import field, frozen

SCHEMA_MAJOR = 1
SCHEMA_MINOR = 0

Scalar = bool | int | float | str

DEFAULT_BUDGET_SECONDS = 2.0
DEFAULT_LAUNCHES = 3
"""Fresh processes for each run."""

STARTUP_PHASES = ("import", "backend_init", "warm_up")
"""What a fresh process does before its program starts; kept apart, so that `compile` is the program's own."""

PHASES = ("trace", "lower", "compile", "transfer_in", "first_run", "run", "transfer_out")
"""The phases of a run, in the order in which a call goes through them."""

SAMPLED_PHASES = ("transfer_in", "run", "transfer_out")
"""Phases that are sampled; their figure is the median of a call. All other phases happen once."""

STATUSES = ("ok", "failed", "cancelled", "crashed", "timed out")
"""How a run may end. `timed out`: it reached its hard cap without a sample, or was silent for too long."""

SERIES = ("run", "dispatch", "pipelined", "transfer_in", "transfer_out", "alone", "settling")
"""Kinds of raw samples: a blocked call, the time until a call returned, one of many calls of which only the last is
awaited, and copies in the two directions. Runs that take turns have two more: blocked calls in one go before any turn
(`alone`), and whole blocks that show how soon their calls settle (`settling`)."""


def open_status(*, live: bool) -> str:
    """Return the status of something that was started, but has no recorded end."""
    return "running" if live else "interrupted"


def session_state(*, complete: bool, live: bool, reason: str) -> str:
    """Return the state of a session as every view names it: `complete`, `being written`, `interrupted`, or the `reason`
    for its end if that was not the end of its last run."""
    if complete:
        return "complete" if reason in ("", "finished") else reason
    return "being written" if live else "interrupted"


def with_failures(state: str, statuses: Iterable[str]) -> str:
    """Return the state of a session with the ends of its runs that failed: `complete, 1 crashed, 2 cancelled`."""
    counts = Counter(status for status in statuses if status in STATUSES and status != "ok")
    return ", ".join([state, *(f"{counts[status]} {status}" for status in STATUSES if counts[status])])


FLAT: Mapping[str, bool] = {"flat": True}
"""Metadata of a field whose own fields replace it in JSON."""


@frozen(kw_only=True)
class Event:
    """The fields that every event has."""

    type: ClassVar[str] = ""
    """Name in the log, which is that of the class: `run_planned` for `RunPlanned`."""
    seq: int = 0
    """Position in the log, from 1; assigned by the one writer of the file."""
    run: str = ""
    """Id of the run that the event belongs to; empty if it belongs to the whole session."""
    monotonic_seconds: float = 0.0
    """Time of the event on the machine's monotonic clock; the header relates that clock to the wall clock."""

    def __init_subclass__(cls) -> None:
        cls.type = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__)[1:]


_PARTS_KEPT = 2
"""Number of last parts shown of a path outside the program's folder: the folder and the file, `flax/linear.py`."""


@frozen
class SourceLocation:
    """A line of source. Without a file, the location is unknown and false."""

    file: str = ""
    line: int | None = None
    function: str = ""
    """The enclosing function; empty if unknown."""

    def __bool__(self) -> bool:
        return bool(self.file)

    @property
    def text(self) -> str:
        """The whole path with the line: `/home/me/train.py:88`."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def short(self, directory: str = "") -> str:
        """Return `train.py:88`: the path relative to `directory`, or the last folder and name of a file outside it."""
        from pathlib import PurePath  # not at the top: the recorder shows no locations

        path = PurePath(self.file)
        if path.is_absolute():
            inside = directory and path.is_relative_to(directory)
            path = path.relative_to(directory) if inside else PurePath(*path.parts[-_PARTS_KEPT:])
        return str(path) if self.line is None else f"{path}:{self.line}"


NOWHERE = SourceLocation()


@frozen(kw_only=True)
class EnvironmentRead(Event):
    """Versions, devices and settings that the engine's process found. An allow-list, never `os.environ`."""

    python: str
    numpy: str
    jax: str | None = None
    jaxlib: str | None = None
    devices: list[dict[str, Any]] = field(default_factory=list)
    """The devices that JAX sees: id, platform, kind, process, memory_limit_bytes, core_count, ..."""
    settings: dict[str, Scalar | None] = field(default_factory=dict)
    """Settings that change a measurement: x64, matmul precision, XLA_FLAGS, BLAS and its threads, preallocation."""


@frozen(kw_only=True)
class SourceFile:
    """A source file at the time when it ran."""

    file: str = ""
    """Absolute path."""
    digest: str = ""
    """SHA-256 of the contents, in hex."""


@frozen(kw_only=True)
class SourcesRead(Event):
    """The source files of a run, identified by their contents. A line of a file is shown only where the file has the
    same contents: whoever made the session knows all of it.

    These are digests of files, not of lines, because a short line (`PIN = "4711"`) can be guessed from its digest."""

    files: list[SourceFile] = field(default_factory=list)

    @classmethod
    def of(cls, digests: Mapping[str, str], run: str = "") -> SourcesRead:
        return cls(run=run, files=[SourceFile(file=file, digest=digest) for file, digest in digests.items()])


@frozen(kw_only=True)
class WarningRaised(Event):
    """A reason, with a hint, why the numbers mean less than they seem to, or something else."""

    code: str
    message: str = ""
    """Empty from an engine or a recorder: of code and `values`, `session.fold` makes the sentence."""
    advice: str = ""
    values: dict[str, str | int | float] = field(default_factory=dict)


@frozen(kw_only=True)
class LogLine(Event):
    """A line that the engine's process wrote to its stdout or stderr."""

    stream: str
    text: str


@frozen(kw_only=True)
class Heartbeat(Event):
    """The engine's process is alive, even during a long compile. Not written to the log.

    `run` is the run that the engine works on; empty while the engine waits for its client."""

    handled: list[int] = field(default_factory=list)
    """Signals that ask a recorded program to end, and that it handles itself by now."""
    since_seconds: float | None = None
    """Monotonic time at which a recorded program's last iteration ended; None before a few have."""
    usual_seconds: float = 0.0
    step: int | None = None
    """Number of that iteration of the hot loop; None if they are not numbered."""
    layout: dict[str, int] = field(default_factory=dict)
    """Where the Python of a recorded program keeps the frames of the main thread; sent once."""
    children_seconds: float = 0.0
    """CPU time of those child processes of a recorded program that have ended."""


TEXT_CHARACTERS = 64 * 1024
"""Limit for a text in an event, applied by the sender: a reader leaves out a line that is too long for it, and with the
last event of a run it would lose the run's end. Texts that must be complete go in chunks (`events.runs`)."""
_CHUNK = "text_chunk"


@frozen(kw_only=True)
class Header:
    """The first line of a session file."""

    format: str = "jaxprof"
    schema_major: int = SCHEMA_MAJOR
    schema_minor: int = SCHEMA_MINOR
    jaxprof: str = ""
    session: str = ""
    created: str = ""
    """Time of creation: UTC, ISO 8601 with a trailing Z."""
    host: str = ""
    process_index: int = 0
    process_count: int = 1
    job: str = ""
    """Launcher and job id of the job that this process belongs to, `slurm-1234.0`; empty if there is none."""
    command: list[str] = field(default_factory=list)
    """The command line, with `REDACTED` for what looked like a secret."""
    environment: dict[str, Any] = field(default_factory=dict)
    wall_seconds: float = 0.0
    """Unix time at the moment when the monotonic clock showed `monotonic_seconds`."""
    monotonic_seconds: float = 0.0


def encode(event: Event) -> bytes:
    """Return one line of JSON without its line break. Standard library only, for the engine's side of the pipe.

    Texts are cut at `TEXT_CHARACTERS`. Raises ValueError for NaN and infinity: a reader would turn them into null,
    which means unknown.
    """
    payload = {"type": event.type, **fields_of(event)}
    try:
        return encode_bounded(payload, cut=event.type != _CHUNK)
    except ValueError as error:
        raise ValueError(f"{event.type} holds a number that is not finite") from error


def encode_bounded(payload: Mapping[str, Any], *, cut: bool = True) -> bytes:
    """Return `payload` as JSON without a line break, its long texts cut. Raises ValueError for NaN and infinity."""
    text = _ENCODER.encode(payload)
    if cut and len(text) > TEXT_CHARACTERS:  # a shorter line holds no long text
        text = _ENCODER.encode(_shorten(payload))
    return text.encode("utf-8", "backslashreplace")


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT_CHARACTERS else f"{value[:TEXT_CHARACTERS]} …"
    if isinstance(value, Mapping):
        return {_shorten(name): _shorten(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shorten(inner) for inner in value]
    return _shorten(fields_of(value)) if is_dataclass(value) else value


def fields_of(row: object) -> dict[str, Any]:
    """Return the JSON form of an event or a row. Not `asdict`, which copies each number of each list."""
    values: dict[str, Any] = {}
    kind = type(row)
    layout = _layouts.get(kind)
    if layout is None:
        if not is_dataclass(kind):
            raise TypeError(f"{kind.__name__} cannot be part of an event")
        _layouts[kind] = layout = tuple((item.name, "flat" in item.metadata) for item in fields(kind))
    for name, flat in layout:
        if flat:
            values |= fields_of(getattr(row, name))
        else:
            values[name] = getattr(row, name)
    return values


_ENCODER = json.JSONEncoder(default=fields_of, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
_layouts: dict[type[Any], tuple[tuple[str, bool], ...]] = {}
"""Fields of a class, and whether those of their values take their place. A program waits for its events, and
`dataclasses.fields` is half of what the encoding of one takes."""


def finite(value: float | None) -> float | None:
    """Return `value`, or None (unknown) if it is NaN, infinite or None."""
    return value if value is not None and math.isfinite(value) else None
