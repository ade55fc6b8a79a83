"""What the five screens have in common: the line of modes above, the line of keys below, and the session's changes.

A screen that is not in view is told nothing; when it comes into view again it is told of everything that changed
meanwhile, once. So a screen only ever has to know how to show the session that is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.screen import Screen

from jaxprof.tui.messages import SessionChanged
from jaxprof.tui.widgets.key_bar import KeyBar
from jaxprof.tui.widgets.mode_bar import ModeBar
from jaxprof.tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.timer import Timer
    from textual.types import CSSPathType

    from jaxprof.tui.app import JaxprofApp


SETTLE_SECONDS = 0.06
"""How long the cursor rests before what depends on its row is shown: above the repeat of a held key."""


class SessionScreen(Screen[None]):
    """A screen that shows the app's session. Subclasses give `compose_body` and `show_session`."""

    CSS_PATH: ClassVar[CSSPathType | None] = "../jaxprof.tcss"
    MODE: ClassVar[str] = ""
    """The app's mode whose base this screen is."""

    def __init__(self) -> None:
        super().__init__()
        self._missed: set[str] = set()
        self._replaced = True
        self._composed = False
        self._settling: Timer | None = None
        self._when_settled: Callable[[], object] = self.come_into_view

    @property
    def profiler(self) -> JaxprofApp:
        """The app, by its own type."""
        return cast("JaxprofApp", self.app)

    @property
    def whole(self) -> bool:
        """Whether the widgets are there: messages still come while they are made, and while the app is closed."""
        whole = self._composed and all(child.is_attached for child in self.children)
        return whole and bool(self.query(self.AUTO_FOCUS or KeyBar))

    def compose(self) -> ComposeResult:
        yield ModeBar(self.MODE)
        yield from self.compose_body()
        yield KeyBar()
        yield TooSmall()

    def on_mount(self) -> None:
        """Joins the screens that are told of changes, with all its widgets there."""
        self._composed = True
        self.profiler.session_screens.append(self)
        self.come_into_view()

    def compose_body(self) -> ComposeResult:
        """The widgets between the two bars."""
        yield from ()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Shows `app.session`, of which `runs` changed; `replaced` when it is another one than before."""

    def miss(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Notes what changed while this screen was not in view."""
        self._replaced = self._replaced or replaced
        self._missed = set(runs) if replaced else self._missed | runs

    def on_session_changed(self, message: SessionChanged) -> None:
        """Shows what changed, together with what was missed."""
        if not self.whole:
            self.miss(message.runs, replaced=message.replaced)
            return
        runs = frozenset(message.runs | self._missed)
        replaced = message.replaced or self._replaced
        self._missed, self._replaced = set(), False
        self.show_session(runs, replaced=replaced)

    def once_settled(self, show: Callable[[], object]) -> None:
        """Calls `show` when the cursor has rested for a moment, and once for however many moves.

        A row is marked in a millisecond; what stands beside it costs a new layout, which a held key must not wait for.
        """
        if self._settling is not None:
            self._settling.stop()
        self._when_settled = show
        self._settling = self.set_timer(SETTLE_SECONDS, self.settle)

    def settle(self) -> None:
        """Shows at once what waits for the cursor to rest."""
        if self._settling is not None:
            self._settling.stop()
            self._settling = None
            if self.whole:
                self._when_settled()

    def on_screen_resume(self) -> None:
        """Comes into view again; for the first time it does when it is mounted, because before it has no widgets."""
        if self._composed:
            self.come_into_view()

    def come_into_view(self) -> None:
        """Catches up with what was missed. Subclasses add what they read anew at each visit."""
        if not self.whole:
            return
        self.query_one(ModeBar).show_state()
        if self._missed or self._replaced:
            self.on_session_changed(SessionChanged(frozenset(self.profiler.session.runs), replaced=self._replaced))
