"""Runs of pytest inside the tests: in this process, and in one of their own."""

from collections.abc import Callable
from importlib import import_module

import pytest

from waiting import SLOWER

Run = Callable[..., pytest.RunResult]
WITHOUT = ("-p", "no:textual-snapshot", "-p", "no:syrupy", "-p", "no:asyncio")
"""Their sessions end with the process's: the outer one would lose its pictures."""
OWN = ("-p", "no:cacheprovider", "--strict-markers")
ALONE = ("-p", "pytest_jaxprof", "-p", "xdist.plugin")
"""What a process of its own loads: other plugins cost it seconds."""


@pytest.fixture
def run_tests(pytester, monkeypatch):
    """Runs pytest over the text of a test file, with these options, as a user would: in a process of its own."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(text, *options):
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_subprocess(*OWN, *ALONE, *options, timeout=50 * SLOWER)

    return run


@pytest.fixture(scope="session")
def imported():
    """Imports what pytester would forget after each test, and jaxlib cannot be imported twice."""
    for name in ("jax.numpy", "jaxprof.testing.items", "jaxprof.testing.items"):
        import_module(name)


@pytest.fixture
def run_tests_here(imported, pytester):
    """Does the same in this process, which has imported jax already."""

    def run(text, *options):
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_inprocess(*OWN, *WITHOUT, *options)

    return run


@pytest.fixture
def folder(pytester):
    return pytester.path
