"""A child's pipes: what has come is never lost, whenever the child ends."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator

import pytest

from jaxprof.errors import WorkerError
from jaxprof.events import LogLine, PhaseStarted
from jaxprof.runner.child import ChildProcess, Pipes


def start(code: str, *, python: str = sys.executable) -> ChildProcess:
    pipes = Pipes.open()
    ends = (pipes.events_write, pipes.control_read)
    command = [python, "-c", "import os, sys, time\nevents, control = map(int, sys.argv[1:])\n" + code, *map(str, ends)]
    return ChildProcess(command, pipes, os.environ, name="the child", descriptors=ends)


@pytest.fixture
def child(request: pytest.FixtureRequest) -> Iterator[ChildProcess]:
    process = start(request.param)
    yield process
    process.kill()
    process.close()
    process.close()
    assert not process.alive


WHEN_ASKED = r"""
os.read(control, 1)
os.write(events, b'{"type":"phase_started","phase":"run"}\n')
print('out')
print('a traceback', file=sys.stderr)
print('no line break', end='')
"""


@pytest.mark.process
@pytest.mark.parametrize("child", [WHEN_ASKED], indirect=True)
def test_what_comes_between_a_read_and_the_end_is_in_the_next_read(child: ChildProcess) -> None:
    assert child.read(0) == []
    os.write(child._control, b"x")
    child._process.wait(20)
    assert not child.over
    events = child.read(0)
    assert child.over
    assert [event.phase for event in events if isinstance(event, PhaseStarted)] == ["run"]
    lines = [(event.stream, event.text) for event in events if isinstance(event, LogLine)]
    assert sorted(lines) == [("stderr", "a traceback"), ("stdout", "no line break"), ("stdout", "out")]
    assert "a traceback" in child.explain().advice


HOLDS = "if os.fork() == 0:\n    os.set_inheritable(events, True)\n    time.sleep(600)\n"


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system has no descriptor for a process's end")
@pytest.mark.parametrize("child", [HOLDS], indirect=True)
def test_the_end_of_a_child_wakes_a_read_although_its_pipes_are_held_open(child: ChildProcess) -> None:
    while not child.over:
        child.read(600)


@pytest.mark.process
@pytest.mark.parametrize("child", ['os.write(events, b\'{"type":"heartbeat"}\\n\')\ntime.sleep(600)'], indirect=True)
def test_a_heartbeat_is_a_sign_of_life_and_no_event(child: ChildProcess) -> None:
    began = child.last_sign_seconds
    while not child.heartbeat_seen:
        assert child.read(20) == []
    assert child.last_sign_seconds > began


FORKS = """
if os.fork():
    os.write(events, b'{"type":"phase_started","phase":"run"}\\n')
time.sleep(120)
"""


@pytest.mark.process
@pytest.mark.parametrize("child", [FORKS], indirect=True)
def test_a_child_is_killed_with_its_own_children(child: ChildProcess) -> None:
    while not child.read(20):
        assert not child.over
    child.kill()
    child._process.wait(20)
    ended, *_ = select.select([child._events], [], [], 20)
    assert ended, "a child of the child still holds the pipe"
    assert os.read(child._events, 1) == b""


@pytest.mark.process
def test_a_child_that_cannot_be_started_leaves_no_descriptor_open() -> None:
    before = os.listdir("/dev/fd")
    with pytest.raises(WorkerError, match="the child could not be started with /nowhere/python"):
        start("", python="/nowhere/python")
    assert len(os.listdir("/dev/fd")) == len(before)
