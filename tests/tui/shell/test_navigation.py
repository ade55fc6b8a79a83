"""Where keys lead: a destination is shown once, by the screen that it is for, and the program in view stays."""

from dataclasses import replace
from pathlib import Path

import pytest

from jaxprof.hlo.stages import ModuleStages
from jaxprof.tui.kit.host import Destination
from jaxprof.tui.profile.timeline.pane import TimelineView
from tui import profiles
from tui.fakes import MIDDLE, walking
from tui.hlo_texts import HLO

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")
MODULE = ModuleStages("a.hlo#0", "jit_f", {})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Destination("hlo", "text", "r1", "dot.1", "words", section="kernels"), Destination("home", run="r1")),
        (Destination("hlo", run="r1", file=Path("a.hlo"), module=MODULE), "the same"),
        (Destination("hlo", run="r1", file=Path("a.hlo")), Destination("home", run="r1")),
    ],
    ids=["a request", "a module", "a file that was not read"],
)
def test_another_mode_keeps_the_program_alone(before, after):
    assert before.at("home") == (replace(before, mode="home") if after == "the same" else after)


async def test_a_destination_is_shown_once():
    async with walking(MIDDLE) as walk:
        walk.app.set_session(profiles.captured().session(), None)
        walk.app.show(Destination("profile", "memory", "r2"))
        await walk.shows("[Memory]")
        await walk.through("""
            m t    | [Timeline]
            ?      | @HelpScreen
            escape | @ProfileScreen
        """)
        await walk.pause()
        await walk.shows("[Timeline]", gone="[Memory]")
        assert walk.app.destination == Destination("profile", run="r2")


async def test_destination_is_left_to_its_screen():
    async with walking(MIDDLE) as walk:
        walk.app.set_session(profiles.captured().session(), None)
        walk.app.show(Destination("hlo"))  # its screen is created while the app already goes on
        walk.app.show(Destination("profile", "timeline", "r2", kernel="dot.1"))
        await walk.on("ProfileScreen")
        view = walk.find(TimelineView)
        await walk.until(lambda: view.browse is not None and view.browse.cursor == 200_000, "the kernel")


async def test_a_file_of_hlo_is_in_view_until_a_run_is_chosen(tmp_path):
    path = tmp_path / "a.hlo"
    path.write_text(HLO)
    async with walking(MIDDLE) as walk:
        app = walk.app
        app.set_session(profiles.captured().session(), None)
        app.select("r2")
        app.open_session(path)
        await walk.until(lambda: app.destination.module is not None, "the file")
        assert (app.destination.run, app.destination.file) == ("r2", path)
        app.show(Destination("profile", "memory"))
        await walk.shows("[Memory]")
        assert app.destination.module is not None, "Memory shows the file, too"
        app.select("r2")
        assert app.destination == Destination("profile", run="r2")
