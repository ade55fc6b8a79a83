from __future__ import annotations

import pytest

from cli.calling import Caller


@pytest.fixture
def caller(capsys: pytest.CaptureFixture[str]) -> Caller:
    return Caller(capsys)
