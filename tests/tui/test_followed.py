"""A session that something else writes: who is heard of, whose clock it goes by, and what is said when nobody is."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from jaxprof import events as e
from jaxprof.session import Session
from jaxprof.store import Follower, LogWriter
from jaxprof.store.codec import encode_line
from jaxprof.tui import opened
from jaxprof.tui.opened import Opened
from tui.fakes import Stage, screen_text, until

WALL = 1_795_000_000.0


class Clock:
    """Both clocks of this machine."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def monotonic(self) -> float:
        return self.seconds

    def wall(self) -> float:
        return WALL + self.seconds


class Writer:
    """Something that writes a session, with its own monotonic clock, and holds its lock, or not."""

    def __init__(self, path: Path, began_seconds: float, *, wall_seconds: float, locked: bool = True) -> None:
        self.path = path
        self.now = began_seconds
        header = e.Header(session="cafe", wall_seconds=wall_seconds, monotonic_seconds=began_seconds)
        self._log = LogWriter(header, path)
        self._unlocked: BinaryIO | None = None
        self.say(e.RunPlanned(run="r1", workload="train.py", variant="program", how="program", device="host"))
        self.say(e.WorkerStarted(run="r1", pid=1, python="python"))
        if not locked:
            self._log.close()
            self._unlocked = path.open("ab")

    def say(self, event: e.Event) -> None:
        event = replace(event, monotonic_seconds=self.now)
        if self._unlocked is None:
            self._log.append(event)
        else:
            self._unlocked.write(encode_line(event))
            self._unlocked.flush()

    def die(self) -> None:
        """Ends without a word, as one that was killed: the lock is gone, the session is not closed."""
        self._log.close()


def followed(path: Path, clock: Clock) -> Opened:
    """The session at `path`, followed."""
    found = Opened(clock.monotonic, clock.wall)
    follower = Follower(path, Session)
    follower.poll()
    found.show(follower.session, path, follower)
    return found


def test_a_writer_of_this_machine_goes_by_our_clock(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    writer = Writer(tmp_path / "a.jaxprof", 990.0, wall_seconds=WALL + 990.0)
    found = followed(writer.path, clock)
    assert found.followed
    clock.seconds += 100.0
    found.poll()
    assert found.followed, "it holds its lock: it is there, however long it says nothing"
    assert found.clock_shift_seconds == 0.0
    writer.die()


def test_a_writer_that_was_killed_is_missed(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    writer = Writer(tmp_path / "a.jaxprof", 990.0, wall_seconds=WALL + 990.0)
    found = followed(writer.path, clock)
    writer.die()
    clock.seconds += opened.LOOK_SECONDS
    assert found.poll() == (frozenset(), True)
    assert not found.followed
    assert found.silent_since.startswith("no sign of its writer since ")
    assert found.poll() == (frozenset(), False)


def test_a_writer_on_another_machine_has_another_clock(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    writer = Writer(tmp_path / "a.jaxprof", 50_000.0, wall_seconds=WALL + 990.0, locked=False)
    found = followed(writer.path, clock)
    assert clock.seconds + found.clock_shift_seconds == pytest.approx(50_000.0)
    clock.seconds, writer.now = 1010.0, 50_012.0
    writer.say(e.LogLine(run="r1", stream="stdout", text="hello"))
    assert found.poll() == (frozenset({"r1"}), False)
    assert clock.seconds + found.clock_shift_seconds == pytest.approx(50_012.0)
    clock.seconds, writer.now = 1030.0, 50_025.0  # this one was long on its way
    writer.say(e.LogLine(run="r1", stream="stdout", text="hello"))
    found.poll()
    assert clock.seconds + found.clock_shift_seconds == pytest.approx(50_032.0)


def test_without_a_lock_silence_tells_and_a_word_tells_otherwise(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    writer = Writer(tmp_path / "a.jaxprof", 990.0, wall_seconds=WALL + 990.0, locked=False)
    _touch(writer.path, clock.wall())
    found = followed(writer.path, clock)
    assert found.followed
    clock.seconds += opened.SILENCE_SECONDS / 2
    assert found.poll() == (frozenset(), False)
    clock.seconds += opened.SILENCE_SECONDS
    assert found.poll() == (frozenset(), True)
    assert not found.followed
    writer.say(e.LogLine(run="r1", stream="stdout", text="I was only thinking"))
    assert found.poll() == (frozenset({"r1"}), True)
    assert found.followed
    writer.say(e.SessionClosed())
    found.poll()
    assert not found.followed
    assert found.silent_since == ""


def test_a_file_that_was_not_written_for_long_is_silent_from_the_start(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    writer = Writer(tmp_path / "a.jaxprof", 90.0, wall_seconds=WALL + 90.0, locked=False)
    _touch(writer.path, clock.wall() - 3600)
    found = followed(writer.path, clock)
    assert not found.followed
    assert found.silent_since


async def test_a_session_is_followed_where_no_writer_can_be_seen(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.jaxprof", 50_000.0, wall_seconds=WALL, locked=False)
    stage = Stage(writer.path, follow=True)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "▶ running" in screen_text(stage.app))
        writer.say(e.LogLine(run="r1", stream="stdout", text="from another host"))
        await pilot.press("o")
        await until(pilot, lambda: "from another host" in screen_text(stage.app))
    plain = Stage(writer.path)
    async with plain.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "cut off" in screen_text(plain.app))


def _touch(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


def test_the_lock_is_one_that_other_processes_see(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.jaxprof", 1.0, wall_seconds=WALL)
    with writer.path.open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    writer.die()
