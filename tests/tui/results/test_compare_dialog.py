"""The Compare screen: two marked runs of a session, the verdict first, and what cannot be compared."""

from jaxprof import events as e
from jaxprof.base.errors import FileRefusedError
from jaxprof.findings.compare.session_difference import session_difference
from jaxprof.tui.results.compare_dialog import back_to_back, unfit
from jaxprof.tui.results.run_table import RunTable
from jaxprof.tui.results.screen import ResultsScreen
from tui import session_tapes as sessions
from tui.fakes import walking
from tui.session_tapes import HLO, Tape


def two_programs():
    """A baseline, and two compiled runs, of which the second one has another HLO and needs more FLOPs."""
    tape = Tape()
    tape.plan("r1", "numpy", "numpy")
    tape.plan("r2", "jit", baseline="r1")
    tape.plan("r3", "jit-highest", baseline="r1")
    tape.numpy_run("r1")
    tape.jit_run("r2")
    tape.jit_run("r3", 1.3e-3)
    changed = HLO.replace("ROOT %exponential.1", "%e").replace(
        "source_line=12}", "source_line=12}\n  ROOT %twice = f32[1000000]{0} add(%e, %e)"
    )
    assert changed != HLO
    tape.add(e.TextRecorded, "r3", name="hlo", text=changed, bytes=len(changed))
    tape.close()
    return tape


async def test_marked_runs_are_compared_with_the_baseline_first(monkeypatch):
    def damaged(*_, **runs):
        raise FileRefusedError("the text of r1 is damaged", "Measure it again.")

    tape = Tape()
    tape.plan("r1", "jit")
    tape.plan("r2", "jit-highest", baseline="r1")
    tape.jit_run("r1")
    tape.jit_run("r2")
    tape.close()
    async with walking((120, 60)) as walk:
        await walk.show(sessions.finished(), "results")
        listed = walk.find(RunTable)
        await walk.press("end space home space", "2 marked")
        assert listed.marked == ["r3", "r1"]
        assert walk.text.count("▣") == 2
        await walk.press("c", "jit is faster than numpy", "6.9× (6.9-7.0)  3 launches  ·  4.36 ms → 634 µs a call")
        await walk.press("escape")
        await walk.on(ResultsScreen)

        await walk.show(two_programs(), "results")
        await walk.press("home down space space c", "jit-highest is slower than jit")
        text = walk.text
        flops = text[text.index(" FLOPs  ") :]
        assert flops.split()[:4] == ["FLOPs", "0", "1.00", "M"]
        order = [text.index(words) for words in ("the environments are", "phase  ", "exact fact", "what changed")]
        assert order == sorted(order)
        await walk.press("escape")

        await walk.show(tape, "results")
        await walk.press("home space space c", "exact fact")
        assert "jit-highest is the same as jit" in walk.text or "inconclusive" in walk.text
        assert "same" in walk.row("bytes accessed  ").split()
        assert "changed" not in walk.text
        await walk.press("escape")
        walk.app.clear_notifications()

        screen = await walk.show(sessions.finished(), "results")
        for keys, says in (
            ("c", "no run is marked"),
            ("home space c", "only selu numpy cpu:0 is marked"),
            ("space space", "two runs are marked already"),
        ):
            await walk.press(keys)
            assert says in walk.said
        assert (listed.marked, walk.screen) == (["r1", "r2"], screen)
        assert "only selu numpy" not in walk.said, "with another mark that is no longer so"
        await walk.press("home space")
        assert listed.marked == ["r2"]
        walk.app.set_session(sessions.sweep().session(), None)
        await walk.until(lambda: not listed.marked, "marks of the session before")

        await walk.show(sessions.troubled(), "results")
        listed.move_to_key("r2")
        await walk.press("space")
        assert "failed: there is nothing to compare" in walk.said
        assert not listed.marked

        monkeypatch.setattr("jaxprof.tui.results.compare_dialog.session_difference", damaged)
        await walk.show(sessions.finished(), "results")
        await walk.press("home space space c", "the text of r1 is damaged")
        await walk.press("y escape")
        await walk.on(ResultsScreen)


def test_back_to_back_bar_grows_towards_the_faster_side():
    session = two_programs().session()
    for sides, towards in ((("r1", "r2"), "right"), (("r2", "r1"), "left")):
        difference = session_difference(session, session, run_before=sides[0], run_after=sides[1])
        head, *lines, _ = (line.plain for line in back_to_back(difference.runs[0], 90))
        assert head.split() == ["first", "◂", "faster", "│", "faster", "▸", "second"]
        run = next(line for line in lines if line.startswith("run "))
        left, right = run.split("│")
        assert ("█" in right) == (towards == "right")
        assert ("█" in left) == (towards == "left")
        assert len({len(line) for line in lines}) == 1
    assert not [*back_to_back(difference.runs[0], 30)], "there is no room for a bar"


def test_a_profile_a_program_and_a_run_in_progress_are_unfit():
    running = next(run for run in sessions.sampling().session().runs.values() if run.status == "running")
    assert "has not ended" in str(unfit(running))
    tape = Tape()
    tape.plan("r1", "x", "imported")
    assert "is an opened profile" in str(unfit(tape.session().runs["r1"]))
    assert unfit(sessions.finished().session().runs["r1"]) is None
