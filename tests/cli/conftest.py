from __future__ import annotations

from pathlib import Path

import pytest

from folding import written
from report import sessions


@pytest.fixture(autouse=True)
def brief_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """How soon calls settle after another's turn is asked in a second, and not what is tested here."""
    monkeypatch.setattr("jaxprof.stats.turns.PROBE_SECONDS", 0.005)


@pytest.fixture
def kept(state_home: Path) -> Path:
    """A session in the user's folder."""
    path = state_home / "sessions" / "2026-11-21T04-05-06-0123.jaxprof"
    written(path, sessions.events(), sessions.HEADER)
    return path
