"""Time in which the program did not run, because it was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.analysis.programs.result import ProgramFinding, finding
from jaxprof.analysis.programs.stops import SIGNAL, SUSPENDED, UNKNOWN
from jaxprof.units import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.analysis.programs.findings.claims import Claims
    from jaxprof.analysis.programs.result import ProgramResult

_MESSAGES: Final = {
    SIGNAL: "stopped for {} by a signal, {}",
    UNKNOWN: "stood still for {}, {}: stopped together with what recorded it, or by something that leaves no trace",
    SUSPENDED: "the machine was suspended for {}, {}",
}
_ADVICE: Final = {
    SIGNAL: "Look for what sends SIGSTOP or SIGTSTP (ctrl+z, a batch system). No line of it takes this time.",
    UNKNOWN: "Look for ctrl+z, a container that was frozen, or a virtual machine. No line of it takes this time.",
    SUSPENDED: "A machine that sleeps computes nothing. No other time of this program holds these seconds.",
}


def stopped(result: ProgramResult, _claims: Claims) -> Iterator[ProgramFinding]:
    """The stops of each cause together. Only a stop by a signal was seen; the others were concluded from clocks."""
    for cause, message in _MESSAGES.items():
        found = [stop for stop in result.stops if stop.cause == cause]
        if not found:
            continue
        took = sum(stop.seconds for stop in found)
        first = f"{seconds(found[0].began_seconds)} after it began"
        when = first if len(found) == 1 else f"{len(found)} times, first {first}"
        cost = None if cause == SUSPENDED else took
        yield finding(
            "stopped",
            message.format(seconds(took), when),
            _ADVICE[cause],
            (),
            seconds=cost,
            saves=cost,
            estimate=cause == UNKNOWN,
        )
