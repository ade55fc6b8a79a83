"""The five views of a program: ledger, findings, lines, time and output. The stylesheet says which of them are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container, Vertical
from textual.content import Content

from jaxprof.tui.recorded.axis import Axis
from jaxprof.tui.recorded.lines import hottest
from jaxprof.tui.widgets.advice_list import AdviceList
from jaxprof.tui.widgets.hot_lines import MOST, HotLineList
from jaxprof.tui.widgets.ledger_list import LedgerList
from jaxprof.tui.widgets.log_pane import LogPane
from jaxprof.tui.widgets.time_pane import DEVICES, TimePane, Track, array_tracks, device_tracks
from jaxprof.units import integer, percent, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.results.programs.derive import ProgramResult
    from jaxprof.session import Session

VIEWS = {"ledger": "Ledger", "findings": "Findings", "lines": "Lines", "time": "Time", "output": "Output"}


class ProgramPanes(Container):
    """A box for each view."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._found: ProgramResult | None = None
        self._titles: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        for name, widget in (
            ("ledger", LedgerList(id="ledger")),
            ("findings", AdviceList(id="findings")),
            ("lines", HotLineList(id="lines")),
            ("time", TimePane(id="time")),
            ("output", LogPane(id="output", of_program=True)),
        ):
            with Vertical(id=f"{name}-pane", classes="box") as box:
                box.border_title = VIEWS[name]
                yield widget

    def forget(self) -> None:
        """Another program comes."""
        self.query_one(LedgerList).forget()

    def show(self, session: Session, found: ProgramResult) -> None:
        """Shows what is known of a program now."""
        self._found = found
        wall, directory = found.wall_seconds or None, found.directory
        self.query_one(LedgerList).show(found.functions, wall, directory)
        self.query_one(AdviceList).show(found.findings, directory)
        self.query_one(HotLineList).show(hottest(found.lines, MOST), wall, directory)
        self.query_one(LogPane).show(found.run.id, found.run.log)
        self._show_time(session, found)
        self._show_sums()

    def set_filter(self, text: str) -> None:
        """Shows only functions, findings and lines with all these words."""
        self.query_one(LedgerList).set_filter(text)
        self.query_one(AdviceList).set_filter(text)
        self.query_one(HotLineList).set_filter(text)
        self._show_sums()

    def _show_time(self, session: Session, found: ProgramResult) -> None:
        program = found.run.program
        axis = Axis(found.began_seconds, found.began_seconds + found.wall_seconds)
        tracks: list[Track] = array_tracks(program.arrays if program is not None else ())
        readings = session.readings
        for device in sorted(readings, key=lambda name: (name.startswith("cpu"), name))[:DEVICES]:
            tracks += device_tracks(device, readings[device], axis)
        counted = len(program.arrays) + len(program.transfers) if program is not None else 0
        key = (found.run.id, len(found.stretches), counted, found.ended, round(found.wall_seconds))
        self.query_one(TimePane).show(key, found, axis, tracks)

    @on(LedgerList.Sorted)
    def _show_sums(self) -> None:
        """What the lists add up to, on their frames."""
        found = self._found
        if found is None:
            return
        rows = self.query_one(LedgerList)
        share = percent(found.of_wall(found.compile_seconds))
        words = [f"{integer(found.compile_count)} in {seconds(found.compile_seconds)}, {share} of the wall time"]
        words += [f"{rows.hidden} hidden"] if rows.hidden else []
        self._subtitle("ledger", " · ".join([*words, rows.order_in_words]) if found.functions else "")
        self._subtitle("findings", str(len(found.findings)) if found.findings else "")
        self._subtitle("lines", f"{integer(found.samples)} samples" if found.samples else "")
        self._subtitle("time", f"{seconds(found.wall_seconds)} of wall time" if found.wall_seconds else "")
        self._subtitle("output", f"{integer(len(found.run.log))} lines" if found.run.log else "")

    def _subtitle(self, pane: str, text: str) -> None:
        if self._titles.get(pane) != text:
            self._titles[pane] = text
            self.query_one(f"#{pane}-pane").border_subtitle = Content(text)
