"""The ceilings that kernels are held against: the table's for the device, and what this session measured on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.hlo.analysis import device_of_kind, measured_device, with_measured

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Device
    from jaxprof.session import Run, Session
    from jaxprof.tui.programs.program import Program

_PRECISIONS = {"float32": "f32", "tf32": "tf32", "bfloat16 passes": "bf16", "bfloat16": "bf16"}
"""What a check says about the effective precision of products, as the rates of devices are named."""


def device_of(session: Session, program: Program) -> Device | None:
    """The device of a program with its ceilings; None where nothing is known of it.

    A session in which `triad` and `gemm-peak` ran on the same device has measured its ceilings: these are taken then.
    """
    known = device_of_kind(program.device_kind) if program.device_kind else None
    bandwidth, peaks = _measured(session, program.device)
    if known is not None:
        return with_measured(known, bandwidth=bandwidth, matrix=peaks) if bandwidth or peaks else known
    if bandwidth and peaks:
        return measured_device(f"{program.device} as measured here", 0, bandwidth, peaks)
    return None


def _measured(session: Session, device: str) -> tuple[float | None, dict[str, float]]:
    """Bytes a second, and FLOP/s by dtype, that were reached on a device in this session."""
    runs = [
        run
        for run in list(session.runs.values())
        if run.plan.device == device and run.plan.workload in ("triad", "gemm-peak") and run.status == "ok"
    ]
    if not device or not runs:
        return None, {}
    from jaxprof.results import result

    bandwidth: float | None = None
    peaks: dict[str, float] = {}
    for run in runs:
        figures = result(session, run.id)
        if run.plan.how == "numpy":
            continue
        if run.plan.workload == "triad" and figures.bytes_per_second:
            bandwidth = max(bandwidth or 0.0, figures.bytes_per_second)
        elif run.plan.workload == "gemm-peak" and figures.flops_per_second:
            precision = run.check.precision if run.check is not None else ""
            dtype = "bf16" if run.plan.variant == "jit-bfloat16" else _PRECISIONS.get(precision, "f32")
            peaks[dtype] = max(peaks.get(dtype, 0.0), figures.flops_per_second)
    return bandwidth, peaks


def measured_seconds(run: Run | None) -> dict[str, float]:
    """Seconds of each HLO op in one call, by name, where a profile of the run was recorded; of several devices the
    slowest. The profile without command buffers is preferred: with them an op may carry no name."""
    if run is None:
        return {}
    capture = run.measured.get("attribution") or run.measured.get("run")
    if capture is None or not capture.calls:
        return {}
    found: dict[str, float] = {}
    for row in capture.rows:
        name, seconds = row.get("name"), row.get("self_seconds")
        if isinstance(name, str) and isinstance(seconds, int | float):
            found[name] = max(found.get(name, 0.0), seconds / capture.calls)
    return found
