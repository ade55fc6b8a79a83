"""What is exported: a session, and the runs of it that were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxprof.session import Run, Session


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A session with the chosen runs."""

    session: Session
    runs: Sequence[Run]
    path: Path
    """Its file."""
    name: str = "last"
    """What a later command can call the session."""
    live: bool = False
    """Whether a process is writing it now."""
