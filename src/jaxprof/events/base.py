"""What every event has in common, and the words that several of them use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

SCHEMA_MAJOR = 1
SCHEMA_MINOR = 1

Scalar = bool | int | float | str

STARTUP_PHASES = ("import", "backend_init", "warm_up")
"""What a fresh process pays before its program is looked at; kept apart so that `compile` is the program's own."""

PHASES = ("trace", "lower", "compile", "transfer_in", "first_run", "run", "transfer_out")
"""The phases of a run, in the order in which a call goes through them."""

STATUSES = ("ok", "failed", "cancelled", "crashed")

SERIES = ("run", "dispatch", "pipelined", "transfer_in", "transfer_out")
"""Kinds of raw samples: a blocked call, the time until the call returned, one of many calls of which only the last is
awaited, and the two directions of copying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries."""

    type: ClassVar[str] = ""

    seq: int = 0
    """Position in the log, from 1; given by the one writer of the file."""
    run: str = ""
    """The run that it belongs to; empty for the session as a whole."""
    monotonic_seconds: float = 0.0
    """When it happened, on the machine's monotonic clock; the header pairs that clock with the wall clock."""
