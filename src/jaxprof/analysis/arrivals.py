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
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.opener import module_of
from jaxprof.analysis.timeline import TEXT_NAME, Timeline, TimelineLane, TimelineOp, read_timeline
from jaxprof.errors import JaxprofError
from jaxprof.session import Session

if TYPE_CHECKING:
    import numpy as np

    from jaxprof.devices.targets import Machine

    Seconds = np.ndarray[Any, np.dtype[np.float64]]

_MOST_INSTANCES: Final = 4000
"""Of a capture: laying captures on each other costs their product."""
_DEVICE_LANES: Final = ("stream", "ops", "thread")
"""Kinds of lanes with kernels."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What one execution of a collective exchanges, by the HLO of its program."""

    opcode: str
    bytes: int
    """Of the whole array: what is gathered, reduced, or sent."""
    devices: int | None
    """That exchange with each other; None for a permute, and where the HLO does not say."""
    bound_seconds: float | None = None
    """The least time over the links of its device; None where they are not known."""

    @property
    def bus_bytes(self) -> float | None:
        """Bytes that a device has to send for it if no switch adds them up. Over the time that is the bus bandwidth of
        nccl-tests, which can be compared with that of the links whatever the number of devices (doc/PERFORMANCE.md: of
        the array 2 (n - 1) / n for an all-reduce, (n - 1) / n for an all-gather, a reduce-scatter and an all-to-all,
        all of it for a broadcast). None where the number of devices is not known."""
        if self.opcode in ("collective-permute", "collective-broadcast"):
            return float(self.bytes)
        if self.devices is None:
            return None
        part = (self.devices - 1) / self.devices
        return self.bytes * part * (2 if self.opcode == "all-reduce" else 1)


@dataclass(frozen=True, slots=True)
class CollectiveEvents:
    """The executions of one collective in the capture of one process, in the order of time, in seconds of Unix time by
    the clock of its host."""

    index: int
    host: str
    name: str
    starts: Seconds
    ends: Seconds
    exposed: Seconds
    """Of each: how long its device ran no other kernel meanwhile."""
    exchanged: Exchanged | None


def collective_events(index: int, session: Session) -> dict[str, CollectiveEvents]:
    """By the name of the instruction: the executions on the device that has most of them, in the last capture."""
    import numpy as np

    known = None
    for run in reversed(session.runs.values()):
        if TEXT_NAME not in run.texts:
            continue
        try:
            timeline = read_timeline(session.text(run.id, TEXT_NAME) or "")
        except JaxprofError:
            continue
        if timeline.started_unix_ns is None:
            continue
        known = _known(session) if known is None else known
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        modules: dict[str, str] = {}
        for lane in timeline.lanes:
            ops = _ops(timeline, lane)
            names = [op.name if op is not None and _is_collective(op, known) else "" for op in ops]
            if not any(names):
                continue
            modules.update((op.name, op.module) for op, name in zip(ops, names, strict=True) if op is not None and name)
            for label, start, length in zip(lane.label_of, lane.starts, lane.durations, strict=True):
                if names[label]:
                    found.setdefault((names[label], lane.device), []).append((start, start + length))
        base = timeline.started_unix_ns
        events: dict[str, CollectiveEvents] = {}
        others = {device: _Kernels(timeline, device, known) for _, device in found}
        for (name, device), spans in sorted(
            found.items(), key=lambda item: len(item[1])
        ):  # the most come last, and stay
            both = np.array(sorted(spans)[:_MOST_INSTANCES], dtype=np.int64)
            exposed = (both[:, 1] - both[:, 0]) - others[device].beside(both[:, 0], both[:, 1])
            starts, ends = ((both + base) * 1e-9).T
            exchanged = known.get((modules[name], name))
            host = session.header.host
            events[name] = CollectiveEvents(index, host, name, starts, ends, exposed * 1e-9, exchanged)
        if events:
            return events
    return {}


class _Kernels:
    """What one device ran that is no collective."""

    def __init__(self, timeline: Timeline, device: str, known: Mapping[tuple[str, str], Exchanged]) -> None:
        import numpy as np

        from jaxprof.analysis.lanes.rows import united

        spans = [np.empty((0, 2), np.int64)]
        for lane in timeline.lanes:
            if lane.device != device or lane.kind not in _DEVICE_LANES or not len(lane):
                continue
            is_kernel = [op is not None and not _is_collective(op, known) for op in _ops(timeline, lane)]
            starts = np.asarray(lane.starts, np.int64)
            ends = starts + np.asarray(lane.durations, np.int64)
            holds = np.append(starts[1:] < ends[:-1], False) if lane.kind != "stream" else np.zeros(len(starts), bool)
            chosen = np.asarray(is_kernel)[np.asarray(lane.label_of)] & ~holds  # a loop is not what runs in it
            spans.append(np.stack([starts[chosen], ends[chosen]], axis=1))
        every = np.concatenate(spans)
        self._starts, self._ends = every.T
        if len(every):
            order = np.argsort(self._starts, kind="stable")
            self._starts, self._ends = united(self._starts[order], self._ends[order])

    def beside(self, begins: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """For how many nanoseconds of each range it ran any of it."""
        from jaxprof.analysis.lanes.rows import covered

        return covered(self._starts, self._ends, begins, ends) if len(self._starts) else begins * 0


def _ops(timeline: Timeline, lane: TimelineLane) -> list[TimelineOp | None]:
    """By label."""
    return [timeline.ops[op] if op is not None else None for _, op in lane.labels]


def _known(session: Session) -> dict[tuple[str, str], Exchanged]:
    """The collectives of the programs whose HLO the session holds, by the names of the module and of the kernel."""
    modules = [module for run in session.runs.values() if (module := module_of(session, run)) is not None]
    if not modules:
        return {}
    from jaxprof.devices.targets import exchange
    from jaxprof.hlo.analysis.collectives import collectives

    machine = _machine(session)
    found = {}
    for module in modules:
        for each in collectives(module):
            bound = exchange(each, machine).bound_seconds if machine is not None else None
            found[module.name, each.kernel.name] = Exchanged(each.opcode, each.bytes, each.group_size, bound)
    return found


def _machine(session: Session) -> Machine | None:
    """How the accelerators of a process are connected: by the one known link of their kind. None if there is none."""
    from jaxprof.devices.targets import machine_of
    from jaxprof.hlo.analysis.cost.peaks import device_of_kind

    environments = [run.environment for run in session.runs.values() if run.environment is not None]
    kinds = {
        str(each.get("kind") or "") for seen in environments for each in seen.devices if each.get("platform") != "cpu"
    }
    peaks = device_of_kind(kinds.pop()) if len(kinds) == 1 else None
    return machine_of(peaks) if peaks is not None else None


def _is_collective(op: TimelineOp, known: Mapping[tuple[str, str], Exchanged]) -> bool:
    """By the HLO of its program; without that by its name, which mostly begins with its opcode."""
    from jaxprof.hlo.analysis.opcodes import COLLECTIVES, base_opcode

    opcode = op.name.partition(".")[0].replace("_", "-")
    return (op.module, op.name) in known or base_opcode(opcode) in COLLECTIVES


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
