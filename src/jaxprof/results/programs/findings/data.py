"""A loop that waits for its data: the device could have worked while the next batch was made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from jaxprof.results.programs.findings.finding import Finding, finding, seconds_by_place
from jaxprof.safe_text import safe
from jaxprof.units import percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.results.programs.derive import ProgramResult
    from jaxprof.results.programs.parts import LineTime

DATA_SHARE: Final = 0.2
"""Of the time in which the program worked; below it a loader is not what to change first."""
DATA_SECONDS: Final = 1.0
"""And at least so long: reading a small data set once, before the loop, takes less."""
STRETCHES: Final = 3
"""A line that was seen in so many stretches of the recording is in a loop, and did not read everything once."""
_LINES_NAMED: Final = 3
_FROM_ANOTHER: Final = re.compile(r"\.(get|recv)\(\)$")
"""Calls that wait for what another thread or process makes."""
_MORE_WORKERS: Final = (
    "What fills the queue is slower than the steps: give it more threads or processes, less to do for each batch, or "
    "batches that were prepared once and kept; a longer queue only moves the wait."
)


def data_waits(result: ProgramResult) -> Iterator[Finding]:
    """Lines of a loader or an iterator, in the main thread, between the steps; or of a queue that is empty."""
    lines = [line for line in result.lines if _is_data(line) and line.stretches >= STRETCHES]
    took = sum(line.seconds for line in lines)
    if took < DATA_SECONDS or took < DATA_SHARE * result.active_seconds:
        return
    places = seconds_by_place(lines)
    named = [f"{where.short(result.directory)} ({seconds(spent, 2)})" for where, spent in places.items()]
    more = f" and {len(named) - _LINES_NAMED} more lines" if len(named) > _LINES_NAMED else ""
    at = f": {safe(', '.join(named[:_LINES_NAMED]))}{more}" if len(named) > 1 else ""
    yield finding(
        "data_waits",
        f"the loop waits for its data: about {seconds(took, 2)}, {percent(result.of_wall(took))} of the wall time{at}",
        _MORE_WORKERS
        if lines[0].state != "data"
        else "Make the next batch while the device works: in a thread or in processes (a queue, grain, a DataLoader "
        "with workers), or once and for all before the loop where it fits into memory.",
        tuple(places),
        seconds=took,
        estimate=True,
    )


def _is_data(line: LineTime) -> bool:
    return line.state == "data" or (line.state == "waiting" and _FROM_ANOTHER.search(line.call) is not None)
