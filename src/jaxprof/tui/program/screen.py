"""The Program screen: what a user's program does or did, as time, compile ledger, findings, lines and output.

On a small terminal the views are tabs; on a larger one, several are side by side. Arriving events drive everything
except the two clocks of the head, which tick while the program runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from jaxprof.analysis.flame import program_flame
from jaxprof.analysis.programs.derive import program_result
from jaxprof.events import Compiled
from jaxprof.facts.programs import ProgramRow
from jaxprof.report.conclusion import Conclusion, program_cost
from jaxprof.tui.keys import in_words, key_of
from jaxprof.tui.kit.captures import can_capture, capture, is_ours, last_window
from jaxprof.tui.kit.claims import Claim, ClaimList, claim_of
from jaxprof.tui.kit.explanation import cost_lines
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.log_pane import LogPane
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.program_summary import head_lines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import ViewsScreen
from jaxprof.tui.kit.screen_bars import StageTabs
from jaxprof.tui.kit.time_tree import TimeTree
from jaxprof.tui.program.ledger import CompilationDialog, LedgerList
from jaxprof.tui.program.line_profile import HotLineList, SourceLines, TimePane, nested
from jaxprof.units import counted, integer, percent, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widget import Widget

    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.session import Run
    from jaxprof.tui.kit.table_view import TableView

CANCELLING = (
    "Interrupted, as by ctrl+c. Press {key} again to terminate the program.",
    "Sent a termination signal. Press {key} again to kill the program.",
    "Killing the program.",
)


VIEWS = {
    "findings": "Findings",
    "ledger": "Ledger",
    "lines": "Lines",
    "flame": "Flame",
    "time": "Time",
    "output": "Process output",
}
NOTHING = {
    "findings": ("No findings so far.", "No findings."),
    "ledger": ("No compilations yet.", "No compilation was recorded."),
    "lines": ("No lines sampled yet.", "No line was sampled."),
}
"""Texts of empty lists, while the program runs and afterwards."""
_OF_A_PROGRAM = ("capture", "cancel", "again", "filter", "tab", "next_tab")
"""Actions that need a program."""
MAIN = ("findings", "ledger", "lines", "flame")
"""Views that share the main area of a large terminal; the others have areas of their own below it."""


class AdviceList(ClaimList, keys="advice"):
    """The findings of a program; Enter shows the line that one is about."""


def claims_of(result: ProgramResult) -> Iterator[Claim]:
    """Return the findings, then remarks that are true of most programs."""
    for finding in result.findings:
        yield claim_of(finding, finding.where, directory=result.directory)
    for remark in result.remarks:
        yield Claim(f"{remark.message}. {remark.advice}", style="$text-muted")


class ProgramScreen(ViewsScreen, keys="program"):
    """The views of one program."""

    MODE = "program"
    TICK_SECONDS = 0.5
    AUTO_FOCUS = "#findings"
    VIEWS = VIEWS
    _main = MAIN[0]
    """The view in the main area of a large terminal."""
    _run = ""
    _result: ProgramResult | None = None
    """The figures that are shown."""
    _cancelled = ("", 0)
    """The program that the user has cancelled, and how often."""

    @property
    def place(self) -> str:
        """The place of this screen in the menu: the summary, unless the ledger is in view."""
        return "compiles" if self._view == "ledger" else "summary"

    def compose_body(self) -> ComposeResult:
        words = f"No program was recorded in this session. {key_of('home.program')} on Start runs one."
        yield Static(Content(words), id="program-empty")
        yield Lines(id="program-head")
        yield StageTabs(id="program-tabs")
        yield FilterLine("ledger", "findings", "lines", "flame")
        widgets: dict[str, Widget] = {
            "findings": AdviceList(id="findings"),
            "ledger": LedgerList(id="ledger"),
            "lines": HotLineList(id="lines"),
            "flame": TimeTree("line", "place", id="flame"),
            "time": TimePane(id="time"),
            "output": LogPane(id="output", of_program=True),
        }
        with Vertical(id="program-body"):
            for area, names in (("program-main", MAIN), ("program-below", ("time", "output"))):
                with Horizontal(id=area):
                    for name in names:
                        with Vertical(id=f"{name}-pane", classes="box") as box:
                            box.border_title = VIEWS[name]
                            if name == "findings":
                                yield Lines(id="costs")
                            yield widgets[name]

    # -- showing ----------------------------------------------------------------------------------------------

    @property
    def run(self) -> Run | None:
        """The program in view."""
        return self.profiler.session.runs.get(self._run)

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Show the program if it has changed."""
        before = self._run
        if replaced or self.run is None:
            self._choose()
        if replaced or self._run != before:
            self._result = None
            self.query_one(LedgerList).forget()
        if replaced or self._run != before or self._run in runs:
            self._show()

    def _choose(self) -> None:
        """Choose the program that another screen had in view, else the last of the session."""
        session = self.profiler.session
        wanted = session.runs.get(self.profiler.run_in_view)
        recorded = session.programs
        self._run = wanted.id if wanted is not None and wanted.is_program else recorded[-1].id if recorded else ""

    def come_into_view(self) -> None:
        """Show what changed meanwhile, and start the clocks again."""
        super().come_into_view()
        if not self.whole:
            return
        before = self._run
        self._choose()
        if self._run != before:
            self._show()
        self.set_clock(self._ticks)
        view, self.profiler.view_wanted = self.profiler.view_wanted, ""
        if view == "summary":
            view = "findings" if self._view == "ledger" else self._view
        words, self.profiler.words_wanted = self.profiler.words_wanted, ""
        if words:
            self.query_one(FilterLine).open(words)
        self.action_tab(view)

    def _show(self) -> None:
        run = self.run
        self.show_empty(empty=run is None)
        self.refresh_bindings()
        if run is None:
            self.query_one("#program-head", Lines).clear()
            self.set_clock(False)
            return
        session = self.profiler.session
        result = program_result(session, run.id)
        self._show_views(result)
        self.tick()
        self.share_room()
        self.set_clock(self._ticks)

    def _show_views(self, result: ProgramResult) -> None:
        """Show the current figures of the program in all views."""
        if self._result is not result:
            same = self._result is not None and self._result.run.id == result.run.id
            self.query_one(TimeTree).show(nested(program_flame(result), result.directory), same=same)
        self._result = result
        runs = not result.ended and self.profiler.session_grows
        for name, words in NOTHING.items():
            listed = self.query_one(f"#{name}", RowList)
            if listed.empty != words[not runs]:
                listed.empty = words[not runs]
                listed.refresh()
        self.query_one(LedgerList).show(result)
        self.query_one(AdviceList).show(claims_of(result))
        costs = Conclusion(*program_cost(result), "")
        self.query_one("#costs", Lines).show(costs, lambda width: [*cost_lines(costs, width), Content("")])
        self.query_one(HotLineList).show(result)
        self.query_one("#output", LogPane).show(result.run.id, result.run.log)
        self.query_one(TimePane).show(result)
        self._show_sums()

    @on(LedgerList.Sorted)
    def _show_sums(self) -> None:
        """Show the totals of the lists on their frames."""
        result = self._result
        if result is None:
            return
        rows = self.query_one(LedgerList)
        share = percent(result.of_wall(result.compile_seconds))
        words = [f"{integer(result.compile_count)} in {seconds(result.compile_seconds)}, {share} of the wall time"]
        words += [f"{rows.hidden} hidden"] if rows.hidden else []
        found = len(result.findings)
        them = "it" if found == 1 else "them"
        how = f"{counted(found, 'finding')} · {in_words('program.explain')} shows how to verify {them}"
        for name, text in {
            "ledger": " · ".join([*words, rows.order_in_words]) if result.functions else "",
            "findings": how if found else "",
            "lines": counted(result.samples, "sample") if result.samples else "",
            "time": f"{seconds(result.wall_seconds)} of wall time" if result.wall_seconds else "",
            "output": counted(len(result.run.log), "line") if result.run.log else "",
        }.items():
            self.query_one(f"#{name}-pane").border_subtitle = Content(text)

    def on_resize(self) -> None:
        self.call_after_refresh(self.share_room)  # when the screen has the classes of its new size

    def share_room(self) -> None:
        """Display one view, or on a large terminal several.

        A program that wrote nothing has no output view until the user opens it.
        """
        if self.run is not None:
            result = program_result(self.profiler.session, self._run)
            notes = {
                "ledger": integer(result.compile_count) if result.compile_count else "",
                "findings": str(len(result.findings)) if result.findings else "",
            }
            shown = self._shown(bool(self.run.log))
            self.show_tabs(shown, notes)
            for name in VIEWS:
                self.query_one(f"#{name}-pane").display = name in shown
            below = self.query_one("#program-below")
            self.query_one("#program-main").display = bool(shown & set(MAIN))
            below.display = bool(shown - set(MAIN))
            below.set_class(bool(shown & set(MAIN)), "-low")

    def _shown(self, wrote: bool) -> frozenset[str]:
        """Return the views to display: the main one, on a wide terminal a second one beside it, time and output below
        if the program `wrote` any; one view alone on a small terminal."""
        if not self.has_class("-tall") or self.has_class("-narrow"):
            return frozenset({self._view})
        beside = {"findings" if self._main != "findings" else "ledger"} if self.has_class("-very-wide") else set()
        output = {"output"} if wrote or self._view == "output" else set()
        return frozenset({self._main, "time", *beside, *output})

    @property
    def _ticks(self) -> bool:
        """Whether the program runs, so that clocks tick."""
        result = self._result
        return result is not None and not result.ended and self.profiler.session_grows

    def tick(self) -> None:
        """Redraw the head if it, or one of its clocks, shows something else."""
        result, opened = self._result, self.profiler.opened
        if result is None:
            return
        draw = partial(
            head_lines,
            self.profiler.session,
            result,
            silent=opened.silent_since,
            shift_seconds=opened.clock_shift_seconds,
        )
        head = self.query_one("#program-head", Lines)
        head.show([(line.plain, line.spans) for line in draw(width=head.content_size.width or 80)], draw)

    # -- views and filter -------------------------------------------------------------------------------------

    def action_tab(self, name: str) -> None:
        self._main = name if name in MAIN else self._main
        super().action_tab(name)
        self.show_state()

    def on_filter_line_edited(self) -> None:
        self._show_sums()

    @on(RowList.Chosen, "#ledger")
    def _compilation(self) -> None:
        """Show all of one compilation."""
        row = self.query_one(LedgerList).current_row
        if isinstance(row, Compiled) and self._result is not None:
            self.app.push_screen(CompilationDialog(ProgramRow(self._result, row)))

    @on(RowList.Chosen, "#findings, #lines, #flame")
    def _show_source(self, message: RowList.Chosen) -> None:
        """Show the line that a row is about, and the lines around it."""
        row = cast("TableView[Any]", message.rows).current_row
        where = row.about if isinstance(row, Claim) else row.where if row is not None else None
        if where is not None:
            self.app.push_screen(SourceLines(where))

    # -- commands to the program ------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Dim keys that have no effect now."""
        if not self.whole:
            return super().why_not(action, parameters)
        run, ours = self.run, is_ours(self.profiler)
        if action in ("profile", "hlo"):
            read = last_window(self.profiler.session)[action == "hlo"]
            return None if read else "no capture of this program was read yet"
        if run is None:
            return "" if action in _OF_A_PROGRAM else super().why_not(action, parameters)
        if action == "capture" and not can_capture(self.profiler, run):
            return "another process records this program"
        if action == "cancel" and (run.over or not ours):
            return "this program has ended" if run.over else "not started here: end it where it runs"
        if action == "again" and ours and not run.over:
            return "this program has not ended yet"
        return super().why_not(action, parameters)

    def action_capture(self) -> None:
        capture(self.profiler, self.run)

    def action_profile(self) -> None:
        self.profiler.show_in("profile", last_window(self.profiler.session)[0], "timeline")

    def action_hlo(self) -> None:
        self.profiler.show_in("hlo", last_window(self.profiler.session)[1])

    def action_cancel(self) -> None:
        run = self.run
        if run is None or run.over:
            return
        count = self._cancelled[1] + 1 if self._cancelled[0] == run.id else 1
        self._cancelled = (run.id, count)
        self.profiler.live.cancel(run.id)
        message = CANCELLING[min(count, len(CANCELLING)) - 1].format(key=key_of("program.cancel"))
        self.say(message, "Ending the program")

    def action_again(self) -> None:
        from jaxprof.tui.kit.script_dialog import rerun_program

        if self.run is not None:
            rerun_program(self.profiler, self.run)
