"""From the start to the five answers, counted in keys: a screen that moves an answer farther away is seen here."""

import pytest

from jaxprof import events as e
from jaxprof.tui.home.plan_options import HomeOptions
from jaxprof.tui.home.start_list import StartList
from tui import recorded
from tui import session_tapes as sessions
from tui.fakes import SMALL, Stage, keep_session, walking

pytestmark = pytest.mark.usefixtures("small_catalogue")

ANSWERS = {
    "a program in the folder": (
        ("what costs most", "enter enter", "device 49 %"),
        ("which line is the slowest", "", "train.py:91"),
        ("why was it compiled again", "3", "shape of x varies"),
        ("does it fit", "6", "It fits"),
    ),
    "the example": (
        ("what costs most", "end enter", "76.5 ms"),
        ("how much faster is it", "", "6.9×"),
        ("which kernel, of which line", "4", "loop_fusion"),
        ("does it fit", "6", "peak "),
        ("the file to send", "1 home down y", "the example.jaxprof"),
    ),
    "two sessions": (("is the older one faster", "down space c", "first: "),),
    "two workloads": (("which of two workloads is faster", "end space up c", "in turns"),),
}
"""The keys to each answer, from the first frame and then from the answer before, and what the screen says. Every run is
over before the next key: waiting is no key."""
LONGER = ("the file to send", "which of two workloads is faster")
MOST_KEYS = 3
"""To each of the five answers that a newcomer asks for: what costs most, which line, why again, does it fit, which is
faster."""


@pytest.fixture
def work(tmp_path, shelf, monkeypatch):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text("import jax\n")
    keep_session(shelf, "the example", ("selu", "jit", "ok", 1e-3))  # which the fake scheduler does not write
    keep_session(shelf, "an older one", ("selu", "jit", "ok", 2e-3), age_seconds=99)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(HomeOptions, "comparison", lambda options, infos: lambda interpreter, folder: [])
    return folder


@pytest.mark.parametrize("source", ANSWERS)
async def test_an_answer_takes_as_many_keys_as_are_written_here(source, work):
    stage = Stage()
    stage.app.folder = work
    async with walking(SMALL, stage) as walk:
        await walk.home()
        await walk.until(lambda: "train.py" in str(walk.find(StartList).keys[0]))
        for question, keys, answer in ANSWERS[source]:
            assert len(keys.split()) <= MOST_KEYS or question in LONGER
            for number, key in enumerate(keys.split(), 1):
                before = walk.screen
                await walk.press(key)
                if key == "enter" and number < len(keys.split()):
                    await walk.until(lambda was=before: walk.screen is not was)
            await ended(walk)
            if answer:
                await walk.shows(answer)


async def ended(walk):
    for program in walk.stage.programs:
        program.emit(*(one for one in recorded.finished().events if not isinstance(one, e.RunPlanned)))
        program.finish(0)
    scheduler, walk.stage.programs, walk.stage.scheduler = walk.stage.scheduler, [], None
    if scheduler is not None:
        made = sessions.finished().events
        scheduler.emit(*(one for one in made if not isinstance(one, e.RunPlanned | e.SessionClosed)))
        scheduler.finish()
    await walk.until(lambda: not walk.app.live.busy)
