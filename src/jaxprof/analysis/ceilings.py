"""The ceilings that kernels are compared with: the vendor's figures, and the rates that this machine has reached.

`triad` and `gemm-peak` measure a device's bandwidth and peak. What they reached is kept for the machine, so that every
later session has a roofline: a CPU, which is in no table, has no other.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.errors import JaxprofError
from jaxprof.files import private_folder, taking_place
from jaxprof.hlo.analysis.cost.peaks import DevicePeaks, device, device_of_kind
from jaxprof.hlo.analysis.cost.roofline import measured_device, with_measured
from jaxprof.session import Run, Session
from jaxprof.session.log.state import state_folder

if TYPE_CHECKING:
    from jaxprof.devices.targets import Machine

BANDWIDTH_WORKLOAD, PEAK_WORKLOAD = "triad", "gemm-peak"
_DTYPES = {"float32": "f32", "tf32": "tf32", "bfloat16 passes": "bf16", "bfloat16": "bf16"}
"""The effective precision of products that a check reports, under the names that the rates of devices have."""
LEAST_BYTES = float(256 << 20)
"""What a call moves at least whose rate is that of memory: less may fit into a last-level cache."""
_DISTURBED = frozenset({"busy_machine", "disturbed"})
"""Warnings of runs that reached less than the device can."""


@dataclass(frozen=True, slots=True)
class MeasuredCeilings:
    """What a device was seen to reach: bytes a second, and FLOP/s of matrix products by dtype."""

    bandwidth: float | None = None
    peaks: dict[str, float] = field(default_factory=dict)
    bandwidth_bytes: float | None = None
    """Bytes that a call moved whose rate `bandwidth` is."""
    measured: float | None = None
    """Unix time of the newest of them."""

    def __bool__(self) -> bool:
        return self.bandwidth is not None or bool(self.peaks)

    def best(self, other: MeasuredCeilings) -> MeasuredCeilings:
        """The greater of the two figures for each."""
        peaks = {key: max(self.peaks.get(key, 0.0), other.peaks.get(key, 0.0)) for key in {**self.peaks, **other.peaks}}
        memory = max((self, other), key=lambda each: each.bandwidth or 0.0)
        moments = [each.measured for each in (self, other) if each.measured is not None]
        return MeasuredCeilings(memory.bandwidth, peaks, memory.bandwidth_bytes, max(moments, default=None))


def ceilings_for(session: Session, run: Run, folder: Path | None = None) -> DevicePeaks | None:
    """The device of a run with its ceilings; None if nothing is known of it.

    Ceilings that the session measured come first, then those kept for this machine (for sessions recorded on it).
    """
    elsewhere = device_elsewhere(run)
    if elsewhere is not None:
        return elsewhere
    kind = device_kind(run)
    measured = measured_in(session, run.plan.device)
    if session.header.host == socket.gethostname():
        measured = measured.best(_kept(folder).get(kind, MeasuredCeilings()))
    datasheet = device_of_kind(kind) if kind else None
    if datasheet is not None:
        return with_measured(datasheet, bandwidth=measured.bandwidth, matrix=measured.peaks) if measured else datasheet
    if measured.bandwidth and measured.peaks:
        day = "" if measured.measured is None else f" on {datetime.fromtimestamp(measured.measured, UTC):%Y-%m-%d}"
        name = f"{run.plan.device} as measured here{day}"
        return measured_device(name, 0, measured.bandwidth, measured.peaks)
    return None


def device_elsewhere(run: Run) -> DevicePeaks | None:
    """The absent device that a run was only compiled for; None for every other run."""
    if run.plan.how != "compile":
        return None
    from jaxprof.devices.targets import parse_target

    try:
        return device(parse_target(run.plan.device).chip.name)
    except JaxprofError:  # compiled for a device of this machine, such as `cpu:0`
        return None


def machine_of_run(run: Run | None, device: DevicePeaks | None) -> Machine | None:
    """How the devices of a run are connected: as the target that it was compiled for says, else by the one known link
    of `device`. None where `device` is None."""
    if device is None:
        return None
    from jaxprof.devices.targets import machine_for, machine_of, parse_target

    if run is not None and device_elsewhere(run) == device:
        return machine_for(parse_target(run.plan.device))
    return machine_of(device)


def device_kind(run: Run) -> str:
    """JAX's name for the device of a run; for a CPU, the processor's model. Empty if the run does not say."""
    if run.environment is None:
        return ""
    platform = run.plan.device.partition(":")[0]
    if platform == "cpu":
        return str(run.environment.settings.get("cpu_model") or "cpu")
    for seen in run.environment.devices:
        if seen.get("platform") == platform:
            return str(seen.get("kind") or "")
    return ""


def measured_in(session: Session, device_id: str) -> MeasuredCeilings:
    """What `triad` and `gemm-peak` reached on a device in this session, where nothing else used the machine."""
    ceilings = MeasuredCeilings()
    moment = session.header.wall_seconds or None
    for run in _measuring(session):
        if run.plan.device != device_id:
            continue
        from jaxprof.analysis.run_result import result  # and all of statistics, which kernels of a program do not need

        figures = result(session, run.id)
        if any(warning.code in _DISTURBED for warning in figures.warnings):
            continue
        moved = figures.bytes_accessed or 0.0
        if run.plan.workload == BANDWIDTH_WORKLOAD and moved >= LEAST_BYTES and figures.bytes_per_second:
            ceilings = ceilings.best(MeasuredCeilings(figures.bytes_per_second, {}, moved, moment))
        elif run.plan.workload == PEAK_WORKLOAD and figures.flops_per_second:
            precision = run.check.precision if run.check is not None else ""
            dtype = "bf16" if run.plan.variant == "jit-bfloat16" else _DTYPES.get(precision, "f32")
            ceilings = ceilings.best(MeasuredCeilings(None, {dtype: figures.flops_per_second}, None, moment))
    return ceilings


def remember(session: Session, folder: Path | None = None) -> None:
    """Keeps the rates that the session measured on this machine. A folder that cannot be written is not an error."""
    fresh = {kind: measured_in(session, run.plan.device) for run in _measuring(session) if (kind := device_kind(run))}
    if not any(fresh.values()):
        return
    kept = _kept(folder)
    for kind, measured in fresh.items():
        kept[kind] = kept.get(kind, MeasuredCeilings()).best(measured)
    payload = {kind: asdict(ceilings) for kind, ceilings in kept.items()}
    path = _path(folder)
    with suppress(OSError):
        private_folder(path.parent)
        with taking_place(path) as place:
            place.write_text(json.dumps(payload, indent=1), encoding="utf-8")


def kept_at(folder: Path | None = None) -> int:
    """When the kept rates were last written, in nanoseconds: figures of an older time may differ. 0: there are none."""
    try:
        return _path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def _measuring(session: Session) -> Iterable[Run]:
    return [
        run
        for run in list(session.runs.values())
        if run.plan.workload in (BANDWIDTH_WORKLOAD, PEAK_WORKLOAD) and run.status == "ok" and run.plan.how == "jit"
    ]


def _path(folder: Path | None) -> Path:
    return (folder or state_folder()) / "ceilings.json"


def _kept(folder: Path | None) -> dict[str, MeasuredCeilings]:
    """The kept ceilings by device kind; empty if there is no readable file. What older versions kept says neither when
    nor with how many bytes it was measured, and may be the rate of a cache or of a busy machine."""
    try:
        payload: Any = json.loads(_path(folder).read_text())
        return {
            str(kind): MeasuredCeilings(
                None if entry["bandwidth"] is None else float(entry["bandwidth"]),
                {str(dtype): float(rate) for dtype, rate in entry["peaks"].items()},
                None if entry["bandwidth_bytes"] is None else float(entry["bandwidth_bytes"]),
                float(entry["measured"]),
            )
            for kind, entry in payload.items()
            if entry.get("measured") is not None
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
