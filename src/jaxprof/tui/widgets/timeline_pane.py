"""The timeline with its search line and, below, what is under the cursor and where the time of its step goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.worker import get_current_worker

from jaxprof.errors import JaxprofError
from jaxprof.safe_text import safe, shorten
from jaxprof.tui.programs.search import compiled
from jaxprof.tui.timeline.browse import Place
from jaxprof.tui.widgets.filter_line import FilterLine
from jaxprof.tui.widgets.picture import Lines
from jaxprof.tui.widgets.step_parts import step_lines
from jaxprof.tui.widgets.timeline_view import TimelineView
from jaxprof.tui.widgets.timeline_words import NS, cursor_lines, legend
from jaxprof.units import integer, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.events import StepsMeasured
    from jaxprof.session import Session
    from jaxprof.tui.timeline.lanes import Lanes
    from jaxprof.tui.timeline.search import Found


class TimelinePane(Vertical):
    """One run's timeline."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority, so that the line has the focus before the next key is looked at: drawing the lanes may take
        # long enough that a fast typist's letters wait behind the slash, and would go to the lanes.
        Binding("slash", "search", "Search", key_display="/", tooltip="Search the names with a regular expression",
                id="timeline.search", priority=True),
        Binding("n", "next(1)", "Next", show=False, tooltip="To the next match", id="timeline.next"),
        Binding("N", "next(-1)", "Match before", show=False, tooltip="To the match before", id="timeline.previous"),
        Binding("h", "hlo", "HLO", tooltip="To the HLO of what is under the cursor", id="timeline.hlo"),
    ]  # fmt: skip

    class HloWanted(Message):
        """To the HLO of a kernel: its name, its module, and its program's id where it is known."""

        def __init__(self, name: str, module: str, program: str | None) -> None:
            super().__init__()
            self.name, self.module, self.program = name, module, program

    class Read(Message, bubble=False):
        """A timeline was read in a thread, or could not be."""

        def __init__(self, run: str, lanes: Lanes | None, error: JaxprofError | None = None) -> None:
            super().__init__()
            self.run, self.lanes, self.error = run, lanes, error

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._steps: StepsMeasured | None = None
        self._of = ""
        self._found: Found | None = None
        self._pattern = ""
        self._said = ""
        self._kernel = ""
        """That is to be gone to when the timeline is read."""

    def compose(self) -> ComposeResult:
        with Vertical(id="lane-box", classes="box") as box:
            box.border_title = "Timeline"
            yield FilterLine()
            yield TimelineView(id="lanes")
        with Vertical(id="timeline-facts", classes="box") as box:
            box.border_title = "Under the cursor"
            yield Lines(id="cursor-facts")
            yield Lines(id="step-facts")

    @property
    def view(self) -> TimelineView:
        """The lanes."""
        return self.query_one(TimelineView)

    def show(self, session: Session, run: str, steps: StepsMeasured | None, words: str) -> None:
        """Reads the timeline of `run` in a thread; an empty `run` has none, and `words` say why."""
        self._steps = steps
        if run == self._of and run:
            return
        self._of, self._found, self._pattern, self._said = run, None, "", ""
        self.workers.cancel_group(self, "timeline")
        self.view.show(None, "Reading the timeline…" if run else words)
        if run:
            self.run_worker(
                lambda: self._read(session, run), name="timeline", group="timeline", exclusive=True, thread=True
            )

    def _read(self, session: Session, run: str) -> None:
        """In a thread: first the lanes as their names say, then with the kinds that the HLO gives."""
        from jaxprof.results.timeline import TEXT_NAME, read_timeline
        from jaxprof.tui.timeline.lanes import lanes_of

        worker = get_current_worker()
        try:
            timeline = read_timeline(session.text(run, TEXT_NAME) or "")
            lanes = lanes_of(timeline)
        except JaxprofError as error:
            self.post_message(self.Read(run, None, error))
            return
        if worker.is_cancelled:
            return
        self.post_message(self.Read(run, lanes))
        kinds = kernel_kinds(session, run)
        if kinds and not worker.is_cancelled:
            self.post_message(self.Read(run, lanes_of(timeline, kinds)))

    def on_timeline_pane_read(self, message: Read) -> None:
        if message.run != self._of:
            return
        if message.lanes is None:
            error = message.error
            self.view.show(None, f"{error.what} {error.mend}".strip() if error is not None else "")
        elif not message.lanes.lanes:
            self.view.show(None, "The recording has no events.")
        elif self.view.lanes is None:
            self.view.show(message.lanes)
            self._take_kernel()
        else:
            self.view.recolour(message.lanes)

    # -- what is under the cursor -----------------------------------------------------------------------------

    @on(TimelineView.Moved)
    def _show_facts(self) -> None:
        view = self.view
        lanes, window = view.lanes, view.window
        box = self.query_one("#lane-box")
        if lanes is None or window is None:
            box.border_subtitle = Content("")
            for name in ("cursor-facts", "step-facts"):
                self.query_one(f"#{name}", Lines).show(None, lambda width: ())
            return
        whole = lanes.end - lanes.begin
        left_out = f" · {integer(lanes.left_out)} shortest left out" if lanes.left_out else ""
        shown = f"{seconds(window.span * NS)} of {seconds(whole * NS)}" if window.span < whole else seconds(whole * NS)
        box.border_subtitle = Content(self._said or f"{shown} · {integer(lanes.intervals)} events{left_out}")
        box.border_title = Content.assemble("Timeline  ", legend(lanes, self.size.width - 46))
        found = view.under_cursor
        if found is not None:
            lane, row, at = found
            time = view.time
            key = (self._of, id(lanes), lane.title, row.name, row.level, at, time, window)
            facts = self.query_one("#cursor-facts", Lines)
            facts.show(key, lambda width: cursor_lines(lanes, window, time, found, width))
            steps = self._steps
            facts = self.query_one("#step-facts", Lines)
            facts.show((*key[:2], time, lane.device, id(steps)),
                       lambda width: step_lines(steps, time * NS, lane.device, width))  # fmt: skip
        self.refresh_bindings()

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """HLO is there for what belongs to an op; the next match where there is one."""
        if not self.is_mounted:
            return super().check_action(action, parameters)
        if action == "hlo":
            return True if self._op() is not None else None
        if action == "search":
            return not isinstance(self.app.focused, FilterLine)
        if action == "next":
            return True if self._found is not None and len(self._found) else None
        return super().check_action(action, parameters)

    def _op(self) -> tuple[str, str, str | None] | None:
        lanes, found = self.view.lanes, self.view.under_cursor
        if lanes is None or found is None or found[2] is None:
            return None
        lane, row, at = found
        op = lane.labels[int(row.label[at])][1]
        return (lanes.ops[op].name, lanes.ops[op].module, lanes.ops[op].program) if op is not None else None

    def action_hlo(self) -> None:
        """To the HLO of the kernel under the cursor."""
        op = self._op()
        if op is not None:
            self.post_message(self.HloWanted(*op))

    def action_search(self) -> None:
        """Opens the line in which a name is typed."""
        if self.view.lanes is not None:
            self.query_one(FilterLine).open(self._pattern)

    @on(FilterLine.Edited)
    def _search(self, message: FilterLine.Edited) -> None:
        from jaxprof.tui.timeline.search import search

        self._pattern, lanes = message.text, self.view.lanes
        self._found = None
        if message.text and lanes is not None:
            try:
                self._found = search(lanes, compiled(message.text))
            except JaxprofError as error:
                self._say(safe(error.what))
                self.view.show_found(None)
                return
        self.view.show_found(self._found)
        count = len(self._found) if self._found is not None else 0
        self._say((f"{integer(count)} matches" if count else "no match") if message.text else "")
        self.refresh_bindings()

    def _say(self, text: str) -> None:
        """How the search goes, in place of what is in view, for as long as there is one."""
        self._said = text
        self._show_facts()

    @on(FilterLine.Left)
    def _searched(self) -> None:
        self.view.focus()
        if self._found is not None and len(self._found):
            self._go_to(self._found.following(self.view.time - 1, 1))

    def action_next(self, step: int) -> None:
        """To the next match, or the one before."""
        if self._found is not None:
            self._go_to(self._found.following(self.view.time, step))

    def _go_to(self, number: int | None) -> None:
        found = self._found
        if found is None or number is None:
            return
        self.view.go(Place(int(found.lane[number]), int(found.row[number])), int(found.starts[number]))
        self._say(f"{integer(number + 1)} of {integer(len(found))} matches of {shorten(self._pattern, 20)}")

    def clear_search(self) -> bool:
        """Forgets the search; False where there is none."""
        if not self._pattern:
            return False
        self.query_one(FilterLine).clear()
        self._pattern, self._found, self._said = "", None, ""
        self.view.show_found(None)
        self._show_facts()
        return True

    def want_kernel(self, name: str) -> None:
        """Puts the cursor on the first execution of a kernel, as soon as the timeline is read."""
        self._kernel = name
        self._take_kernel()

    def _take_kernel(self) -> None:
        if self._kernel and self.view.lanes is not None:
            name, self._kernel = self._kernel, ""
            if not self._go_to_kernel(name):
                self.notify(f"{safe(name)} is not in this recording.", markup=False)

    def _go_to_kernel(self, name: str) -> bool:
        import re

        from jaxprof.tui.timeline.search import search

        lanes = self.view.lanes
        if lanes is None:
            return False
        found = search(lanes, re.compile(f"^{re.escape(name)}$"))
        first = next((n for n, lane in enumerate(found.lane.tolist()) if lanes.lanes[lane].on_device), None)
        if first is None:
            return False
        self.view.go(Place(int(found.lane[first]), int(found.row[first])), int(found.starts[first]))
        return True


def kernel_kinds(session: Session, run: str) -> dict[str, str]:
    """The HLO's kinds of a run's kernels by name; empty where it has no HLO of its own."""
    if "hlo" not in session.runs[run].texts:
        return {}
    from jaxprof.results.kernels import kernels_of

    return {kernel.name: kernel.kind for kernel in kernels_of(session, run) or ()}
