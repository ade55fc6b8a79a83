"""The views of a program: ledger, findings, lines, flame graph, time and output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.content import Content

from jaxprof.analysis.flame import program_flame
from jaxprof.report.conclusion import program_cost
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.canvas import Scale
from jaxprof.tui.kit.claims import Claim, ClaimList
from jaxprof.tui.kit.explanation import cost_lines
from jaxprof.tui.kit.format import place_text
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.icicle import IciclePane
from jaxprof.tui.kit.log_pane import LogPane
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.program.ledger import LedgerList
from jaxprof.tui.program.line_profile import MOST, HotLineList, hottest
from jaxprof.tui.program.time_pane import DEVICES, TimePane, Track, array_tracks, device_tracks
from jaxprof.units import counted, integer, percent, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widget import Widget

    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.session import Session


class AdviceList(ClaimList, keys="advice"):
    """The findings of a program; Enter shows the line that one is about."""


def claims_of(result: ProgramResult) -> Iterator[Claim]:
    """Return the findings, then remarks that are true of most programs."""
    for finding in result.findings:
        saves = f"; would save about {seconds(finding.saves_seconds, 2)}" if finding.saves_seconds else ""
        cost = seconds(finding.seconds) if finding.seconds is not None else ""
        place = place_text(finding.where, result.directory)
        yield Claim(finding.message + saves, "", cost, place, finding.advice, finding.where)
    for remark in result.remarks:
        yield Claim(f"{remark.message}. {remark.advice}", style="$text-muted")


VIEWS = {
    "findings": "Findings",
    "ledger": "Ledger",
    "lines": "Lines",
    "flame": "Flame",
    "time": "Time",
    "output": "Process output",
}
MAIN = ("findings", "ledger", "lines", "flame")
"""Views that share the main area of a large terminal; the others have areas of their own below it."""


class ProgramPanes(Guarded, Vertical):
    """A box for each view."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._result: ProgramResult | None = None
        self._titles: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        widgets: dict[str, Widget] = {
            "findings": AdviceList("No findings.", id="findings"),
            "ledger": LedgerList(id="ledger"),
            "lines": HotLineList(id="lines"),
            "flame": IciclePane("flame"),
            "time": TimePane(id="time"),
            "output": LogPane(id="output", of_program=True),
        }
        for area, names in (("program-main", MAIN), ("program-below", ("time", "output"))):
            with Horizontal(id=area):
                for name in names:
                    with Vertical(id=f"{name}-pane", classes="box") as box:
                        box.border_title = VIEWS[name]
                        if name == "findings":
                            yield Lines(id="costs")
                        yield widgets[name]

    def forget(self) -> None:
        """Prepare for another program."""
        self._result = None
        self.query_one(LedgerList).forget()

    def show(self, session: Session, result: ProgramResult) -> None:
        """Show the current figures of a program."""
        same = self._result is not None and self._result.run.id == result.run.id
        if self._result is not result:
            self.query_one(IciclePane).show(program_flame(result), "No time was recorded yet.", same=same)
        self._result = result
        wall, directory = result.wall_seconds or None, result.directory
        self.query_one(LedgerList).show(result.functions, wall, directory)
        self.query_one(AdviceList).show(claims_of(result))
        costs = program_cost(result)
        self.query_one("#costs", Lines).show(costs, lambda width: cost_lines(*costs, width))
        self.query_one(HotLineList).show(hottest(result.lines, MOST), wall, directory)
        self.query_one(LogPane).show(result.run.id, result.run.log)
        self._show_time(session, result)
        self.show_sums()

    def display_only(self, shown: frozenset[str]) -> None:
        """Display these views side by side; those below the main ones get the room that they need, or all of it."""
        for name in VIEWS:
            self.query_one(f"#{name}-pane").display = name in shown
        self.query_one("#program-main").display = bool(shown & set(MAIN))
        below = self.query_one("#program-below")
        below.display = bool(shown - set(MAIN))
        below.set_class(bool(shown & set(MAIN)), "-low")

    def _show_time(self, session: Session, result: ProgramResult) -> None:
        program = result.run.program
        axis = Scale(result.began_seconds, result.began_seconds + result.wall_seconds)
        tracks: list[Track] = array_tracks(program.arrays if program is not None else ())
        readings = session.readings
        for device in sorted(readings, key=lambda name: (name.startswith("cpu"), name))[:DEVICES]:
            tracks += device_tracks(device, readings[device], axis)
        counted = len(program.arrays) + len(program.transfers) if program is not None else 0
        key = (result.run.id, len(result.sample_windows), counted, result.ended, round(result.wall_seconds))
        self.query_one(TimePane).show(key, result, axis, tracks)

    @on(LedgerList.Sorted)
    def show_sums(self) -> None:
        """Show the totals of the lists on their frames."""
        result = self._result
        if result is None:
            return
        rows = self.query_one(LedgerList)
        share = percent(result.of_wall(result.compile_seconds))
        words = [f"{integer(result.compile_count)} in {seconds(result.compile_seconds)}, {share} of the wall time"]
        words += [f"{rows.hidden} hidden"] if rows.hidden else []
        self._subtitle("ledger", " · ".join([*words, rows.order_in_words]) if result.functions else "")
        found = len(result.findings)
        them = "it" if found == 1 else "them"
        how = f"{counted(found, 'finding')} · {key_of('program.explain')} shows how to verify {them}"
        self._subtitle("findings", how if found else "")
        self._subtitle("lines", counted(result.samples, "sample") if result.samples else "")
        self._subtitle("time", f"{seconds(result.wall_seconds)} of wall time" if result.wall_seconds else "")
        self._subtitle("output", counted(len(result.run.log), "line") if result.run.log else "")

    def _subtitle(self, pane: str, text: str) -> None:
        if self._titles.get(pane) != text:
            self._titles[pane] = text
            self.query_one(f"#{pane}-pane").border_subtitle = Content(text)
