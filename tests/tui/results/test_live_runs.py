"""Runs in progress: what is shown while things go on, what is followed until the user moves, and what is asked for."""

import re
from dataclasses import replace

import pytest

from jaxprof import events as e
from jaxprof.runner.planning import PlanOptions, plan_runs
from jaxprof.tui.results.run_table import RunTable
from jaxprof.tui.results.screen import ResultsScreen
from jaxprof.tui.shell.profiler import Profiler
from tui import session_tapes as sessions
from tui.fakes import MIDDLE, SMALL, info, walking
from tui.session_tapes import Tape


@pytest.fixture
def growing(monkeypatch):
    monkeypatch.setattr(Profiler, "session_grows", property(lambda app: True))


def grow(walk, tape, told, run="r2"):
    """Shows what the tape has since `told`."""
    walk.app.session.extend(tape.events[told:])
    walk.screen.show_session(frozenset({run}), replaced=False)


async def started(walk):
    await walk.home()
    await walk.press("enter")
    await walk.on(ResultsScreen)
    await walk.until(lambda: len(walk.app.session.runs) == 3)
    return walk.stage.scheduler


def begun(run):
    return e.WorkerStarted(run=run, pid=4711, python="/venv/bin/python", launch=1)


def phases(walk):
    return re.findall(r"^│ \S (?:numpy|jax|jit)\b.*? ([a-z]+)(?= )", walk.text, re.MULTILINE)


# -- of a session that somebody writes ----------------------------------------------------------------------------


async def test_long_compile_ticks_until_it_ends(app_clock, monkeypatch):
    tape = sessions.compiling()
    app_clock.seconds = tape.now
    async with walking(SMALL) as walk:
        screen = await walk.show(tape, "results", "the session was interrupted", "the session ended before")
        assert screen._clock is None, "nobody writes it"
        assert not [word for word in ("▶", "queued") if word in walk.text]

        monkeypatch.setattr(Profiler, "session_grows", property(lambda app: True))
        screen = await walk.show(tape, "results", "▶ jit", "1 of 3 done · 1 queued")
        await walk.shows("2.5 s")
        app_clock.seconds += 40.05
        await walk.shows("42.5 s")
        await walk.press("4")
        await walk.until(lambda: screen._clock is None)
        await walk.press("2")
        await walk.until(lambda: screen._clock is not None)
        told = len(tape.events)
        tape.add(e.PhaseEnded, "r2", phase="compile", seconds=2.5)
        tape.finish("r2")
        grow(walk, tape, told)
        assert screen._clock is None


@pytest.mark.usefixtures("growing")
async def test_samples_are_shown_as_they_come(app_clock):
    tape = sessions.sampling()
    app_clock.seconds = tape.now
    async with walking(MIDDLE) as walk:
        screen = await walk.show(tape, "results", "37 of 4 calls", "1 of 3 done · 1 queued · ≈ 2 s left")
        last = walk.app.session.runs["r3"]
        last.plan = replace(last.plan, baseline="")
        screen.show_session(frozenset({"r2"}), replaced=False)
        await walk.shows("1 of 3 done · 1 queued", gone="s left")
        told = len(tape.events)
        tape.samples("r2", "run", tape.noise(0.63e-3, 30), 4)
        grow(walk, tape, told)
        await walk.shows("67 of 4 calls")

    tape = sessions.in_turns()
    app_clock.seconds = tape.now
    async with walking(SMALL) as walk:
        await walk.show(tape, "results", gone="starting")
        rows = [line for line in walk.text.splitlines() if "│ ▶" in line]
        assert [tuple(row.split()[2:6]) for row in rows] == [
            ("numpy", "waiting", "25.9", "s"),
            ("jit", "compile", "1.5", "s"),
            ("jit-highest", "waiting", "1.5", "s"),
        ]
        assert "█" not in "".join(rows), "the bar is of the steady run"
        await walk.press("up", "launch 2 of 3 · running · pid 4800")
        told = len(tape.events)
        tape.add(e.PhaseEnded, "r2", phase="compile", seconds=1.5)
        tape.add(e.PhaseStarted, "r2", phase="run")
        note = "launch 2 of 3, in turns with 2 more"
        tape.add(e.ProgressMade, "r2", fraction=0.5, remaining_seconds=4.0, note=note)
        grow(walk, tape, told)
        await walk.shows(f"{note} · running · pid 4800", "≈ 4 s left")


# -- of a session that is over ------------------------------------------------------------------------------------


async def test_foreign_code_is_shown_before_it_is_run(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("def step(x):\n    return x\n")
    tape = Tape()
    tape.plan("r1", "step", workload="train.py:step", target=f"{file}:step", arguments=("f32[8,4]",))
    tape.add(e.RunFinished, "r1", status="ok")
    async with walking() as walk:
        await walk.show(tape, "results")
        await walk.press("r", "It runs the code of", "f32[8,4]")
        assert walk.stage.scheduler is None
        await walk.press("y")
        await walk.until(lambda: walk.stage.scheduler is not None and walk.stage.scheduler.planned)
        (planned,) = walk.stage.scheduler.planned
        assert (planned.spec.target, planned.spec.arguments) == (f"{file}:step", ("f32[8,4]",))


# -- of this app --------------------------------------------------------------------------------------------------


async def test_runs_are_cancelled_which_is_seen_at_once_and_run_again():
    async with walking((100, 30)) as walk:
        walk.app.start_runs(plan_runs(info(), PlanOptions(variants=["jit"])))
        await walk.on(ResultsScreen)
        await walk.until(lambda: len(walk.app.session.runs) == 2 and walk.find(RunTable).keys)
        scheduler = walk.stage.scheduler
        scheduler.emit(begun("r1"), e.PhaseStarted(run="r1", phase="compile"))
        await walk.shows("compile", gone="cancelling")
        await walk.press("home down C", "cancelling")
        assert scheduler.cancelled == ["r2"]
        await walk.press("up C")
        await walk.until(lambda: scheduler.cancelled == ["r2", "r1"])
        await walk.until(lambda: walk.text.count("cancelling") == 2)
        scheduler.emit(e.LogLine(run="r1", stream="stdout", text="it has not ended yet"))
        await walk.until(lambda: walk.app.session.runs["r1"].log)
        await walk.pause()
        assert walk.text.count("cancelling") == 2
        scheduler.emit(*(e.RunFinished(run=run, status="cancelled", error="cancelled early") for run in ("r1", "r2")))
        await walk.shows("cancelled early", gone="cancelling")
        await walk.press("r")
        await walk.until(lambda: len(walk.app.session.runs) == 4)
        first, second = scheduler.planned[2:]
        assert (first.spec.variant, second.spec.variant) == ("numpy", "jit")
        assert second.baseline is first
        assert first is not scheduler.planned[0]

        await walk.press("home down down C", "cancelling")
        theirs = Tape()
        for run in walk.app.session.runs.values():
            theirs.add(e.RunPlanned, run.id, spec=run.plan)
        await walk.show(theirs, "results", gone="cancelling")  # its runs have the same names
        scheduler.finish()


@pytest.mark.usefixtures("catalogue", "shelf")
async def test_next_run_is_marked_and_useless_keys_say_why():
    async with walking((80, 40)) as walk:
        scheduler = await started(walk)
        screen = walk.screen

        async def are(*wanted):
            await walk.until(lambda: tuple(phases(walk)) == wanted, str(wanted))

        scheduler.emit(begun("r1"), e.PhaseStarted(run="r1", phase="import"))
        await are("import", "next", "queued")
        assert screen.check_action("cancel", ()), "during a phase, too"
        scheduler.emit(e.PhaseEnded(run="r1", phase="import", seconds=0.3))
        await are("waiting", "next", "queued")
        assert "starting" not in walk.text
        scheduler.emit(e.RunFinished(run="r1", status="ok"))
        await walk.until(lambda: screen.check_action("cancel", ()) is None)
        await walk.press("C", "this run has ended")
        assert not scheduler.cancelled
        await walk.press("down")
        assert screen.check_action("cancel", ()), "this one waits"
        scheduler.emit(begun("r2"))
        await walk.press("1 enter")
        await are("ok", "starting", "next", "queued", "queued", "queued")
        scheduler.emit(*(e.RunFinished(run=run, status="ok") for run in ("r2", "r3")), begun("r4"))
        await walk.until(lambda: phases(walk)[4:] == ["next", "queued"])
        scheduler.emit(*(e.RunFinished(run=run, status="ok") for run in ("r4", "r5", "r6")))
        scheduler.finish()


@pytest.mark.usefixtures("catalogue", "shelf")
async def test_the_newest_run_is_in_view_until_the_user_moves():
    async with walking(SMALL) as walk:
        scheduler = await started(walk)

        async def at(run):
            await walk.until(lambda: walk.find(RunTable).current == run, run)

        for run in ("r1", "r2"):
            scheduler.emit(begun(run))
            await at(run)
        await walk.press("up")
        scheduler.emit(begun("r3"))
        await walk.until(lambda: walk.app.session.runs["r3"].status == "running")
        await walk.pause()
        assert walk.find(RunTable).current == "r1", "the user has moved"
