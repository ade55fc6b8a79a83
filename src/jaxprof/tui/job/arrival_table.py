"""Who arrives last at the collective, from captures of the same steps on several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from jaxprof.report.hosts import ArrivalRow, arrival_table
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import bytes_, counted, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.analysis.arrivals import Arrivals
    from jaxprof.analysis.jobs.exposed import CollectiveFigures


class ArrivalTable(TableView[ArrivalRow]):
    """One row for each process that captured the collective."""

    EMPTY: ClassVar[str] = "No captures of the same steps. script -n 4 --capture-steps 100 takes them."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("process", lambda row: (str(row.index), "bold"), 9, right=True, sort=lambda row: row.index),
                TableColumn("arrives last", lambda row: integer(row.last_count), 14, right=True,
                            sort=lambda row: row.last_count),
                TableColumn("share", lambda row: percent(row.last_share), 8, right=True),
                TableColumn("after the others", lambda row: seconds(row.late_seconds), 18, right=True, priority=1,
                            sort=lambda row: row.late_seconds),
                TableColumn("others wait for it", lambda row: seconds(row.caused_seconds), 20, right=True,
                            sort=lambda row: row.caused_seconds),
                TableColumn("waits for others", lambda row: seconds(row.waited_seconds), 18, right=True, priority=1,
                            sort=lambda row: row.waited_seconds),
                TableColumn("its clock", lambda row: seconds(row.offset_seconds), 12, right=True, priority=2),
            ),
            order="process",
            id=id,
        )  # fmt: skip

    def show(self, seen: Arrivals | None) -> None:
        """Shows who arrives last; None: no captures."""
        self.show_rows({row.index: row for row in arrival_table(seen).rows} if seen is not None else {})


def arrivals_title(seen: Arrivals | None, exchanges: Sequence[CollectiveFigures] = ()) -> str:
    """The collective, how often it was seen, what the exchange itself took, and how much was moved how fast."""
    if seen is None:
        return "Arrivals"
    given = next((each for each in exchanges if each.name == seen.name and each.bus_bytes_per_second), None)
    moved = ""
    if given is not None and given.exchanged is not None:
        moved = f", {bytes_(given.exchanged.bytes)} at {scaled(given.bus_bytes_per_second, 'B/s')}"
        if given.possible_bytes_per_second is not None:
            moved += f" of {scaled(given.possible_bytes_per_second, 'B/s')}"
    exchange = seconds(seen.exchange_seconds)
    return f"{seen.name}: {counted(seen.instances, 'execution')}, the exchange itself {exchange}{moved}"


def clock_note(seen: Arrivals | None) -> str:
    """How sure the clocks are."""
    return f"its clock: ahead of the first one's, ± {seconds(seen.uncertain_seconds)}" if seen is not None else ""
