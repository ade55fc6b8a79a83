"""One view of a session alone (kernels, compile, steps, memory, trust, flame), as text, JSON or CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from jaxprof.analysis.compile_passes import stage_times
from jaxprof.analysis.measured import MeasuredKernel, MeasuredKernels, measured, whole_profile
from jaxprof.analysis.memory import MemoryBuffer, buffers_of
from jaxprof.analysis.steps import causes_text, device_steps
from jaxprof.events import CompilePasses, StepTimes, TrustCheck
from jaxprof.facts import at
from jaxprof.report.captures import (
    DEVICES,
    KERNELS,
    LEAST_SHARE,
    PASSES,
    STEPS,
    TRUST,
    pass_rows,
    steps_json,
    trust_rows,
)  # fmt: skip
from jaxprof.report.flame.rows import FLAME, flame_json, flame_lines, flame_rows
from jaxprof.report.memory import BUFFERS, run_memory_json, run_memory_lines
from jaxprof.report.renderers import records, text_lines, to_csv_text, wrap
from jaxprof.report.table import Column, Table, joined, pick
from jaxprof.session import Run, Session
from jaxprof.text import safe
from jaxprof.units import UNKNOWN, bytes_, integer, percent, ratio, scaled, seconds

WIDTH = 100
_DEEPEST = 12
_WORTH_SHOWING = 0.005
"""Nodes of the compile tree with a smaller share of it are left out of the text."""
_PARTS = ("kernels", "transfers", "collectives_exposed", "launch_gaps", "idle")
_STEPS_SHOWN = 40
_DEVICES_SHOWN = 16
_NO_CAPTURE = {
    "kernels": "no capture of its kernels",
    "compile": "no capture of a compile",
    "steps": "no steps",
    "trust": "no capture",
    "memory": "no program whose memory is known",
    "flame": "neither lines of a program nor kernels",
}
VIEWS = tuple(_NO_CAPTURE)


def view_json(session: Session, view: str) -> dict[str, Any]:
    """The view of every run that has it."""
    return {
        "runs": [
            {"run": run.id, "label": run.label, view: data, **_beside(session, run, view)}
            for run in session.runs.values()
            if (data := _data(session, run, view)) is not None
        ]
    }


def _beside(session: Session, run: Run, view: str) -> dict[str, Any]:
    """Further keys beside the rows of a view."""
    if view == "steps":
        return steps_json(run)
    return flame_json(session, run) if view == "flame" else {}


def view_text(session: Session, view: str) -> str:
    """The view for people, of every run that has it; the kernels of a profile's programs as one table."""
    if view == "kernels" and len(kernels := whole_profile(session)) and is_profile(session):
        whole = next(iter(session.runs.values()))
        return "\n".join([safe(whole.label), *kernels_lines(kernels, programs=True), *_kernels(session, whole)])
    parts = [
        "\n".join([safe(f"{run.id} {run.label}"), *lines])
        for run in session.runs.values()
        if (lines := list(_TEXTS[view](session, run)))
    ]
    return "\n\n".join(parts) if parts else f"This session has {_NO_CAPTURE[view]}."


def is_profile(session: Session) -> bool:
    """Whether the session holds only a profile that another tool recorded."""
    return bool(session.runs) and all(run.plan.how == "imported" for run in session.runs.values())


def profile_text(session: Session) -> str:
    """A profile at a glance: its kernels, where the time of its steps went, and every doubt."""
    whole = next(iter(session.runs.values()))
    lines = [view_text(session, "kernels") if whole_profile(session) else safe(f"{whole.label}: no kernels")]
    if whole.steps is not None and whole.steps.steps:
        lines += ["", *_device_lines(whole), _parts_line(whole.steps.steps)]
    doubts = [row.check for row in trust_rows(whole) if row.check.verdict != "good"]
    if doubts:
        lines += ["", "what to know of this profile"]
        lines += [line for row in doubts for line in _trust_row(row)]
    return "\n".join(lines)


def view_csv(session: Session, view: str) -> str:
    """A row for each kernel, pass, step, buffer or row of trust."""
    columns, rows = _ROWS[view]
    return to_csv_text(joined("run", columns, ((run.id, rows(session, run)) for run in session.runs.values())))


def _data(session: Session, run: Run, view: str) -> Any:
    """The view of a run as JSON; None if it does not have it."""
    if view == "compile":
        return None if run.compile_passes is None else _passes(run.compile_passes)
    if view == "memory":
        return run_memory_json(session, run)
    columns, rows = _ROWS[view]
    listed = list(records(Table(columns, rows(session, run))))
    return listed if listed or (view == "steps" and run.steps is not None) else None


def _passes(passes: CompilePasses) -> list[dict[str, Any]]:
    """The phases and passes with what each took itself, the longest first."""
    rows = sorted(pass_rows(passes.tree), key=lambda row: row.node.self_seconds, reverse=True)
    return list(records(Table(PASSES, rows)))


def _measured(session: Session, run: Run) -> Sequence[MeasuredKernel]:
    measured_run = measured(session, run.id)
    return measured_run.kernels if measured_run is not None else ()


def _buffers(session: Session, run: Run) -> Sequence[MemoryBuffer]:
    picture = buffers_of(session, run.id)
    return picture.buffers if picture is not None else ()


_ROWS: Final[dict[str, tuple[Sequence[Column[Any]], Callable[[Session, Run], Iterable[Any]]]]] = {
    "kernels": (KERNELS, _measured),
    "compile": (PASSES, lambda _, run: pass_rows(run.compile_passes.tree) if run.compile_passes is not None else ()),
    "steps": (STEPS, lambda _, run: run.steps.steps if run.steps is not None else ()),
    "trust": (TRUST, lambda _, run: trust_rows(run)),
    "memory": (BUFFERS, _buffers),
    "flame": (FLAME, flame_rows),
}
"""The columns of each view, and how a run gives its rows."""


def _kernels(session: Session, run: Run) -> Iterator[str]:
    measured_run = measured(session, run.id)
    if measured_run is None:
        return
    if measured_run.kernels:
        yield from kernels_lines(measured_run.kernels)
    yield from (f"  {line}" for line in beside_kernels(measured_run))


def beside_kernels(measured_run: MeasuredKernels) -> Iterator[str]:
    """What the capture of a run holds besides kernels: copies, and time that belongs to none, a line each."""
    if measured_run.kernels:
        unmatched = measured_run.unmatched_share
        if unmatched is not None and unmatched >= LEAST_SHARE:
            yield f"{percent(unmatched)} of the time is of no kernel of the HLO"
    for row in measured_run.transfers:
        took = row.total_seconds
        rate = f", {scaled(row.bytes / took, 'B/s')}" if row.bytes and took else ""
        size = f", {bytes_(row.bytes)}{rate}" if row.bytes else ""
        yield safe(f"copies {row.direction} on {row.device}: {integer(row.count)} in {seconds(took)}{size}")
    for device, took in measured_run.unattributed_seconds.items():
        if took > 0:
            yield safe(f"{seconds(took)} on {device} belong to no HLO op")


def kernels_lines(kernels: Sequence[MeasuredKernel], *, programs: bool = False) -> list[str]:
    """The table of measured kernels as text."""
    return list(text_lines(measured_table(kernels, programs=programs)))


def measured_table(kernels: Sequence[MeasuredKernel], *, programs: bool = False) -> Table[MeasuredKernel]:
    """Measured kernels, with `programs` each with its program."""
    several = any(len(kernel.devices) > 1 for kernel in kernels)
    columns: list[Column[MeasuredKernel]] = [
        *pick(KERNELS, "share", "self_seconds", "count", "per_call_seconds"),
        *pick(KERNELS, "median_seconds", "minimum_seconds", "maximum_seconds"),
        Column("", "threads", lambda kernel: None if several else kernel.parallelism, _threads),
        Column("", "FLOP/s", at("flops_per_second"), scaled),
        *pick(KERNELS, "of_peak"),
        Column("", "B/s", at("bytes_per_second"), scaled),
        *pick(KERNELS, "of_bandwidth"),
        Column("", "devices", lambda kernel: len(kernel.devices) if several else None, right=True),
        Column("", "kernel", lambda kernel: kernel.name + (" (?)" if kernel.uncertain else ""), widest=60),
        Column("", "program", lambda kernel: kernel.module if programs else None, widest=40),
    ]
    return Table(columns, kernels)


def _threads(parallelism: float | None) -> str:
    return ratio(parallelism) if parallelism is not None and parallelism > 1.005 else UNKNOWN


def _compile(session: Session, run: Run) -> Iterator[str]:
    if run.compile_passes is None:
        return
    rows = list(pass_rows(run.compile_passes.tree))
    shown = [row for row in rows if row.depth <= _DEEPEST and (row.share is None or row.share >= _WORTH_SHOWING)]
    stages = ", ".join(f"{stage.stage} {seconds(stage.seconds)}" for stage in stage_times(run.compile_passes.tree))
    columns = pick(PASSES, "share", "seconds", "self_seconds", "count", "stage", "phase or pass")
    yield from text_lines(
        Table(columns, shown, notes=(f"self time by stage, over all threads: {stages}",)), width=WIDTH
    )


def _steps(session: Session, run: Run) -> Iterator[str]:
    if run.steps is None or not run.steps.steps:
        return
    columns = [
        *pick(STEPS, "name", "device", "seconds", "parts.kernels", "parts.transfers", "parts.collectives_exposed"),
        *pick(STEPS, "collectives_overlapped_seconds", "parts.launch_gaps", "parts.idle", "complete"),
    ]
    yield from _device_lines(run)
    yield ""
    yield from text_lines(Table(columns, run.steps.steps).first(_STEPS_SHOWN))
    yield _parts_line(run.steps.steps)
    for device in run.steps.devices[:_DEVICES_SHOWN]:
        if device.idle_causes:
            yield safe(f"  while {device.device} was idle in them, the host: {causes_text(device.idle_causes)}")


def _device_lines(run: Run) -> Iterator[str]:
    """Of each device its steps, how they were found and how much they differ, and how idle it was."""
    devices = device_steps(run.steps)
    columns = [
        *pick(DEVICES, "device", "steps", "median_seconds", "minimum_seconds", "maximum_seconds", "quartiles_seconds"),
        *pick(DEVICES, "busy_seconds", "idle_share", "steps found by"),
    ]
    span = next((device.span_seconds for device in devices if device.span_seconds is not None), None)
    notes = () if span is None else (f"busy and idle are of the whole profile, {seconds(span)}",)
    yield from text_lines(Table(columns, devices, notes=notes).first(_DEVICES_SHOWN, "and {} more devices"))


def _parts_line(steps: Sequence[StepTimes]) -> str:
    whole = sum(step.seconds for step in steps) or 1.0
    parts = ", ".join(
        f"{name.replace('_', ' ')} {percent(sum(getattr(step.parts, name) for step in steps) / whole)}"
        for name in _PARTS
    )
    return f"  of all steps: {parts}"


def _trust(session: Session, run: Run) -> Iterator[str]:
    for kind, event in run.trust.items():
        yield safe(f"  capture: {kind}")
        for row in event.rows:
            yield from _trust_row(row)


def _trust_row(row: TrustCheck) -> Iterator[str]:
    yield from wrap(row.message, width=WIDTH, indent=" " * 12, first=f"    {row.verdict:<8}")
    if row.advice:
        yield from wrap(row.advice, width=WIDTH, indent=" " * 12)


_TEXTS: dict[str, Callable[[Session, Run], Iterator[str]]] = {
    "kernels": _kernels,
    "compile": _compile,
    "steps": _steps,
    "trust": _trust,
    "memory": run_memory_lines,
    "flame": flame_lines,
}
