"""What every test has: a state folder of its own, so that no test touches the user's sessions."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("JAXPROF_HOME", str(home))
    return home
