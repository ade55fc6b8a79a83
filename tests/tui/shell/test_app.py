"""The app around its screens: where keys and clicks lead, what is told, the user's settings, how it ends."""

import threading

import pytest
from textual import events
from textual.widgets import Input

from jaxprof import events as e
from jaxprof.base.config import Config, read_config
from jaxprof.base.errors import StorageError
from jaxprof.session import LogWriter, new_header
from jaxprof.tui import clock
from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.home.start_list import StartList
from jaxprof.tui.keys import check_keys, clashes
from jaxprof.tui.kit.screen import KeyBar
from jaxprof.tui.kit.screen_bars import ModeBar, StageTabs
from jaxprof.tui.program.ledger import LedgerList
from jaxprof.tui.shell.profiler import Profiler, alerts
from jaxprof.tui.theme import DARK, LIGHT
from tui import profiles
from tui.fakes import HOSTILE, MIDDLE, SMALL, Stage, walking

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")
FEW = 7
"""Changes of screen for the 140 that were asked for."""


async def started(walk):
    await walk.home()
    await walk.press("enter")
    await walk.until(lambda: walk.app.live.busy and walk.app.session.runs)
    return walk.stage.scheduler


async def test_keys_lead_to_modes_and_escape_goes_back(
    monkeypatch,
):
    gone_to = []
    switch = Profiler.switch_mode

    def counted(app, mode):
        gone_to.append(mode)
        return switch(app, mode)

    monkeypatch.setattr(Profiler, "switch_mode", counted)
    async with walking(MIDDLE) as walk:
        await walk.press("z ctrl+t f9 left backspace [ ]")
        assert (walk.app.current_mode, walk.app.return_code) == ("home", None)
        for steps in (
            "2 results 4 hlo 5 profile 1 home 2 results 5 profile 2 results 4 hlo",
            "escape results escape home escape home",
        ):
            words = steps.split()
            for key, mode in zip(words[::2], words[1::2], strict=True):
                await walk.through(f"{key} | #{mode}")

        gone_to.clear()
        for key in "123456" * 23 + "12":
            walk.app.post_message(events.Key(key, key))
        await walk.until(lambda: walk.app.current_mode == "results" and gone_to[-1] == "results")
        await walk.pause()
        assert walk.app.current_mode == "results"
        assert len(gone_to) <= FEW
        await walk.through("escape | #home")  # the way back is not through screens never seen


async def test_full_disk_and_dead_worker_are_reported(tmp_path):
    async with walking(MIDDLE) as walk:
        scheduler = await started(walk)
        scheduler.storage_failure = StorageError("the disk is full", "Save it somewhere else.")
        scheduler.emit(e.ProgressMade(run="r1", fraction=0.5))
        await walk.through("| @FormDialog | the disk is full | not saved, ")
        walk.find(Input).value = str(tmp_path)
        await walk.press("enter")
        await walk.until(lambda: walk.app.session_path == tmp_path / "2026-11-18T11-06-40-feed.jaxprof")
        assert scheduler.moved_to == [walk.app.session_path]
        assert walk.app.live.busy, "the runs go on"
        await walk.until(lambda: "not saved" not in walk.text)

        await walk.through("1 | #home")
        closed = e.RunClosed(
            run="r1", workload="matmul", variant=HOSTILE, device="cpu:0", status="crashed",
            error="the worker was killed by SIGKILL", advice="probably out of memory",
        )  # fmt: skip
        scheduler.emit(closed)
        await walk.shows("killed by SIGKILL", "probably out of memory")
        assert "\x1b" not in walk.text

        await walk.press("down enter")
        await walk.until(lambda: len(walk.app.session.runs) == 6)
        assert walk.stage.scheduler is scheduler, "the same session"
        for answer, ends in (("n", ""), ("y", "finished")):
            await walk.through(f"q | @Confirm\n{answer}")
            await walk.until(lambda ends=ends: scheduler.closed == ends)


async def test_signal_is_the_reason_only_of_what_it_ended():
    for busy, reason in ((True, "SIGHUP"), (False, "finished")):
        async with walking(MIDDLE) as walk:
            scheduler = await started(walk)
            if not busy:
                scheduler.finish()
            await walk.until(lambda walk=walk, busy=busy: walk.app.live.busy is busy)
            walk.app.live.close("SIGHUP")
            assert scheduler.closed == reason


async def test_ctrl_c_cancels_the_queue_and_a_second_one_quits(monkeypatch):
    monkeypatch.setattr("jaxprof.tui.shell.profiler.TWICE_SECONDS", 60.0)
    async with walking(MIDDLE) as walk:
        scheduler = await started(walk)
        scheduler.emit(e.WorkerStarted(run="r1", pid=1, python="python"))
        await walk.until(lambda: walk.app.session.runs["r1"].status == "running")
        await walk.press("1 enter")
        await walk.until(lambda: len(walk.app.session.runs) == 6, "three more runs, of another batch")
        await walk.press("ctrl+c")
        await walk.until(lambda: scheduler.cancelled == ["r3", "r2", "r1"])
        assert scheduler.closed == ""
        await walk.press("ctrl+c")
        await walk.until(lambda: scheduler.closed == "finished")
        assert scheduler.closed_in is not threading.main_thread(), "which draws while the children end"


async def test_a_second_ctrl_c_quits_as_long_as_the_message_stands(monkeypatch):
    now, passed = clock.monotonic, 0.0
    monkeypatch.setattr(clock, "monotonic", lambda: now() + passed)
    async with walking(MIDDLE) as walk:
        scheduler = await started(walk)
        await walk.press("ctrl+c", "Press ctrl+c again to quit.")
        passed = max(message.timeout for message in walk.app._notifications) - 1.0
        await walk.press("ctrl+c")
        await walk.until(lambda: scheduler.closed == "finished")


async def test_the_quit_dialog_goes_with_the_run_it_asks_about():
    async with walking(MIDDLE) as walk:
        scheduler = await started(walk)
        await walk.through("q | @Confirm")
        scheduler.finish()
        await walk.through("| @ResultsScreen | The run has ended meanwhile")
        await walk.press("n")
        assert scheduler.closed == "", "the app goes on"


async def test_an_app_that_nobody_has_quit_ends_its_children_too():
    async with walking(MIDDLE) as walk:
        scheduler = await started(walk)
        walk.app.exit()
    assert scheduler.closed == "finished"


async def test_growing_session_is_followed_and_runs_go_to_a_new_one(shelf, monkeypatch):
    monkeypatch.setattr("jaxprof.tui.shell.profiler.FOLLOW_SECONDS", 0.02)
    path = shelf / "theirs.jaxprof"
    writer = LogWriter(new_header(), path)
    async with walking(MIDDLE, Stage(path)) as walk:
        await walk.until(lambda: walk.app.session_path == path)
        assert walk.app.session_grows
        writer.append(e.RunPlanned(run="r1", spec=e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0")))
        await walk.until(lambda: "r1" in walk.app.session.runs, "the run that was written meanwhile")
        writer.append(e.SessionClosed())
        writer.close()
        await walk.until(lambda: not walk.app.session_grows)
        assert "theirs" in walk.text.partition("\n")[0]
        await walk.through("1 | #home")
        await started(walk)
        await walk.until(lambda: len(walk.app.session.runs) == 3)
        assert walk.app.session_path != path


EMPTY = {
    "results": ("Nothing was run yet.", "enter C r m l s m S y n escape down"),
    "hlo": ("Nothing was run yet.", "m 9 escape ] escape"),
    "program": ("No program was recorded in this session", "m b m f m L w C r escape / enter down s"),
}
"""What each screen says without a session, and keys that do no harm there."""
HIDDEN = {"results": "Sort"}


async def test_wrong_files_are_refused(tmp_path):
    wrong = [(b"", "is empty"), (b"\x1f\x8b\x00", "gunzip"), (b"hello\n", ".xplane.pb"), (None, "there is no file")]
    async with walking(SMALL) as walk:
        for number, (content, says) in enumerate(wrong):
            path = tmp_path / f"{number}.jaxprof"
            if content is not None:
                path.write_bytes(content)
            walk.app.open_session(path)
            await walk.shows(says)
            assert walk.app.current_mode == "home"
        walk.app.clear_notifications()  # they lie over what is read next
        for mode, (words, keys) in EMPTY.items():
            walk.app.switch_mode(mode)
            await walk.shows(words, gone=LedgerList.EMPTY)
            if mode in HIDDEN:
                assert HIDDEN[mode] not in walk.text.splitlines()[-1], "keys that do nothing are hidden"
            await walk.press(keys)
            assert walk.app.return_code is None
            while len(walk.app.screen_stack) > 1:
                await walk.press("escape")


async def test_line_of_keys_help_and_clicks_at_the_least_size():
    async with walking((70, 24)) as walk:
        pilot = walk.pilot
        await walk.shows("needs a terminal of 80×24", gone="Examples")
        await pilot.resize_terminal(80, 20)
        await walk.shows("80×20", gone="Start")
        await walk.press("3 m")
        assert (walk.app.current_mode, len(walk.app.screen_stack)) == ("home", 1), "no key acts on what nobody sees"
        await pilot.resize_terminal(80, 24)
        await walk.shows("Examples")
        line = str(walk.find(KeyBar).render()).rstrip()
        assert line.endswith("m Menu  ? Help  q Quit")
        assert len(line) <= 80
        await pilot.resize_terminal(120, 60)
        await walk.until(lambda: walk.find(KeyBar).region.y == 59, "the line of keys is where it is clicked")
        below = walk.screen
        bar = str(walk.find(KeyBar).render())
        await pilot.click(KeyBar, offset=(bar.index("? Help"), 0))
        await walk.through("""
            | @HelpScreen | On this screen
        """)
        below.refresh_bindings()
        await walk.pause()
        assert str(below.query_one(KeyBar).render()) == bar, "a dialog changes no key below it"
        keys = [one.binding for one in below.active_bindings.values() if one.binding.id and one.binding.description]
        said = {binding.id: binding.tooltip.split(";")[0][:30] for binding in keys if binding.id != "home.back"}
        assert [name for name, words in said.items() if words not in walk.text] == []
        await walk.press("escape")
        await walk.until(lambda: walk.screen is below)

        await walk.shows("unset CUDA_VISIBLE_DEVICES")  # the devices have their room
        rows = walk.find(StartList)
        await pilot.click(rows, offset=(5, 2))
        await walk.until(lambda: rows.cursor == 2 and walk.app.focused is rows)
        await pilot.click(ModeBar, offset=(str(walk.find(ModeBar).render()).index("Timeline"), 0))
        await walk.mode("profile")

        await walk.show(profiles.captured(), "hlo", "loop_fusion")
        table = walk.find(KernelTable)
        title = str(table.draw_header(table.scrollable_content_region.width)).index("bytes")
        for wanted in (("bytes", False), ("bytes", True)):
            await pilot.click(table, offset=(title + 1, 0))
            await walk.until(lambda wanted=wanted: (table.wanted.sort, table.wanted.turned) == wanted)
        at = next(line.index("Roofline") for line in walk.text.splitlines()[1:4] if "Roofline" in line)
        await pilot.click(StageTabs, offset=(at, 0))
        await walk.shows("[Roofline")


def test_failure_is_reported_with_its_hint():
    ends = [("failed", "jit", "broke"), ("crashed", "jit", ""), ("ok", "jit", ""), ("failed", "program", "broke")]
    events = [
        e.RunClosed(
            run="r1", workload="selu", variant=variant, device="cpu:0", status=status, error=error, advice="mend"
        )
        for status, variant, error in ends
    ]
    events.append(e.WarningRaised(run="r2", code="noisy", message="noisy"))
    events.append(e.WarningRaised(run="r2", code="worker_silent", message="no sign of life", advice="mend"))
    found = [(error.what, error.hint, title) for error, title in alerts(events, programs=True)]
    assert found == [
        ("broke", "mend", "selu jit: failed"),
        ("the run crashed", "mend", "selu jit: crashed"),
        ("broke", "mend", "selu program: failed"),
        ("no sign of life", "mend", "run r2"),
    ]
    assert len(list(alerts(events, programs=False))) == len(found) - 1


async def test_app_begins_with_the_settings_and_keeps_choices(state_home, tmp_path, monkeypatch):
    values = {"theme": LIGHT.name, "preset": "published", "devices": ("cuda:0", "cpu:0"), "budget": 7.5}
    async with walking(stage=Stage(config=Config(values, {"app.help": "f12"}))) as walk:
        home = await walk.home()
        assert walk.app.theme == LIGHT.name
        choices = home.choices
        assert (choices.preset, choices.budget_seconds, choices.devices) == ("published", 7.5, ["cuda:0", "cpu:0"])
        await walk.press("?", "f12 Help")
        assert walk.screen is home, "the key is the user's now"
        await walk.press("f12")
        await walk.on("HelpScreen")
        await walk.press("escape")
        assert not (state_home / "config.toml").exists(), "nothing was chosen"
        home.action_preset()
        walk.app.theme = DARK.name
        await walk.until(lambda: read_config(state_home).get("theme", str) == DARK.name)
        assert read_config(state_home).get("preset", str) == "quick"
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("JAXPROF_CONFIG", str(tmp_path / "file" / "config.toml"))
        walk.app.user.keep("preset", "published")
        await walk.shows("preset was not saved")


async def test_wrong_settings_are_told_and_the_app_goes_on():
    async with walking(stage=Stage(config=Config({"theme": "mauve"}, {"app.hlep": "f12"}))) as walk:
        await walk.shows("no theme 'mauve'", "unknown action 'app.hlep'")
        assert walk.app.theme == DARK.name


def test_the_users_theme_wins_over_the_terminals():
    for wanted, on_light, on_dark in (
        (None, LIGHT, DARK), ("auto", LIGHT, DARK), ("light", LIGHT, LIGHT), ("dark", DARK, DARK),
        ("jaxprof-dark", DARK, DARK),
    ):  # fmt: skip
        settings = Config({"theme": wanted} if wanted else {})
        found = [Profiler(config=settings, light=light).theme for light in (True, False)]
        assert found == [on_light.name, on_dark.name], wanted


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"results.compare": "s"}, ["results.sort"]),
        ({"results.compare": "j"}, ["rows.down"]),
        ({"results.compare": "ctrl+p"}, ["app.palette"]),
        ({"results.compare": "d"}, []),  # of Home, which is not there at the same time
        ({"results.compare": "s", "results.sort": "f12"}, []),
    ],
)
def test_a_key_that_two_actions_of_one_place_have_is_found(keys, found):
    assert [clash.actions[1] for clash in clashes(check_keys(keys))] == found
