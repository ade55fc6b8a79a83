"""Esc undoes the last thing and nothing else: on every screen, what was opened, filtered, searched or enlarged."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from textual import events
from textual.widgets import Input

from tui import hlo_texts, profiles, recorded
from tui import session_tapes as tapes
from tui.fakes import walking

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment", "shelf")


class Place(NamedTuple):
    """A screen with something in it, and what says that it is there."""

    mode: str
    tape: Callable[[], tapes.Tape]
    says: str
    view: str = ""


PROGRAM = Place("program", recorded.finished, "step")
RESULTS = Place("results", tapes.finished, "numpy")
HLO = Place("hlo", hlo_texts.program_tape, "dot.1")
TIMELINE = Place("profile", profiles.captured, "python", "timeline")
HOME = Place("home", tapes.finished, "Your code")

STEPS = [
    (HOME, "/ 'sel enter"),
    (PROGRAM, "enter", "m b enter", "m b enter down enter", "/ 'add enter", "m a", "m"),
    (RESULTS, "m a", "enter", "m l"),
    (HLO, "/ 'tanh enter", "enter"),
    (TIMELINE, "m . +", "space", "down down down enter", "down m _", "/ 'gemm enter", "m V"),
]
"""What is pressed on a screen: Esc undoes it, and only when nothing is left to undo leads away from the screen."""


async def shown(walk, place):
    await walk.show(place.tape(), place.mode, place.says, view=place.view)


async def shown_again(walk, place):
    """The screen that was left, with its session as it is."""
    walk.app.switch_mode(place.mode)
    await walk.mode(place.mode)
    await walk.shows(place.says)
    await walk.pause()


async def undone(walk, place, keys):
    """Presses keys there, and Esc, which undoes them; further ones lead away."""
    app = walk.app
    await shown_again(walk, place)
    top, before = app.screen, walk.text
    await walk.press(keys)
    await walk.pause()
    after = walk.text
    assert after != before, f"{keys} does something"
    await walk.press("escape")
    await walk.until(lambda: app.screen is top and walk.text != after, keys)
    assert app.current_mode == place.mode, "one step back is not a screen back"
    for _ in range(3):
        if app.current_mode == place.mode != "home":
            await walk.press("escape")
            await walk.pause()
    assert app.current_mode == "home", "nothing holds Esc back"


TYPED = "/lo/x"
"""`l`, `o` and `x` are keys on most screens."""
SEARCHED = {HOME: ("",), PROGRAM: ("", "3"), HLO: ("", "m 9"), TIMELINE: ("",)}
"""Where that is typed, and with which keys one goes there."""


def typed(walk):
    return walk.app.focused.value if isinstance(walk.app.focused, Input) else ""


def at_once(walk, letters):
    """What is typed quickly arrives together, over a slow line."""
    for letter in letters:
        walk.app.post_message(events.Key("slash" if letter == "/" else letter, letter))


async def searches(walk, place):
    at_once(walk, TYPED)
    await walk.until(lambda: typed(walk) == TYPED[1:], f"{TYPED[1:]!r} is typed")
    assert walk.app.current_mode == place.mode
    await walk.press("escape escape")


@pytest.mark.parametrize("steps", STEPS, ids=lambda steps: steps[0].mode)
async def test_escape_undoes_before_it_leaves(steps):
    place, *lines = steps
    async with walking() as walk:
        await shown(walk, place)
        for keys in lines:
            await undone(walk, place, keys)
        for keys in SEARCHED.get(place, ()):
            await shown_again(walk, place)
            await walk.press(keys)
            await walk.pause()
            await searches(walk, place)


async def test_the_menu_takes_its_own_letter():
    async with walking() as walk:
        await shown(walk, HOME)
        at_once(walk, "mx")
        await walk.on("FormDialog")
        await walk.until(lambda: walk.app.focused)
        await walk.press("'mx")
        assert typed(walk) == "mx"
