"""Kept sessions and jobs on Start: their rows, the summary, and everything that can be done with a file."""

import os
from pathlib import Path

import pytest
from textual.widgets import Input

import job_folders
from folding import written
from jaxprof.session import LogWriter, new_header
from jaxprof.tui.home.start_list import StartList
from jaxprof.tui.kit.format import ago
from report import sessions
from tui.fakes import HOSTILE, NOW, SMALL, keep_session, walking

pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")
SIZE = (120, 32)


@pytest.fixture
def kept(shelf):
    """Three sessions, the newest first: one whole, one torn with a failed and a cancelled run, one that is none."""
    new = keep_session(shelf, "new", ("selu", "numpy", "ok", 4.37e-3), ("selu", "jit", "ok", 0.63e-3), age_seconds=120)
    torn = keep_session(shelf, "torn", ("matmul", "jit", "failed", None), ("matmul", "numpy", "cancelled", None),
                        complete=False, age_seconds=7200)  # fmt: skip
    wrong = shelf / "wrong.jaxprof"
    wrong.write_bytes(b"\x1f\x8bnonsense\n")
    os.utime(wrong, (NOW - 9000, NOW - 9000))
    return [new, torn, wrong]


@pytest.fixture
def kept_job(shelf):
    """A job of two processes, of which one failed and a third has no session here."""
    folder = shelf / "train.jaxprof.d"
    folder.mkdir()
    for index in (0, 1):
        job_folders.process(folder, index, 3, *job_folders.loop(), exit_code=index)
        os.utime(folder / f"process-{index:05}.jaxprof", (NOW - 60, NOW - 60))
    return folder


def kept_keys(walk):
    return [key for key in walk.find(StartList).keys if isinstance(key, Path)]


async def listed(walk, count=3):
    walk.app.switch_mode("home")
    await walk.home()
    await walk.until(lambda: len(kept_keys(walk)) == count, f"{count} sessions")
    rows = walk.find(StartList)
    rows.focus()
    rows.move_to(0)
    await walk.pause()
    return rows


async def answer(walk, keys, value):
    await walk.press(keys)
    await walk.until(lambda: len(walk.app.screen_stack) > 1 and walk.screen.query(Input))
    walk.find(Input).value = str(value)
    await walk.press("enter")


async def test_what_a_session_is_and_what_is_done_with_its_file(kept, shelf):
    async with walking(SIZE) as walk:
        rows = await listed(walk)
        assert kept_keys(walk) == kept
        await walk.through("""
            | 2 min ago | interrupted | unreadable | complete | 630 µs
            down | out of memory: 40 GiB | interrupted: its writer
            down | is not a jaxprof session
            / 'torn | out of memory: 40 GiB | !is not a jaxprof session
            'zz | Nothing matches the filter | !interrupted: its writer
            enter escape | unreadable
        """)
        assert kept_keys(walk) == kept

        rows.focus()
        await walk.press("home")
        await walk.press("y")
        assert walk.app.clipboard == str(kept[0])
        await answer(walk, "down e", "a/b")
        await walk.shows("cannot be a session's name")
        assert walk.find(Input).value == "a/b", "it is asked again"
        walk.find(Input).value = "renamed"
        await walk.press("enter")
        await walk.until(lambda: rows.current == shelf / "renamed.jaxprof")
        assert not kept[1].exists()

        await walk.through("home down down enter | gunzip\nhome enter | #results")
        assert walk.app.session_path == kept[0]


async def test_end_of_a_session_is_named_alike_everywhere(shelf):
    keep_session(shelf, "[b]x\u202e", (HOSTILE, HOSTILE, "failed", None), age_seconds=60)
    path = keep_session(shelf, "cut", ("selu", "jit", "cancelled", None), complete=False)
    with path.open("ab") as file:
        file.write(b'{"type":"session_closed","reason":"SIGHUP"}\n')
    async with walking(SIZE) as walk:
        await listed(walk, 2)
        await walk.until(lambda: walk.text.count("SIGHUP") == 2)
        await walk.press("down", "[b]evil[/x] ␛[31m")
        await walk.press("m D")
        assert not {"\x1b", "\u202e"} & set(walk.text)


async def test_deletes_after_asking(kept, shelf):
    async with walking(SIZE) as walk:
        await listed(walk)
        for key in ("escape", "enter", "y"):  # no has the focus
            assert kept[0].exists()
            await walk.through(f"home m D | @Confirm\n{key} | @HomeScreen")
        await walk.until(lambda: kept_keys(walk) == kept[1:])
        assert not kept[0].exists()

        writer = LogWriter(new_header(), shelf / "theirs.jaxprof")
        walk.screen.list_sessions()
        await listed(walk)
        await walk.through("home | ● running\nm D y | it is being written")
        assert (shelf / "theirs.jaxprof").exists()
        writer.close()


async def test_long_summary_is_scrolled_and_wrapped(shelf):
    keep_session(shelf, "long", *((f"w{n}", "jit", "ok", 1e-3) for n in range(20)))
    async with walking(SMALL) as walk:
        await listed(walk, 1)
        detail = walk.screen.query_one("#detail")
        await walk.until(lambda: detail.max_scroll_y > 0)
        detail.focus()
        assert "w19" not in walk.text
        await walk.press("end", "w19")
        await walk.pilot.resize_terminal(200, 50)
        await walk.until(lambda: "on box, jaxprof 0.1.0" in walk.text, "in one line")


async def test_older_sessions_are_offered_only_if_there_are_more(kept, monkeypatch):
    for most, offered in ((3, False), (2, True)):
        monkeypatch.setattr("jaxprof.tui.home.screen.LISTED", most)
        async with walking(SIZE) as walk:
            await listed(walk, most)
            assert ("Older sessions…" in walk.text) is offered
            if offered:
                await walk.press("down down enter")
                await walk.until(lambda: kept_keys(walk) == kept)


async def test_path_is_opened_and_an_empty_folder_refused(tmp_path, shelf):
    elsewhere = keep_session(tmp_path, "elsewhere", ("selu", "jit", "ok", 1e-3))
    async with walking(SIZE) as walk:
        await listed(walk, 0)
        await answer(walk, "m o", elsewhere)
        await walk.until(lambda: walk.app.session_path == elsewhere)
        await listed(walk, 0)
        await answer(walk, "m o", shelf)
        await walk.shows("jax.profiler")  # why a folder is refused


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (5, "just now"),
        (150, "2 min ago"),
        (7300, "2 h ago"),
        (200_000, "2 d ago"),
        (10**7, "2026-07-25"),
        (-5, "just now"),
    ],
)
def test_ago(passed, words):  # by the clock of `one_moment`
    assert ago(NOW - passed) == words


async def test_job_is_one_row_opened_renamed_and_deleted_whole(kept, kept_job):
    async with walking(SIZE) as walk:
        rows = await listed(walk, 4)
        assert kept_keys(walk)[0] == kept_job
        await walk.through("""
            | train.jaxprof.d | 1 missing | 2: 1 ok, 1 failed
            enter | @JobScreen
        """)
        assert walk.app.job_folder == kept_job
        await listed(walk, 4)
        renamed = kept_job.with_name("first.jaxprof.d")
        await answer(walk, "home e", "first")
        await walk.until(lambda: rows.entry is not None and rows.entry.path == renamed)
        await walk.through("m D | Delete this job? | roll-ups\ny | @HomeScreen")
        await walk.until(lambda: len(kept_keys(walk)) == 3)
        assert not renamed.exists()
        assert all(path.exists() for path in kept)


async def test_of_two_marked_sessions_the_older_one_is_the_first_side(shelf):
    for name, median in (("old", 4e-3), ("new", 2e-3)):
        keep_session(shelf, name, ("selu", "jit", "ok", median), age_seconds=100 if name == "new" else 200)
    async with walking(SIZE) as walk:
        rows = await listed(walk, 2)
        await walk.press("c", "marked now: none")
        await walk.press("space")
        assert [path.stem for path in rows.marked] == ["new"]
        await walk.press("c", "old and new")  # beside one mark, the row under the cursor
        await walk.press("escape", gone="old and new")
        await walk.press("end c", "marked now: new")
        rows.move_to_key(rows.keys[1])
        await walk.press("space")
        await walk.press("c", "old and new")
        await walk.shows("first: ", "second: ")
        await walk.press("escape", gone="old and new")
        rows.move_to_key(rows.marked[0])
        await walk.press("space")
        assert [path.stem for path in rows.marked] == ["old"]
        rows.move_to_key("selu")
        await walk.press("space c", "marked now: old, selu")


async def test_marks_stay_while_a_filter_hides_them(shelf, kept_job):
    paths = [
        keep_session(shelf, name, (name, "jit", "ok", 1e-3), age_seconds=age)
        for name, age in (("relu", 100), ("gelu", 200))
    ]
    async with walking(SMALL) as walk:
        rows = await listed(walk, 3)
        for path in paths:
            rows.move_to_key(path)
            rows.action_mark()
        await walk.shows("2 marked · c compares")
        await walk.press("/ 'relu", "2 marked · 5 hidden")
        walk.screen.list_sessions()
        await walk.app.workers.wait_for_complete()
        await walk.press("escape", gone="hidden")
        assert rows.marked == paths

        rows.focus()
        rows.move_to_key(kept_job)
        await walk.press("space", "a job is not compared")
        assert rows.marked == paths
        paths[1].unlink()
        await walk.press("c", "there is no file")
        await walk.press("escape")
        walk.screen.list_sessions()
        await walk.shows("1 marked")
        assert rows.marked == paths[:1]


async def test_tables_of_two_sessions_fit_a_small_terminal(shelf):
    for name in ("old", "new"):
        written(shelf / f"{name}.jaxprof", sessions.events(), sessions.HEADER)
    async with walking(SMALL) as walk:
        await listed(walk, 2)
        await walk.press("space space c", "phase ", "… inconclusive: not measured together", gone="│ measured together")
