"""The collectives in the capture of one process: when they ran, what ran beside them, and what they exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.timeline import TEXT_NAME, Timeline, TimelineLane, TimelineOp, read_timeline
from jaxprof.analysis.utilisation import module_of
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.collectives import collectives
from jaxprof.hlo.analysis.cost.peaks import device_of_kind
from jaxprof.hlo.analysis.opcodes import COLLECTIVES, base_opcode
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
    from jaxprof.devices.targets import exchange

    machine = _machine(session)
    found = {}
    for run in session.runs.values():
        module = module_of(session, run)
        for each in collectives(module) if module is not None else ():
            bound = exchange(each, machine).bound_seconds if machine is not None else None
            found[module.name if module is not None else "", each.kernel.name] = Exchanged(
                each.opcode, each.bytes, each.group_size, bound
            )
    return found


def _machine(session: Session) -> Machine | None:
    """How the accelerators of a process are connected: by the one known link of their kind. None if there is none."""
    from jaxprof.devices.targets import machine_of

    environments = [run.environment for run in session.runs.values() if run.environment is not None]
    kinds = {
        str(each.get("kind") or "") for seen in environments for each in seen.devices if each.get("platform") != "cpu"
    }
    peaks = device_of_kind(kinds.pop()) if len(kinds) == 1 else None
    return machine_of(peaks) if peaks is not None else None


def _is_collective(op: TimelineOp, known: Mapping[tuple[str, str], Exchanged]) -> bool:
    """By the HLO of its program; without that by its name, which mostly begins with its opcode."""
    opcode = op.name.partition(".")[0].replace("_", "-")
    return (op.module, op.name) in known or base_opcode(opcode) in COLLECTIVES
