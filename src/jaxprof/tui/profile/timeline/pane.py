"""The timeline: a ruler, a row for each lane, and a cursor, below a search line; then what is under the cursor, and the
parts of its step. Each line is drawn only from the current window.

A lane of several threads or levels is closed at first if there is no room for all of it: its one line then shows how
many of its threads were busy. The view reports cursor moves; the pane interprets them.
"""

from __future__ import annotations

import re
from typing import cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from jaxprof.analysis.kernels.measured import kernels_of
from jaxprof.analysis.timeline import BUSY, TEXT_NAME, TimelineOp, read_timeline, readings_within
from jaxprof.analysis.timeline.lanes import NO_LANES, Lanes, Matches, lanes_of, search
from jaxprof.base.errors import JaxprofError
from jaxprof.base.text import safe
from jaxprof.base.units import counted, integer, seconds
from jaxprof.events import StepsMeasured
from jaxprof.session import Run, Session
from jaxprof.session.run import IMPORTED
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.drawing import join_styled
from jaxprof.tui.kit.filter import FilterLine, compile_pattern, following
from jaxprof.tui.kit.guard import HIDDEN, Guarded, Hidden, in_thread, on
from jaxprof.tui.kit.host import Destination, Host
from jaxprof.tui.kit.picture import Lines, Picture, show_titles
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.profile.timeline.browse import Browse, LaneLine
from jaxprof.tui.profile.timeline.drawing import (
    NS,
    cells,
    cursor_lines,
    legend,
    range_facts,
    ruler_time,
    step_lines,
    title,
)

WHEEL_ZOOM = 1.25


class TimelineView(RowList[LaneLine], keys="timeline"):
    """Lanes over time, whose rows are the lines of `browse`, the state of the view. The keys call its methods."""

    class Moved(Message):
        """The cursor, or the part in view, has changed."""

    def __init__(self) -> None:
        super().__init__(id="timeline")
        self.browse = Browse(NO_LANES, 1, 1)
        """The state; it has no lines while there is nothing to show."""
        self.matches: Matches | None = None
        """The matches of the search, which are marked; None without any."""
        self._drawn: dict[LaneLine, tuple[list[str], list[str]]] = {}
        """The columns of each row for the present lanes and matches, in the window of `_drawn_key`: most keys move only
        the cursor."""
        self._drawn_key: object = None
        self._room = 1

    # -- what is shown ----------------------------------------------------------------------------------------

    def show(self, lanes: Lanes, words: str = "") -> None:
        self.browse, self.empty = Browse(lanes, self._width, self._room), words
        self.refresh_bindings()
        self.show_matches(None)
        self.show_change()

    def recolour(self, lanes: Lanes) -> None:
        """Replace the lanes by the same lanes with more exact kinds; cursor, window and open lanes stay."""
        self._drawn_key, self.browse.lanes = None, lanes
        self.show_change()

    def show_matches(self, matches: Matches | None) -> None:
        self.matches, self._drawn_key = matches, None
        self.refresh()

    def fit(self, most: int) -> int:
        """Take the greatest height that is available, open the lanes that fit, and return the height needed."""
        self._room = max(1, most - 1)
        self.browse.resize(self._width, self._room)
        self._show_lines()
        return min(most, 1 + self.count)

    @property
    def _gutter(self) -> int:
        return 19 if self.size.width < 100 else 22

    @property
    def _width(self) -> int:
        return max(8, self.size.width - self._gutter - 1)

    def show_change(self) -> None:
        self.browse.arrange()
        self._show_lines()
        self.refresh()
        self.post_message(self.Moved())

    def _show_lines(self) -> None:
        self.set_keys(self.browse.lines)
        super().move_to(self.browse.line)

    def move_to(self, index: int) -> None:
        super().move_to(index)
        if self.browse.line != self.cursor:
            self.browse.line = self.cursor
            self.show_change()

    # -- drawing ----------------------------------------------------------------------------------------------

    @property
    def _top(self) -> int:
        return 1 if self._keys else 0

    def draw_header(self, width: int) -> Content | None:
        """Return round times above the lanes, with the length of the view beside them."""
        browse = self.browse
        if not self._top:
            return None
        times = list(ruler(Scale(browse.window.start, browse.window.end), self._width, ruler_time))
        part = "view" if browse.zoomed else "all"
        words = f"  {part} {seconds(browse.window.span * NS)}"[: self._gutter].ljust(self._gutter)
        column = browse.window.column_of(browse.cursor, self._width)
        if 0 <= column < self._width:
            times[column] = "▼"
        styles = self._with_cursor(browse, times, ["$text-muted"] * self._width)
        return Content.assemble((f"{words} ", "$text-muted"), join_styled(zip(times, styles, strict=True)))

    def draw_row(self, index: int, width: int) -> Content:
        browse = self.browse
        line, here = browse.lines[index], index == browse.line
        lane, row = browse.row(line)
        key = (browse.window, self._width)
        if self._drawn_key != key:
            self._drawn_key = key
            self._drawn.clear()
        if line not in self._drawn:
            lane, row = browse.row(line)
            hits = self.matches.busy.get(line if lane.opens else (line[0], -1)) if self.matches else None
            self._drawn[line] = cells(lane, row, browse.window, self._width, hits)
        glyphs, styles = self._drawn[line]
        if here or browse.range is not None:
            styles = self._with_cursor(browse, glyphs, styles, here=here)
        cursor = "block-cursor" if self.has_focus else "block-cursor-blurred"
        style = f"bold ${cursor}-foreground on ${cursor}-background" if here else "$text-muted"
        name = title(lane, line[1], row, self._gutter)
        return Content.assemble((name, style), ("│", "$rule"), join_styled(zip(glyphs, styles, strict=True)))

    def _with_cursor(self, browse: Browse, glyphs: list[str], styles: list[str], *, here: bool = True) -> list[str]:
        """Return the styles with the selected range on another background, except for names, which keep that of their
        interval; and, in the line of the cursor (`here`), its column."""
        styles, width = list(styles), self._width
        if browse.range is not None:
            begin, end = (browse.window.column_of(time, width) for time in browse.range)
            ground = f" on $primary 30%{' reverse' if self.app.no_color else ''}"
            for column in range(max(0, begin), min(width, end + 1)):
                styles[column] += ground if " on " not in styles[column] else ""
        column = browse.window.column_of(browse.cursor, width)
        if here and 0 <= column < width:
            styles[column - (not glyphs[column])] = "bold reverse $foreground"  # a wide character has two columns
        return styles

    # -- keys -------------------------------------------------------------------------------------------------

    def action_browse(self, method: str, *arguments: int) -> None:
        """Call a method of `browse` by its name, and say why it did nothing: only the jump to an idle time can fail."""
        if getattr(self.browse, method)(*arguments) is False:
            self.say("This lane has no idle period between its events.")
        self.show_change()

    # -- mouse ------------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        self.show_change()

    def _column(self, event: events.MouseEvent) -> int | None:
        offset = event.get_content_offset(self)
        return offset.x - self._gutter - 1 if offset is not None and offset.x > self._gutter else None

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1 / WHEEL_ZOOM)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, WHEEL_ZOOM)

    def _wheel(self, event: events.MouseEvent, factor: float) -> None:
        event.stop()
        event.prevent_default()
        column, browse = self._column(event), self.browse
        if column is not None:
            browse.zoom(factor, browse.window.time_at(column, browse.width))
            self.show_change()

    def on_click(self, event: events.Click) -> None:
        event.prevent_default()
        row, column, browse = self._row_at(event), self._column(event), self.browse
        if row >= 0:
            self.move_to(row)
        if column is not None:
            browse.look_at(browse.window.time_at(column, browse.width))
        elif row >= 0:
            browse.open()
        self.show_change()


FACTS_LINES = 8
"""Least lines of the lower box, with its frame."""


class TimelinePane(Guarded, Vertical, keys="timeline_pane"):
    _steps: StepsMeasured | None = None
    _of: tuple[Session | None, str] = (None, "")
    """The session and the run whose timeline is shown or read; no run without a timeline."""
    _search_state = ""
    _kernel = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="lane-box", classes="box") as box:
            box.border_title = "Timeline"
            yield FilterLine()
            yield TimelineView()
        with Vertical(id="timeline-facts", classes="box") as box:
            box.border_title = "Under the cursor"
            with Vertical(id="here-facts"):
                yield Lines(id="cursor-facts")
                yield Lines(id="step-facts")
            yield Picture(id="totals")

    @property
    def view(self) -> TimelineView:
        return self.query_one(TimelineView)

    def show(self, session: Session, source: Run | None, words: str) -> None:
        """Read the timeline of a run in a thread; without a run, show `words`, which explain why there is none."""
        self._steps, run = (source.steps, source.id) if source is not None else (None, "")
        if session is self._of[0] and run == self._of[1] and (run or words == self.view.empty):
            return
        self._of = of = (session, run)
        self.query_one(FilterLine).clear()
        self.workers.cancel_group(self, "timeline")
        self.view.show(NO_LANES, "Reading the timeline…" if run else words)
        if run:
            in_thread(
                self,
                lambda: self._read(of),
                "timeline",
                failed=lambda error: self._take(of, f"{error.what} {error.hint}".strip()),
            )

    def _read(self, of: tuple[Session, str]) -> None:
        """Post the lanes with kinds guessed from names, then with the kinds from the HLO. Runs in a thread."""
        session, run = of
        timeline = read_timeline(session.text(run, TEXT_NAME) or "")
        readings = readings_within(session, timeline)
        lanes = lanes_of(timeline, readings=readings)
        if of is not self._of:
            return
        self.call_later(self._take, of, lanes)
        kernels = kernels_of(session, run) if "hlo" in session.runs[run].texts else None
        if kernels and of is self._of:
            kinds = {kernel.name: kernel.kind for kernel in kernels}
            self.call_later(self._take, of, lanes_of(timeline, kinds, readings))

    def _take(self, of: tuple[Session, str], lanes: Lanes | str) -> None:
        if of is not self._of:  # another run has come into view since
            return
        if isinstance(lanes, str) or not lanes.lanes:
            self.view.show(NO_LANES, lanes if isinstance(lanes, str) else "The recording has no events.")
        elif self.view.count:
            self.view.recolour(lanes)
        else:
            self.view.show(lanes)
            self.want_kernel(self._kernel)

    # -- what is under the cursor -----------------------------------------------------------------------------

    def on_resize(self) -> None:
        self._show_facts()

    @on(TimelineView.Moved)
    def _show_facts(self) -> None:
        browse, box = self.view.browse, self.query_one("#lane-box")
        cursor, step = self.query_one("#cursor-facts", Lines), self.query_one("#step-facts", Lines)
        under = browse.under_cursor
        self.query_one("#timeline-facts").display = under is not None
        if under is None:
            box.styles.height = "1fr"
            show_titles(box, subtitle=Content(""))
            cursor.clear()
            step.clear()
            return
        lanes, window, whole = browse.lanes, browse.window, browse.whole
        shown = f"{seconds(window.span * NS)} of " * browse.zoomed + seconds(whole.span * NS)
        known = [shown, counted(lanes.intervals, "event")]
        known += [f"{integer(lanes.left_out)} shortest left out"] if lanes.left_out else []
        known += [] if any(lane.kind == BUSY for lane in lanes.lanes) else ["device busy: unknown, no device lane"]
        title = Content.assemble("Timeline  ", legend(lanes, self.size.width - 18))
        show_titles(box, title, Content(self._search_state or " · ".join(known)))
        # The upper box is as high as its lanes; the lower box takes the rest, and more of it for a range.
        span, frame, below = browse.range, 2 + self.query_one(FilterLine).display, FACTS_LINES
        below = max(below + self.screen.has_class("-tall"), self.size.height * 2 // 5 if span is not None else 0)
        box.styles.height = frame + self.view.fit(max(4, self.size.height - below - frame))
        # The totals of a range stand in place of what is under the cursor.
        self.set_class(span is not None, "-range")
        show_titles(self.query_one("#timeline-facts"), Content("Range" if span else "Under the cursor"))
        lane = browse.lines[browse.line][0]
        self.query_one("#totals", Picture).show(
            lambda width, height: range_facts(lanes, span, lane, width, height) if span else Content("")
        )
        if span is None:
            device, time = under[0].device, browse.cursor * NS
            cursor.show(lambda width: cursor_lines(browse, width))
            step.show(lambda width: step_lines(self._steps, time, device, width))
        self.refresh_bindings()

    # -- keys -------------------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        if not self.is_mounted:
            return super().why_not(action, parameters)
        if action == "search" and not self.view.count:
            return Hidden(self.view.empty)
        if action == "search" and isinstance(self.app.focused, FilterLine):
            return HIDDEN
        needed = {"hlo": self._op, "again": self._label, "next": self.view.matches}
        if action in needed and needed[action] is None:
            return ""
        return super().why_not(action, parameters)

    @property
    def _label(self) -> tuple[str, int | None] | None:
        under = self.view.browse.under_cursor
        return under[0].labels[int(under[1].label[under[2]])] if under is not None and under[2] is not None else None

    @property
    def _op(self) -> TimelineOp | None:
        label = self._label
        return self.view.browse.lanes.ops[label[1]] if label is not None and label[1] is not None else None

    def action_hlo(self) -> None:
        op, app = self._op, cast("Host", self.app)
        run = run_of_op(app.session, self._of[1], op) if op is not None else None
        if op is not None and run is None:
            self.say(f"The HLO of {safe(op.module)} was not recorded.", "No HLO")
        elif op is not None and run is not None:
            app.show(Destination("hlo", run=run, kernel=op.name))

    def action_search(self) -> None:
        self.query_one(FilterLine).open()

    def action_again(self) -> None:
        if (label := self._label) is not None:
            line = self.query_one(FilterLine)
            line.display = True
            # An expression for a name from outside, in printable characters: it stands in the search line.
            name = (re.escape(each) if each.isprintable() else f"\\U{ord(each):08x}" for each in label[0])
            line.value = f"^{''.join(name)}$"

    @on(FilterLine.Edited)
    def _search(self, message: FilterLine.Edited) -> None:
        found: Matches | None = None
        self._search_state = ""
        if message.text:
            try:
                found = search(self.view.browse.lanes, compile_pattern(message.text))
            except JaxprofError as error:
                self._search_state = safe(error.what)
            else:
                self._search_state = f"{integer(len(found))} matches{_median(found)}" if len(found) else "no matches"
        self.view.show_matches(found or None)
        self._show_facts()

    @on(FilterLine.Left)
    def _end_search(self) -> None:
        self.view.focus()
        self._go_to_match(self.view.browse.cursor - 1, 1)

    def action_next(self, step: int) -> None:
        self._go_to_match(self.view.browse.cursor, step)

    def _go_to_match(self, time: int, step: int) -> None:
        matches = self.view.matches
        number = following(matches.starts, time, step) if matches is not None else None
        if matches is None or number is None:
            return
        self._search_state = f"match {integer(number + 1)} of {integer(len(matches))}{_median(matches)}"
        self.view.browse.go(matches.end(number))
        self.view.show_change()

    def step_back(self) -> bool:
        """Undo one thing: the range, else the search, the zoom, or what was opened. Return False if there is none."""
        line, browse = self.query_one(FilterLine), self.view.browse
        if line.value and browse.anchor is None:
            line.clear()
            return True
        undone = browse.step_back()
        self.view.show_change()
        return undone

    def want_kernel(self, name: str) -> None:
        self._kernel, lanes = name, self.view.browse.lanes
        if not name or not self.view.count:
            return
        self._kernel = ""
        matches = search(lanes, re.compile(f"^{re.escape(name)}$"))
        ends = map(matches.end, range(len(matches)))
        first = next((end for end in ends if lanes.lanes[end.lane].on_device), None)
        if first is not None:
            self.view.browse.go(first)
            self.view.show_change()
        else:
            self.say(f"{safe(name)} is not in this recording.")


def _median(matches: Matches) -> str:
    return f", median {seconds(matches.median_ns * NS)}" if len(matches) > 1 else ""


def run_of_op(session: Session, run_id: str, op: TimelineOp) -> str | None:
    if session.runs[run_id].plan.how != IMPORTED:
        return run_id if "hlo" in session.runs[run_id].texts else None
    programs = [run for run in session.runs.values() if run.plan.how == IMPORTED and "hlo" in run.texts]
    same = [run for run in programs if op.program is not None and run.plan.parameters.get("program") == op.program]
    named = [run for run in programs if run.plan.workload == op.module]
    return next((run.id for run in [*same, *named]), None)
