"""A process that compiles alone what the others have compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.finding import JobFinding
from jaxprof.analysis.programs.verdict import COMPILE

_ADVICE = "The ledger of its session says why: mostly shapes that only its data have."


def recompiles(processes: Sequence[ProcessFigures]) -> Iterator[JobFinding]:
    """A process that compiled a function again more often than all the others: twice as often, and two times more."""
    counted = {
        process.index: {(each.function, each.defined_line): each for each in process.again}
        for process in processes
        if process.again is not None
    }
    if len(counted) < 2:
        return
    for index, functions in counted.items():
        others = [theirs for other, theirs in counted.items() if other != index]
        for key, mine in functions.items():
            most = max(theirs[key].count if key in theirs else 0 for theirs in others)
            if mine.count < 2 * most + 2:
                continue
            usual = "none of the others" if not most else f"the others at most {most} times"
            yield JobFinding(
                "recompiles-alone",
                index,
                f"process {index} compiled {mine.function} again {mine.count} times, {usual}"
                + (f": {mine.reason}" if mine.reason else ""),
                _ADVICE,
                COMPILE,
                mine.seconds,
                mine.called_from,
            )
