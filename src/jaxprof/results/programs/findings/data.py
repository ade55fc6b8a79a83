"""A loop that waits for its data: the device could have worked while the next batch was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.results.programs.findings.finding import Finding, finding
from jaxprof.safe_text import safe
from jaxprof.units import percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.results.programs.derive import ProgramResult

DATA_SHARE: Final = 0.2
"""Of the time in which the program worked; below it a loader is not what to change first."""
DATA_SECONDS: Final = 1.0
"""And at least so long: reading a small data set once, before the loop, takes less."""
STRETCHES: Final = 3
"""A line that was seen in so many stretches of the recording is in a loop, and did not read everything once."""
_LINES_NAMED: Final = 3


def data_waits(result: ProgramResult) -> Iterator[Finding]:
    """Lines of a loader or an iterator, in the main thread, between the steps."""
    lines = [line for line in result.lines if line.state == "data" and line.stretches >= STRETCHES]
    took = sum(line.seconds for line in lines)
    if took < DATA_SECONDS or took < DATA_SHARE * result.active_seconds:
        return
    named = ", ".join(
        f"{line.place.short(result.directory)} ({seconds(line.seconds, 2)})" for line in lines[:_LINES_NAMED]
    )
    more = f" and {len(lines) - _LINES_NAMED} more lines" if len(lines) > _LINES_NAMED else ""
    yield finding(
        "data_waits",
        f"the loop waits for its data: about {seconds(took, 2)}, {percent(result.of_wall(took))} of the wall time: "
        f"{safe(named)}{more}",
        "Make the next batch while the device works: in a thread or in processes (a queue, grain, a DataLoader with "
        "workers), or once and for all before the loop where it fits into memory.",
        tuple(line.place for line in lines),
        seconds=took,
        estimate=True,
    )
