"""What bounds the hot loop of a program: the part of its time that is the largest, whatever the unknown time goes to.

The share of that part has the 95 % interval that its samples allow.
"""

from __future__ import annotations

import math
from dataclasses import replace

from jaxprof.analysis.programs import COMPILE, DEVICE, DISPATCH, HOST, WAIT_BOUND
from jaxprof.analysis.programs.loop_time import HotLoop
from jaxprof.analysis.programs.spots import IDLE, WORKS
from jaxprof.base.grouping import totals
from jaxprof.base.units import counted, percent_or_less, seconds
from jaxprof.base.values import frozen

LEAST_SAMPLES = 12
"""Smallest number of samples for a verdict. With fewer, a share of 60 % could as well be 30 %."""
_Z = 1.96
"""Standard errors of a 95 % interval."""
_APART_ERRORS = 1.28
"""Standard errors between the two largest parts from which the first counts as larger, with 90 % confidence. Fewer give
a verdict earlier, and a wrong one more often."""
_MOST = 0.5
"""Share above which a part is larger than all others together."""


@frozen
class Verdict:
    """What bounds the hot loop, and how certain that is."""

    kind: str | None
    """Kind of bound, such as `data-bound`, or `idle`; None if unknown."""
    share: float | None
    """Share of the loop's time that goes to this part; for `idle`, of the time without imports and compilations."""
    low: float | None
    high: float | None
    """Upper end of the share's 95 % interval; `low` is the lower end."""
    reason: str = ""
    """Text that says why there is no verdict."""
    needs_seconds: float | None = None
    """Seconds that the loop must be recorded for a verdict, if only time is missing."""
    seconds: float = 0.0
    """Seconds in the loop, without first compilations and waits for a processor; if `idle`, with the time that the
    program waited; 0 if JAX was not seen at work."""
    otherwise: Verdict | None = None
    """What bounds the loop while there is something to do; only if the kind is `idle`."""

    @property
    def why_unknown(self) -> str:
        """The reason, and how much of the loop a recording has to hold if only time is missing."""
        if self.needs_seconds is None:
            return self.reason
        return f"{self.reason}; a recording with {seconds(self.needs_seconds, 1)} of it is enough"


UNTIMED = "lines were not timed"
"""End of a verdict's reason if no line's own time is known."""


def verdict(loop: HotLoop, *, timed: bool = True) -> Verdict:
    """Return what bounds the loop, or that the program mostly waits for something to do. `timed` says whether the
    loop's lines could be timed. The interval is widened by the time whose use is unknown, and upwards by waits for a
    processor, in which the thread may have been computing for the device."""
    bound = _largest_part(loop, timed=timed)
    asleep = sum(spot.seconds for spot in loop.asleep)
    samples = loop.samples + sum(spot.samples for spot in loop.asleep if spot.kind == IDLE)
    total = loop.own_seconds + sum(spot.seconds for spot in loop.asleep if spot.kind == IDLE)
    # A program that is asleep for most of its working time waits for something to do.
    if asleep <= 0.5 * total or samples < LEAST_SAMPLES or not _jax_worked(loop):
        return bound
    share = asleep / total
    low, high = interval(share, samples)
    # The loop without its waits for something to do.
    sleeps = [spot for spot in loop.spots if spot in loop.asleep]
    took = totals((loop.part(spot), spot.seconds) for spot in sleeps)
    awake = _largest_part(
        replace(
            loop,
            spots=tuple(spot for spot in loop.spots if spot not in loop.asleep),
            parts={part: max(0.0, seconds - took.get(part, 0.0)) for part, seconds in loop.parts.items()},
            undelayed={part: max(0.0, seconds - took.get(part, 0.0)) for part, seconds in loop.undelayed.items()},
            samples=max(0.0, loop.samples - sum(spot.samples for spot in sleeps)),
        ),
        timed=timed,
    )
    return Verdict(IDLE, share, low, high, seconds=total, otherwise=awake)


def _jax_worked(loop: HotLoop) -> bool:
    return loop.key is not None or loop.parts[COMPILE] > 0 or any(spot.kind in WORKS for spot in loop.spots)


def _largest_part(loop: HotLoop, *, timed: bool) -> Verdict:
    total, samples = loop.own_seconds, loop.samples
    if not _jax_worked(loop) or total <= 0:
        return Verdict(None, None, None, None, "JAX was not seen at work")
    ranked = sorted(loop.parts.items(), key=lambda item: -item[1])
    (name, most), (second, next_most) = ranked[0], ranked[1]
    share, other = most / total, next_most / total
    if samples < LEAST_SAMPLES:
        needed = _round_up(total * 2 * LEAST_SAMPLES / max(samples, 1.0))
        return _no_verdict(loop, f"it was too short ({counted(round(samples), 'sample')})", needed)
    doubtful = sum(spot.seconds for spot in loop.spots) - sum(
        spot.seconds for spot in loop.spots_accounted_for(loop.spots)
    )
    if name == DISPATCH and doubtful > total / 2:
        timed_count = counted(loop.times.count, "timed iteration")
        reason = f"its {timed_count} cannot account for the sampled time: too few and too short"
        return _no_verdict(loop, reason, _round_up(2 * total))
    undelayed = _share_without_delay(name, loop)
    rival = max(seconds + loop.doubt(part) for part, seconds in loop.parts.items() if part != name)
    if undelayed is None and most > rival:
        return _no_verdict(loop, "it waited too long for a processor that others had", None)
    if undelayed is None or most <= rival:
        reason = f"{percent_or_less(loop.unknown / total)} of its time cannot be attributed"
        return _no_verdict(loop, reason if timed else f"{reason}: {UNTIMED}", None)
    spread = math.sqrt(max(share + other - (share - other) ** 2, 1e-9) / samples)
    if share - other < _APART_ERRORS * spread:
        more = (_APART_ERRORS * spread / max(share - other, 0.02)) ** 2
        reason = f"{name} ({percent_or_less(share)}) and {second} ({percent_or_less(other)}) cannot be told apart"
        return _no_verdict(loop, reason, _round_up(total * more))
    low = interval(min(share, undelayed), samples)[0]
    with_waits = (most + loop.doubt(name) + loop.preempted) / loop.seconds
    high = interval(min(1.0, max(undelayed + loop.doubt(name) / total, with_waits)), samples)[1]
    kind, waits = f"{name}-bound", sum(spot.seconds for spot in loop.waits)
    if name == HOST and waits > max(most / 2, rival):
        kind, share, low, high = WAIT_BOUND, *(waits / most * each for each in (share, low, high))
    return replace(_no_verdict(loop, "", None), kind=kind, share=share, low=low, high=high)


def _share_without_delay(name: str, loop: HotLoop) -> float | None:
    """Return the share of a part in the loop without the time for which the thread waited for a processor; None if
    another part may then be the largest one.

    Such time belongs to the machine, and to no part. As sampled, parts that run in Python include these waits, and a
    wait for the device does not. If the device is made of the same processors, it was kept waiting as well: the order
    of the parts remains, and only their sizes are uncertain. If the thread waited for more than half of the time, even
    the order is chance, except for a part that is most of the time under any assumption.
    """
    parts = loop.undelayed or loop.parts
    known = sum(parts.values())
    if loop.shares_processors:
        ordered = loop.preempted + loop.waited <= loop.seconds / 2
    else:
        ordered = parts[name] > max(parts[part] + loop.doubt(part) for part in parts if part != name)
    if ordered:
        return parts[name] / (known + loop.unknown)
    # The lower bound assumes that unknown time and waits in calls belong to other parts, and that all other waits were
    # in this one. If the device is made of the same processors, only what the calling thread computes counts, because
    # no sample shows the waits of other threads.
    ran = loop.parts[name]
    if name == DEVICE and loop.shares_processors:
        ran = sum(spot.seconds for spot in loop.spots if spot.kind == "inline") - sum(loop.launching.values())
    least = max(0.0, ran - loop.waited) / (loop.seconds - loop.waited)
    return least if interval(least, loop.samples)[0] > _MOST else None


def _no_verdict(loop: HotLoop, reason: str, needs_seconds: float | None) -> Verdict:
    return Verdict(None, None, None, None, reason, needs_seconds, loop.own_seconds)


def interval(share: float, samples: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share measured with this many samples."""
    if samples <= 0:
        return 0.0, 1.0
    square = _Z * _Z / samples
    middle = (share + square / 2) / (1 + square)
    half = _Z * math.sqrt(max(share * (1 - share), 0.0) / samples + square / (4 * samples)) / (1 + square)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))  # rounding excludes a share of 1


def _round_up(seconds: float) -> float:
    unit = 10.0 ** math.floor(math.log10(seconds)) if seconds > 0 else 1.0
    return math.ceil(seconds / unit) * unit
