"""What the tests of the app have in common: a small catalogue, one time of day, one time zone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxprof.tui.ago import ago
from tui.fakes import CARDS, NOW, Needs


@pytest.fixture
def shelf(state_home: Path) -> Path:
    """The folder of sessions."""
    folder = state_home / "sessions"
    folder.mkdir()
    return folder


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three workloads, whatever the real catalogue has."""
    monkeypatch.setattr("jaxprof.tui.screens.home.names", lambda: [card.name for card in CARDS])
    monkeypatch.setattr("jaxprof.workloads.cards", lambda: list(CARDS))
    monkeypatch.setattr("jaxprof.workloads.built_in", lambda name: Needs())


@pytest.fixture
def one_moment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same time of day and time zone in every test."""
    monkeypatch.setattr("jaxprof.tui.widgets.session_list.ago", lambda seconds, now=None: ago(seconds, NOW))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
