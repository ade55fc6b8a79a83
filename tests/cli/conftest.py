from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.session.log import LogWriter
from report import sessions


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Caller:
    return Caller(capsys)


@pytest.fixture
def kept(state_home: Path) -> Path:
    """A session in the user's folder."""
    path = state_home / "sessions" / "2026-11-21T04-05-06-0123.jaxprof"
    writer = LogWriter(sessions.HEADER, path)
    for event in sessions.events():
        writer.append(event)
    writer.close()
    return path
