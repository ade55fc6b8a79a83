"""A profile at a glance: what to doubt, how idle the devices were, and the kernels and programs that took longest.

A kernel or a program leads to its HLO. The module shows `analysis.profile.overview`, and derives nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from textual.content import Content

from jaxprof.analysis.run_result import IMPORTED
from jaxprof.facts import Fact, at, column
from jaxprof.report.renderers import Table
from jaxprof.report.views import device_columns, measured_table
from jaxprof.text import safe
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.captures import MARKS, check_lines
from jaxprof.tui.kit.fact_list import FactLine, FactList, FactTarget, Leads, heading
from jaxprof.tui.kit.table_columns import table_lines
from jaxprof.units import bytes_, counted, integer, percent_or_less, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.profile import DeviceSteps, ProfileOverview, ProfileProgram

KERNELS, PROGRAMS, DEVICES, DOUBTS = 16, 8, 16, 4
"""Most kernels, programs, devices and doubts shown. A line counts the rest."""
_SPREAD_WIDTH = 100
"""Least width at which devices have the middle half of their steps, and kernels their shortest and longest execution;
in a narrow terminal, names have the room."""


class OverviewList(FactList, keys="overview"):
    """The lines of the overview, with a cursor."""

    EMPTY = "Reading the profile…"

    def show_profile(self, about: object, profile: ProfileOverview) -> None:
        """Show a profile."""
        self.show(about, lambda width: overview_facts(profile, width))


def overview_facts(profile: ProfileOverview, width: int) -> Sequence[FactLine]:
    """Return all lines of the overview in `width` columns."""
    lines: list[FactLine] = []
    for part in (
        _head(profile), _doubts(profile, width), _devices(profile.devices, width), _kernels(profile, width),
        _programs(profile.programs, width),
    ):  # fmt: skip
        made = list(part)
        lines += [Content(""), *made] if lines and made else made
    return lines


def _head(profile: ProfileOverview) -> Iterator[FactLine]:
    devices = len(profile.devices)
    facts = [counted(devices, "device") if devices else "no device"]
    capture = profile.run.captures.get(IMPORTED)
    if capture is not None:
        facts = [
            capture.platform,
            *facts,
            seconds(capture.wall_seconds) if capture.wall_seconds is not None else "",
            counted(capture.events, "event") if capture.events is not None else "",
            bytes_(capture.bytes) if capture.bytes is not None else "",
        ]
    yield heading(profile.run.label, " · ".join(fact for fact in facts if fact))


def _doubts(profile: ProfileOverview, width: int) -> Iterator[FactLine]:
    doubted = [row for row in profile.trust if row.verdict != "good"]
    if not doubted:
        checks = len(profile.trust)
        yield Content.assemble(("✓ ", MARKS["good"][1]), f"no doubts after {counted(checks, 'check')}")
    for row in doubted[:DOUBTS]:
        yield from check_lines(row, width)
    if len(doubted) > DOUBTS:
        yield Content.styled(
            f"  and {len(doubted) - DOUBTS} more: {in_words('profile.trust')} lists them", "$text-muted"
        )


def _devices(devices: Sequence[DeviceSteps], width: int) -> Iterator[FactLine]:
    if not devices:
        return
    span = next((device.span_seconds for device in devices if device.span_seconds is not None), None)
    yield heading("Devices", f"idle and busy are of the whole {seconds(span)}" if span is not None else "")
    shown = [fact for fact in device_columns() if width >= _SPREAD_WIDTH or fact.key != "quartiles_seconds"]
    yield from _table(Table(shown, devices[:DEVICES]), [None] * len(devices), width)
    if len(devices) > DEVICES:
        yield Content.styled(f"and {len(devices) - DEVICES} more devices", "$text-muted")


def _kernels(profile: ProfileOverview, width: int) -> Iterator[FactLine]:
    shown = profile.kernels[:KERNELS]
    if not shown:
        yield heading("Kernels", "none were recorded")
        return
    rest = len(profile.kernels) - len(shown)
    yield heading(
        "Kernels", f"the longest {len(shown)} of {integer(len(profile.kernels))}, self time" if rest else "self time"
    )
    with_hlo = {program.run.id for program in profile.programs if program.has_hlo}
    targets = [FactTarget("", kernel.name, kernel=True, run=run) if run in with_hlo else None for run, kernel in shown]
    table = measured_table([kernel for _, kernel in shown], programs=True, spread=width >= _SPREAD_WIDTH)
    yield from _table(table, targets, width)
    for device, took in profile.unattributed_seconds.items():
        if took > 0:
            yield Content.styled(safe(f"{seconds(took)} on {device} belong to no HLO op"), "$text-muted")


def _programs(programs: Sequence[ProfileProgram], width: int) -> Iterator[FactLine]:
    shown = programs[:PROGRAMS]
    if not shown:
        return
    yield heading("Programs", f"the longest {len(shown)} of {len(programs)}" if len(programs) > len(shown) else "")
    targets = [FactTarget("", "", run=program.run.id) if program.has_hlo else None for program in shown]
    yield from _table(Table(_PROGRAM, shown), targets, width)


def _peak(program: ProfileProgram) -> str:
    memory = program.memory
    peak = memory.peak_bytes if memory is not None else None
    return bytes_(peak) + (" est." if memory is not None and memory.is_estimate and peak is not None else "")


def _calls(program: ProfileProgram) -> str:
    event = program.run.measured.get(IMPORTED)
    return integer(event.calls if event is not None else None)


def _program_name(program: ProfileProgram) -> str:
    return program.run.plan.workload + ("" if program.has_hlo else "  no HLO in the profile")


_PROGRAM: Final[tuple[Fact[ProfileProgram], ...]] = (
    column("share", at("share"), percent_or_less, right=True),
    column("self", at("seconds"), seconds, right=True),
    column("calls", _calls, right=True),
    column("peak memory", _peak, right=True),
    column("program", _program_name, gives_way=True),
)


def _table(table: Table[Any], targets: Sequence[FactTarget | None], width: int) -> Iterator[FactLine]:
    """Yield a table of a report among the other lines, each row with its target."""
    head, *lines = table_lines(table, width)
    yield head
    yield from (Leads(line, target) for line, target in zip(lines, targets, strict=False))
