"""The base of the screens: the mode bar above, the key bar below, and the changes of the session.

A screen out of view only notes changes; when it comes into view again it shows all of them at once. A subclass
therefore only has to show the current session.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar, cast

from textual.screen import Screen
from textual.widget import Widget

from jaxprof.base.errors import UsageError
from jaxprof.session.files import lasting_name
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import HIDDEN, Guarded, in_thread
from jaxprof.tui.kit.host import SECTION_OF, Destination, Host, LiveChanged
from jaxprof.tui.kit.screen_bars import KeyBar, ModeBar, StageTabs, Tab, TooSmall
from jaxprof.tui.theme import STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from textual.app import ComposeResult
    from textual.events import ScreenResume
    from textual.timer import Timer
    from textual.types import CSSPathType

    from jaxprof.findings import Explanation
    from jaxprof.session import Run


class SessionScreen(Guarded, Screen[None]):
    """A screen that shows the app's session. Subclasses provide `compose_body` and `show_session`."""

    MODE: str = ""

    CSS_PATH: ClassVar[CSSPathType | None] = STYLES
    TICK_SECONDS: ClassVar[float] = 1.0
    EXPLAINS: ClassVar[bool] = False
    """Whether the screen shows what to do about the session."""

    _missed: frozenset[str] = frozenset()
    _replaced = True
    _composed = False
    _innermost: Widget | None = None
    _clock: Timer | None = None

    @property
    def profiler(self) -> Host:
        return cast("Host", self.app)

    @property
    def section(self) -> str:
        return SECTION_OF[self.MODE]

    @property
    def whole(self) -> bool:
        """Whether all widgets exist: messages also arrive while the screen composes, and while the app closes."""
        if not self._composed or not all(child.is_attached for child in self.children):
            return False
        if self._innermost is None:  # cached: each key of the bar asks, several times a second
            self._innermost = next(iter(self.query(self.AUTO_FOCUS or KeyBar)), None)
        return self._innermost is not None and self._innermost.is_attached

    def compose(self) -> ComposeResult:
        # The size classes for the app's size. Textual sets them when a screen learns its size, after a first layout,
        # which is visible over a slow line.
        app, classes = self.app, dict[str, bool]()
        breakpoints = ((app.HORIZONTAL_BREAKPOINTS, app.size.width), (app.VERTICAL_BREAKPOINTS, app.size.height))
        for steps, extent in breakpoints:
            fitting = [name for start, name in steps or () if extent >= start]
            classes |= {name: name in fitting[-1:] for _, name in steps or ()}
        self.update_classes(classes)
        yield ModeBar()
        yield from self.compose_body()
        yield KeyBar()
        yield TooSmall()

    def on_mount(self) -> None:
        self._composed = True
        self.profiler.session_screens.append(self)
        self.come_into_view()

    def compose_body(self) -> ComposeResult:
        yield from ()

    def show_empty(self, *, empty: bool) -> None:
        """Show why there is nothing to show, or everything else: it gets back the focus, which hidden widgets lose."""
        self.set_class(empty, "-empty")
        if not empty and self.focused is None:
            self.focus_view()

    def focus_view(self) -> None:
        self.query_one(self.AUTO_FOCUS or "*").focus()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Show `app.session`, whose `runs` have changed; `replaced`: it is another session."""

    def action_explain(self) -> None:
        from jaxprof.tui.kit.dialogs import ExplanationDialog

        profiler = self.profiler
        if profiler.session_grows:
            hint = f"Press {in_words('results.explain')} once it has ended."
            raise UsageError("the session is still being written", hint)
        self.app.push_screen(ExplanationDialog(profiler.session, self._called))

    @property
    def _called(self) -> str:
        path = self.profiler.opened.profile or self.profiler.session_path
        return lasting_name(path) if path is not None else "last"

    def on_live_changed(self, message: LiveChanged) -> None:
        """Show which keys work now, and explain a session that this app has finished writing."""
        if self.whole:
            self.refresh_bindings()
            self._explain()

    def _explain(self) -> None:
        """Have a thread explain the session once it is whole: reading the HLO of its runs can take a second."""
        if not self.EXPLAINS or self.profiler.session_grows or not self.profiler.opened.run_ids:
            return
        session, name = self.profiler.session, self._called

        def derive() -> Explanation:
            from jaxprof.findings.derive import explanation

            return explanation(session, name, most=sys.maxsize)

        in_thread(self, derive, "explain-session", then=self.show_explanation)

    def show_explanation(self, found: Explanation) -> None:
        """Show what there is to do about a session, which may be another one by now."""

    def show_state(self) -> None:
        for bar in self.query(ModeBar):
            bar.show_state()
        self.refresh_bindings()

    def receive_change(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Show this change of the session and those that the screen missed; out of view, note it for later."""
        self._replaced = self._replaced or replaced
        self._missed = runs if replaced else self._missed | runs
        if self.whole and self.profiler.current_mode == self.MODE:
            runs, replaced = self._missed, self._replaced
            self._missed, self._replaced = frozenset(), False
            self.show_session(runs, replaced=replaced)
            self._explain()

    # -- a clock ----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Redraw what changes with time, each `TICK_SECONDS` while the clock is set and the screen is in view."""

    def set_clock(self, on: bool) -> None:
        """Start or stop the only timer of this screen: out of view, nothing ticks."""
        if on and self._clock is None and self.is_current:
            self._clock = self.set_interval(self.TICK_SECONDS, self.tick)
        elif not on and self._clock is not None:
            self._clock.stop()
            self._clock = None

    def on_screen_suspend(self) -> None:
        self.set_clock(False)

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Catch up with missed changes. At first, `on_mount` does this, because the screen has no widgets before."""
        event.refresh_styles = False  # out of view it missed none but those of a theme: `Profiler.refresh_css`
        if self._composed:
            self.come_into_view()
            self.refresh_bindings()  # they may have changed under a dialog

    def come_into_view(self) -> None:
        """Show the changes that the screen missed, then the destination, unless a key leads on to another one."""
        if not self.whole:
            return
        self.show_state()
        if self._missed or self._replaced:
            self.receive_change(self.profiler.opened.run_ids, replaced=False)
        if self.profiler.destination.mode == self.MODE:
            self.arrive(self.profiler.arrive())

    def arrive(self, destination: Destination) -> None:
        """Show what the user goes to. Subclasses also reload here what may have changed since the last visit."""


class ViewsScreen(SessionScreen):
    """Base class of a screen with a filter line and several views: tabs that share one area."""

    VIEWS: ClassVar[Mapping[str, str]] = {}
    """Title of each view, by the id of the widget that takes its focus. A view `name` that has more widgets is inside
    one with the id `name-pane`."""
    _run = ""

    def __init__(self) -> None:
        super().__init__()
        self._view = next(iter(self.VIEWS))

    @property
    def run(self) -> Run | None:
        return self.profiler.session.runs.get(self._run)

    def share_room(self) -> None:
        self.show_views(self._view)

    def show_views(self, *shown: str) -> None:
        for name in self.VIEWS:
            for pane in self.query(f"#{name}-pane"):
                pane.display = name in shown
        self.query_one(StageTabs).show_tabs(self.tabs(), shown)

    def tabs(self) -> Iterator[Tab]:
        for name, title in self.VIEWS.items():
            yield Tab(name, title)

    def arrive(self, destination: Destination) -> None:
        if destination.text:
            self.query_one(FilterLine).open(destination.text)
        self.action_tab(destination.view)

    def action_tab(self, name: str) -> None:
        if name in self.VIEWS and self.check_action("tab", (name,)):
            self._view = name
            self.focus_view()
            self.share_room()
            self.show_state()

    def action_next_tab(self, step: int) -> None:
        names = [name for name in self.VIEWS if self.check_action("tab", (name,))]
        at = names.index(self._view) if self._view in names else 0
        self.action_tab(names[(at + step) % len(names)])

    def action_capture(self) -> None:
        from jaxprof.tui.kit.captures import capture, program_without_capture

        capture(self.profiler, program_without_capture(self.profiler.session))

    def action_trust(self) -> None:
        from jaxprof.tui.kit.captures import show_checks

        if self.run is not None:
            show_checks(self.profiler, self.run)

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def on_filter_line_left(self) -> None:
        self.focus_view()

    def focus_view(self) -> None:
        self.query_one(f"#{self._view}").focus()

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        if action == "unfilter" and not self.query_one(FilterLine).value:
            return HIDDEN
        return super().why_not(action, parameters)

    def action_unfilter(self) -> None:
        self.query_one(FilterLine).clear()
        self.on_filter_line_left()
