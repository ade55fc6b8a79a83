"""A session that another process writes, its clock and its silence; and a profile while it is read."""

import os
import time
from dataclasses import replace
from functools import partial
from threading import Event, Thread

import pytest
from textual.widgets import Input

from folding import written
from hlo_sources import write_kernels
from jaxprof import events as e
from jaxprof.analysis.target import resolve
from jaxprof.base.errors import FileRefusedError
from jaxprof.cli.commands import open_
from jaxprof.events import ProgressMade
from jaxprof.session import Follower, LogWriter, Session
from jaxprof.session.lines import encode_line
from jaxprof.tui import clock
from jaxprof.tui.shell import opened_session
from jaxprof.tui.shell.opened_session import OpenedSession, ProfileReading
from report import sessions as report_sessions
from tui import recorded
from tui import session_tapes as sessions
from tui.fakes import PATIENCE_SECONDS, SMALL, Stage, walking

WALL = 1_795_000_000.0


class Writer:
    """Something that writes a session, with its own monotonic clock, and holds its lock, or not; and who follows it."""

    def __init__(self, folder, monkeypatch, ahead_seconds=0.0, *, locked=True):
        self.path = folder / "a.jaxprof"
        self.ours, self.ahead_seconds, self.slept_seconds = 990.0, ahead_seconds, 0.0
        monkeypatch.setattr(clock, "monotonic", lambda: self.ours)
        monkeypatch.setattr(clock, "unix_seconds", self.wall)
        header = e.Header(session="cafe", wall_seconds=self.wall(), monotonic_seconds=self.ours + ahead_seconds)
        self.log = LogWriter(header, self.path)
        self._unlocked = None
        spec = e.RunSpec(workload="train.py", variant="program", how="program", device="host")
        self.say(e.RunPlanned(run="r1", spec=spec), e.WorkerStarted(run="r1", pid=1, python="python"))
        if not locked:
            self.log.close()
            self._unlocked = self.path.open("ab")

    def wall(self):
        """Both clocks of this machine are one, and a day apart."""
        return WALL + self.ours + self.slept_seconds

    def say(self, *events):
        for event in events:
            event = replace(event, monotonic_seconds=self.ours + self.ahead_seconds)
            if self._unlocked is None:
                self.log.append(event)
            else:
                self._unlocked.write(encode_line(event))
                self._unlocked.flush()

    def followed(self):
        """The session as it is followed 10 s later."""
        self.ours += 10.0
        found = OpenedSession()
        follower = Follower(self.path, Session)
        follower.poll()
        found.show(follower.session, self.path, follower)
        return found


@pytest.fixture
def writing(tmp_path, monkeypatch):
    return partial(Writer, tmp_path, monkeypatch)


HELLO = e.LogLine(run="r1", stream="stdout", text="from another host")


def test_killed_writer_of_this_machine_is_missed(writing):
    writer = writing()
    found = writer.followed()
    writer.ours += 100.0
    found.poll()
    assert found.followed, "it holds its lock: it is there, however long it says nothing"
    assert found.clock_shift_seconds == 0.0
    writer.log.close()
    writer.ours += opened_session.LOOK_SECONDS
    assert [found.poll(), found.poll()] == [(frozenset(), True), (frozenset(), False)]
    assert not found.followed
    assert found.silent_since.startswith("no activity since ")


def test_a_writer_on_another_machine_has_another_clock(writing):
    writer = writing(49_000.0, locked=False)
    found = writer.followed()
    assert found.clock_shift_seconds == pytest.approx(49_000.0 - 10.0)
    for waited, ahead, shift in (
        (10.0, 49_002.0, 49_002.0),
        (20.0, 48_995.0, 49_002.0),
    ):  # this one was long on its way
        writer.ours += waited
        writer.ahead_seconds = ahead
        writer.say(HELLO)
        assert found.poll() == (frozenset({"r1"}), False)
        assert found.clock_shift_seconds == pytest.approx(shift)


def test_without_a_lock_silence_tells_and_a_word_tells_otherwise(writing):
    writer = writing(locked=False)
    os.utime(writer.path, (writer.wall() + 10.0,) * 2)
    found = writer.followed()
    assert found.followed
    for share, changed in ((0.5, False), (1.0, True)):
        writer.ours += opened_session.SILENCE_SECONDS * share
        assert found.poll() == (frozenset(), changed)
        assert found.followed is not changed
    writer.say(HELLO)
    assert found.poll() == (frozenset({"r1"}), True)
    assert found.followed
    writer.say(e.SessionClosed())
    found.poll()
    assert found.followed is False
    assert found.silent_since == ""


def test_silence_counts_while_the_machine_sleeps(writing):
    writer = writing(locked=False)
    os.utime(writer.path, (writer.wall() + 10.0,) * 2)
    found = writer.followed()
    heard = time.localtime(writer.wall())
    writer.slept_seconds = 7_200.0
    writer.ours += opened_session.SILENCE_SECONDS + 1.0
    found.poll()
    assert found.silent_since == time.strftime("no activity since %H:%M:%S", heard)


async def test_a_session_is_followed_where_no_writer_can_be_seen(writing, monkeypatch):
    monkeypatch.setattr("jaxprof.tui.shell.profiler.FOLLOW_SECONDS", 0.02)
    writer = writing(49_000.0, locked=False)
    async with walking(SMALL, Stage(writer.path, follow=True)) as walk:
        await walk.shows("▶ running")
        writer.say(HELLO)
        await walk.press("m l", "from another host")
    async with walking(SMALL, Stage(writer.path)) as walk:
        await walk.shows("interrupted")


NOTE = "reading box.xplane.pb.gz: 4.00 MiB of 12.0 MiB"
SAID = "33 % reading box.xplane"


@pytest.fixture
def profile(tmp_path):
    return write_kernels(tmp_path / "box.xplane.pb.gz")


class Held:
    """Readings that get as far as a third, and no further until they are stopped or let go."""

    def __init__(self):
        self.readings = []
        self.go = Event()

    def as_session(self, reading):
        self.readings.append(reading)
        reading._take([ProgressMade(fraction=1 / 3, note=NOTE)])
        while not self.go.wait(0.01):
            if reading.stopped:
                raise FileRefusedError("it was stopped")
        return AS_SESSION(reading)


AS_SESSION = ProfileReading.as_session


@pytest.fixture
def held(monkeypatch):
    made = Held()
    monkeypatch.setattr(ProfileReading, "as_session", lambda reading: made.as_session(reading))
    return made


@pytest.mark.process
async def test_what_is_read_is_said_on_every_screen_until_it_is_shown(profile, held):
    async with walking((100, 30)) as walk:
        assert "Stop reading" not in walk.text
        walk.app.open_session(profile)
        await walk.shows(SAID, "esc Stop reading")
        await walk.press("2 2")
        await walk.mode("results")
        await walk.shows(SAID)
        held.go.set()
        await walk.mode("profile")
        await walk.shows(gone="Stop reading")
        assert walk.app.reading is None
        assert walk.app.session_path.name == "box.jaxprof"
        assert walk.screen._called == str(profile), "commands name the profile, not the session in a temporary folder"
        for given in (None, profile):  # a session that was read before the app began has its profile, too
            walk.app.open_session(walk.app.session_path, profile=given)
            await walk.until(lambda given=given: walk.app.opened.profile == given)


async def test_section_chosen_while_reading_is_shown(tmp_path, monkeypatch):
    tape, begun, go = recorded.finished(), Event(), Event()
    path = written(tmp_path / "train.jaxprof", tape.events, tape.header)

    def slow(path, **options):
        begun.set()
        go.wait(30)
        return opened_session.read(path, **options)

    monkeypatch.setattr("jaxprof.tui.shell.profiler.read", slow)
    async with walking((100, 30)) as walk:
        for keys, place in (("3", "compiles"), ("5", "timeline"), ("", "summary"), ("2", "summary")):
            begun.clear()
            go.clear()
            walk.app.open_session(path)
            await walk.until(begun.is_set)
            before = walk.app.session
            if keys:
                await walk.press(keys)
            go.set()
            await walk.until(lambda before=before: walk.app.session is not before)
            await walk.until(lambda place=place: walk.screen.section == place)


async def test_of_two_files_opened_at_once_the_last_is_shown(tmp_path, monkeypatch):
    tape, begun, go, ended = sessions.finished(), Event(), Event(), []
    first, other = (written(tmp_path / f"{name}.jaxprof", tape.events, tape.header) for name in ("first", "other"))

    def slow(path, **options):
        found = opened_session.read(path, **options)
        if path == first:
            begun.set()
            go.wait(30)
            ended.append(path)
        return found

    monkeypatch.setattr("jaxprof.tui.shell.profiler.read", slow)
    async with walking((100, 30)) as walk:
        walk.app.open_session(first)
        await walk.until(begun.is_set)
        walk.app.open_session(other)
        await walk.until(lambda: walk.app.session_path == other)
        go.set()
        await walk.until(lambda: ended)
        await walk.pause()
        assert walk.app.session_path == other


async def test_the_dialog_opens_what_a_word_names(state_home):
    kept = written(state_home / "sessions" / "kept-one.jaxprof", report_sessions.events(), report_sessions.HEADER)
    async with walking((100, 30)) as walk:
        walk.app.ask_for_file()
        await walk.press("'kept-o enter")
        await walk.until(lambda: walk.app.session_path == kept)
        walk.app.ask_for_file()
        await walk.press("'gs://bucket/a.jaxprof enter", "is a URL, and a file on this")
        assert walk.find(Input).value == "gs://bucket/a.jaxprof", "what was typed can be corrected"
        walk.find(Input).value = "kept-oen"
        await walk.press("enter", "there is no file")
        await walk.press("backspace backspace 'ne enter")
        await walk.on("ResultsScreen")


def test_the_app_learns_of_which_profile_its_session_is_made(profile, monkeypatch):
    given = []
    monkeypatch.setattr("jaxprof.cli.recorded.import_to", lambda *words: Session())
    monkeypatch.setattr(open_, "terminal_problem", lambda: "")
    monkeypatch.setattr(
        "jaxprof.tui.shell.launch.launch", lambda path, **options: given.append(options["profile"]) or 0
    )
    assert open_._open(resolve(str(profile)), None, follow=False) == 0
    assert given == [profile]


async def test_escape_stops_the_reading_and_leaves_the_screen(profile, held):
    async with walking((100, 30)) as walk:
        await walk.press("2")
        walk.app.open_session(profile)
        await walk.shows(SAID)
        for key, screens in (("?", 2), ("escape", 1)):
            await walk.press(key)
            await walk.until(lambda screens=screens: len(walk.app.screen_stack) == screens, "the help, or none")
        assert not held.readings[0].stopped, "the first escape is the help's"
        await walk.press("escape", gone="Stop reading")
        await walk.until(lambda: held.readings[0].over, "the end of the thread")
        assert (walk.app.current_mode, walk.app.session_path) == ("results", None)
        await walk.press("escape")
        await walk.mode("home")
        walk.app.open_session(profile)
        await walk.until(lambda: len(held.readings) == 2, "another reading")
    assert held.readings[1].stopped


@pytest.mark.process
def test_the_engine_says_how_far_it_is_and_can_be_stopped(tmp_path, monkeypatch):
    """A real one, held where it unpacks the profile: nothing is left of it that could be shown."""
    said = Event()
    path = write_kernels(tmp_path / "box.xplane.pb.gz")
    held = "import threading, zlib\nzlib.decompressobj = lambda bits: threading.Event().wait()\n"
    (tmp_path / "sitecustomize.py").write_text(held)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    reading = ProfileReading(path, lambda reading: said.set())
    ended = []

    thread = Thread(target=lambda: ended.append(opened_session.read(path, reading=reading)))
    thread.start()
    assert said.wait(PATIENCE_SECONDS)
    assert reading.progress.note.startswith("reading box.xplane.pb.gz: ")
    reading.stop()
    thread.join(PATIENCE_SECONDS)
    assert ended == [None]
