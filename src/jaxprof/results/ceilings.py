"""The ceilings that kernels are held against: the vendor's figures, and what this machine was seen to reach.

`triad` and `gemm-peak` measure a device's bandwidth and peak. What they reached is kept for the machine, so that every
later session has a roofline: on a CPU, which is in no table, it is the only one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis import Device, device, device_of_kind, measured_device, with_measured
from jaxprof.results.derive import result
from jaxprof.session import Run, Session
from jaxprof.store.library import state_folder
from jaxprof.targets import parse_target

BANDWIDTH_WORKLOAD, PEAK_WORKLOAD = "triad", "gemm-peak"
_DTYPES = {"float32": "f32", "tf32": "tf32", "bfloat16 passes": "bf16", "bfloat16": "bf16"}
"""What a check says about the effective precision of products, as the rates of devices are named."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a device was seen to reach: bytes a second, and FLOP/s of matrix products by dtype."""

    bandwidth: float | None = None
    peaks: dict[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.bandwidth is not None or bool(self.peaks)

    def best(self, other: Measured) -> Measured:
        """The greater figure of the two for each."""
        peaks = {key: max(self.peaks.get(key, 0.0), other.peaks.get(key, 0.0)) for key in {**self.peaks, **other.peaks}}
        bandwidths = [value for value in (self.bandwidth, other.bandwidth) if value is not None]
        return Measured(max(bandwidths, default=None), peaks)


def ceilings_for(session: Session, run: Run, folder: Path | None = None) -> Device | None:
    """The device of a run with its ceilings; None where nothing is known of it.

    What the session measured comes first, then what is kept for this machine (only for sessions recorded on it).
    """
    elsewhere = device_elsewhere(run)
    if elsewhere is not None:
        return elsewhere
    kind = device_kind(run)
    measured = measured_in(session, run.plan.device)
    if session.header.host == os.uname().nodename:
        measured = measured.best(_kept(folder).get(kind, Measured()))
    known = device_of_kind(kind) if kind else None
    if known is not None:
        return with_measured(known, bandwidth=measured.bandwidth, matrix=measured.peaks) if measured else known
    if measured.bandwidth and measured.peaks:
        return measured_device(f"{run.plan.device} as measured here", 0, measured.bandwidth, measured.peaks)
    return None


def device_elsewhere(run: Run) -> Device | None:
    """The device that was not here, of a run that was only compiled for it; None for every other run."""
    if run.plan.how != "compile":
        return None
    try:
        return device(parse_target(run.plan.device).chip.name)
    except JaxprofError:  # compiled for a device that is here, as `cpu:0`
        return None


def device_kind(run: Run) -> str:
    """What JAX calls the device of a run; of a CPU, the processor's model. Empty where the run does not say."""
    if run.environment is None:
        return ""
    platform = run.plan.device.partition(":")[0]
    if platform == "cpu":
        return str(run.environment.settings.get("cpu_model") or "cpu")
    for seen in run.environment.devices:
        if seen.get("platform") == platform:
            return str(seen.get("kind") or "")
    return ""


def measured_in(session: Session, device_id: str) -> Measured:
    """What `triad` and `gemm-peak` reached on a device in this session."""
    found = Measured()
    for run in _measuring(session):
        if run.plan.device != device_id:
            continue
        figures = result(session, run.id)
        if run.plan.workload == BANDWIDTH_WORKLOAD and figures.bytes_per_second:
            found = found.best(Measured(figures.bytes_per_second))
        elif run.plan.workload == PEAK_WORKLOAD and figures.flops_per_second:
            precision = run.check.precision if run.check is not None else ""
            dtype = "bf16" if run.plan.variant == "jit-bfloat16" else _DTYPES.get(precision, "f32")
            found = found.best(Measured(None, {dtype: figures.flops_per_second}))
    return found


def remember(session: Session, folder: Path | None = None) -> None:
    """Keeps for this machine what the session measured. A folder that cannot be written is no error."""
    fresh = {kind: measured_in(session, run.plan.device) for run in _measuring(session) if (kind := device_kind(run))}
    if not any(fresh.values()):
        return
    kept = _kept(folder)
    for kind, measured in fresh.items():
        kept[kind] = kept.get(kind, Measured()).best(measured)
    payload = {kind: {"bandwidth": one.bandwidth, "peaks": one.peaks} for kind, one in kept.items()}
    path = _path(folder)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(payload, indent=1))
        partial.replace(path)


def _measuring(session: Session) -> Iterable[Run]:
    return [
        run
        for run in list(session.runs.values())
        if run.plan.workload in (BANDWIDTH_WORKLOAD, PEAK_WORKLOAD) and run.status == "ok" and run.plan.how == "jit"
    ]


def _path(folder: Path | None) -> Path:
    return (folder or state_folder()) / "ceilings.json"


def _kept(folder: Path | None) -> dict[str, Measured]:
    """What is kept, by device kind; nothing where there is no file, or it cannot be read."""
    try:
        payload: Any = json.loads(_path(folder).read_text())
        return {
            str(kind): Measured(
                None if one["bandwidth"] is None else float(one["bandwidth"]),
                {str(dtype): float(rate) for dtype, rate in one["peaks"].items()},
            )
            for kind, one in payload.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
