"""Runs of pytest inside the tests, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run_tests(pytester: pytest.Pytester) -> Run:
    """Runs pytest over the text of a test file, with these options, as a user would."""

    def run(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=text)
        own = ("-p", "no:cacheprovider", "-p", "no:rerunfailures", "--strict-markers")
        return pytester.runpytest_subprocess(*own, *options, timeout=100)

    return run


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    """Where such a run takes place."""
    return pytester.path
