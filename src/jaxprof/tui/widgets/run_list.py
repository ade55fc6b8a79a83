"""The runs of a session while they go on: one line each, of which a tick of the clock draws one cell again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.geometry import Region

from jaxprof.results import RunResult, result
from jaxprof.results.programs.derive import is_program, program_result
from jaxprof.safe_text import columns, shorten
from jaxprof.tui.widgets.drawing import bar, cell
from jaxprof.tui.widgets.program_summary import in_a_line
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.tui.widgets.wording import (
    clock,
    half_width,
    parameters_text,
    remaining,
    speedup_short,
    speedup_style,
    status_mark,
)
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.session import Run, Session

MARK, DEVICE, PHASE, CLOCK, MEDIAN, HALF = 3, 8, 13, 10, 9, 10
SPEEDUP = 18
_SPEEDUP_FROM = 104
_NAME_LIMIT = 34


@dataclass(frozen=True, slots=True)
class Shown:
    """What a row says; while it stays equal, nothing is drawn."""

    status: str
    phase: str
    fraction: float | None
    remaining_seconds: float | None
    samples: int
    baseline_samples: int
    error: str


class RunList(RowList):
    """Runs under the workload and the parameters that they have in common."""

    EMPTY: ClassVar[str] = "Nothing has been run in this session. Mark workloads on Home (1), Enter runs."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._session: Session | None = None
        self._growing = False
        self._shown: dict[str, Shown] = {}
        self._clocks: dict[str, str] = {}
        self.shift_seconds = 0.0
        """What the writer's clock is ahead of ours, where another machine writes the session."""

    def show(self, session: Session, runs: frozenset[str], *, growing: bool) -> None:
        """Shows `session`, of which `runs` changed; `growing`: somebody writes it now."""
        replaced = session is not self._session or growing != self._growing
        self._session, self._growing = session, growing
        keys: list[Hashable] = []
        for heading, members in groupby(session.runs.values(), key=_heading):
            ids = [run.id for run in members]
            keys += [(*heading, ids[0]), *ids]
        if keys != self.keys or replaced:
            self._shown = {run.id: self._what(run) for run in session.runs.values()}
            self.set_keys(keys)
            return
        for index, key in enumerate(keys):
            if isinstance(key, str):
                run = session.runs[key]
                if key in runs or run.plan.baseline in runs:
                    what = self._what(run)
                    if what != self._shown.get(key):
                        self._shown[key] = what
                        self.refresh_row(index)

    def tick(self) -> None:
        """Draws the clocks again that show another time than before; nothing else."""
        if self._session is None:
            return
        top = 1
        for index, key in enumerate(self._keys):
            if not isinstance(key, str):
                continue
            run = self._session.runs[key]
            if run.status != "running":
                continue
            text = self._clock(run)
            if text != self._clocks.get(key):
                self._clocks[key] = text
                y = index + top - round(self.scroll_y)
                if top <= y < self.size.height:
                    left = MARK + _name_width(self.scrollable_content_region.width) + DEVICE + PHASE
                    self.refresh(Region(left, y, CLOCK, 1))

    def selectable(self, index: int) -> bool:
        return isinstance(self._keys[index], str)

    def draw_header(self, width: int) -> Content:
        parts = [
            cell("", MARK),
            cell("variant", _name_width(width)),
            cell("device", DEVICE),
            cell("phase", PHASE),
            cell("time", CLOCK),
        ]
        if width >= _SPEEDUP_FROM:
            parts.append(cell("speed-up", SPEEDUP))
        rest = width - sum(part.cell_length for part in parts)
        parts.append(
            cell(cell("median", MEDIAN, right=True).plain + cell("95 %", HALF, right=True).plain, rest, right=True)
        )
        return Content.assemble(*parts)

    def draw_row(self, index: int, width: int) -> Content:
        key = self._keys[index]
        assert self._session is not None
        if not isinstance(key, str):
            assert isinstance(key, tuple)
            return heading_line(str(key[0]), str(key[1]), width)
        run = self._session.runs[key]
        one = result(self._session, key)
        return self._row(run, one, width)

    def _row(self, run: Run, one: RunResult, width: int) -> Content:
        status = self._status(run)
        clock_text = self._clock(run)
        self._clocks[run.id] = clock_text
        going = run.current_phase.replace("_", " ") or ("running" if run.program is not None else "")
        phase = going if status == "running" else status
        parts = [
            Content.assemble(" ", status_mark(status), " "),
            cell(run.plan.variant, _name_width(width) - 1) + " ",
            cell(run.plan.device, DEVICE - 1, "$text-muted") + " ",
            cell(phase or "starting", PHASE, "bold $warning" if status == "running" else "$text-muted"),
            cell(clock_text, CLOCK, "" if status == "running" else "$text-muted"),
        ]
        rest = width - sum(part.cell_length for part in parts)
        if is_program(run):
            said = in_a_line(program_result(self._session, run.id)) if self._session is not None else ""
            parts.append(cell(said, rest, "$text-muted"))
            return Content.assemble(*parts)
        if run.error and status != "ok":
            parts.append(cell(run.error.splitlines()[0], rest, "$error" if status != "cancelled" else "$quiet"))
            return Content.assemble(*parts)
        parts += self._figures(run, one, status, width, rest)
        return Content.assemble(*parts)

    def _figures(self, run: Run, one: RunResult, status: str, width: int, rest: int) -> list[Content]:
        found = one.versus.speedup if one.versus is not None else None
        parts: list[Content] = []
        if width >= _SPEEDUP_FROM:
            text = (
                speedup_short(found)
                if found is not None
                else "baseline"
                if one.summary and not run.plan.baseline
                else ""
            )
            parts.append(cell(text, SPEEDUP, speedup_style(found)))
            rest -= SPEEDUP
        middle = rest - MEDIAN - HALF
        if status == "running" and run.fraction is not None:
            left = remaining(run.remaining_seconds)
            if left and middle > 32:
                left += " left"
            room = min(24, middle - columns(left) - 2)
            parts += [bar(run.fraction, room, "$warning"), cell(f" {left}", middle - max(0, room), "$text-muted")]
        else:
            parts.append(Content(" " * middle))
        if one.summary is not None:
            parts += [
                cell(seconds(one.summary.median), MEDIAN, "bold", right=True),
                cell(half_width(one.summary), HALF, "$text-muted", right=True),
            ]
        return parts

    def _status(self, run: Run) -> str:
        """What ended with the session did not go on."""
        if run.over or self._growing:
            return run.status
        return "cancelled" if run.status == "queued" else "crashed"

    def _clock(self, run: Run) -> str:
        """The time in the current phase while it runs; what the whole run took when it is over."""
        if run.status == "running" and self._growing:
            phase = run.phases.get(run.current_phase)
            began = phase.started_seconds if phase is not None else run.started_seconds
            return clock(monotonic() + self.shift_seconds - began) if began is not None else ""
        if run.started_seconds is None or run.ended_seconds is None:
            return ""
        return clock(run.ended_seconds - run.started_seconds)

    def _what(self, run: Run) -> Shown:
        baseline = self._session.runs.get(run.plan.baseline) if self._session is not None else None
        return Shown(
            run.status,
            run.current_phase,
            None if run.fraction is None else round(run.fraction, 2),
            None if run.remaining_seconds is None else round(run.remaining_seconds),
            len(run.samples("run")) if run.program is None else len(run.program.compiled) + len(run.program.sampled),
            len(baseline.samples("run")) if baseline is not None else 0,
            run.error,
        )


def _name_width(width: int) -> int:
    spare = width - MARK - DEVICE - PHASE - CLOCK - MEDIAN - HALF - 12
    return max(12, min(_NAME_LIMIT, spare if width < _SPEEDUP_FROM else spare - SPEEDUP - 12))


def _heading(run: Run) -> tuple[str, str]:
    return run.plan.workload, parameters_text(run.plan.parameters)


def heading_line(name: str, note: str, width: int) -> Content:
    """A line above the rows that belong together."""
    text = shorten(name, max(1, min(40, width - 2))) if name else ""
    return Content.assemble(" ", (text, "bold $primary"), "  ", cell(note, width - columns(text) - 3, "$text-muted"))
