"""Where the main thread of a program was seen: a `Spot` is a line, its activity, and the loops around it.

It sums the sample windows, and says nothing of what the time goes to; `loop_time` does.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from jaxprof.base.values import frozen
from jaxprof.events import STAGES, LoopSite, ProgramSampled, SampledLine, SourceLocation

WORKS = frozenset({"compiled", "inline", "fed", "callback", "dispatch", "transfer", "sync", *STAGES})
"""Kinds of work that JAX does."""
PREEMPTED = "preempted"
IDLE = "idle"
OUTSIDE = frozenset({"import", IDLE, PREEMPTED})
"""Kinds of work that belong to no loop: imports, waits for input from outside (a server asleep in its event loop), and
waits for a processor that others had."""
AROUND, BEYOND = "around", "beyond"
"""Kinds of Python at the call of a compiled function that itself calls Python. `around`: it may belong to the call, or
the function may call it. `beyond`: more than the call itself can take, so the function calls it, or it makes the
arguments."""
LoopKey = tuple[str, str, int]
"""File, function and first line of a loop."""


@frozen
class Spot:
    """Time that one line of the user's source took in one kind of work, estimated from samples."""

    location: SourceLocation
    state: str
    kind: str
    """Kind of work, as in `ProgramSampled.lines`."""
    call: str
    sites: tuple[LoopSite, ...]
    """Loops around the line, innermost first."""
    seconds: float
    samples: float
    """Number of samples that the time rests on."""
    bytes: int | None = None
    """Bytes of the largest array that was read there."""
    put_bytes: int | None = None
    """Bytes of the largest array that was put on a device there."""
    through: str = ""
    """Library or callback that the time goes through, as in `ProgramSampled.lines`."""
    delay: float = 0.0
    """Seconds for which the thread waited for a processor there, if waits are even over all lines where it ran. Clocks
    and samples disagree, so that it may be more than `seconds`."""

    def site_in(self, loop: LoopKey | None) -> LoopSite | None:
        """Return the site of this spot in a loop; None if the spot is outside the loop, or there is no loop."""
        return next((site for site in self.sites if site.key == loop), None)

    def is_in(self, loop: LoopKey | None) -> bool:
        """Return whether the spot is in a loop; with None, in the program."""
        return loop is None or self.site_in(loop) is not None


class Spots:
    """Sums over the sample windows of one program; each window is added once. What a loop did before JAX first worked
    there, such as the start of its workers, is not in the loop."""

    __slots__ = ("_totals", "_worked", "consumed")

    def __init__(self) -> None:
        self.consumed = 0
        self._worked: set[LoopKey] = set()
        self._totals: dict[tuple[SourceLocation, str, str, str, tuple[LoopSite, ...], str, Set[LoopKey]], list[float]]
        self._totals = {}

    def take(self, sampled: Sequence[ProgramSampled]) -> None:
        """Add the sample windows that have arrived since the last call."""
        for window in sampled[self.consumed :]:
            lines = [
                (line, kind_of(line), tuple(window.sites[at] for at in line.sites if at < len(window.sites)))
                for line in window.lines
            ]
            self._worked |= {site.key for _, kind, around in lines if kind in WORKS for site in around}
            length = window.monotonic_seconds - window.began_seconds - window.states.get("paused", 0.0)
            # The waits in calls are spots of their own.
            waits = (window.delay_seconds or 0.0) - sum(line.seconds for line in window.lines if line.kind == PREEMPTED)
            running = sum(line.seconds for line in window.lines if may_be_delayed(line))
            delay = max(0.0, waits) / running if running > 0 else 0.0
            for line, kind, around in lines:
                if not line.file or line.seconds <= 0:
                    continue
                early = frozenset(site.key for site in around) - self._worked
                key = (line.location, line.state, kind, line.call, around, line.through, early)
                total = self._totals.setdefault(key, [0.0] * 5)
                total[0] += line.seconds
                total[1] += window.samples * line.seconds / length if length > 0 else 0.0
                total[2] = max(total[2], line.bytes or 0)
                total[3] += delay * line.seconds if may_be_delayed(line) else 0.0
                total[4] = max(total[4], line.put_bytes or 0)
        self.consumed = len(sampled)

    def spots(self) -> tuple[Spot, ...]:
        """Return the spots, longest time first."""
        merged = []
        for (where, state, kind, call, around, through, early), total in self._totals.items():
            sites = tuple(site for site in around if site.key not in early & self._worked)
            took, samples, read, delay, put = total
            sizes = {"bytes": int(read) or None, "put_bytes": int(put) or None}
            merged.append(Spot(where, state, kind, call, sites, took, samples, through=through, delay=delay, **sizes))
        return tuple(sorted(merged, key=lambda spot: -spot.seconds))


def kind_of(line: SampledLine) -> str:
    """Return the kind of work. A thread that did not run in an operation outside any jit waited for the device, as in
    a compiled function: what an operation costs the host, the thread itself does."""
    return "compiled" if (line.kind, line.state) == ("dispatch", "device_busy") else line.kind or line.state


def may_be_delayed(line: SampledLine | Spot) -> bool:
    """Return whether the thread ran there, outside compilations."""
    # In these states a thread does not run, unless it computes a compiled function itself.
    runs = line.kind == "inline" or line.state not in {"device_busy", "waiting"}
    return runs and line.kind not in STAGES and line.seconds > 0
