"""Results and a run's detail: rows, sorting, sweeps, copying, and that only what changed is drawn."""

import re

from jaxprof.tui.kit.dialogs import ExplanationDialog
from jaxprof.tui.kit.screen_bars import KeyBar
from jaxprof.tui.results import run_table
from jaxprof.tui.results.screen import ResultsScreen, RunTable
from jaxprof.tui.shell.profiler import Profiler
from tui import profiles
from tui import session_tapes as sessions
from tui.fakes import SMALL, WIDE, walking
from tui.session_tapes import Tape


async def test_the_essentials_the_advice_and_copying(monkeypatch):
    async with walking(SMALL) as walk:
        verdict = "jit: 6.9× (6.9-7.0) as fast as numpy · same result · pays after 21 calls"
        screen = await walk.show(sessions.finished(), "results", verdict)
        row, numpy = walk.row("│ ✓ jit "), walk.row("│ ✓ numpy ", "baseline")
        assert [what for what in ("76.5 ms", "634 µs", "6.9× (6.9-7.0)") if what not in row] == []
        (start, call), (starts, calls) = (re.findall("[█-▏]+", line) for line in (row, numpy))
        assert len(start) > len(starts), "one scale up to the first result"
        assert len(call) < len(calls) < 6.9 * len(call), "a log scale for a call"
        screen.query_one(RunTable).move_to_key("r3")
        await walk.press("y")
        assert walk.app.clipboard.startswith(
            "selu jit cpu:0 n = 1 000 000: median 634 µs ± 0.99 % (95 %: 627 µs to 639 µs), 6.9×"
        )
        await walk.press("4")
        await walk.on("HloScreen")
        assert walk.app.destination.run == "r3", "the run under the cursor"
        walk.app.switch_mode("home")
        await walk.pause()
        walk.app.select("r2")
        walk.app.switch_mode("results")
        await walk.until(lambda: walk.screen is screen and screen.query_one(RunTable).current == "r2")

        await walk.show(sessions.finished(), "results", "jit: 6.9×", "█ first run 5.24 ms")
        await walk.press("down", "jax: 3.8×", "█ compile 37.6 ms")
        assert "what to do" not in walk.text
        await walk.press("m a")
        await walk.on(ExplanationDialog)
        await walk.press("escape")
        await walk.on(ResultsScreen)
        screen = await walk.show(sessions.troubled(), "results", "wrong result", gone="same result")
        screen.query_one(RunTable).move_to_key("r4")
        await walk.shows("what to do", "→ [red]constants were folded", "Pass them as arguments.")
        await walk.press("home", gone="what to do")

        monkeypatch.setattr(Profiler, "session_grows", property(lambda app: True))
        await walk.show(sessions.compiling(), "results", gone="as fast as")
        assert walk.text.splitlines()[1].startswith("╭─ Runs"), "nothing is said first before anything is measured"


async def test_wide_terminal_has_rates_scales_and_sweeps():
    tape = Tape()
    tape.plan("r1", "a long name of a variant")
    tape.plan("r2", "another long name", baseline="r1")
    tape.start("r1")
    tape.turns("r1", [0.1e-3, 9e-3, 0.2e-3, 9e-3, 1e-3, 0.1e-3] * 3, 1)
    tape.finish("r1")
    async with walking((200, 60)) as walk:
        screen = await walk.show(sessions.finished(), "results", "pays after")
        assert [what for what in ("11.0 µs", "568 µs", "12.6 GB/s") if what not in walk.row("│ ✓ jit ")] == []
        rows = screen.query_one(RunTable)
        orders = []
        for keys in ("", "s s", "m S", "m S s"):
            await walk.press(keys)
            orders.append("".join(key for key in rows.keys if isinstance(key, str)))
        assert orders == ["r1r2r3", "r3r2r1", "r1r2r3", "r3r2r1"], "by speed-up, the baseline comes last"

        await walk.show(sessions.sweep(), "results", "time of a call over n, log-log", "jit cpu:0 is faster from n ≈")
        await walk.press("enter", "3.16 k")
        await walk.press("escape", "14 runs")
        assert walk.app.current_mode == "results"
        queued = Tape()
        queued.plan("r1", "jit")
        await walk.show(queued, "results", gone="over n, log-log")

        await walk.show(profiles.imported(), "results", "jit_selu")
        named = ("Run again", "Compare")
        await walk.until(lambda: not [one for one in named if one in str(walk.find(KeyBar).render())])
        for key, why in (
            ("r", "there is nothing to run"),
            ("space", "is an opened profile"),
            ("c", "compares profiles"),
        ):
            await walk.press(key)
            await walk.until(lambda why=why: why in walk.said, key)
        await walk.show(sessions.finished(), "results")
        await walk.until(lambda: not [one for one in named if one not in str(walk.find(KeyBar).render())])
        await walk.pilot.resize_terminal(*WIDE)
        await walk.show(tape, "results", " 89 µs to 4.0 ms  █")


async def test_nothing_is_drawn_again_while_nothing_changes(monkeypatch):
    async with walking() as walk:
        tape = sessions.finished()
        screen = await walk.show(tape, "results")
        rows = screen.query_one(RunTable)
        drawn = []
        monkeypatch.setattr(rows, "refresh_row", drawn.append)
        for widget in screen.query("*"):
            monkeypatch.setattr(widget, "refresh", lambda *regions, **rest: drawn.append((regions, rest)))
        screen.show_session(frozenset({"r1", "r2", "r3"}), replaced=False)
        assert drawn == []
        with monkeypatch.context() as patched:
            patched.setattr(rows, "draw_row", lambda index, width: drawn.append(index))
            rows.tick()
        assert drawn == [], "a tick looks at runs in progress alone"
        told = len(tape.events)
        tape.turns("r3", tape.noise(0.5e-3, 20), 4, launch=3)
        walk.app.session.extend(tape.events[told:])
        screen.show_session(frozenset({"r3"}), replaced=False)
        assert drawn[0] == rows.keys.index("r3")


async def test_long_hlo_is_counted_in_a_thread_that_redraws_its_row(monkeypatch):
    counted = []
    monkeypatch.setattr(run_table, "is_uncounted", lambda run: run.id != "r1" and run.id not in counted)
    monkeypatch.setattr(run_table, "cost_of_call", lambda session, run: counted.append(run.id))
    async with walking() as walk:
        await walk.show(sessions.finished(), "results")
        await walk.until(lambda: counted == ["r2", "r3"], "each of them, none failed")


async def test_failed_run_says_why_in_its_row_and_in_full():
    async with walking((80, 30)) as walk:
        screen = await walk.show(sessions.troubled(), "results", "XLA aborted", "✗ wrong")
        assert "✗ jit TypeError: add got" in walk.words
        rows = screen.query_one(RunTable)
        rows.move_to_key("r3")
        await walk.shows("The log holds XLA's last words.", "check failed: ␛[31mRET_CHECK␛[0m [/b] failure")
        assert "\x1b" not in walk.text
        rows.move_to_key("r2")
        await walk.through("""
            | call it outside of jaxprof
            enter | File "selu.py", line 12
        """)
        assert screen.has_class("-zoom")
        assert not screen.query_one("#samples").display
        await walk.press("n", "XLA aborted")
        await walk.press("N N")
        await walk.until(lambda: screen.chosen is not None and screen.chosen.id == "r1")
        walk.app.set_session(Tape().session(), None)
        await walk.until(lambda: screen.chosen is None)


async def test_nothing_stays_of_the_session_before():
    def failed(error):
        tape = sessions.planned("jit")
        tape.numpy_run("r1")
        tape.finish("r2", "failed", error=error)
        tape.close()
        return tape

    async with walking(WIDE) as walk:
        screen = await walk.show(failed("out of memory"), "results", "numpy: 4.36 ms a call")
        screen.query_one(RunTable).move_to_key("r2")
        await walk.shows("out of memory")
        await walk.show(failed("no such device"), "results")
        assert (screen.chosen.id, walk.app.destination.run) == ("r1", "r1"), "the first, and other screens show it too"
        screen.query_one(RunTable).move_to_key("r2")
        await walk.shows("no such device", gone="out of memory")

        def plot():
            return screen.query_one("#trend").render().plain

        await walk.show(sessions.finished(), "results")
        await walk.until(lambda: "60 samples" in plot())
        before = plot()
        tape = sessions.planned("jit")
        tape.numpy_run("r1", 8e-3)
        await walk.show(tape, "results")
        await walk.until(lambda: plot() != before, "as many samples, and others")
