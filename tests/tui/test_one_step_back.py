"""Esc undoes the last thing and nothing else: on every screen, what was opened, filtered, searched or enlarged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.session import Session
from tui import hlo_texts, profiles, recorded
from tui import session_tapes as tapes
from tui.fakes import Stage, screen_text, until

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment", "shelf")


@dataclass(frozen=True)
class Place:
    """A screen with something in it, and what says that it is there."""

    mode: str
    session: Callable[[], Session]
    says: str
    view: str = ""


PROGRAM = Place("program", lambda: recorded.finished().session(), "train_step")
RUN = Place("run", lambda: tapes.finished().session(), "numpy")
RESULTS = Place("results", lambda: tapes.finished().session(), "numpy")
HLO = Place("hlo", hlo_texts.program_session, "dot.1")
TIMELINE = Place("profile", lambda: profiles.captured().session(), "python", "timeline")
HOME = Place("home", lambda: tapes.finished().session(), "Your code")
SESSIONS = Place("sessions", lambda: tapes.finished().session(), "No sessions yet")

STEPS: list[tuple[Place, list[str]]] = [
    (HOME, ["slash sel enter"]),
    (PROGRAM, ["enter", "enter down enter", "slash add enter", "m F", "m f enter", "m a", "m"]),
    (RUN, ["m l"]),
    (RESULTS, ["m F", "m a", "enter"]),
    (HLO, ["slash tanh enter", "enter"]),
    (
        TIMELINE,
        [
            "m full_stop plus",
            "m full_stop plus plus",
            "space",
            "up enter",
            "down m underscore",
            "slash gemm enter",
            "m V",
        ],
    ),
    (SESSIONS, ["slash x enter"]),
]
"""What is pressed on a screen: Esc undoes it, and only when nothing is left to undo leads away from the screen."""


async def shown(stage: Stage, pilot: Pilot[Any], place: Place) -> None:
    app = stage.app
    app.set_session(place.session(), None)
    if place.view:
        app.show_profile(next(reversed(app.session.runs)), place.view)
    else:
        app.action_go(place.mode)
    await until(pilot, lambda: app.current_mode == place.mode and place.says in screen_text(app), place.says)
    await pilot.pause()


def pressed(keys: str) -> list[str]:
    """The keys of a line, in which what is typed after a slash is one word."""
    words = keys.split()
    return [key for at, word in enumerate(words) for key in (word if at and words[at - 1] == "slash" else [word])]


@pytest.mark.parametrize(("place", "lines"), STEPS, ids=lambda value: value.mode if isinstance(value, Place) else "")
async def test_escape_undoes_what_was_done_and_leaves_only_then(place: Place, lines: list[str]) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        app = stage.app
        for keys in lines:
            await shown(stage, pilot, place)
            top, before = app.screen, screen_text(app)
            await pilot.press(*pressed(keys))
            await pilot.pause()
            after = screen_text(app)
            assert after != before, f"{keys} does something"
            await pilot.press("escape")
            await until(pilot, lambda top=top, after=after: app.screen is top and screen_text(app) != after, keys)
            assert app.current_mode == place.mode, "one step back is not a screen back"
            for _ in range(3):
                if app.current_mode == place.mode != "home":
                    await pilot.press("escape")
                    await pilot.pause()
            assert app.current_mode == "home", "nothing holds Esc back"
