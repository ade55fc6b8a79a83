"""A file with several functions: all are listed, and the user says which one is meant."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from cli.calling import Caller, environment
from jaxprof.cli.output import ExitCode

pytestmark = pytest.mark.process

MINE = """
import jaxprof


@jaxprof.workload(inputs=["f32[n]"], parameters={"n": 8})
def twice(x):
    \"\"\"Two times x.\"\"\"
    return 2 * x


def product(x, y):
    return x @ y


def product_inputs(random):
    return random.standard_normal((4, 4)), random.standard_normal((4, 4))


def helper(x, y, z):
    return x + y + z
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return "mine.py"


@pytest.mark.parametrize("command", ["run", "hlo"])
def test_where_nobody_can_be_asked_the_functions_are_listed(
    call: Caller, mine: str, command: str, state_home: Path
) -> None:
    said = call(command, mine)
    assert said.code == ExitCode.USAGE
    assert "mine.py has 2 functions: twice, product" in said.err
    assert "mine.py:twice" in said.err
    assert "Traceback" not in said.err
    assert not list(state_home.rglob("*.jaxprof"))


def test_workloads_lists_them_all(call: Caller, mine: str) -> None:
    said = call("workloads", mine)
    assert "mine.py:twice" in said.out
    assert "mine.py:product" in said.out
    assert "jaxprof run --describe mine.py:twice" in said.err
    data = call("workloads", mine, "--format", "json").data
    assert [one["name"] for one in data["workloads"]] == ["mine.py:twice", "mine.py:product"]


def test_arguments_choose_the_functions_that_take_them(call: Caller, mine: str) -> None:
    assert "mine.py:twice: Two times x." in call("workloads", mine, "--arg", "f32[3]").out
    three = call("workloads", mine, "--arg", "f32[3]", "--arg", "f32[3]", "--arg", "f32[3]")
    assert three.out.startswith("mine.py:helper:")
    four = call("workloads", mine, *["--arg", "f32[3]"] * 4)
    assert four.code == ExitCode.USAGE
    assert "no function of mine.py can be called with" in four.err


def test_at_a_terminal_the_user_is_asked(mine: str) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jaxprof", "run", mine, "--set", "n=3"],
        stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment(),
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    ends = time.monotonic() + 120
    while b"all)" not in seen and time.monotonic() < ends:
        seen += os.read(ours, 4096)
    assert b"1  twice  Two times x." in seen
    os.write(ours, b"2\n")
    with suppress(OSError):  # the last writer has gone
        while time.monotonic() < ends:
            seen += os.read(ours, 4096)
    assert b"unknown parameter 'n'" in seen, "product has none; twice would run"
    assert process.wait() == ExitCode.USAGE
    os.close(ours)
