"""A test that hangs is named and ends; one that starts a process, or records a program, has to say so, and all tests
together record few."""

import re
from collections import Counter
from pathlib import Path

import pytest

from pythons import FURTHER
from suite import MOST_PROGRAMS, programs_of
from waiting import SLOWER

HANGS = """
import ctypes
import os
import signal
import pytest

def test_before():
    pass

def ignore_what_pytest_timeout_sends():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)

def test_that_spins():
    ignore_what_pytest_timeout_sends()
    while True:
        pass

def test_that_holds_the_lock_in_native_code():
    ignore_what_pytest_timeout_sends()
    ctypes.PyDLL(None).sleep(60)

def test_that_waits_in_a_call_without_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    os.read(os.pipe()[0], 1)

@pytest.fixture(scope="module")
def made():
    ignore_what_pytest_timeout_sends()
    while True:
        pass

def test_whose_fixture_spins(made):
    pass

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

@pytest.mark.process
def test_it_records_none():
    subprocess.run([sys.executable, "-c", "", "script", "--python", "/stand-in", "x.py"])

@pytest.mark.process(programs=1)
@pytest.mark.parametrize("processes", ["1", "2"])
def test_it_may_record_one(processes):
    subprocess.run([sys.executable, "-c", "", "script", "-n", processes, "x.py"])
"""


def test_few_programs_are_recorded_by_all_tests_together(request):
    counted = Counter({item.nodeid: programs_of(item) for item in request.session.items})
    assert FURTHER or counted.total() <= MOST_PROGRAMS, counted.most_common(MOST_PROGRAMS)


@pytest.fixture
def suite(pytester, monkeypatch):
    """With the plugins that are named alone: the others cost it seconds."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


@pytest.mark.process
def test_each_test_that_hangs_is_named_once_and_the_others_go_on(suite):
    suite.makepyfile(test_it=HANGS)
    loaded = ("-p", "xdist.plugin", "-p", "pytest_timeout", "-p", "suite", "--dist", "loadfile")
    limits = ("-o", "timeout=0.5", "-o", "timeout_grace=0.2")
    ran = suite.runpytest_subprocess(*loaded, "-n", "1", *limits, timeout=50 * SLOWER)
    ran.assert_outcomes(passed=2, failed=4)
    named = [line.rpartition("::")[2].rstrip("'") for line in ran.outlines if "crashed while running" in line]
    assert named == re.findall(r"test_(?:that|whose)\w+", HANGS)


@pytest.mark.process
def test_only_a_marked_test_may_start_a_process(suite):
    suite.makepyfile(test_it=STARTS)
    ran = suite.runpytest_subprocess("-p", "pytest_timeout", "-p", "suite", timeout=50 * SLOWER)
    ran.assert_outcomes(passed=4, failed=3)
    said = ["*starts a process, and is not marked*"] * 2
    ran.stdout.fnmatch_lines([*said, "*records 2 programs, and is not marked*"])
