"""Launches of a program: how each ended, in what order the sides follow each other, and when they stop."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jaxprof.runner import fix_trials
from jaxprof.runner.fix_trials import LaunchCommand, ProgramLaunch, launch, launch_sides, least_seconds

LONG_MESSAGE = """
class OddError(Exception):
    pass

raise OddError("the value is odd\\n\\nSee https://example.org/odd: it says more\\n-----\\nFor simplicity, set this.")
"""


def command(folder: Path, source: str) -> LaunchCommand:
    return LaunchCommand(
        argv=(sys.executable, "-c", source),
        environment=dict(os.environ),
        directory=str(folder),
        expected_seconds=0.1,
        folder=folder,
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("print(1)", ""),
        ("raise SystemExit('no data here')", "exit code 1: no data here"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        (LONG_MESSAGE, "exit code 1: OddError: the value is odd"),
    ],
)
def test_why_a_launch_failed(tmp_path: Path, source: str, problem: str) -> None:
    done = launch(command(tmp_path, source))
    assert done.problem == problem
    assert done.output == ("1\n" if not problem else "")


@pytest.mark.process
def test_what_never_ends_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fix_trials, "_LONGEST_SECONDS", 0.0)
    endless = "import threading; threading.Event().wait()"
    inside = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {endless!r}])"
    assert "far longer" in launch(command(tmp_path, inside)).problem


def launches(
    monkeypatch: pytest.MonkeyPatch, budget: float, seconds: dict[str, float], fails: str = ""
) -> tuple[fix_trials.ProgramLaunches, list[str]]:
    """The sides with a clock of their own: how long a launch of A or B takes, and which of them fails."""
    clock, order = [0.0], []
    sides = {name: command(Path(), name) for name in seconds}

    def fake(started: LaunchCommand) -> ProgramLaunch:
        name = started.argv[-1]
        order.append(name)
        clock[0] += seconds[name]
        noise = 1 + 0.05 * (len(order) * 7 % 5)
        return ProgramLaunch(seconds[name] * noise, int(name == fails), "", "", too_long=False)

    monkeypatch.setattr(fix_trials, "launch", fake)
    monkeypatch.setattr(fix_trials.time, "monotonic", lambda: clock[0])
    done = launch_sides(sides["A"], sides["B"], fake(sides["B"]), budget, lambda line: None)
    return done, order[1:]


def test_launches_end_in_time_and_no_side_is_always_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done, order = launches(monkeypatch, 40.0, {"A": 2.0, "B": 1.0})
    rounds = len(done.by_side["B"])
    assert 3 <= rounds <= 10
    assert sum({"A": 2.0, "B": 1.0}[name] for name in order) <= 40.0
    assert len(done.by_side["A"]) == len(done.by_side["A'"]) == rounds
    assert {order[3 * number] for number in range(rounds)} == {"A", "B"}
    ratio = done.compared().ratio
    assert ratio is not None
    assert 1.6 < ratio < 2.5


def test_there_are_three_of_them_where_that_takes_half_as_long_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(launches(monkeypatch, 11.0, {"A": 2.0, "B": 1.0})[0].by_side["B"]) == 3
    assert len(launches(monkeypatch, 6.0, {"A": 2.0, "B": 1.0})[0].by_side["B"]) < 3


def test_the_first_launch_that_fails_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launches(monkeypatch, 40.0, {"A": 2.0, "B": 1.0}, fails="B")[1] == []
    assert launches(monkeypatch, 40.0, {"A": 2.0, "B": 1.0}, fails="A")[1] == ["A"]


def test_the_fewest_launches_are_one_and_three_of_each_side() -> None:
    assert least_seconds(2.0) == 20.0
