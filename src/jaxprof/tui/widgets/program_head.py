"""The head of a program: what it is, how it stands, its figures, what it does now, and the bar of its time.

Two clocks run in it, of which a tick draws the cells that changed; nothing else is sent while nothing arrives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget

from jaxprof.safe_text import safe, shorten
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.program_bar import share_bar
from jaxprof.tui.widgets.program_now import Doing
from jaxprof.tui.widgets.wording import clock, status_mark
from jaxprof.units import seconds

CLOCK = 11


@dataclass(frozen=True, slots=True)
class Head:
    """What is said; while it stays equal, nothing is drawn but the clocks."""

    title: str
    status: str
    """As a run has it: `running`, `ok`, `failed`, `crashed`, `cancelled`."""
    state: str
    """In words: `running`, `exit code 3`, `cut off`."""
    began_seconds: float | None
    """Monotonic, while it goes on."""
    wall_seconds: float | None
    """When it is over."""
    figures: tuple[tuple[str, str], ...] = ()
    """Text and style, from the most to the least important."""
    doing: Doing | None = None
    trouble: str = ""
    """What went wrong, or what was not seen."""
    shares: tuple[tuple[str, float], ...] = ()
    """State and seconds, adding up to the wall time."""


class ProgramHead(Widget):
    """Four lines."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._head: Head | None = None
        self._clocks: dict[int, tuple[int, str]] = {}
        """By line: where the clock stands, and what it shows."""
        self.shift_seconds = 0.0
        """What the writer's clock is ahead of ours, where another machine writes the session."""

    def show(self, head: Head | None) -> None:
        """Shows another state of the program, or another program."""
        if head != self._head:
            self._head = head
            self.refresh()

    @property
    def runs(self) -> bool:
        """Whether a clock is to be drawn again and again."""
        return self._head is not None and self._head.began_seconds is not None

    def tick(self) -> None:
        """Draws the clocks again that show another time than before."""
        head = self._head
        if head is None:
            return
        for line, (column, text) in list(self._clocks.items()):
            began = head.began_seconds if line == 0 else head.doing.began_seconds if head.doing is not None else None
            if began is not None and self._clock(began) != text:
                if len(text) != len(self._clock(began)):
                    self.refresh(Region(0, line, self.size.width, 1))
                else:
                    self.refresh(Region(column, line, CLOCK, 1))

    def _clock(self, began_seconds: float) -> str:
        return clock(monotonic() + self.shift_seconds - began_seconds)

    def render(self) -> Content:
        head, width = self._head, self.size.width
        if head is None or width < 1:
            return Content("")
        self._clocks = {}
        lines = [self._first(head, width), self._figures(head, width), self._now(head, width)]
        lines.append(share_bar(dict(head.shares), width))
        return Content("\n").join(lines)

    def _first(self, head: Head, width: int) -> Content:
        """The program on the left, its state and clock on the right."""
        time = ""
        if head.began_seconds is not None:
            time = self._clock(head.began_seconds)
            self._clocks[0] = (width - CLOCK, time)
        elif head.wall_seconds is not None:
            time = seconds(head.wall_seconds)
        style = {"running": "bold $warning", "ok": "bold $better"}.get(head.status, "bold $error")
        state = Content.assemble(status_mark(head.status), " ", (safe(head.state), style))
        right = Content.assemble(state, cell(time, CLOCK, "bold", right=True))
        room = width - right.cell_length - 1
        if room < 8:
            return right.truncate(width)
        return Content.assemble(cell(head.title, room, "bold $primary"), " ", right)

    def _figures(self, head: Head, width: int) -> Content:
        line = Content("")
        for text, style in head.figures:
            part = Content.assemble((" · ", "$rule") if line.cell_length else "", (safe(text), style))
            if line.cell_length + part.cell_length <= width:
                line += part
        return line

    def _now(self, head: Head, width: int) -> Content:
        if head.trouble:
            return Content.styled(shorten(head.trouble, width), "$error")
        now = head.doing
        if now is None:
            return Content("")
        parts = [Content.styled("now ", "$text-muted")]
        if now.began_seconds is None:
            parts.append(cell(now.before, max(1, width - 4)))
            return Content.assemble(*parts)
        before = Content.styled(shorten(now.before, max(1, width - 4 - CLOCK)), "bold $phase-compile")
        time = self._clock(now.began_seconds)
        self._clocks[2] = (4 + before.cell_length, time)
        rest = width - 4 - before.cell_length - len(time)
        return Content.assemble(*parts, before, (time, "bold"), cell(now.after, max(0, rest), "$text-muted"))


def as_shares(shares: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Shares as a value that can be compared, rounded to what a bar can show."""
    return tuple((state, round(value, 3)) for state, value in shares.items())
