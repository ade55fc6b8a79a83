"""The Program screen: what costs most in a user's program and what to do about it, its compile ledger, and its output.

Arriving events drive everything except the two clocks of the head, which tick while the program runs. Where its time
went by line and over time is on the Profile screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.base.text import safe
from jaxprof.base.units import counted, integer, percent, seconds
from jaxprof.events import Compiled
from jaxprof.events.finding import Finding
from jaxprof.facts.programs import ProgramRow
from jaxprof.findings.program_result import program_result
from jaxprof.hlo.kernels.origin import HloSourceLocation
from jaxprof.tui.keys import in_words, key_of
from jaxprof.tui.kit.captures import can_capture, capture, is_ours, last_window
from jaxprof.tui.kit.dialogs import rerun_program
from jaxprof.tui.kit.drawing import bar, cell, hang, wrap_content
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.host import Destination
from jaxprof.tui.kit.picture import OUTPUT_TITLE, Lines, LogPane, ScrollPane, show_titles
from jaxprof.tui.kit.program_summary import head_lines
from jaxprof.tui.kit.python_source import SourceLines, source_facts
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import ViewsScreen
from jaxprof.tui.kit.screen_bars import StageTabs, Tab
from jaxprof.tui.kit.table_columns import Cell, TableColumn
from jaxprof.tui.kit.text_lists import Claim, claim_of
from jaxprof.tui.program.ledger import CompilationDialog, LedgerList, compile_strip

if TYPE_CHECKING:
    from jaxprof.findings import Explanation

CANCELLING = (
    "Interrupted, as by ctrl+c. Press {key} again to terminate the program.",
    "Sent a termination signal. Press {key} again to kill the program.",
    "Killing the program.",
)


VIEWS = {"findings": "Findings", "ledger": "Ledger", "output": OUTPUT_TITLE}
NOTHING = {
    "findings": ("No findings so far.", "No findings."),
    "ledger": ("No compilations yet.", "No compilation was recorded."),
}
"""Texts of empty lists, while the program runs and afterwards."""
_OF_A_PROGRAM = ("capture", "cancel", "again", "filter", "tab", "next_tab")


class AdviceList(RowList[Claim], keys="advice"):
    """The findings of a program, what saves most first; Enter shows the line that one is about."""

    def __init__(self) -> None:
        super().__init__(
            (
                TableColumn("saves ≤", lambda it: it.cost if it.saves_seconds is None else seconds(it.saves_seconds), 8,
                            right=True, style="bold $warning"),
                TableColumn("", self._bar, 5, weight=1, most=16),
                TableColumn("finding", lambda row: (row.text, row.style), 24, weight=9),
                TableColumn("line", lambda row: (row.location, "$primary"), 4, most=28, fits=True),
            ),
            id="findings",
        )  # fmt: skip

    def haystack(self, row: Claim) -> str:
        return f"{row.text} {row.location} {row.fix}"

    def _bar(self, row: Claim) -> Cell:
        most = max((claim.saves_seconds or 0.0 for claim in map(self.row, self.keys) if claim is not None), default=0.0)
        return lambda width: bar((row.saves_seconds or 0.0) / (most or 1.0), width, "$warning", track="")


def claim_lines(claim: Claim | None, sources: Mapping[str, str], around: int, width: int) -> Iterator[Content]:
    """Yield what a finding says as a whole, the line that it is about with those `around`, and the fix."""
    if claim is None:
        return
    yield from wrap_content(Content.styled(safe(claim.text), claim.style), width)
    where = claim.about
    if where is not None and where.line is not None:
        located = HloSourceLocation(where.file, where.line)
        yield from source_facts(located, width, sources, where.function, around)
    yield from hang(Content.styled("→ ", "bold $better"), claim.fix, width) if claim.fix else ()


def claims_of(result: ProgramResult, findings: Sequence[Finding]) -> Iterator[Claim]:
    for finding in findings:
        yield claim_of(finding, finding.where, directory=result.directory)
    for remark in result.remarks:
        if any(finding.code == remark.code for finding in findings):
            continue
        yield Claim(remark.message, fix=remark.fix, style="$text-muted")


class ProgramScreen(ViewsScreen, keys="program"):
    MODE = "program"
    EXPLAINS = True
    AUTO_FOCUS = "#findings"
    VIEWS = VIEWS
    _result: ProgramResult | None = None
    _cancelled = ("", 0)
    """The program that the user has cancelled, and how often."""

    @property
    def section(self) -> str:
        return "compiles" if self._view == "ledger" else "summary"

    def compose_body(self) -> ComposeResult:
        words = f"No program was recorded in this session. {key_of('home.program')} on Start runs one."
        yield Static(Content(words), id="program-empty")
        yield Lines(id="program-head")
        yield StageTabs(id="program-tabs")
        yield FilterLine("ledger", "findings")
        with Vertical(id="program-body"):
            for widget in (AdviceList(), LedgerList(), LogPane(id="output", of_program=True)):
                with Vertical(id=f"{widget.id}-pane", classes="box") as box:
                    box.border_title = VIEWS[widget.id or ""]
                    if widget.id == "ledger":
                        yield Lines(id="compile-strip")
                    yield widget
            with ScrollPane(id="finding-pane"):
                yield Lines(id="finding")
        yield Lines(id="last-output")

    # -- showing ----------------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Show the program that another screen had in view, else the last of the session, if it has changed."""
        session, before = self.profiler.session, self._run
        shown = session.runs.get(self.profiler.destination.run)
        if shown is None or not shown.is_program:
            shown = next(reversed(session.programs), None)
        self._run = shown.id if shown is not None else ""
        if replaced or self._run != before:
            self._result = None
            self.query_one(LedgerList).forget()
            self._show()
        elif self._run in runs:
            self._show()

    def arrive(self, destination: Destination) -> None:
        self.show_session(frozenset(), replaced=False)
        self.set_clock(self._ticks)
        if destination.view == "summary":
            destination = replace(destination, view="findings" if self._view == "ledger" else self._view)
        super().arrive(destination)

    def _show(self) -> None:
        run = self.run
        self.show_empty(empty=run is None)
        self.refresh_bindings()
        if run is None:
            self.query_one("#program-head", Lines).clear()
            self.set_clock(False)
            return
        result = self._result = program_result(self.profiler.session, run.id)
        runs = not result.ended and self.profiler.session_grows
        for name, words in NOTHING.items():
            self.query_one(f"#{name}", RowList).show_empty(words[not runs])
        self.query_one(LedgerList).show(result)
        self.query_one("#compile-strip", Lines).show(partial(compile_strip, result))
        self._show_findings(result.findings)
        self.query_one("#output", LogPane).show(result.run.id, result.run.log)
        self._show_sums()
        self.tick()
        self.share_room()
        self.set_clock(self._ticks)

    def show_explanation(self, found: Explanation) -> None:
        """Show also what the captures say, once the session is whole."""
        result = self._result
        if result is None or not result.ended or found.session is not self.profiler.session:
            return
        others = {run.id for run in self.profiler.session.programs} - {result.run.id}
        findings = [finding for finding in found.findings if finding.run not in others]
        self._show_findings(findings, found.leading.reason if found.leading is not None else "")

    def _show_findings(self, findings: Sequence[Finding], leading: str = "") -> None:
        """Show the findings, below what is unknown of a larger part of the time than any of them."""
        if self._result is None:
            return
        claims = [Claim(leading, style="")] if leading else []
        claims += claims_of(self._result, findings)
        self.query_one(AdviceList).show_rows({claim.key: claim for claim in claims})
        self._show_finding()

    @on(RowList.Highlighted, "#findings")
    def _show_finding(self) -> None:
        claim, around = self.query_one(AdviceList).current_row, 6 if self.has_class("-tall") else 1
        self.query_one("#finding", Lines).show(partial(claim_lines, claim, self.profiler.session.sources, around))

    @on(LedgerList.Sorted)
    def _show_sums(self) -> None:
        result = self._result
        if result is None:
            return
        rows = self.query_one(LedgerList)
        share = percent(result.of_wall(result.compile_seconds))
        words = [f"{integer(result.compile_count)} in {seconds(result.compile_seconds)}, {share} of the wall time"]
        words += [f"{rows.hidden} hidden"] if rows.hidden else []
        found = len(result.findings)
        them = "it" if found == 1 else "them"
        how = f"{in_words('program.explain')} shows how to verify {them}"
        for name, text in {
            "ledger": " · ".join([*words, rows.order_in_words]) if result.functions else "",
            "findings": how if found else "",
            "output": counted(len(result.run.log), "line") if result.run.log else "",
        }.items():
            show_titles(self.query_one(f"#{name}-pane"), subtitle=Content(text))

    def on_resize(self) -> None:
        self.call_after_refresh(self.share_room)  # when the screen has the classes of its new size

    def share_room(self) -> None:
        """Display one view; with the findings what is known of one of them, and the last line of the output."""
        run, of_findings = self.run, self._view == "findings"
        if run is None:
            return
        self.show_views(self._view)
        self.query_one("#finding-pane").display = of_findings
        last = [*run.log][-1:] if of_findings else []
        self.query_one("#last-output", Lines).show(
            lambda width: [cell("output  ", 8, "$quiet") + cell(line.text, width - 8) for line in last]
        )

    def tabs(self) -> Iterator[Tab]:
        result = self._result
        notes = {"ledger": result.compile_count, "findings": len(result.findings)} if result is not None else {}
        for name, title in VIEWS.items():
            yield Tab(name, title, note=integer(notes[name]) if notes.get(name) else "")

    @property
    def _ticks(self) -> bool:
        result = self._result
        return result is not None and not result.ended and self.profiler.session_grows

    def tick(self) -> None:
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
        self.query_one("#program-head", Lines).show(draw)

    # -- rows -------------------------------------------------------------------------------------------------

    def on_filter_line_edited(self) -> None:
        self._show_sums()

    @on(RowList.Chosen, "#ledger")
    def _compilation(self) -> None:
        row = self.query_one(LedgerList).current_row
        if isinstance(row, Compiled) and self._result is not None:
            self.app.push_screen(CompilationDialog(ProgramRow(self._result, row)))

    @on(RowList.Chosen, "#findings")
    def _show_source(self) -> None:
        claim = self.query_one(AdviceList).current_row
        if claim is not None and claim.about is not None:
            self.app.push_screen(SourceLines(claim.about, self.profiler.session.sources))

    # -- commands to the program ------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
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
        self.profiler.show(Destination("profile", "timeline", last_window(self.profiler.session)[0]))

    def action_hlo(self) -> None:
        self.profiler.show(Destination("hlo", run=last_window(self.profiler.session)[1]))

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
        if self.run is not None:
            rerun_program(self.profiler, self.run)
