"""The timeline with its search line; below it, what is under the cursor and the parts of its step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from textual.containers import Vertical
from textual.content import Content

from jaxprof.errors import JaxprofError
from jaxprof.text import safe
from jaxprof.tui.kit.filter import FilterLine, compiled, following
from jaxprof.tui.kit.guard import HIDDEN, Guarded, Hidden, in_thread, on
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.tui.profile.timeline.facts import NS, cursor_lines, legend, range_facts, step_lines
from jaxprof.tui.profile.timeline.view import TimelineView
from jaxprof.units import counted, integer, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.lanes import Lanes, Matches
    from jaxprof.analysis.timeline import TimelineOp
    from jaxprof.events import StepsMeasured
    from jaxprof.session import Session
    from jaxprof.tui.profile.timeline.browse import Browse
    from jaxprof.tui.profiler import Profiler


FACTS = 8
"""Least lines of the lower box, with its frame."""


class TimelinePane(Guarded, Vertical, keys="timeline_pane"):
    """The timeline of one run."""

    _steps: StepsMeasured | None = None
    _run_id = ""
    _matches: Matches | None = None
    _search_state = ""
    _kernel = ""
    """The kernel to go to once the timeline has been read."""

    def compose(self) -> ComposeResult:
        with Vertical(id="lane-box", classes="box") as box:
            box.border_title = "Timeline"
            yield FilterLine()
            yield TimelineView(id="lanes")
        with Vertical(id="timeline-facts", classes="box") as box:
            box.border_title = "Under the cursor"
            with Vertical(id="here-facts"):
                yield Lines(id="cursor-facts")
                yield Lines(id="step-facts")
            yield Picture(id="totals")

    @property
    def view(self) -> TimelineView:
        """The lanes."""
        return self.query_one(TimelineView)

    def show(self, session: Session, run: str, steps: StepsMeasured | None, words: str) -> None:
        """Read the timeline of `run` in a thread; without a `run`, show `words`, which explain why there is none."""
        self._steps = steps
        if run == self._run_id and run:
            return
        self._run_id = run
        self.query_one(FilterLine).clear()
        self.workers.cancel_group(self, "timeline")
        self.view.show(None, "Reading the timeline…" if run else words)
        if run:
            in_thread(
                self,
                lambda: self._read(session, run),
                "timeline",
                failed=lambda error: self._take(run, f"{error.what} {error.hint}".strip()),
            )

    def _read(self, session: Session, run: str) -> None:
        """Post the lanes with kinds guessed from names, then with the kinds from the HLO. Runs in a thread."""
        from jaxprof.analysis.lanes import lanes_of
        from jaxprof.analysis.measured import kernels_of
        from jaxprof.analysis.timeline import TEXT_NAME, read_timeline, readings_within

        timeline = read_timeline(session.text(run, TEXT_NAME) or "")
        readings = readings_within(session, timeline)
        lanes = lanes_of(timeline, readings=readings)
        if run != self._run_id:
            return
        self.call_later(self._take, run, lanes)
        kernels = kernels_of(session, run) if "hlo" in session.runs[run].texts else None
        if kernels and run == self._run_id:
            kinds = {kernel.name: kernel.kind for kernel in kernels}
            self.call_later(self._take, run, lanes_of(timeline, kinds, readings))

    def _take(self, run: str, lanes: Lanes | str) -> None:
        """Show the lanes of a run, or why there are none."""
        if run != self._run_id:  # another run has come into view since
            return
        if isinstance(lanes, str) or not lanes.lanes:
            self.view.show(None, lanes if isinstance(lanes, str) else "The recording has no events.")
        elif self.view.lanes is None:
            self.view.show(lanes)
            self.want_kernel(self._kernel)
        else:
            self.view.recolour(lanes)

    # -- what is under the cursor -----------------------------------------------------------------------------

    def on_resize(self) -> None:
        self._show_facts()

    @on(TimelineView.Moved)
    def _show_facts(self) -> None:
        browse, box = self.view.browse, self.query_one("#lane-box")
        cursor, step = self.query_one("#cursor-facts", Lines), self.query_one("#step-facts", Lines)
        if browse is None:
            box.styles.height = "1fr"
            box.border_subtitle = Content("")
            cursor.clear()
            step.clear()
            return
        lanes, window, whole = browse.lanes, browse.window, browse.whole
        left_out = f" · {integer(lanes.left_out)} shortest left out" if lanes.left_out else ""
        shown = f"{seconds(window.span * NS)} of " * browse.zoomed + seconds(whole.span * NS)
        box.border_subtitle = Content(self._search_state or f"{shown} · {counted(lanes.intervals, 'event')}{left_out}")
        box.border_title = Content.assemble("Timeline  ", legend(lanes, self.size.width - 18))
        self._fit(browse)
        self._show_totals(browse)
        under = browse.under_cursor
        if under is not None and browse.range is None:
            device, steps, time = under[0].device, self._steps, browse.cursor
            key = (self._run_id, id(lanes), browse.places[browse.line], time)
            cursor.show((*key, window), lambda width: cursor_lines(browse, width))
            step.show((*key, id(steps)), lambda width: step_lines(steps, time * NS, device, width))
        self.refresh_bindings()

    def _fit(self, browse: Browse) -> None:
        """Make the upper box as high as its lanes; the lower box takes the rest, and more of it for a range."""
        below = FACTS + self.screen.has_class("-tall")
        if browse.range is not None:
            below = max(below, self.size.height * 2 // 5)
        frame = 2 + self.query_one(FilterLine).display
        height = frame + self.view.fit(max(4, self.size.height - below - frame))
        self.query_one("#lane-box").styles.height = height

    def _show_totals(self, browse: Browse) -> None:
        """Show the totals of the range, in place of what is under the cursor."""
        span, lanes, lane = browse.range, browse.lanes, browse.places[browse.line][0]
        self.set_class(span is not None, "-range")
        self.query_one("#timeline-facts").border_title = Content("Range" if span else "Under the cursor")

        def draw(width: int, height: int) -> Content:
            return range_facts(lanes, span, lane, width, height) if span else Content("")

        self.query_one("#totals", Picture).show((id(lanes), span, lane), draw)

    # -- keys -------------------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Enable HLO on an interval of an op, the search if there is a timeline, and the next match if there are
        matches."""
        if not self.is_mounted:
            return super().why_not(action, parameters)
        if action == "search" and self.view.lanes is None:
            return Hidden(self.view.empty)
        if action == "search" and isinstance(self.app.focused, FilterLine):
            return HIDDEN
        needed = {"hlo": self._op, "again": self._label, "next": self._matches}
        if action in needed and needed[action] is None:
            return ""
        return super().why_not(action, parameters)

    @property
    def _label(self) -> tuple[str, int | None] | None:
        """Name and number of the op of the interval under the cursor; None in an idle time."""
        under = self.view.browse.under_cursor if self.view.browse is not None else None
        return under[0].labels[int(under[1].label[under[2]])] if under is not None and under[2] is not None else None

    @property
    def _op(self) -> TimelineOp | None:
        label, lanes = self._label, self.view.lanes
        return lanes.ops[label[1]] if label is not None and label[1] is not None and lanes is not None else None

    def action_hlo(self) -> None:
        """Go to the HLO of the run that the kernel belongs to."""
        op, app = self._op, cast("Profiler", self.app)
        run = run_of_op(app.session, self._run_id, op) if op is not None else None
        if op is not None and run is None:
            self.say(f"The HLO of {safe(op.module)} was not recorded.", "No HLO")
        elif op is not None and run is not None:
            app.show_in("hlo", run, kernel=op.name)

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
        from jaxprof.analysis.lanes import search

        self._matches, self._search_state = None, ""
        if message.text and self.view.lanes is not None:
            try:
                found = search(self.view.lanes, compiled(message.text))
            except JaxprofError as error:
                self._search_state = safe(error.what)
            else:
                self._matches = found if len(found) else None
                self._search_state = f"{integer(len(found))} matches{_median(found)}" if len(found) else "no matches"
        self.view.show_matches(self._matches)
        self._show_facts()

    @on(FilterLine.Left)
    def _searched(self) -> None:
        self.view.focus()
        if self.view.browse is not None:
            self._go_to_match(self.view.browse.cursor - 1, 1)

    def action_next(self, step: int) -> None:
        if self.view.browse is not None:
            self._go_to_match(self.view.browse.cursor, step)

    def _go_to_match(self, time: int, step: int) -> None:
        """Go to the match after or before a time, if there is one."""
        matches = self._matches
        number = following(matches.starts, time, step) if matches is not None else None
        if matches is None or number is None:
            return
        self._search_state = f"match {integer(number + 1)} of {integer(len(matches))}{_median(matches)}"
        self.view.change(lambda browse: browse.go(matches.end(number)))

    def step_back(self) -> bool:
        """Undo one thing: the range, else the search, the zoom, or what was opened. Return False if there is none."""
        line, browse = self.query_one(FilterLine), self.view.browse
        if line.value and (browse is None or browse.anchor is None):
            line.clear()
            return True
        undone = browse is not None and browse.step_back()
        self.view.changed()
        return undone

    def want_kernel(self, name: str) -> None:
        """Go to the first execution of a kernel, once the timeline has been read."""
        from jaxprof.analysis.lanes import search

        self._kernel, lanes = name, self.view.lanes
        if not name or lanes is None:
            return
        self._kernel = ""
        matches = search(lanes, re.compile(f"^{re.escape(name)}$"))
        ends = map(matches.end, range(len(matches)))
        first = next((end for end in ends if lanes.lanes[end.lane].on_device), None)
        if first is not None:
            self.view.change(lambda browse: browse.go(first))
        else:
            self.say(f"{safe(name)} is not in this recording.")


def _median(matches: Matches) -> str:
    return f", median {seconds(matches.median_ns * NS)}" if len(matches) > 1 else ""


def run_of_op(session: Session, run_id: str, op: TimelineOp) -> str | None:
    """Return the run that has the HLO of an op; None if no run has it."""
    runs = session.runs
    run = runs.get(run_id)
    if run is not None and "hlo" in run.texts and run.plan.how != "imported":
        return run_id
    programs = [run for run in runs.values() if run.plan.how == "imported" and "hlo" in run.texts]
    same = [run for run in programs if op.program is not None and run.plan.parameters.get("program") == op.program]
    named = [run for run in programs if run.plan.workload == op.module]
    return next((run.id for run in [*same, *named]), None)
