"""What the wall time of one process went to, by cause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.programs.functions import row_seconds
from jaxprof.analysis.programs.verdict import COPY, DATA, DEVICE, DISPATCH, HOST, again_rows

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramResult

USEFUL, WAITING, START, FIRST, AGAIN, OUTSIDE, STOPPED, AFTER, UNSEEN = (
    "useful",
    "waiting",
    "start",
    "first_compile",
    "recompile",
    "outside_loop",
    "stopped",
    "after_failure",
    "not_seen",
)
CAUSES: Final = (USEFUL, WAITING, DATA, HOST, DISPATCH, COPY, AGAIN, FIRST, START, OUTSIDE, STOPPED, AFTER, UNSEEN)
"""What a second of a process can go to, each to one."""
IN_LOOP: Final = (DEVICE, DATA, HOST, DISPATCH, COPY)
"""The parts of the loop without what compiling takes."""


def time_of(result: ProgramResult) -> Mapping[str, float] | None:
    """The seconds of one program's wall time by cause, as far as it can be known alone: `device` stands for what is
    useful and for waiting. They add up to the wall time. None where no loop was seen, or no time passed."""
    hot = result.hot
    if hot.key is None or result.wall_seconds <= 0 or hot.seconds <= 0:
        return None
    compiling = result.main_compile_seconds
    again = min(compiling, sum(map(row_seconds, again_rows(result.compiles))))
    loop = {part: hot.parts[part] for part in IN_LOOP}
    inside = sum(loop.values())
    if inside > result.active_seconds > 0:  # shares of two sums over the same samples
        loop = {part: took * result.active_seconds / inside for part, took in loop.items()}
    time = loop | {
        AGAIN: again,
        FIRST: compiling - again,
        START: result.share("import").seconds,
        OUTSIDE: max(0.0, result.active_seconds - sum(loop.values())),
        STOPPED: result.share(STOPPED).seconds,
    }
    return time | {UNSEEN: max(0.0, result.wall_seconds - sum(time.values()))}
