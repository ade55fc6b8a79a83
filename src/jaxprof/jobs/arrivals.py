"""Which process arrives last at the collectives of a job, from captures of several of its processes.

A collective ends on all processes at nearly the same time, and begins on each process when that process arrives. The
shortest duration of an instance over the processes is therefore the exchange itself, and the extra time of the others
is their wait for the last process. This needs no common clock, only the knowledge which intervals are one instance:
captures begin at different times, and the clocks of hosts differ. The ends of many instances form a pattern by which
captures are aligned; the residue of the alignment is the uncertainty of the offset between two clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.kernels import module_of
from jaxprof.analysis.timeline import COUNTED_LANES, TEXT_NAME, Timeline, TimelineLane, TimelineOp, read_timeline
from jaxprof.base.errors import JaxprofError
from jaxprof.base.values import frozen
from jaxprof.session import Session

if TYPE_CHECKING:
    import numpy as np

    from jaxprof.trace.intervals import Coverage
    from jaxprof.trace.model import Ints

    Seconds = np.ndarray[Any, np.dtype[np.float64]]

_MOST_INSTANCES = 4000
"""Largest number of instances used of a capture: aligning two captures costs the product of their instances."""


@frozen
class Exchanged:
    """What one execution of a collective exchanges, from the HLO of its program."""

    opcode: str
    bytes: int
    """Bytes of the whole array that is gathered, reduced or sent."""
    devices: int | None
    """Number of devices that exchange with each other; None for a permute, and if the HLO does not say."""


@frozen
class CollectiveEvents:
    """Executions of one collective in a process's capture, in order, in Unix seconds by its host's clock."""

    index: int
    host: str
    name: str
    starts: Seconds
    ends: Seconds
    exposed: Seconds
    """Seconds of each execution in which its device ran no other kernel."""
    exchanged: Exchanged | None


def collective_events(index: int, session: Session) -> dict[str, CollectiveEvents]:
    """Return the executions by instruction name, on the device with the most, from the last capture."""
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
        known = _collectives_of_hlo(session) if known is None else known
        spans_by_op: dict[tuple[str, str], list[tuple[int, int]]] = {}
        modules: dict[str, str] = {}
        for lane in timeline.lanes:
            ops = _ops(timeline, lane)
            names = [op.name if op is not None and _is_collective(op, known) else "" for op in ops]
            if not any(names):
                continue
            modules.update((op.name, op.module) for op, name in zip(ops, names, strict=True) if op is not None and name)
            for label, start, length in zip(lane.label_of, lane.starts, lane.durations, strict=True):
                if names[label]:
                    spans_by_op.setdefault((names[label], lane.device), []).append((start, start + length))
        base = timeline.started_unix_ns
        events: dict[str, CollectiveEvents] = {}
        others = {device: _other_kernels(timeline, device, known) for _, device in spans_by_op}
        for (name, device), spans in sorted(
            spans_by_op.items(), key=lambda item: len(item[1])
        ):  # the device with the most executions comes last, and is kept
            nanoseconds = np.array(sorted(spans)[:_MOST_INSTANCES], dtype=np.int64)
            exposed = nanoseconds[:, 1] - nanoseconds[:, 0] - others[device].within(*nanoseconds.T)
            starts, ends = ((nanoseconds + base) * 1e-9).T
            exchanged = known.get((modules[name], name))
            host = session.header.host
            events[name] = CollectiveEvents(index, host, name, starts, ends, np.multiply(exposed, 1e-9), exchanged)
        if events:
            return events
    return {}


def _other_kernels(timeline: Timeline, device: str, known: Mapping[tuple[str, str], Exchanged]) -> Coverage:
    import numpy as np

    from jaxprof.trace.intervals import Coverage, join

    starts: list[Ints] = []
    ends: list[Ints] = []
    for lane in timeline.lanes:
        if lane.device != device or lane.kind not in COUNTED_LANES or not len(lane):
            continue
        is_kernel = [op is not None and not _is_collective(op, known) for op in _ops(timeline, lane)]
        begun = np.asarray(lane.starts, np.int64)
        over = begun + np.asarray(lane.durations, np.int64)
        holds = np.append(begun[1:] < over[:-1], False) if lane.kind != "stream" else np.zeros(len(begun), bool)
        chosen = np.asarray(is_kernel)[np.asarray(lane.label_of)] & ~holds  # a loop is no kernel of its own
        starts.append(begun[chosen])
        ends.append(over[chosen])
    return Coverage.of(join(starts), join(ends))


def _ops(timeline: Timeline, lane: TimelineLane) -> list[TimelineOp | None]:
    return [timeline.ops[op] if op is not None else None for _, op in lane.labels]


def _collectives_of_hlo(session: Session) -> dict[tuple[str, str], Exchanged]:
    modules = [module for run in session.runs.values() if (module := module_of(session, run)) is not None]
    if not modules:
        return {}
    from jaxprof.hlo.kernels.collectives import collectives

    return {
        (module.name, each.kernel.name): Exchanged(each.opcode, each.bytes, each.group_size)
        for module in modules
        for each in collectives(module)
    }


def _is_collective(op: TimelineOp, known: Mapping[tuple[str, str], Exchanged]) -> bool:
    """Return whether an op is a collective, by its program's HLO; else by its name, which begins with the opcode."""
    from jaxprof.hlo.kernels import COLLECTIVES, base_opcode

    opcode = op.name.partition(".")[0].replace("_", "-")
    return (op.module, op.name) in known or base_opcode(opcode) in COLLECTIVES


LEAST_INSTANCES = 60
"""Smallest number of instances of a capture that is aligned. Two captures must have two thirds of them in common."""
_MOST_CLOCK_DIFFERENCE = 60.0
"""Largest difference in seconds between the clocks of two hosts; within a host there is none."""
_MOST_SAME_HOST_DIFFERENCE = 0.01
"""Largest difference in seconds between the ends of one instance on one clock."""
_LEAST_DISTINCTION = 1.5
"""How many times better the best fit must be than the second one; if all steps take the same time, any shift fits.

Of 500 simulated pairs of captures of 60 instances with a common pattern (steps 5 % apart, ends 0.1 ms), all are aligned
correctly; of 500 pairs without one, 0.6 % are aligned somewhere.
"""

MOST_COLLECTIVES = 4
"""Largest number of collectives that are examined."""
SECTIONS = 10
"""Sections by time of the captured executions: what holds in a single one may be a burst of other work."""
_RESOLUTION = 1e-6
"""Resolution of the clocks in seconds; better fits are considered equal."""


@frozen
class Arrival:
    """How one process arrives at the instances of a collective."""

    process: int
    """Index of the process in its job."""
    last_count: int
    """Number of instances at which it arrived last."""
    last_share: float
    waited_seconds: float
    """Time that it waited for others, over all instances."""
    caused_wait_seconds: float
    """Time that the median of the others waited for it, over all instances."""
    by_section: tuple[float, ...]
    """Delay behind the others' median in the median instance of each of `SECTIONS`; negative if before them."""
    clock_offset_seconds: float
    """How far its clock is ahead of the first process's clock, estimated from the ends."""

    @property
    def late_seconds(self) -> float:
        """Typical delay, over all sections."""
        return fmean(self.by_section)


@frozen
class Arrivals:
    """Instances of one collective that several processes captured."""

    name: str
    """Name of the HLO instruction."""
    instances: int
    span_seconds: float
    """Seconds from the first instance to the last."""
    exchange_seconds: float
    """Exchange time over all instances; for each, the shortest duration over the processes."""
    exchange_median_seconds: float
    """Exchange time of the median instance."""
    exposed_seconds: float
    """Exchange time in which the device of the median process did nothing else, over all instances. An estimate, and an
    upper bound if the profiler did not record all kernels."""
    exchanged: Exchanged | None
    """What is exchanged; None if no process has the HLO of its program."""
    processes: tuple[Arrival, ...]
    clock_uncertain_seconds: float
    """Largest median residue of the ends."""

    @property
    def exposed_share(self) -> float:
        """Exposed exchange as a share of the captured time."""
        return self.exposed_seconds / self.span_seconds


def arrivals(captures: Iterable[Mapping[str, CollectiveEvents]], notices: list[str]) -> list[Arrivals]:
    """Return the arrivals at the collectives with the most total time, that collective first.

    `captures` holds one mapping per process, by collective name. Empty if fewer than two captures hold
    `LEAST_INSTANCES` of a collective. The reasons why captures could not be aligned are appended to `notices`.
    """
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
        if len(seen) == 1:
            notices.append(
                f"only process {next(iter(seen))} captured collectives; finding the last arrival needs captures of two "
                "processes"
            )
        elif seen:
            notices.append(
                f"the captures hold at most {max(seen.values())} executions of one collective, and {LEAST_INSTANCES} "
                "on each of two processes are needed: capture more steps"
            )
        return []
    took = {name: sum(float(np.sum(each.ends - each.starts)) for each in shared[name]) for name in shared}
    most, *others = sorted(took, key=lambda name: -took[name])[:MOST_COLLECTIVES]
    aligned = [_align_captures(most, shared[most], notices)]
    if aligned[0] is not None:
        aligned += [_align_captures(name, shared[name], []) for name in others]
    return [each for each in aligned if each is not None]


def _align_captures(name: str, captured: Sequence[CollectiveEvents], notices: list[str]) -> Arrivals | None:
    """Align the captures of one collective with the first capture, and measure the instances that all of them hold."""
    import numpy as np

    first, *others = captured
    aligned = [(first, 0, 0.0, 0.0)]  # with the position of the first capture's first instance, offset and residue
    for events in others:
        fit = align(first.ends, events.ends, same_clock=first.host == events.host)
        if fit is None:
            notices.append(
                f"the captures of processes {first.index} and {events.index} do not show the same executions of {name}"
            )
        else:
            aligned.append((events, *fit))
    if len(aligned) < 2:
        return None
    # Each shift counts from the first capture's first instance; only instances that all captures have are compared.
    begin = max(-shift for _, shift, _, _ in aligned)
    end = min(len(events.ends) - shift for events, shift, _, _ in aligned)
    if end - begin < LEAST_INSTANCES // 2:
        return None
    rows = [(events, slice(begin + shift, end + shift)) for events, shift, _, _ in aligned]
    taken = np.stack([(events.ends - events.starts)[row] for events, row in rows])
    # A collective ends everywhere at once, and the last to arrive does not wait: its duration is the exchange alone.
    exchange = taken.min(axis=0)
    last = taken.argmin(axis=0)
    processes = []
    for number, ((events, _, offset, _), own) in enumerate(zip(aligned, taken, strict=True)):
        is_last = last == number
        theirs = np.delete(taken, number, axis=0)
        # The later one arrives, the shorter its own execution: differences of durations need no common clock.
        late = np.array_split(np.median(theirs, axis=0) - own, SECTIONS)
        caused = np.median((theirs - exchange)[:, is_last], axis=0).sum()
        processes.append(
            Arrival(
                process=events.index,
                last_count=int(is_last.sum()),
                last_share=float(is_last.mean()),
                waited_seconds=float((own - exchange).sum()),
                caused_wait_seconds=float(caused),
                by_section=tuple(float(np.median(part)) for part in late),
                clock_offset_seconds=offset,
            )
        )
    # A process that waits for others also does nothing else, which is not the exchange's fault.
    exposed = [np.minimum(events.exposed[row], exchange).sum() for events, row in rows]
    first, row = rows[0]
    ends = first.ends[row]
    return Arrivals(
        name=name,
        instances=end - begin,
        span_seconds=float(ends[-1] - ends[0]),
        exchange_seconds=float(exchange.sum()),
        exchange_median_seconds=float(np.median(exchange)),
        exposed_seconds=float(np.median(exposed)),
        exchanged=next((events.exchanged for events, _ in rows if events.exchanged is not None), None),
        processes=tuple(processes),
        clock_uncertain_seconds=max(residue for *_, residue in aligned),
    )


def align(first: Seconds, other: Seconds, *, same_clock: bool) -> tuple[int, float, float] | None:
    """Return the shift and the clock offset by which `other` fits `first` best, and the median residue.

    The times are of events that happen together. None if nothing fits, or several fits are equally good. On one clock
    the times themselves must agree, because a shift by one step is off by a step. Their pattern alone would leave
    similar steps ambiguous, since on a busy machine the ends vary more than the steps differ.
    """
    import numpy as np

    allowed = _MOST_SAME_HOST_DIFFERENCE if same_clock else _MOST_CLOCK_DIFFERENCE
    # Captures do not begin and end together: each may lack events of the other at its ends. A fit needs two thirds of
    # the shorter one, because a few differences agree by chance.
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
    # Steps of one length fit at every shift. On two clocks a single fit has no other to be better than.
    if len(fits) < (1 if same_clock else 2) or (
        len(fits) > 1 and fits[1][0] < _LEAST_DISTINCTION * max(_RESOLUTION, fits[0][0])
    ):
        return None
    _, shift, offset, residue = fits[0]
    return shift, offset, residue
