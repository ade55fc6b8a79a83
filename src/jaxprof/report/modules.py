"""HLO programs as text: findings, barriers, memory, collectives, a device table.

Least times come from the ceilings and links of a device and are called lower bounds. Nothing here is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jaxprof.base.text import safe
from jaxprof.base.units import and_more, bytes_, scaled, seconds
from jaxprof.facts import Facts, column, pick
from jaxprof.facts.hlo import BARRIERS, COLLECTIVES, collective_rows, findings_of
from jaxprof.hlo.kernels.barriers import barriers
from jaxprof.hlo.kernels.kernels import kernels, totals
from jaxprof.hlo.kernels.notices import NOT_OPTIMISED, notices
from jaxprof.report import WIDE, Table, report_lines, text_lines
from jaxprof.report.explain import cost_text

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.hlo_program import HloProgram


def view_lines(program: HloProgram, view: str) -> Iterator[str]:
    """Yield the notices of a program, then one of its views as text: findings, barriers or memory."""
    listed = notices(program.hlo)
    if listed:
        yield from (*(safe(str(notice)) for notice in listed), "")
    yield from _VIEWS[view](program)


_LINES = 3
"""Most source lines of a finding that are listed."""


def _findings_lines(program: HloProgram) -> Iterator[str]:
    found = findings_of(program)
    for finding in found:
        cost = f"  ({cost_text(finding)})" if finding.seconds is not None or finding.bytes else ""
        yield safe(f"{finding.code}: {finding.message}{cost}")
        yield safe(f"    {finding.fix}")
        lines = [location.short() for location in finding.places if location]
        yield safe(f"    at {', '.join([*lines[:_LINES], and_more(finding.kernels, 5)])}")
        yield ""
    if not found:
        yield _nothing(program, "findings", "no findings among the few that a module before XLA's passes can show")


def _nothing(program: HloProgram, what: str, before_passes: str) -> str:
    """Return that a program has none of `what`, as far as it was read; `before_passes` of one that is not optimised."""
    codes = {notice.code for notice in notices(program.hlo) if notice.serious}
    if NOT_OPTIMISED in codes:
        return before_passes
    return f"no {what}" + (" in what was read" if codes else "")


def _barriers_lines(program: HloProgram) -> Iterator[str]:
    """Yield a line for each pair of kernels that share an array but are not fused, the most bytes first."""
    rows = barriers(program.hlo)
    columns = (*pick(BARRIERS, "bytes", "producer", "consumer"), column("why not fused", "why"))
    yield from text_lines(Table(columns, rows), indent="")
    if not rows:
        why = "unknown: before XLA's passes nothing is fused, and nothing is kept apart"
        yield _nothing(program, "barriers", why)


def _memory_lines(program: HloProgram) -> Iterator[str]:
    from jaxprof.report.memory import memory_report  # imports the session modules, which only this view needs

    lines = [line.removeprefix("  ") for line in report_lines(memory_report(program.memory), WIDE)]
    yield from lines or ["unknown: the module is not scheduled, or has no instructions"]


_VIEWS = {"findings": _findings_lines, "barriers": _barriers_lines, "memory": _memory_lines}


def devices_table(programs: Sequence[HloProgram]) -> list[str]:
    """Return one line for each program with a known device: kernels, FLOPs, bytes, lower bound, memory."""
    vendors = {program.device.vendor for program in programs if program.device is not None}
    on_gpu = [_ON_A_GPU] if vendors - {"Google"} else []
    return [*text_lines(Table(_DEVICES, programs), indent=""), "", *_WHAT_STEPS_ARE, *on_gpu]


def _memory_text(program: HloProgram) -> str:
    needed, available = program.memory_needed_bytes, program.device.memory_bytes if program.device is not None else 0
    too_large = needed is not None and needed > available
    return f"{bytes_(needed)} of {bytes_(available)}{'  does not fit' if too_large else ''}"


_DEVICES: Facts[HloProgram] = (
    column("device", "device_label"),
    column("kernels", lambda program: len(kernels(program.hlo)), right=True),
    column("FLOPs", lambda program: None if (whole := totals(program.hlo)).opaque else whole.flops, scaled),
    column("bytes", lambda program: None if (whole := totals(program.hlo)).unsized else whole.bytes, bytes_),
    column("at least", "step.bound_seconds", seconds),
    column("bound by", "step.limit"),
    column("memory", _memory_text),
)
_WHAT_STEPS_ARE = (
    "at least: lower bound, kernels in this order at the device's ceilings, and links; asynchronous work overlaps.",
)
_ON_A_GPU = (
    "GPUs: no lower bound where arrays stay in a cache. XLA tries kernels out on the device, which is not here: "
    "--autotune-results FILE takes what it chose on one (tiles, Triton or cuBLAS with its workspace)."
)


def collectives_text(program: HloProgram) -> list[str]:
    """Return each collective with its bytes, the devices that take part, and its lower bound over the links."""
    lines = list(text_lines(Table(COLLECTIVES, collective_rows(program)), indent=""))
    levels = program.machine.levels if program.machine is not None else ()
    return [*lines, "", *(safe(f"{level.name}: {level.document}") for level in levels)] if lines else []
