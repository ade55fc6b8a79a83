"""Who arrives last at the collectives of a job, from captures of several of its processes.

A collective ends on all processes at nearly the same moment, and begins on each when that process arrives. So of one
instance the shortest duration over the processes is the exchange itself, and what the others take longer is waiting for
the one that arrived last. That needs no common clock, only to know which intervals are one instance: the captures begin
at different moments, and the clocks of hosts differ. The ends of many instances make a pattern, by which the captures
are laid on each other; the rest that does not fit is the uncertainty of the offset between the two clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jaxprof.analysis.collective_events import CollectiveEvents, Exchanged, Seconds

LEAST_INSTANCES: Final = 60
"""Captures with fewer are not laid on each other. They have to have two thirds of them in common."""
_APART: Final = 60.0
"""Seconds by which the clocks of hosts may differ; those of one host do not."""
_SAME_HOST: Final = 0.01
_DISTINCT: Final = 1.5
"""How many times better the best fit has to be than the second one: of steps that all take the same time, any fits.
Of 500 simulated pairs of captures of 60 instances with a common pattern (steps 5 % apart, ends 0.1 ms) all are laid at
the right place with it; of 500 without one, 0.6 % somewhere."""

MOST_COLLECTIVES: Final = 4
"""Different ones that are laid on each other."""
STRETCHES: Final = 10
"""Into so many the captured executions are divided in time, because what holds in one of them may be a burst of other
work."""
_RESOLUTION: Final = 1e-6
"""Seconds. Fits that are better than the clocks are not told apart."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The instances of one collective that several processes have captured."""

    name: str
    """Of its HLO instruction."""
    indices: tuple[int, ...]
    """The processes, in the order of the rows."""
    instances: int
    span_seconds: float
    """From the first instance to the last."""
    exchange_seconds: float
    """Of all instances together: the shortest duration over the processes."""
    exchange_median_seconds: float
    """Of one instance."""
    exchange_fast_seconds: float
    """Of one of the fastest tenth."""
    exposed_seconds: tuple[float, ...]
    """By process: of the exchange, in which its device did nothing else, of all instances together."""
    exchanged: Exchanged | None
    """What is exchanged; None where no process has the HLO of its program."""
    waited_seconds: tuple[float, ...]
    """By process: what it waited for others, of all instances together."""
    last_count: tuple[int, ...]
    """By process: how many instances waited for it."""
    caused_seconds: tuple[float, ...]
    """By process: what the middle one of the others waited for it, of all instances together."""
    late_seconds: tuple[tuple[float, ...], ...]
    """By process, in each of `STRETCHES`: how long after the middle one of the others it arrives; negative before it;
    the median instance."""
    offset_seconds: tuple[float, ...]
    """By process: by how much its clock is ahead of the first one's, estimated from the ends."""
    uncertain_seconds: float
    """The largest median residue of the ends."""


def arrivals(captures: Iterable[Mapping[str, CollectiveEvents]], notices: list[str]) -> list[Arrivals]:
    """Of the collectives in which most time was spent, the first of them first; empty if fewer than two captures hold
    `LEAST_INSTANCES` of that. `captures`: one of each process, by the names of the collectives. Why some of them could
    not be laid on each other is added to `notices`."""
    import numpy as np

    by_name: dict[str, list[CollectiveEvents]] = {}
    seen: dict[int, int] = {}
    for capture in captures:
        for name, events in capture.items():
            seen[events.index] = max(seen.get(events.index, 0), len(events.ends))
            if len(events.ends) >= LEAST_INSTANCES:
                by_name.setdefault(name, []).append(events)
    shared = {name: captured for name, captured in by_name.items() if len(captured) > 1}
    if not shared:
        notices += _too_few(seen)
        return []
    took = {name: sum(float(np.sum(each.ends - each.starts)) for each in shared[name]) for name in shared}
    most, *others = sorted(took, key=lambda name: -took[name])[:MOST_COLLECTIVES]
    found = [_laid(most, shared[most], notices)]
    if found[0] is not None:
        found += [_laid(name, shared[name], []) for name in others]
    return [each for each in found if each is not None]


def _laid(name: str, captured: Sequence[CollectiveEvents], notices: list[str]) -> Arrivals | None:
    laid = [captured[0]]
    shifts = {captured[0].index: (0, 0.0, 0.0)}
    for events in captured[1:]:
        fit = lay(captured[0].ends, events.ends, same_clock=captured[0].host == events.host)
        if fit is None:
            first = captured[0].index
            notices.append(
                f"the captures of processes {first} and {events.index} do not show the same executions of {name}"
            )
        else:
            laid.append(events)
            shifts[events.index] = fit
    return _measured(name, laid, shifts) if len(laid) > 1 else None


def _too_few(seen: Mapping[int, int]) -> Iterator[str]:
    """Why the captures that there are say nothing about arrivals; `seen`: by process, the executions of the collective
    that it captured most often."""
    if len(seen) == 1:
        yield f"process {next(iter(seen))} alone has captured collectives: who arrives last takes two processes or more"
    elif seen:
        yield (
            f"the captures hold at most {max(seen.values())} executions of one collective, and who arrives last takes "
            f"{LEAST_INSTANCES} on two processes: capture more steps"
        )


def _measured(
    name: str, laid: Sequence[CollectiveEvents], shifts: Mapping[int, tuple[int, float, float]]
) -> Arrivals | None:
    """The instances that all captures hold. A shift is the place in the capture of the first one's first instance."""
    import numpy as np

    begin = max(-shifts[events.index][0] for events in laid)
    end = min(len(events.ends) - shifts[events.index][0] for events in laid)
    if end - begin < LEAST_INSTANCES // 2:
        return None
    rows = [slice(begin + shifts[events.index][0], end + shifts[events.index][0]) for events in laid]
    taken = np.stack([(events.ends - events.starts)[row] for events, row in zip(laid, rows, strict=True)])
    exchange = taken.min(axis=0)
    waits = taken - exchange
    last = taken.argmin(axis=0)
    caused = []
    for place in range(len(laid)):
        others = np.delete(waits, place, axis=0)[:, last == place]
        caused.append(float(np.median(others, axis=0).sum()) if others.size else 0.0)
    ends = laid[0].ends[rows[0]]
    late = [np.median(np.delete(taken, place, axis=0), axis=0) - taken[place] for place in range(len(laid))]
    return Arrivals(
        name=name,
        indices=tuple(events.index for events in laid),
        instances=end - begin,
        span_seconds=float(ends[-1] - ends[0]),
        exchange_seconds=float(exchange.sum()),
        exchange_median_seconds=float(np.median(exchange)),
        exchange_fast_seconds=float(np.quantile(exchange, 0.1)),
        exposed_seconds=tuple(
            float(np.minimum(events.exposed[row], exchange).sum()) for events, row in zip(laid, rows, strict=True)
        ),
        exchanged=next((events.exchanged for events in laid if events.exchanged is not None), None),
        waited_seconds=tuple(float(row.sum()) for row in waits),
        last_count=tuple(int((last == place).sum()) for place in range(len(laid))),
        caused_seconds=tuple(caused),
        late_seconds=tuple(tuple(float(np.median(part)) for part in np.array_split(row, STRETCHES)) for row in late),
        offset_seconds=tuple(shifts[events.index][1] for events in laid),
        uncertain_seconds=max(shifts[events.index][2] for events in laid),
    )


def lay(first: Seconds, other: Seconds, *, same_clock: bool) -> tuple[int, float, float] | None:
    """By how many places, and by which offset of the clocks, the moments of `other` fit those of `first` best, which
    happen together; and the median residue. None if nothing fits, or several do.

    Of one clock the moments themselves have to be the same: one step too far they are apart by a step. Their pattern
    alone left steps open that are alike, where a busy machine makes the ends uncertain by more than steps differ.
    """
    import numpy as np

    allowed = _SAME_HOST if same_clock else _APART
    common = 2 * min(len(first), len(other)) // 3
    fits: list[tuple[float, int, float, float]] = []
    for shift in range(common - len(first), len(other) - common + 1):
        begin, end = max(0, -shift), min(len(first), len(other) - shift)
        differences = other[begin + shift : end + shift] - first[begin:end]
        offset = float(np.median(differences))
        if abs(offset) <= allowed:
            residue = float(np.median(np.abs(differences - offset)))
            fits.append((float(np.median(np.abs(differences))) if same_clock else residue, shift, offset, residue))
    fits.sort()
    if len(fits) < (1 if same_clock else 2) or (
        len(fits) > 1 and fits[1][0] < _DISTINCT * max(_RESOLUTION, fits[0][0])
    ):
        return None
    _, shift, offset, residue = fits[0]
    return shift, offset, residue
