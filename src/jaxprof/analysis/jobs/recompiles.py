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
    most_of: dict[object, list[int]] = {}
    """By function, the two largest counts: a process is compared with the largest of the others."""
    for functions in counted.values():
        for key, each in functions.items():
            most_of[key] = sorted((*most_of.get(key, (0, 0)), each.count))[-2:]
    for index, functions in counted.items():
        for key, mine in functions.items():
            second, first = most_of[key]
            most = second if mine.count == first else first
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
