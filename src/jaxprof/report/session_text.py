"""Render a session as plain text, 80 columns wide, or a single view of it as text or CSV: one of its captures
(kernels, compile, steps, memory, trust), or of its recorded programs (compiles, findings, transfers, timeline).

A view imports what it needs when it is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxprof.base.text import safe
from jaxprof.base.units import UNKNOWN, bytes_, integer, percent, ratio, scaled, seconds
from jaxprof.events import PassTimes, StepTimes, TrustCheck
from jaxprof.facts import RUN, Fact, column, pick
from jaxprof.report import WIDE, Headline, Piece, Prose, Table, join_tables, report_lines
from jaxprof.session import Run, Session

if TYPE_CHECKING:
    from jaxprof.analysis.kernels import MeasuredKernel
    from jaxprof.analysis.kernels.measured import MeasuredKernels

_DEEPEST = 12
_PARTS = ("kernels", "transfers", "collectives_exposed", "launch_gaps", "idle")
_DEVICES_SHOWN = 16
_NO_CAPTURE = {
    "kernels": "no capture of its kernels",
    "compile": "no capture of a compile",
    "steps": "no steps",
    "trust": "no capture",
    "memory": "no program whose memory is known",
}


def to_text(session: Session) -> str:
    header = session.header
    host = header.host
    if session.process_count != 1:
        host += f", process {session.process_index} of {session.process_count or 'an unknown number'}"
    pieces: list[Piece] = [
        safe(f"session {header.session}  ·  {header.created}  ·  {host}  ·  {session.state_words}"),
    ]
    reported = session.environment
    if reported is not None:
        versions = ((name, getattr(reported, name)) for name in ("jax", "jaxlib", "numpy", "python"))
        pieces.append(safe("  ·  ".join(f"{name} {version}" for name, version in versions if version)))
        devices = [f"{device.get('id')} {device.get('kind') or ''}".strip() for device in reported.devices]
        if devices:
            pieces.append(safe("  ·  ".join(devices)))
    pieces += (Prose(notice, "note: ") for notice in session.notices)
    for run in session.programs:
        from jaxprof.report.program import program_report  # only for a session with a program

        pieces += ("", *program_report(session, run))
    if not all(run.is_program for run in session.runs.values()):
        from jaxprof.report.runs import run_reports  # only for a session with measured runs

        for report in run_reports(session):
            pieces += ("", *report)
    # of capture windows, over all compiled programs
    if any("imported" in run.measured for run in session.runs.values()):
        from jaxprof.analysis.kernels.measured import whole_profile

        if kernels := whole_profile(session):
            table = kernel_table(kernels, programs=True, spread=False, rates=False)
            rest = "and {} more: jaxprof open NAME --kernels lists them all"
            pieces += ("", Headline("capture window: what the device ran"), replace(table, most=10, rest=rest))
    if not session.runs:
        pieces += ("", "No run was recorded.")
    return "\n".join(report_lines(pieces))


def view_table(session: Session, view: str) -> Table[Any]:
    """Return the view of every run as a table for CSV, a row for each of its items."""
    from jaxprof.facts.answers import view_of

    items = view_of(view)
    parts = ((run.id, items.of(session, run) or ()) for run in session.runs.values())
    return join_tables(RUN.key, items.facts, parts)


def view_text(session: Session, view: str) -> str:
    """Return the view of every run that has it as text; the kernels of a profile are one table."""
    if view not in REPORTS:
        from jaxprof.report.program import program_view_text

        return program_view_text(session, view)
    parts = [
        "\n".join([safe(f"{run.id} {run.label}"), *report_lines(pieces, WIDE)])
        for run in session.runs.values()
        if (pieces := list(REPORTS[view](session, run)))
    ]
    return "\n\n".join(parts) if parts else f"This session has {_NO_CAPTURE[view]}."


def profile_text(session: Session) -> str:
    """Return a profile at a glance: its kernels, where the time of its steps went, and the doubts about it."""
    from jaxprof.analysis.kernels.measured import whole_profile
    from jaxprof.facts.captures import trust_rows

    whole = next(iter(session.runs.values()))
    has_kernels = bool(whole_profile(session))
    pieces: list[Piece] = [safe(whole.label if has_kernels else f"{whole.label}: no kernels")]
    if has_kernels:
        pieces += _kernels(session, whole)
    if whole.steps is not None and whole.steps.steps:
        pieces += ("", _device_table(whole), _parts_line(whole.steps.steps))
    doubts = [row.check for row in trust_rows(whole) if row.check.verdict != "good"]
    if doubts:
        pieces += ("", "what to know of this profile")
        pieces += (words for row in doubts for words in _trust_row(row))
    return "\n".join(report_lines(pieces, WIDE))


def _kernels(session: Session, run: Run) -> Iterator[Piece]:
    """Yield the kernels of a run as they were measured; a profile's first run stands for all its programs."""
    from jaxprof.analysis.kernels.measured import measure_kernels, whole_profile

    measured_run = measure_kernels(session, run.id)
    if not session.is_profile:
        kernels: Sequence[MeasuredKernel] = measured_run.kernels if measured_run is not None else ()
    elif run is next(iter(session.runs.values())):
        kernels = whole_profile(session)
    else:
        return
    if kernels:
        yield kernel_table(kernels, programs=session.is_profile)
    if measured_run is not None:
        yield from map(Prose, beside_kernels(measured_run))


def beside_kernels(measured_run: MeasuredKernels) -> Iterator[str]:
    """Yield what the capture of a run holds besides kernels: copies, and time without a kernel."""
    from jaxprof.facts.kernels import LEAST_SHARE

    if measured_run.kernels:
        unmatched = measured_run.unmatched_share
        if unmatched is not None and unmatched >= LEAST_SHARE:
            yield f"{percent(unmatched)} of the time belongs to no kernel in the HLO"
    for row in measured_run.transfers:
        took = row.total_seconds
        parts = [f"copies {row.direction} on {row.device}: {integer(row.count)} in {seconds(took)}"]
        if row.bytes:
            parts.append(bytes_(row.bytes))
        if row.bytes and took:
            parts.append(scaled(row.bytes / took, "B/s"))
        yield safe(", ".join(parts))
    for device, took in measured_run.unattributed_seconds.items():
        if took > 0:
            yield safe(f"{seconds(took)} on {device} belong to no HLO op, copies included")


def kernel_table(
    kernels: Sequence[MeasuredKernel], *, programs: bool = False, spread: bool = True, rates: bool = True
) -> Table[MeasuredKernel]:
    """Return the table of measured kernels. `programs` adds a column with the program of each; without `spread`, the
    shortest and longest execution are left out, and without `rates`, FLOP/s and B/s."""
    from jaxprof.facts.kernels import MEASURED, lines_text

    several = any(len(kernel.devices) > 1 for kernel in kernels)
    columns: list[Fact[MeasuredKernel]] = [
        *pick(MEASURED, "share", "self_seconds", "executions", "per_call_seconds"),
        *pick(MEASURED, "median_seconds", *(("minimum_seconds", "maximum_seconds") if spread else ())),
        column(
            "threads",
            lambda kernel: None if several else kernel.parallelism,
            lambda parallelism: ratio(parallelism) if parallelism is not None and parallelism > 1.005 else UNKNOWN,
        ),
        *(pick(MEASURED, "flops_per_second", "of_peak", "bytes_per_second", "of_bandwidth") if rates else ()),
        column("devices", lambda kernel: len(kernel.devices) if several else None, right=True),
        column("kernel", "name", widest=60),
        *([column("kind", "kernel.kind")] if rates else []),
        column("source", "kernel.sources", lambda found: lines_text(found or ()), right=False, widest=28),
        column("program", lambda kernel: kernel.module if programs else None, widest=40),
    ]
    return Table(columns, kernels, is_wide=True)


def passes_table(tree: PassTimes, rows: Sequence[Any]) -> Table[Any]:
    """Return the table of these phases and passes of a compile, with a note on the time of each stage."""
    from jaxprof.analysis.kernels.measured import stage_times
    from jaxprof.facts.captures import PASSES

    columns = pick(PASSES, "share", "seconds", "self_seconds", "count", "stage", "phase or pass")
    stages = ", ".join(f"{stage.stage} {seconds(stage.seconds)}" for stage in stage_times(tree))
    return Table(columns, rows, notes=(f"self time by stage, over all threads: {stages}",))


def _compile(_: Session, run: Run) -> Iterator[Piece]:
    if run.compile_passes is None:
        return
    from jaxprof.facts.captures import pass_rows

    tree = run.compile_passes.tree
    rows = pass_rows(tree)
    shown = [row for row in rows if row.depth <= _DEEPEST and (row.share is None or row.share >= 0.005)]
    yield passes_table(tree, shown)


def _steps(_: Session, run: Run) -> Iterator[Piece]:
    if run.steps is None or not run.steps.steps:
        return
    from jaxprof.facts.captures import STEPS
    from jaxprof.findings.captures import causes_text

    yield from (_device_table(run), "", Table(STEPS, run.steps.steps, most=40))
    yield _parts_line(run.steps.steps)
    for device in run.steps.devices[:_DEVICES_SHOWN]:
        if device.idle_causes:
            yield Prose(f"while {device.device} was idle in these steps, the host: {causes_text(device.idle_causes)}")


def _device_table(run: Run) -> Table[Any]:
    """Return a row for each device: its steps, how they were found, how much they differ, and how idle it was."""
    from jaxprof.analysis.timeline.profile import device_steps
    from jaxprof.facts.captures import DEVICE_STEPS

    devices = device_steps(run.steps)
    span = next((device.span_seconds for device in devices if device.span_seconds is not None), None)
    notes = () if span is None else (f"busy and idle are of the whole profile, {seconds(span)}",)
    rest = "and {} more devices"
    return Table(DEVICE_STEPS, devices, notes=notes, most=_DEVICES_SHOWN, rest=rest, is_wide=True)


def _parts_line(steps: Sequence[StepTimes]) -> Prose:
    whole = sum(step.seconds for step in steps) or 1.0
    parts = ", ".join(
        f"{name.replace('_', ' ')} {percent(sum(getattr(step.parts, name) for step in steps) / whole)}"
        for name in _PARTS
    )
    return Prose(f"of all steps: {parts}")


def _trust(_: Session, run: Run) -> Iterator[Piece]:
    for kind, event in run.trust.items():
        yield Prose(f"capture: {kind}")
        for row in event.rows:
            yield from _trust_row(row)


def _trust_row(row: TrustCheck) -> Iterator[Piece]:
    yield Prose(row.message, f"    {row.verdict:<8}")
    yield Prose(row.advice, " " * 12)


def _memory(session: Session, run: Run) -> Iterator[Piece]:
    from jaxprof.analysis.kernels.memory import memory_of_run
    from jaxprof.report.memory import memory_report

    return memory_report(memory_of_run(session, run.id))


REPORTS: dict[str, Callable[[Session, Run], Iterator[Piece]]] = {
    "kernels": _kernels,
    "compile": _compile,
    "steps": _steps,
    "trust": _trust,
    "memory": _memory,
}
"""Reports of the views of captures, by view; nothing if a run does not have it."""
