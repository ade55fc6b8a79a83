"""What the calls of compiled functions in a loop cost the thread that makes them: between a least and a most.

No clock says it: a thread that launches a function, or computes it itself, runs without the interpreter's lock. The
bounds are figures of JAX, and, where it was worth to start a process for that, of an empty call on this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from jaxprof.analysis.programs import DISPATCH
from jaxprof.analysis.programs.spots import AROUND, BEYOND, LoopKey, Spot
from jaxprof.base.grouping import totals
from jaxprof.base.values import frozen
from jaxprof.events import Compiled, EmptyCallTimed

UNKNOWN = "unknown"
LAUNCH_SECONDS = (1e-6, 25e-6)
"""Least and most seconds that the calling thread needs to launch a compiled function of few arguments without the
interpreter's lock. A thread that runs for longer computes the function itself, as on a CPU. If the most is too low, a
slow launch counts as the device's work; if it is too high, the verdict of brief calls stays unknown."""
LAUNCH_SHARE = 0.5
"""Least time of a launch over the time that the same call spends with the interpreter's lock to look at its arguments.
An empty call has a ratio of 0.5 to 1.4. If it is too high, calls count as dispatch-bound that compute."""
LAUNCH_LEAF_SECONDS = 5e-6
"""Most seconds that each argument adds to a launch; this allows for as many results (2 µs for both together), or for
the copy of a number or of a small NumPy array (5 µs). If it is too low, calls of many leaves count as the device's."""
EMPTY_CALL_SHARES = (0.75, 1.3)
"""Least and most time of a call's own work over that of an empty call, measured in another process. The wider, the more
of brief calls stays unknown."""
UNCOUNTED = 1.25
"""Without a counter, at most this many times the iterations that the timed ones make up: brief iterations take up to
half as long again while their lines are timed, which makes their number too low."""
CALLBACK_CALL = 50
"""Upper bound for the Python around the call of a function with callbacks, in empty calls: measured were 17 to 19 for
one with `jax.debug.print`, and 30 to 34 for one with an ordered callback, where neither was called back. If it
is too low, a call's own Python counts as that of a callback."""
MOST_ARGUMENTS = 256
"""Most arrays, and most Python numbers, with which an empty call is timed."""
WAKE_SECONDS = 10e-6
"""Most seconds that a fetch of a result takes on the calling thread itself, besides the device's time: the call, going
to sleep and waking up (5 to 8 µs measured on a CPU). If it is too low, brief fetches count as the device's."""


@frozen
class CallBounds:
    """Bounds on what the calls in a loop cost."""

    key: LoopKey | None
    iterations: float
    """0 if unknown."""
    counted: bool
    """Whether the iterations were counted."""
    slowdown: float
    """Factor by which waits for a processor may lengthen a call."""
    empty_call: EmptyCallTimed | None
    """What an empty call of a compiled function takes here; None if unknown."""

    def launching_seconds(self, spots: Sequence[Spot], called: Sequence[Compiled]) -> dict[str, float]:
        """Return the part of the inline time of the functions `called` that is not the device's. Inline means that the
        calling thread computes the function itself. A launch needs some of this time, an amount known only between two
        limits, which an empty call narrows: it is a launch and the Python around it. A thread that is blocked in these
        calls for at least as long leaves the work to others, and may need any of this time to get it into their queue.
        Calls in a loop within the hot one outnumber its iterations by an unknown factor."""
        inline = [spot for spot in spots if spot.kind == "inline"]
        inline_seconds = sum(spot.seconds for spot in inline)
        if not inline_seconds or not self.iterations:
            return {UNKNOWN: inline_seconds}
        locations = {spot.location for spot in inline}
        leaves = max(map(leaves_of, called), default=1)
        count = self.iterations * len(locations)
        least, most = (count * seconds for seconds in LAUNCH_SECONDS)
        there = [spot for spot in spots if spot.location in locations]
        calls = sum(spot.seconds for spot in there if spot.kind == "call" and not spot.through)
        if self.empty_call is not None:
            shares = (EMPTY_CALL_SHARES[0], EMPTY_CALL_SHARES[1] * (1 if self.counted else UNCOUNTED))
            least, most = (max(least, count * self.empty_call.seconds * share - calls) for share in shares)
            leaves -= min(1, self.empty_call.arrays) + self.empty_call.numbers
        launching = min(inline_seconds, max(least, min(most, LAUNCH_SHARE * calls)))
        most = self.slowdown * (most + self.iterations * leaves * LAUNCH_LEAF_SECONDS)
        queued = sum(spot.seconds for spot in there if spot.kind == "compiled") >= inline_seconds
        if queued or in_inner_loops(inline, self.key):
            most = inline_seconds
        return {DISPATCH: launching, UNKNOWN: max(launching, min(inline_seconds, most)) - launching}

    def wake_seconds(self, spots: Sequence[Spot]) -> float:
        """Return the part of the wait for results that may be the thread's own work. Waits for a processor are left out
        of it already: by its clocks, the thread was blocked there."""
        waits = totals((spot.location, spot.seconds) for spot in spots if spot.kind == "sync")
        return sum(min(seconds, self.iterations * WAKE_SECONDS) for seconds in waits.values())

    def split_callbacks(self, spots: tuple[Spot, ...], rows: Sequence[Compiled]) -> tuple[Spot, ...]:
        """Split each `AROUND` spot: the part that a call's own Python takes at most, and the callback's. A callback
        holds the interpreter's lock as well, so that samples come before or after it. Calls in a loop within the hot
        one have no bound."""
        around = [spot for spot in spots if spot.kind == AROUND]
        seconds = sum(spot.seconds for spot in around)
        if not seconds or not self.iterations or self.empty_call is None or in_inner_loops(around, self.key):
            return spots
        leaves = max((leaves_of(row) for row in rows if row.callbacks), default=1)
        each = CALLBACK_CALL * self.empty_call.seconds + leaves * LAUNCH_LEAF_SECONDS
        own = self.slowdown * self.iterations * len({spot.location for spot in around}) * each / seconds
        if own >= 1:
            return spots

        def part(spot: Spot, kind: str, share: float) -> Spot:
            parts = {name: share * getattr(spot, name) for name in ("seconds", "samples", "delay")}
            return replace(spot, kind=kind, **parts)

        others = (spot for spot in spots if spot.kind != AROUND)
        return (*others, *(part(spot, *each) for spot in around for each in ((BEYOND, 1 - own), (AROUND, own))))


def in_inner_loops(spots: Iterable[Spot], key: LoopKey | None) -> bool:
    """Return whether some of these spots of the hot loop are in a loop within it, whose iterations are not counted."""
    return any(spot.sites and spot.sites[0].key != key for spot in spots)


def inline_functions(spots: Sequence[Spot], rows: Sequence[Compiled]) -> list[Compiled]:
    """Return the compilations of functions that the calling thread may compute; all if none is known to be one."""
    inline = [spot for spot in spots if spot.kind == "inline"]
    locations = {spot.location for spot in inline}
    names = {spot.call.removesuffix("()").rpartition(".")[2] for spot in inline}
    compiled = [row for row in rows if not row.op_by_op]
    return [row for row in compiled if row.called_from in locations or row.function in names] or compiled


def least_arguments(called: Sequence[Compiled]) -> tuple[int, int]:
    """Return the fewest arrays and Python numbers of a call of these functions, within `MOST_ARGUMENTS`."""

    def arrays(row: Compiled) -> int:
        return leaves_of(row) - row.numbers - sum(leaf.static for leaf in row.signature)

    fewest = min(map(arrays, called), default=1), min((row.numbers for row in called), default=0)
    return max(0, min(fewest[0], MOST_ARGUMENTS)), max(0, min(fewest[1], MOST_ARGUMENTS))


def leaves_of(row: Compiled) -> int:
    """Return the number of arrays and other leaves in the arguments of a compiled function."""
    return len(row.signature) + row.signature_more
