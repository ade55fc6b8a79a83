"""The state of the heat map in view: the window and the cursor on the axis of steps, the rows and their order.

It knows no widget, only how many columns and lines there are. Positions on the axis are whole numbers: steps, or
milliseconds where the steps of a job have no numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.tui.axis_window import AxisWindow

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.step_grid import StepGrid

ZOOM: Final = 2.0
PAN: Final = 0.1
"""Share of the window that each press of an arrow pans."""
MILLISECONDS: Final = 1000
ORDERS: Final = ("process", "lost time", "host")


@dataclass(frozen=True, slots=True)
class MapProcess:
    """One process, as the map names it."""

    index: int
    host: str
    lost_seconds: float
    accused: bool
    """Whether a finding is about it."""


@dataclass(frozen=True, slots=True)
class MapLine:
    """A row of the map: a process, or those of one host together."""

    name: str
    processes: tuple[int, ...]
    """The worst one first."""
    accused: bool


class MapBrowse:
    """What of a job the map shows."""

    def __init__(self) -> None:
        self.whole: AxisWindow | None = None
        """All steps; None before the first grid."""
        self.window: AxisWindow | None = None
        self.unit = "step"
        self.cursor = 0
        """Position of the cursor on the axis."""
        self.line = 0
        self.top = 0
        self.order = ""
        """One of `ORDERS`; empty: by process where all fit, else by lost time."""
        self.grouped: bool | None = None
        """Whether the processes of a host are one row; None: where they would not fit otherwise."""
        self.lines: tuple[MapLine, ...] = ()
        self.room = 1
        self._processes: tuple[MapProcess, ...] = ()

    @property
    def scale(self) -> int:
        """Positions of the axis in a step, or a second."""
        return 1 if self.unit == "step" else MILLISECONDS

    @property
    def zoomed(self) -> bool:
        """Whether less than all steps are in view."""
        return self.window is not None and self.window != self.whole

    @property
    def wanted(self) -> tuple[float | None, float | None]:
        """The first and the last step of the grid to make; None: as far as there are any, also those to come."""
        if not self.zoomed or self.window is None:
            return None, None
        if self.unit == "step":
            return self.window.start, self.window.end - 1
        return self.window.start / self.scale, self.window.end / self.scale

    def take(self, grid: StepGrid) -> None:
        """Takes over how far the axis reaches, from a grid of all steps."""
        self.unit = grid.unit
        if len(grid.steps):
            end = float(grid.first_steps[-1]) + float(grid.steps[-1])
            whole = AxisWindow(round(float(grid.first_steps[0]) * self.scale), max(1, round(end * self.scale)))
            zoomed, self.whole = self.zoomed, whole
            self.window = self.window.within(whole) if zoomed and self.window is not None else whole
            self.cursor = min(max(self.cursor, whole.start), whole.end - 1)

    # -- rows -------------------------------------------------------------------------------------------------

    def show(self, processes: Sequence[MapProcess]) -> None:
        """Takes over other processes; the cursor stays on its own."""
        self._processes = tuple(processes)
        self.arrange()

    def resize(self, room: int) -> None:
        """Takes over the number of lines that there are for rows."""
        if room != self.room:
            self.room = max(1, room)
            self.arrange()

    @property
    def is_grouped(self) -> bool:
        """Whether the processes of a host are one row."""
        return self.can_group and (len(self._processes) > self.room if self.grouped is None else self.grouped)

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return len({process.host for process in self._processes})

    @property
    def can_group(self) -> bool:
        """Whether there are several hosts, of which one has several processes."""
        return 1 < self.hosts < len(self._processes)

    @property
    def order_in_use(self) -> str:
        """One of `ORDERS`."""
        return self.order or (ORDERS[0] if len(self._processes) <= self.room else ORDERS[1])

    def arrange(self) -> None:
        """Makes the rows anew; the cursor stays on its process."""
        before = self.process
        digits = len(str(max((process.index for process in self._processes), default=0)))
        found = self._by_host() if self.is_grouped else [_line(process, digits) for process in self._sorted()]
        self.lines = tuple(found)
        at = next((at for at, line in enumerate(self.lines) if before in line.processes), None)
        self.line = at if at is not None else max(0, min(self.line, len(self.lines) - 1))
        self.bring_into_view()

    def _sorted(self) -> list[MapProcess]:
        keys = {
            "process": lambda process: process.index,
            "lost time": lambda process: (-process.lost_seconds, process.index),
            "host": lambda process: (process.host, process.index),
        }
        return sorted(self._processes, key=keys[self.order_in_use])

    def _by_host(self) -> list[MapLine]:
        hosts: dict[str, list[MapProcess]] = {}
        for process in self._sorted():
            hosts.setdefault(process.host, []).append(process)
        return [
            MapLine(
                host,
                tuple(each.index for each in sorted(those, key=lambda each: -each.lost_seconds)),
                any(each.accused for each in those),
            )
            for host, those in hosts.items()
        ]

    @property
    def process(self) -> int | None:
        """The process under the cursor: of a host, the worst one. None without rows."""
        return self.lines[self.line].processes[0] if self.lines else None

    def move(self, step: int) -> None:
        """Goes up or down."""
        self.line = max(0, min(len(self.lines) - 1, self.line + step))
        self.bring_into_view()

    def go_to(self, process: int) -> None:
        """Goes to the row of a process."""
        self.line = next((at for at, line in enumerate(self.lines) if process in line.processes), self.line)
        self.bring_into_view()

    def bring_into_view(self) -> None:
        """Scrolls so that the row of the cursor is in view and no line at the end stays empty."""
        self.top = min(self.line, max(self.top, self.line - self.room + 1))
        self.top = max(0, min(self.top, len(self.lines) - self.room))

    # -- steps ------------------------------------------------------------------------------------------------

    def zoom(self, factor: float) -> None:
        """Shows so many times as much, around the cursor."""
        if self.window is not None and self.whole is not None:
            self.window = self.window.zoomed(factor, self.cursor, self.whole, min(4, self.whole.span))

    def show_whole(self) -> None:
        """Shows all steps."""
        self.window = self.whole

    def pan(self, step: int) -> None:
        """Pans by a tenth of the window; at either end, moves the cursor by as much."""
        if self.window is None or self.whole is None:
            return
        by = step * max(1, round(self.window.span * PAN))
        moved = self.window.moved(by, self.whole)
        self.go(self.cursor + (moved.start - self.window.start or by), moved)

    def go(self, position: int, window: AxisWindow | None = None) -> None:
        """Moves the cursor there, and the window as far as needed."""
        if self.window is None or self.whole is None:
            return
        self.cursor = min(max(position, self.whole.start), self.whole.end - 1)
        self.window = (window or self.window).showing(self.cursor, self.whole)

    def edge(self, step: int) -> None:
        """Goes to the first or the last step."""
        if self.whole is not None:
            self.go(self.whole.start if step < 0 else self.whole.end - 1)


def _line(process: MapProcess, digits: int) -> MapLine:
    return MapLine(f"{process.index:>{digits}} {process.host}", (process.index,), process.accused)
