"""A profile at a glance: how idle the devices were, and the kernels and programs that took longest.

A kernel or a program leads to its HLO. The module shows `analysis.profile.overview`, and derives nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from textual.content import Content

from jaxprof.base.text import columns, safe
from jaxprof.base.units import bytes_, counted, integer, percent_or_less, seconds
from jaxprof.facts import Facts, column
from jaxprof.facts.captures import DEVICE_STEPS
from jaxprof.report.renderers import Table, text_lines
from jaxprof.report.session_text import measured_table
from jaxprof.session.run import IMPORTED
from jaxprof.tui.kit.fact_list import FactLine, FactList, FactTarget, Leads, heading
from jaxprof.tui.kit.table_columns import table_lines

if TYPE_CHECKING:
    from jaxprof.analysis.timeline.profile import ProfileOverview, ProfileProgram

KERNELS, PROGRAMS, DEVICES = 16, 8, 16
"""Most kernels, programs and devices shown. A line counts the rest."""


class OverviewList(FactList, keys="overview"):
    """The lines of the overview, with a cursor."""

    EMPTY = "Reading the profile…"


def overview_facts(profile: ProfileOverview, width: int) -> Sequence[FactLine]:
    lines: list[FactLine] = []
    for part in (_devices(profile, width), _kernels(profile, width), _programs(profile, width)):
        made = list(part)
        lines += [Content(""), *made] if made else []
    facts = [counted(len(profile.devices), "device") if profile.devices else "no device"]
    capture = profile.run.captures.get(IMPORTED)
    if capture is not None:
        facts.insert(0, capture.platform)
        facts += [seconds(capture.wall_seconds)] if capture.wall_seconds is not None else []
        facts += [counted(capture.events, "event")] if capture.events is not None else []
        facts += [bytes_(capture.bytes)] if capture.bytes is not None else []
    return [heading(profile.run.label, " · ".join(filter(None, facts))), *lines]


def _devices(profile: ProfileOverview, width: int) -> Iterator[FactLine]:
    devices = profile.devices
    span = next((device.span_seconds for device in devices if device.span_seconds is not None), None)
    note = f"idle and busy are of the whole {seconds(span)}" if span is not None else ""
    shown = [fact for fact in DEVICE_STEPS if width >= 100 or fact.key != "quartiles_seconds"]
    return _listed("Devices", note, Table(shown, devices, most=DEVICES, rest="and {} more devices"), (), width)


def _kernels(profile: ProfileOverview, width: int) -> Iterator[FactLine]:
    if not profile.kernels:
        yield heading("Kernels", "none were recorded")
        return
    with_hlo = {program.run.id for program in profile.programs if program.has_hlo}
    targets = (
        FactTarget("", kernel.name, kernel=True, run=run) if run in with_hlo else None
        for run, kernel in profile.kernels[:KERNELS]
    )
    for rates, spread in ((True, True), (False, True), (False, False)):  # as many figures as leave room for the names
        table = measured_table([kernel for _, kernel in profile.kernels], programs=True, rates=rates, spread=spread)
        table = replace(table, most=KERNELS, rest="and {} more kernels")
        if max(map(columns, text_lines(table))) <= width:
            break
    yield from _listed("Kernels", "self time", table, targets, width)
    for device, took in profile.unattributed_seconds.items():
        if took > 0:
            words = f"{seconds(took)} on {device} belong to no HLO op, copies included"
            yield Content.styled(safe(words), "$text-muted")


def _programs(profile: ProfileOverview, width: int) -> Iterator[FactLine]:
    table = Table(_PROGRAM, profile.programs, most=PROGRAMS, rest="and {} more programs")
    shown = profile.programs[:PROGRAMS]
    targets = (FactTarget("", "", run=program.run.id) if program.has_hlo else None for program in shown)
    return _listed("Programs", "", table, targets, width)


def _listed(
    title: str, note: str, table: Table[Any], targets: Iterable[FactTarget | None], width: int
) -> Iterator[FactLine]:
    """Yield a table of a report below its title, each row with its target; nothing if it has no rows."""
    lines = list(table_lines(table, width))
    if lines:
        yield from (heading(title, note), lines[0])
        yield from (Leads(line, target) for line, target in zip(lines[1:], chain(targets, repeat(None)), strict=False))


def _peak(program: ProfileProgram) -> str:
    memory = program.memory
    peak = memory.peak_bytes if memory is not None else None
    return bytes_(peak) + (" est." if memory is not None and memory.is_estimate and peak is not None else "")


_PROGRAM: Facts[ProfileProgram] = (
    column("share", "share", percent_or_less, right=True),
    column("self", "seconds", seconds, right=True),
    column("calls", lambda program: getattr(program.run.measured.get(IMPORTED), "calls", None), integer),
    column("peak memory", _peak, right=True),
    column("program", lambda program: program.run.plan.workload + "  no HLO in the profile" * (not program.has_hlo),
           gives_way=True),
)  # fmt: skip
