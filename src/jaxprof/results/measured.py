"""The measured kernels of a run: the rows of its captures, joined with what the HLO says that they cost.

A row of the capture is one op on one device. Here an op is one kernel: devices that ran it are added up, and rates are
of one device. Time in a share is self time, so that a loop does not count what runs in it a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxprof.events import KernelsMeasured
from jaxprof.session import Run, Session

KINDS = ("attribution", "run", "imported")
"""Captures that a run's kernels may be taken from, the best first: the one that is there for the names only comes
before the one that it was made for."""


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """One HLO op as it was measured. Times in seconds."""

    name: str
    """The instruction's name, as `Kernel.name`."""
    module: str
    devices: tuple[str, ...]
    count: int
    """Executions on all devices."""
    calls: int | None
    """Of the program in the capture; None where that is not known."""
    total_seconds: float
    """Sum of its intervals: CPU time on a CPU, where one op may run on several threads."""
    self_seconds: float
    """That without what ran inside."""
    wall_seconds: float
    """Union of its intervals on a device, summed over the devices."""
    median_seconds: float
    """Of one execution; of several devices, that of the one that took the longest."""
    minimum_seconds: float
    maximum_seconds: float
    share: float | None
    """Of the self time of all ops of the run, in 0..1."""
    flops_per_second: float | None
    """From the HLO's count; None where that does not tell, or the kernel took no time."""
    bytes_per_second: float | None
    of_peak: float | None
    """`flops_per_second` over the device's ceiling for the kernel's dtype; None where either is unknown."""
    of_bandwidth: float | None
    """`bytes_per_second` over the device's bandwidth: above 1 where a cache served it."""
    in_hlo: bool | None
    """Whether it is a kernel of the run's HLO; None where there is no HLO to look in."""
    names: tuple[str, ...]
    """Of the kernels on the device."""
    launch: Mapping[str, Any]
    """Grid, block, registers, shared memory, occupancy, where the capture has them."""
    uncertain: bool
    """Some of it was matched to this op by a guess."""

    @property
    def parallelism(self) -> float | None:
        """How many threads worked on it at once, on average."""
        return self.total_seconds / self.wall_seconds if self.wall_seconds > 0 else None

    @property
    def per_call_seconds(self) -> float | None:
        """Self time in one call of the program, on one device."""
        return self.self_seconds / self.calls / len(self.devices) if self.calls else None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run's capture says of its kernels."""

    kind: str
    """Of the capture, as `CaptureTaken.kind`."""
    kernels: tuple[MeasuredKernel, ...]
    """The longest self time first."""
    transfers: tuple[Mapping[str, Any], ...]
    unattributed_seconds: Mapping[str, float]

    @property
    def unmatched_share(self) -> float | None:
        """Share of the self time that is of no kernel of the HLO: ops it does not have (loops around their bodies,
        other programs), and kernels of no op. None without HLO, or without any time."""
        if any(kernel.in_hlo is None for kernel in self.kernels):
            return None
        copies: dict[str, float] = {}
        for row in self.transfers:
            device = str(row.get("device", ""))
            copies[device] = copies.get(device, 0.0) + _number(row, "total_seconds")
        nameless = sum(max(0.0, took - copies.get(device, 0.0)) for device, took in self.unattributed_seconds.items())
        whole = sum(kernel.self_seconds for kernel in self.kernels) + nameless
        matched = sum(kernel.self_seconds for kernel in self.kernels if kernel.in_hlo)
        return 1 - matched / whole if whole > 0 else None

    def by_name(self) -> dict[str, MeasuredKernel]:
        """The kernels by their HLO name; of equal names of several programs, the one that took the longest."""
        return {kernel.name: kernel for kernel in reversed(self.kernels)}


def measured(session: Session, run_id: str) -> Measured | None:
    """The measured kernels of a run; None where it has no capture. One without ops has no kernels."""
    run = session.runs[run_id]
    event = _capture_of(run)
    if event is None:
        return None
    return Measured(
        kind=event.kind,
        kernels=_kernels(event, _static(session, run)),
        transfers=tuple(event.transfers),
        unattributed_seconds=dict(event.unattributed_seconds),
    )


def seconds_per_call(run: Run | None) -> dict[str, float]:
    """Self seconds of each HLO op in one call on one device, by name; empty where no capture tells. Reads no HLO, and
    so takes no time."""
    event = _capture_of(run) if run is not None else None
    kernels = _kernels(event, None) if event is not None else ()
    # Of equal names of several programs, the one that took the longest, as `Measured.by_name`.
    return {one.name: one.per_call_seconds for one in reversed(kernels) if one.per_call_seconds is not None}


def whole_profile(session: Session) -> tuple[MeasuredKernel, ...]:
    """The kernels of all programs of a session that was made of a profile, with their shares of the whole."""
    runs = [run.id for run in session.runs.values() if "imported" in run.measured]
    kernels = [kernel for run in runs if (found := measured(session, run)) is not None for kernel in found.kernels]
    whole = sum(kernel.self_seconds for kernel in kernels)
    shared = [replace(kernel, share=kernel.self_seconds / whole if whole > 0 else None) for kernel in kernels]
    return tuple(sorted(shared, key=lambda kernel: -kernel.self_seconds))


def _capture_of(run: Run) -> KernelsMeasured | None:
    """The capture that a run's kernels are taken from: the best that has ops."""
    events = [run.measured[kind] for kind in KINDS if kind in run.measured]
    return next((one for one in events if one.rows), events[0] if events else None)


def _kernels(event: KernelsMeasured, static: Mapping[str, _Static] | None) -> tuple[MeasuredKernel, ...]:
    """The kernels of a capture, the longest self time first."""
    groups: dict[tuple[Any, Any, Any], list[Mapping[str, Any]]] = {}
    for row in event.rows:
        if isinstance(row.get("name"), str):
            groups.setdefault((row.get("module"), row.get("program"), row["name"]), []).append(row)
    whole = sum(_number(row, "self_seconds") for rows in groups.values() for row in rows)
    kernels = [_kernel(rows, event, whole, static) for rows in groups.values()]
    return tuple(sorted(kernels, key=lambda kernel: -kernel.self_seconds))


@dataclass(frozen=True, slots=True)
class _Static:
    """What the HLO and the device say of a kernel; of one execution."""

    flops: float | None
    bytes: float | None
    peak: float | None
    bandwidth: float | None


_UNKNOWN = _Static(None, None, None, None)


def _static(session: Session, run: Run) -> dict[str, _Static] | None:
    """By the kernel's name; None without HLO, which is read only where there is some.

    The start of an asynchronous pair has no rates: what it moves, it moves until its done.
    """
    if "hlo" not in run.texts:
        return None
    from jaxprof.hlo.analysis import roofline
    from jaxprof.results.ceilings import ceilings_for
    from jaxprof.results.kernels import kernels_of

    known = kernels_of(session, run.id)
    if known is None:
        return None
    device = ceilings_for(session, run)
    found: dict[str, _Static] = {}
    for kernel in known:
        if kernel.asynchronous:
            found[kernel.name] = _Static(None, None, None, None)
            continue
        peak = roofline(kernel, device).peak if device is not None else None
        found[kernel.name] = _Static(kernel.flops, kernel.bytes, peak, device.bandwidth if device is not None else None)
    return found


def _kernel(
    rows: Sequence[Mapping[str, Any]],
    event: KernelsMeasured,
    whole: float,
    statics: Mapping[str, _Static] | None,
) -> MeasuredKernel:
    longest = max(rows, key=lambda row: _number(row, "self_seconds"))
    name = longest["name"]
    count = int(sum(_number(row, "count") for row in rows))
    wall, own = (sum(_number(row, key) for row in rows) for key in ("wall_seconds", "self_seconds"))
    static = (statics or {}).get(name, _UNKNOWN)
    flops_per_second = static.flops * count / wall if static.flops is not None and wall > 0 else None
    bytes_per_second = static.bytes * count / wall if static.bytes is not None and wall > 0 else None
    return MeasuredKernel(
        name=name,
        module=str(longest.get("module") or ""),
        devices=tuple(dict.fromkeys(str(row.get("device", "")) for row in rows)),
        count=count,
        calls=event.calls,
        total_seconds=sum(_number(row, "total_seconds") for row in rows),
        self_seconds=own,
        wall_seconds=wall,
        median_seconds=_number(longest, "median_seconds"),
        minimum_seconds=min(_number(row, "minimum_seconds") for row in rows),
        maximum_seconds=max(_number(row, "maximum_seconds") for row in rows),
        share=own / whole if whole > 0 else None,
        flops_per_second=flops_per_second,
        bytes_per_second=bytes_per_second,
        of_peak=_share(flops_per_second, static.peak),
        of_bandwidth=_share(bytes_per_second, static.bandwidth),
        in_hlo=None if statics is None else name in statics,
        names=tuple(dict.fromkeys(str(known) for row in rows for known in row.get("kernels") or ())),
        launch=longest.get("launch") or {},
        uncertain=any(row.get("uncertain") for row in rows),
    )


def _share(reached: float | None, ceiling: float | None) -> float | None:
    return None if reached is None or not ceiling else reached / ceiling


def _number(row: Mapping[str, Any], key: str) -> float:
    value = row.get(key)
    return float(value) if isinstance(value, int | float) else 0.0
