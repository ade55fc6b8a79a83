"""A file with several functions: all are listed, and the user says which one is meant."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.calling import environment
from jaxprof.cli.output import ExitCode
from terminal import Terminal

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
def test_where_nobody_can_be_asked_the_functions_are_listed(call, mine, command, state_home):
    said = call(command, mine)
    assert (said.code, "mine.py has 2 functions: twice, product" in said.err) == (ExitCode.USAGE, True)
    assert not list(state_home.rglob("*.jaxprof"))


def test_workloads_lists_them_all_or_those_that_take_the_arguments(call, mine):
    data = call("workloads", mine, "--format", "json").data
    assert [one["name"] for one in data["workloads"]] == ["mine.py:twice", "mine.py:product"]
    for count, name in ((1, "mine.py:twice:"), (3, "mine.py:helper:")):
        assert call("workloads", mine, *["--arg", "f32[3]"] * count).out.startswith(name)
    assert call("workloads", mine, *["--arg", "f32[3]"] * 4).code == ExitCode.USAGE


def test_at_a_terminal_the_user_is_asked(mine, tmp_path):
    words = [sys.executable, "-m", "jaxprof", "run", mine, "--set", "n=3"]
    with Terminal(words, tmp_path, environment()) as terminal:
        terminal.until("all)")
        assert "1  twice  Two times x." in terminal.plain
        terminal.type(b"2\n")
        assert terminal.end() == ExitCode.USAGE
        assert "unknown parameter 'n'" in terminal.plain, "product has none; twice would run"
