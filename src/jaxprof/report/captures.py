"""The captures of a run, as tables and as plain dicts: measured kernels, compile passes, steps, trust."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from jaxprof.analysis.measured import MeasuredKernel, measured
from jaxprof.analysis.steps import FOUND_BY, DeviceSteps, device_steps
from jaxprof.events import CopyTimes, KernelLaunch, PassTimes, StepTimes, TrustCheck
from jaxprof.facts import at
from jaxprof.report.renderers import records
from jaxprof.report.table import Column, Table
from jaxprof.session import Run, Session
from jaxprof.units import UNKNOWN, integer, percent, seconds

LEAST_SHARE: Final = 0.0001
"""A smaller share is shown as less than this one."""
_CAPTURE = ("platform", "calls", "seconds_with", "wall_seconds", "events", "bytes")


def captures_json(session: Session, run: Run) -> dict[str, Any]:
    """The extra keys of a run with captures; empty for a run without."""
    data: dict[str, Any] = {}
    if run.captures:
        data["captures"] = [
            {"kind": kind, **{name: getattr(capture, name) for name in _CAPTURE}, "path": capture.path or None}
            for kind, capture in run.captures.items()
        ]
    measured_run = measured(session, run.id)
    if measured_run is not None:
        data["transfers"] = [_transfer(row) for row in measured_run.transfers]
        data["unattributed_seconds"] = dict(measured_run.unattributed_seconds)
    if run.steps is not None:
        data["steps_found_by"] = run.steps.found_by
        data |= steps_json(run)
        data["steps"] = list(records(Table(STEPS, run.steps.steps)))
    if run.compile_passes is not None:
        data["compile_passes"] = asdict(run.compile_passes.tree)
    if run.trust:
        data["trust"] = trust_json(run)
    return data


@dataclass(frozen=True, slots=True)
class CaptureCheck:
    """A check of a capture, with the capture's kind."""

    kind: str
    check: TrustCheck


@dataclass(frozen=True, slots=True)
class PassRow:
    """A node of a compile's tree, with the names on the way to it."""

    node: PassTimes
    path: str
    depth: int
    share: float | None
    """Of the whole compile."""


def trust_rows(run: Run) -> list[CaptureCheck]:
    """The checks of all captures of a run."""
    return [CaptureCheck(kind, check) for kind, event in run.trust.items() for check in event.rows]


def pass_rows(tree: PassTimes) -> Iterator[PassRow]:
    """The nodes of the tree, a parent before its children."""

    def walk(node: PassTimes, path: str, depth: int) -> Iterator[PassRow]:
        yield PassRow(node, path, depth, node.seconds / tree.seconds if tree.seconds else None)
        for child in node.children:
            yield from walk(child, f"{path}/{child.name}", depth + 1)

    return walk(tree, tree.name, 0)


def steps_json(run: Run) -> dict[str, Any]:
    """The key that the steps of each device are under."""
    return {"device_steps": list(records(Table(DEVICES, device_steps(run.steps))))}


def trust_json(run: Run) -> list[dict[str, Any]]:
    """Each row of each capture, with the capture's kind."""
    return list(records(Table(TRUST, trust_rows(run))))


def kernels_measured_json(
    session: Session, run: Run, kernels: list[dict[str, Any]] | None
) -> list[dict[str, Any]] | None:
    """The kernels of the HLO, each with `measured` (null if it was not seen), then those that only the capture has.

    Without a capture, the kernels unchanged.
    """
    measured_run = measured(session, run.id)
    if measured_run is None:
        return kernels
    seen = list(zip(measured_run.kernels, records(Table(MEASURED, measured_run.kernels)), strict=True))
    # Of equal names of several programs, the one that took the longest, as `MeasuredKernels.by_name`.
    by_name = {kernel.name: data for kernel, data in reversed(seen)}
    listed = [{**kernel, "measured": by_name.get(kernel["name"])} for kernel in kernels or ()]
    names = {kernel["name"] for kernel in listed}
    listed += [{"name": kernel.name, "measured": data} for kernel, data in seen if kernel.name not in names]
    return listed


def _transfer(row: CopyTimes) -> dict[str, Any]:
    rate = row.bytes / row.total_seconds if row.bytes and row.total_seconds else None
    return {**asdict(row), "bytes_per_second": rate}


def _compared(device: DeviceSteps) -> str:
    return f" ({device.complete} compared)" if device.complete < device.count else ""


def _range(quartiles: tuple[float, float] | None) -> str:
    return UNKNOWN if quartiles is None else f"{seconds(quartiles[0])} - {seconds(quartiles[1])}"


def _rate(rate: float | None) -> float | None:
    return None if rate is None else rate / 1e9


def _share_text(share: float | None) -> str:
    return percent(share) if share is None or share >= LEAST_SHARE else f"< {percent(LEAST_SHARE, 1)}"


MEASURED: Final[tuple[Column[MeasuredKernel], ...]] = (
    Column("module"),
    Column("devices"),
    Column("count", "times", show=integer),
    Column("calls"),
    Column("total_seconds"),
    Column("self_seconds", "self", show=seconds),
    Column("wall_seconds"),
    Column("median_seconds", "median", show=seconds),
    Column("minimum_seconds", "least", show=seconds),
    Column("maximum_seconds", "most", show=seconds),
    Column("share", "share", show=_share_text),
    Column("of_peak", "of peak", show=percent),
    Column("of_bandwidth", "of peak", show=percent),
    Column("in_hlo"),
    Column("names"),
    *(Column(f"launch.{field.name}") for field in fields(KernelLaunch)),
    Column("uncertain"),
    Column("per_call_seconds", "per call", show=seconds),
    Column("parallelism"),
    Column("gflops", value=lambda kernel: _rate(kernel.flops_per_second)),
    Column("gbps", value=lambda kernel: _rate(kernel.bytes_per_second)),
)
"""As `kernels[].measured`."""
KERNELS: Final[tuple[Column[MeasuredKernel], ...]] = (Column("name"), *MEASURED)
"""The measured kernels alone."""
STEPS: Final[tuple[Column[StepTimes], ...]] = (
    Column("name", "step"),
    Column("device", "device"),
    Column("start_seconds"),
    Column("seconds", "time", show=seconds),
    Column("complete", "complete", show=lambda complete: "" if complete else "no", right=False),
    Column("parts.kernels", "kernels", show=seconds),
    Column("parts.transfers", "copies", show=seconds),
    Column("parts.collectives_exposed", "collectives", show=seconds),
    Column("parts.launch_gaps", "gaps", show=seconds),
    Column("parts.idle", "idle", show=seconds),
    Column("collectives_overlapped_seconds", "overlapped", show=seconds),
    Column("to_next"),
)
DEVICES: Final[tuple[Column[DeviceSteps], ...]] = (
    Column("device", "device"),
    Column("", "steps", lambda device: integer(device.count) + _compared(device), right=True),
    Column("found_by"),
    Column("count"),
    Column("complete"),
    Column("median_seconds", "median", show=seconds),
    Column("minimum_seconds", "least", show=seconds),
    Column("maximum_seconds", "most", show=seconds),
    Column("quartiles_seconds", "middle half", show=_range, right=False),
    Column("span_seconds"),
    Column("busy_seconds", "busy", show=seconds),
    Column("idle_seconds"),
    Column("idle_share", "idle", show=percent),
    Column("", "steps found by", lambda device: FOUND_BY.get(device.found_by, device.found_by)),
)
"""The steps of each device as a whole: how they were found, their spread, and how idle the device was."""
TRUST: Final[tuple[Column[CaptureCheck], ...]] = (
    Column("kind"),
    Column("code", value=at("check.code")),
    Column("verdict", value=at("check.verdict")),
    Column("message", value=at("check.message")),
    Column("advice", value=lambda row: row.check.advice or None),
)
PASSES: Final[tuple[Column[PassRow], ...]] = (
    Column("path"),
    Column("", "share", at("share"), percent),
    Column("stage", value=at("node.stage")),
    Column("seconds", "total", at("node.seconds"), seconds),
    Column("self_seconds", "self", at("node.self_seconds"), seconds),
    Column("count", "times", at("node.count"), integer),
    Column("", "stage", at("node.stage")),
    Column("", "phase or pass", lambda row: "  " * row.depth + row.node.name, gives_way=True),
)
"""The phases and passes of a compile; in JSON they are a tree."""
