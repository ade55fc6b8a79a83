"""A session that another process writes, its clock and its silence; and a profile while it is read."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO

import pytest

from hlo_sources import write_kernels
from jaxprof import events as e
from jaxprof.events import ProgressMade
from jaxprof.session import Session
from jaxprof.session.log import Follower, LogWriter
from jaxprof.session.log.codec import encode_line
from jaxprof.tui import opened_session
from jaxprof.tui.opened_session import OpenedSession, ProfileReading, ReadingStoppedError
from tui.fakes import SMALL, Stage, walking

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
        self.say(
            e.RunPlanned(run="r1", spec=e.RunSpec(workload="train.py", variant="program", how="program", device="host"))
        )
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


def followed(path: Path, clock: Clock) -> OpenedSession:
    """The session at `path`, followed."""
    found = OpenedSession(clock.monotonic, clock.wall)
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
    clock.seconds += opened_session.LOOK_SECONDS
    assert found.poll() == (frozenset(), True)
    assert not found.followed
    assert found.silent_since.startswith("no activity since ")
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
    clock.seconds += opened_session.SILENCE_SECONDS / 2
    assert found.poll() == (frozenset(), False)
    clock.seconds += opened_session.SILENCE_SECONDS
    assert found.poll() == (frozenset(), True)
    assert not found.followed
    writer.say(e.LogLine(run="r1", stream="stdout", text="I was only thinking"))
    assert found.poll() == (frozenset({"r1"}), True)
    assert found.followed
    writer.say(e.SessionClosed())
    found.poll()
    assert not found.followed
    assert found.silent_since == ""


async def test_a_session_is_followed_where_no_writer_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jaxprof.tui.app.FOLLOW_SECONDS", 0.02)
    writer = Writer(tmp_path / "a.jaxprof", 50_000.0, wall_seconds=WALL, locked=False)
    async with walking(SMALL, Stage(writer.path, follow=True)) as walk:
        await walk.shows("▶ running")
        writer.say(e.LogLine(run="r1", stream="stdout", text="from another host"))
        await walk.press("m l", "from another host")
    async with walking(SMALL, Stage(writer.path)) as walk:
        await walk.shows("interrupted")


def _touch(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


NOTE = "reading box.xplane.pb.gz: 4.00 MiB of 12.0 MiB"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return write_kernels(tmp_path / "box.xplane.pb.gz")


class Held:
    """Readings that get as far as a third, and no further until they are stopped or let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.readings: list[ProfileReading] = []
        self.go = Event()
        real = ProfileReading.as_session
        held = self

        def as_session(self: ProfileReading) -> Path:
            held.readings.append(self)
            self._take([ProgressMade(fraction=1 / 3, note=NOTE)])
            while not held.go.wait(0.01):
                if self.stopped:
                    raise ReadingStoppedError
            return real(self)

        monkeypatch.setattr(opened_session.ProfileReading, "as_session", as_session)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


@pytest.mark.process
async def test_what_is_read_is_said_on_every_screen_until_it_is_shown(profile: Path, held: Held) -> None:
    async with walking((100, 30)) as walk:
        assert "Esc stops" not in walk.text
        walk.app.open_session(profile)
        await walk.shows(NOTE, "33 %")
        await walk.press("2 2")
        await walk.mode("results")
        await walk.shows(NOTE)
        held.go.set()
        await walk.mode("profile")
        await walk.shows(gone="Esc stops")
        assert walk.app.reading is None


async def test_escape_and_the_end_of_the_app_stop_it_and_leave_what_is_shown(profile: Path, held: Held) -> None:
    async with walking((100, 30)) as walk:
        await walk.press("2")
        walk.app.open_session(profile)
        await walk.shows(NOTE)
        for key, screens in (("?", 2), ("escape", 1)):
            await walk.press(key)
            await walk.until(lambda screens=screens: len(walk.app.screen_stack) == screens, "the help, or none")
        assert not held.readings[0].stopped, "the first escape is the help's"
        await walk.press("escape", gone="Esc stops")
        await walk.until(lambda: held.readings[0].over, "the end of the thread")
        assert (walk.app.current_mode, walk.app.session_path) == ("run", None)
        await walk.press("escape")
        await walk.mode("home")
        walk.app.open_session(profile)
        await walk.until(lambda: len(held.readings) == 2, "another reading")
    assert held.readings[1].stopped


@pytest.mark.process
def test_the_engine_says_how_far_it_is_and_can_be_stopped(tmp_path: Path) -> None:
    """A real one, of which the engine has begun to read: nothing is left of it that could be shown."""
    said = Event()
    path = write_kernels(tmp_path / "box.xplane.pb.gz", 200_000)
    reading = ProfileReading(path, lambda reading: said.set())
    ended: list[BaseException | Path] = []

    def work() -> None:
        try:
            ended.append(reading.as_session())
        except ReadingStoppedError as error:
            ended.append(error)

    thread = Thread(target=work)
    thread.start()
    assert said.wait(60)
    assert reading.progress.note.startswith("reading box.xplane.pb.gz: ")
    reading.stop()
    thread.join(60)
    assert [type(one) for one in ended] == [ReadingStoppedError]
