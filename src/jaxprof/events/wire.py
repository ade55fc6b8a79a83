"""The log's format: its header, and one event as a line of JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from jaxprof.events.base import SCHEMA_MAJOR, SCHEMA_MINOR, Event
from jaxprof.light_dataclass import dataclass, field

TEXT_CHARACTERS: Final = 64 * 1024
"""Of a text in an event, kept by whoever sends it: a line that is too long for its reader would be left out whole, and
with a run's last event its end. Longer texts that have to be whole go in chunks (`session.texts`)."""
_CHUNK: Final = "text_chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a session file."""

    format: str = "jaxprof"
    schema_major: int = SCHEMA_MAJOR
    schema_minor: int = SCHEMA_MINOR
    jaxprof: str = ""
    session: str = ""
    created: str = ""
    """UTC, ISO 8601 with a trailing Z."""
    host: str = ""
    process_index: int = 0
    process_count: int = 1
    job: str = ""
    """The launcher and its id of the job of which this is a process, `slurm-1234.0`; empty if there is none."""
    command: list[str] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    wall_seconds: float = 0.0
    """Unix time at the moment when the monotonic clock showed `monotonic_seconds`."""
    monotonic_seconds: float = 0.0


def encode(event: Event) -> bytes:
    """One line of JSON without its line break. Standard library only, for the engine's side of the pipe.

    Texts are cut at `TEXT_CHARACTERS`. Raises ValueError for NaN and infinity: a reader would turn them into null,
    which means unknown.
    """
    payload = {"type": event.type, **fields_of(event)}
    try:
        return encode_bounded(payload, cut=event.type != _CHUNK)
    except ValueError as error:
        raise ValueError(f"{event.type} holds a number that is not finite") from error


def encode_bounded(payload: Mapping[str, Any], *, cut: bool = True) -> bytes:
    """`payload` as JSON without a line break, its long texts cut. Raises ValueError for NaN and infinity."""
    text = json.dumps(payload, default=fields_of, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    if cut and len(text) > TEXT_CHARACTERS:  # a shorter line holds no long text
        text = json.dumps(_cut(payload), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT_CHARACTERS else f"{value[:TEXT_CHARACTERS]} …"
    if isinstance(value, Mapping):
        return {_cut(name): _cut(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(inner) for inner in value]
    return _cut(fields_of(value)) if is_dataclass(value) else value


def fields_of(row: Any) -> dict[str, Any]:
    """An event or a row in the form of JSON. Not `asdict`, which copies each number of each list."""
    if not is_dataclass(row):
        raise TypeError(f"{type(row).__name__} is no part of an event")
    values: dict[str, Any] = {}
    for item in fields(row):
        if "flat" in item.metadata:
            values |= fields_of(getattr(row, item.name))
        else:
            values[item.name] = getattr(row, item.name)
    return values


def finite(value: float | None) -> float | None:
    """`value`, or None (unknown) if it is NaN, infinite or None."""
    return value if value is not None and math.isfinite(value) else None


_RUN_NUMBER = re.compile(r"r(\d{1,18})$")


def run_number(run: str) -> int:
    """The number in a run id (`r12` → 12), for ordering; 0 for any other text."""
    match = _RUN_NUMBER.match(run)
    return int(match.group(1)) if match else 0
