"""An empty screen says what fills it, and its key does that: HLO and Profile of a program without a capture."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import job_folders
import program_events
from folding import fold
from jaxprof import events as e
from jaxprof.analysis.timeline import TEXT_NAME
from jaxprof.tui.kit.captures import OF_A_SIDE, can_capture, how_to_capture, program_without_capture, why_no_capture
from jaxprof.tui.profile.screen import why_no_passes
from tui import recorded
from tui.fakes import SMALL, walking
from tui.hlo_texts import HLO, program_session
from tui.session_tapes import Tape, finished

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")


def captured():
    tape = recorded.finished()
    tape.plan("r2", "profile", "imported", workload="capture window")
    tape.add(e.TextRecorded, "r2", name=TEXT_NAME, text="{}", bytes=2)
    return tape.session()


def test_what_counts_as_missing_and_why():
    missing = [program_without_capture(one) for one in (captured(), finished().session(), Tape().session())]
    assert missing == [None, None, None], "a window was read; no program; nothing"
    program = program_without_capture(recorded.finished().session())
    assert why_no_capture(program) == "Nothing of this program was captured."
    run = finished().session().runs["r2"]
    assert "--no-capture" in why_no_capture(run)
    run.plan = replace(run.plan, side="A")
    assert why_no_capture(run) == OF_A_SIDE
    run.plan = replace(run.plan, how="jit")
    assert why_no_passes(run) == OF_A_SIDE


def test_deserted_program_is_captured_by_a_rerun():
    session = recorded.compiling().session()
    run = session.programs[-1]
    app = SimpleNamespace(session=session, live=SimpleNamespace(session=None, program=None))
    for deserted, words in ((False, "being recorded by another process"), (True, "runs it again with a capture")):
        session.desert(deserted=deserted)
        assert words in how_to_capture(app, run)
        assert can_capture(app, run) is deserted
    assert why_no_capture(run) == "This run was interrupted before it was captured."
    assert "which took" not in how_to_capture(app, run), "nobody knows how long it would have taken"
    whole = recorded.finished().session()
    assert "w runs it again, which took 20.4 s, with a capture" in how_to_capture(app, whole.programs[-1])


async def test_empty_screen_says_what_is_missing_and_what_fills_it(tmp_path):
    """It hides the widget that had the focus, which has it again when there is something."""
    hlo = tmp_path / "loss.hlo"
    hlo.write_text(HLO)
    folder = tmp_path / "train.jaxprof.d"
    folder.mkdir()
    job_folders.job(folder, job_folders.loop(), job_folders.loop())
    program = recorded.finished().session()
    async with walking(SMALL) as walk:
        await walk.through("""
            4 | Nothing was run yet. | !s Sort
            5 | Press 1 to profile your code
            6 | Press 1 to profile your code
        """)
        walk.app.set_session(fold(program_events.HEADER, []), tmp_path / "later.jaxprof")
        await walk.through("| later.jaxprof has no run that can be shown")
        walk.app.open_session(hlo)
        await walk.through("""
            | #hlo
            5 | loss.hlo is HLO that was not run here | !Zoom in
            6 | peak memory 2.50 MiB
            2 | loss.hlo is HLO that was not run here
        """)
        walk.app.open_session(folder)
        await walk.through("""
            | #job
            5 | train.jaxprof.d is a job; this screen
            6 | train.jaxprof.d is a job; this screen
        """)
        await walk.show(finished(), "profile", gone="is a job")

        for place in ("hlo", "profile"):
            walk.app.set_session(program, None)
            walk.app.switch_mode(place)
            await walk.through("""
                | has no capture | w runs it again, which took 20.4 s | !variants
                w | @FormDialog | capture steps 5
                escape
            """)
            assert not walk.stage.programs, "nothing runs unseen"

        for mode, session, show, focused in (
            ("hlo", program_session(), lambda: walk.screen.open_file(hlo), "kernels"),
            ("program", program, lambda: walk.app.set_session(program, None), "findings"),
        ):
            await walk.show(session, mode)
            await walk.until(lambda at=focused: walk.app.focused and walk.app.focused.id == at, focused)
            walk.app.set_session(Tape().session(), None)
            await walk.until(lambda: walk.screen.has_class("-empty") and walk.app.focused is None, "hidden")
            show()
            await walk.until(lambda at=focused: walk.app.focused and walk.app.focused.id == at, focused)
