"""The lines above and below every screen: the modes and the current activity, the tabs, the keys.

Written by hand: Textual's `Header` is a title and a clock, and does not drop its parts by importance; its `Tabs` take
two lines of the 24, and cannot divide a line into two parts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, cast

from textual.content import Content
from textual.screen import Screen
from textual.style import Style
from textual.widgets import Input

from jaxprof.base.text import columns, shorten
from jaxprof.base.values import frozen
from jaxprof.tui.keys import ACTIONS, HIDDEN, IN_MENU, LAST_RANK, key_of
from jaxprof.tui.kit.host import SECTIONS, Host
from jaxprof.tui.kit.picture import Picture


class ModeBar(Picture):
    """The first line: the six screens, the open session, and the current activity. A click on a screen goes there."""

    def on_mount(self) -> None:
        self.show_state()

    def show_state(self) -> None:
        self.show(self._line)

    def _line(self, width: int, height: int) -> Content:
        app = cast("Host", self.app)
        state, path = app.activity, app.session_path
        session = path.name.removesuffix(".jaxprof") if path is not None else ""
        lacking = app.lacking()
        parts: list[Content] = []
        for section in SECTIONS:
            here, key = section == getattr(self.screen, "section", ""), f"app.mode.{section}"
            click = Style.from_meta({"@click": f"app.section('{section}')"})
            tab = Content.styled(f" {key_of(key)} ", "$quiet" if not here else "bold $foreground on $panel")
            usual = "$text-disabled" if section in lacking else "$text-muted"
            name = Content.styled(f"{ACTIONS[key].label} ", "bold $foreground on $panel" if here else usual)
            parts.append((tab + name).stylize(click))
        tabs = Content.assemble(*parts)
        left = Content.assemble((" jaxprof ", "bold $primary"), tabs)
        if left.cell_length + (columns(state) + 2 if state else 0) > width:
            left = tabs  # drop the name of the app first: the state and the tabs matter more
        room = width - left.cell_length - 1
        state = shorten(state, room) if state and room > 3 else ""
        room -= columns(state) + (2 if state else 0)
        session = shorten(session, room) if session and room >= 6 else ""
        right = Content.assemble((state, "bold $warning"), "  " if state and session else "", (session, "$quiet"))
        gap = width - left.cell_length - right.cell_length - 1
        return Content.assemble(left, " " * gap, right) if gap >= 0 else left


@frozen
class Tab:
    name: str
    title: str
    short: str = ""
    """Title for narrow terminals; empty if it is the same."""
    note: str = ""
    enabled: bool = True
    stage: bool = False


class StageTabs(Picture):
    """One line of tabs: lists on the left, the program's stages on the right. A click opens a tab.

    Brackets mark the tabs in view, so that they stand out without colours too.
    """

    def show_tabs(self, tabs: Iterable[Tab], shown: Container[str]) -> None:
        listed = [*tabs]

        def parts(*, short: bool) -> Content:
            left, right = (
                [_tab(tab, shown=tab.name in shown, short=short) for tab in listed if tab.stage is stage]
                for stage in (False, True)
            )
            return Content.assemble(*left, ("│" if right else "", "$rule"), *right)

        def line(width: int, height: int) -> Content:
            whole = parts(short=False)
            return whole if whole.cell_length <= width else parts(short=True)

        self.show(line)


def _tab(tab: Tab, *, shown: bool, short: bool) -> Content:
    title = (short and tab.short) or tab.title
    left, right = ("[", "]") if shown else (" ", " ")
    style = "bold $primary" if shown else "$foreground" if tab.enabled else "$text-disabled"
    note = f" {tab.note}" if tab.note else ""
    text = Content.assemble((left, "$primary"), (title, style), (note, "$text-muted"), (right, "$primary"))
    if not tab.enabled:
        return text
    return text.stylize(Style.from_meta({"@click": f"screen.tab({tab.name!r})"}))


_LAST = ("app.menu", "app.help", "app.quit")
"""Ids of the bindings at the right end of every key bar, in order."""
MOST_KEYS = 6
"""Most keys in the bar; the menu has the others."""


class KeyBar(Picture):
    """The last line: the keys that work now; a click on one presses it.

    It is one widget that draws one line: Textual's footer has a widget per key and recreates all of them at each change
    of focus, which is slow over SSH. If not all keys fit, those that come first in the key table stay; `?` shows all.
    """

    _changed = False

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)
        self._bindings_changed(self.screen)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        """Show the keys once for all changes that come together: each key is asked whether it works. Which do depends
        on the app's current screen. From Python 3.12 on, where Textual's tasks start at once, this widget is mounted
        before the app has a current screen, and `call_next` would run as early."""
        if not self._changed:
            self._changed = self.call_later(self._show_keys)

    def _show_keys(self) -> None:
        self._changed, screen = False, self.screen
        if screen is not self.app.screen:  # under a dialog it stays as it is
            return
        keys: dict[str, BarKey] = {}
        for active in screen.active_bindings.values():
            binding = active.binding
            shown = self.app.get_key_display(binding)
            is_text = isinstance(screen.focused, Input) and len(shown) == 1 and shown.isascii()
            listed = not (is_text or binding.key.startswith(IN_MENU))
            if listed and binding.show and binding.description and binding.id and binding.action not in keys:
                position = _LAST.index(binding.id) + 1 if binding.id in _LAST else 0
                rank = ACTIONS[binding.id].bar if active.enabled else HIDDEN
                rank = LAST_RANK if position else rank
                text = _key_text(binding.key, shown, binding.description, enabled=active.enabled)
                keys[binding.action] = BarKey(text, rank, position)
        in_order = sorted(keys.values(), key=attrgetter("position"))
        self.show(lambda width, height: _fitting(in_order, width - 1))


class BarKey(NamedTuple):
    text: Content
    """A click on it presses the key."""
    rank: int
    """Priority of the key: if not all keys fit, the higher rank stays; keys that do nothing now are dropped first."""
    position: int
    """Position of the key among those at the right end, from 1; 0 elsewhere."""


@lru_cache(maxsize=256)
def _key_text(key: str, shown: str, label: str, *, enabled: bool) -> Content:
    """Return the text of a key. All texts are made anew whenever a key may have begun or ceased to work."""
    styles = ("bold $footer-key-foreground", "$foreground") if enabled else ("$quiet", "$quiet")
    text = Content.assemble((shown, styles[0]), " ", (label, styles[1]), "  ")
    return text.stylize(Style.from_meta({"@click": f"app.press({key!r})"}))


def _fitting(keys: Sequence[BarKey], room: int) -> Content:
    fitting: set[int] = set()
    for at, key in sorted(enumerate(keys), key=lambda pair: -pair[1].rank):
        if key.text.cell_length <= room and len(fitting) < MOST_KEYS:
            room -= key.text.cell_length
            fitting.add(at)
    return Content(" ").append(Content("").join(key.text for at, key in enumerate(keys) if at in fitting))


class TooSmall(Picture):
    """A note in the middle; below 80×24 the stylesheet lays it over everything else."""

    def on_mount(self) -> None:
        def note(width: int, height: int) -> Content:
            return Content.assemble(
                ("jaxprof", "bold $primary"),
                " needs a terminal of 80×24.\n",
                (f"This one is {width}×{height}. ", "$text-muted"),
                (f"Make it larger, or press {key_of('app.quit')} to quit.", "$text-muted"),
            )

        self.show(note)

    def on_show(self) -> None:
        self.screen.refresh_bindings()  # no key acts on what is below it

    def on_hide(self) -> None:
        self.screen.refresh_bindings()
