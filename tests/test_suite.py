"""A test that hangs is named and ends, and one that starts a process has to say so."""

from pathlib import Path

import pytest

SPINS = """
import signal

def test_before():
    pass

def test_that_hangs():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # what pytest-timeout sends
    {hangs}

def test_after():
    pass
"""
STARTS = """
import subprocess, sys
import pytest

@pytest.fixture
def child():
    subprocess.run([sys.executable, "-c", ""])

def test_it_starts_one():
    subprocess.run([sys.executable, "-c", ""])

def test_its_fixture_starts_one(child):
    pass

def test_it_starts_none():
    pass

@pytest.mark.process
def test_it_may(child):
    subprocess.run([sys.executable, "-c", ""])
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """With the plugins that are named alone: the others cost it seconds."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


@pytest.mark.process
@pytest.mark.parametrize(
    "hangs",
    ["while True: pass", "import ctypes; ctypes.PyDLL(None).sleep(60)"],
    ids=["in the interpreter", "in native code that holds the lock"],
)
def test_a_test_that_hangs_is_named_and_the_others_go_on(hangs, suite):
    suite.makepyfile(test_it=SPINS.format(hangs=hangs))
    loaded = ("-p", "xdist.plugin", "-p", "pytest_timeout", "-p", "suite")
    limits = ("-o", "timeout=0.5", "-o", "timeout_grace=0.2")
    ran = suite.runpytest_subprocess(*loaded, "-n", "1", *limits, timeout=50)
    ran.assert_outcomes(passed=2, failed=1)
    ran.stdout.fnmatch_lines(["*crashed while running 'test_it.py::test_that_hangs'*"])


@pytest.mark.process
def test_only_a_marked_test_may_start_a_process(suite):
    suite.makepyfile(test_it=STARTS)
    ran = suite.runpytest_subprocess("-p", "pytest_timeout", "-p", "suite", timeout=50)
    ran.assert_outcomes(passed=2, failed=2)
    ran.stdout.fnmatch_lines(["*starts a process, and is not marked*"] * 2)
