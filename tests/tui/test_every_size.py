"""The six screens without anything, with all of it, and after an interruption, in two sizes, and in a third with all of
it: nothing is cut off where nobody sees it, no frame is empty in silence, and nothing stands where a value will."""

import re

import pytest
from textual.widgets import Static

from jaxprof.session import Session
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen_bars import KeyBar, ModeBar, StageTabs
from tui import profiles, recorded
from tui.fakes import SMALL, WIDE, strips, walking

SIZES, LARGE = (SMALL, WIDE), (200, 60)
MADE = {
    "empty": Session,
    "full": lambda: profiles.captured().session(),
    "interrupted": lambda: recorded.compiling().session(),
}
STANDS_FOR_A_VALUE = re.compile(r"\b(None|nan|inf|Analysing|Reading|Looking for)\b|reading…|\{[a-z_.]+\}")
FILLS = re.compile(r"Press \d to|Profile a script…")
"""How an empty screen says what fills it."""


def drawn_lines(widget):
    """The lines of a widget as they are drawn, and the columns that they have: Textual cuts what is wider without a
    word, wherever it does not wrap."""
    width = widget.content_size.width
    if isinstance(widget, RowList):
        width = widget.scrollable_content_region.width
        rows = range(min(widget.count, widget.size.height))
        return [widget.draw_header(width) or "", *(widget.draw_row(index, width) for index in rows)], width
    if isinstance(widget, Lines):
        return widget._at(width), width
    if isinstance(widget, KeyBar | ModeBar | StageTabs):
        return [widget.render()], width
    if widget.id == "plan":
        return [widget.content], width
    if isinstance(widget, Static):  # its words wrap
        return str(widget.content).split(), width
    return [], width


def faults(app):
    lines = [strip.text for strip in strips(app)]
    for widget in app.screen.query("*"):
        if not widget.is_on_screen or not widget.content_size.area:
            continue
        place = widget.region
        if place.right > app.size.width:
            yield f"{widget} is at {place}"
        drawn, width = drawn_lines(widget)
        for line in drawn:
            if (line.cell_length if hasattr(line, "cell_length") else len(line)) > width:
                yield f"{widget} has {width} columns for {line}"
        if widget.has_class("box") and place.bottom <= app.size.height:
            inside = [line[place.x + 1 : place.right - 1] for line in lines[place.y + 1 : place.bottom - 1]]
            if not "".join(inside).strip():
                yield f"{widget} is an empty frame"


@pytest.mark.usefixtures("small_catalogue", "shelf")
async def test_nothing_is_cut_unseen_or_empty_in_silence(monkeypatch):
    monkeypatch.setattr("jaxprof.tui.shell.device_monitor.PERIOD_SECONDS", 60.0)
    async with walking(SIZES[0]) as walk:
        await walk.home()
        await walk.until(lambda: walk.app.devices.asked)
        found = []
        for state, made in MADE.items():
            session = made()
            if session.runs:
                walk.app.set_session(session, None)
            for size in (*SIZES, LARGE) if state == "full" else SIZES:
                await walk.pilot.resize_terminal(*size)
                for key in "123456":
                    await walk.press(key)
                    await walk.until(lambda: not STANDS_FOR_A_VALUE.search(walk.text), f"{size} {key}: only values")
                    await walk.pause()
                    found += [f"{state} {size} {key}: {fault}" for fault in faults(walk.app)]
                    if not session.runs and not FILLS.search(walk.words):
                        found.append(f"{size} {key}: what fills it is not said")
        assert found == []
