from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Caller
from folding import written
from report import sessions


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Caller:
    return Caller(capsys)


@pytest.fixture
def kept(state_home: Path) -> Path:
    """A session in the user's folder."""
    path = state_home / "sessions" / "2026-11-21T04-05-06-0123.jaxprof"
    written(path, sessions.events(), sessions.HEADER)
    return path
