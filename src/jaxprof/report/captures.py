"""What the captures of a run say, as plain dicts: measured kernels, compile passes, steps, trust."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jaxprof.results.measured import Measured, MeasuredKernel, measured
from jaxprof.session import Run, Session

_CAPTURE = ("platform", "calls", "seconds_with", "wall_seconds", "events", "bytes")


def captures_json(session: Session, run: Run) -> dict[str, Any]:
    """The keys that a run with captures has besides; empty for one without."""
    data: dict[str, Any] = {}
    if run.captures:
        data["captures"] = [
            {"kind": kind, **{name: getattr(capture, name) for name in _CAPTURE}, "path": capture.path or None}
            for kind, capture in run.captures.items()
        ]
    found = measured(session, run.id)
    if found is not None:
        data["transfers"] = [_transfer(row) for row in found.transfers]
        data["unattributed_seconds"] = dict(found.unattributed_seconds)
    if run.steps is not None:
        data["steps_found_by"] = run.steps.found_by
        data["steps"] = list(run.steps.steps)
    if run.compile_passes is not None:
        data["compile_passes"] = run.compile_passes.tree
    if run.trust:
        data["trust"] = trust_json(run)
    return data


def trust_json(run: Run) -> list[dict[str, Any]]:
    """Each row of each capture, with the capture's kind."""
    return [
        {"kind": kind, **row, "advice": row.get("advice") or None}
        for kind, event in run.trust.items()
        for row in event.rows
    ]


def kernels_measured_json(
    session: Session, run: Run, kernels: list[dict[str, Any]] | None
) -> list[dict[str, Any]] | None:
    """The kernels of the HLO, each with `measured` (null where it was not seen), then those that only the capture has.

    As they were given where there is no capture.
    """
    found = measured(session, run.id)
    if found is None:
        return kernels
    by_name = found.by_name()
    listed = [{**kernel, "measured": _measured(by_name.get(kernel["name"]))} for kernel in kernels or ()]
    names = {kernel["name"] for kernel in listed}
    listed += [{"name": one.name, "measured": _measured(one)} for one in found.kernels if one.name not in names]
    return listed


def _measured(kernel: MeasuredKernel | None) -> dict[str, Any] | None:
    if kernel is None:
        return None
    found = asdict(kernel)
    for name in ("name", "flops_per_second", "bytes_per_second"):
        del found[name]
    return found | {
        "devices": list(kernel.devices),
        "names": list(kernel.names),
        "launch": dict(kernel.launch) or None,
        "per_call_seconds": kernel.per_call_seconds,
        "parallelism": kernel.parallelism,
        "gflops": None if kernel.flops_per_second is None else kernel.flops_per_second / 1e9,
        "gbps": None if kernel.bytes_per_second is None else kernel.bytes_per_second / 1e9,
    }


def _transfer(row: Any) -> dict[str, Any]:
    moved, seconds = row.get("bytes"), row.get("total_seconds")
    return {**row, "bytes_per_second": moved / seconds if moved and seconds else None}


def measured_rows(found: Measured) -> list[dict[str, Any]]:
    """The measured kernels alone, as `kernels[].measured`, each with its name."""
    return [{"name": kernel.name, **(_measured(kernel) or {})} for kernel in found.kernels]
