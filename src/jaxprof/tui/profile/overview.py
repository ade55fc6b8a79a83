"""A profile at a glance: what to doubt, how idle the devices were, and the kernels and programs that took longest.

A kernel or a program leads to its HLO. The module shows `analysis.profile.overview`, and derives nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.profile import FOUND_BY
from jaxprof.text import safe
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.captures import MARKS
from jaxprof.tui.kit.drawing import bar, hang
from jaxprof.tui.kit.fact_list import FactLine, FactList, FactTarget, Leads, heading
from jaxprof.tui.kit.table_columns import Row, TableColumn, header_line, placed, row_line
from jaxprof.units import UNKNOWN, bytes_, counted, integer, percent_or_less, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.measured import MeasuredKernel
    from jaxprof.analysis.profile import DeviceSteps, ProfileOverview, ProfileProgram

KERNELS, PROGRAMS, DEVICES, DOUBTS = 12, 8, 16, 4
"""Most kernels, programs, devices and doubts shown; with empty lines left, more kernels and programs. A line counts
the rest."""
_BAR = 10


class OverviewList(FactList, keys="overview"):
    """The lines of the overview, with a cursor."""

    EMPTY = "Reading the profile…"

    def show_profile(self, about: object, profile: ProfileOverview) -> None:
        """Show a profile, with as many kernels as there is room for."""
        self.show(about, lambda width: overview_facts(profile, width, self.size.height))

    def on_resize(self) -> None:
        self.rebuild()


def overview_facts(profile: ProfileOverview, width: int, height: int = 0) -> Sequence[FactLine]:
    """Return all lines of the overview in `width` columns, with more kernels and programs while `height` has empty
    lines."""
    lines = _lines(profile, width, KERNELS, PROGRAMS)
    room = height - len(lines)
    if room <= 0:
        return lines
    kernels = max(KERNELS, min(len(profile.kernels), KERNELS + room))
    return _lines(profile, width, kernels, PROGRAMS + room - (kernels - KERNELS))


def _lines(profile: ProfileOverview, width: int, kernels: int, programs: int) -> list[FactLine]:
    parts = [list(part) for part in (
        _head(profile), _doubts(profile, width), _devices(profile.devices, width),
        _kernels(profile, width, kernels), _programs(profile.programs, width, programs),
    )]  # fmt: skip
    lines: list[FactLine] = []
    for part in parts:
        lines += [Content("")] if lines and part else []
        lines += part
    return lines


def _head(profile: ProfileOverview) -> Iterator[FactLine]:
    devices = len(profile.devices)
    facts = [
        profile.platform,
        counted(devices, "device") if devices else "no device",
        seconds(profile.seconds) if profile.seconds is not None else "",
        counted(profile.events, "event") if profile.events is not None else "",
        bytes_(profile.bytes) if profile.bytes is not None else "",
    ]
    yield heading(profile.label, " · ".join(fact for fact in facts if fact))


def _doubts(profile: ProfileOverview, width: int) -> Iterator[FactLine]:
    doubted = [row for row in profile.trust if row.verdict != "good"]
    if not doubted:
        checks = len(profile.trust)
        yield Content.assemble(("✓ ", MARKS["good"][1]), f"no doubts after {counted(checks, 'check')}")
    for row in doubted[:DOUBTS]:
        mark, style = MARKS.get(row.verdict, MARKS["unknown"])
        lines = hang(Content.assemble((f"{mark} ", style)), row.message, width)
        if row.advice:
            lines += hang(Content("  "), row.advice, width, "$text-muted")
        yield from lines
    if len(doubted) > DOUBTS:
        yield Content.styled(f"  and {len(doubted) - DOUBTS} more: {key_of('profile.trust')} lists them", "$text-muted")


def _devices(devices: Sequence[DeviceSteps], width: int) -> Iterator[FactLine]:
    if not devices:
        return
    span = next((device.span_seconds for device in devices if device.span_seconds is not None), None)
    yield heading("Devices", f"idle and busy are of the whole {seconds(span)}" if span is not None else "")
    columns: tuple[TableColumn[DeviceSteps], ...] = (
        TableColumn("", lambda steps: lambda width: bar(steps.idle_share, width, "$quiet"), _BAR),
        TableColumn("idle", lambda steps: percent_or_less(steps.idle_share), 6, right=True, style="bold"),
        TableColumn("busy", lambda steps: seconds(steps.busy_seconds), 8, fits=True, right=True, gap=2),
        TableColumn("device", lambda steps: steps.device, 7, fits=True, style="$foreground"),
        TableColumn("steps", lambda steps: integer(steps.count), 7, right=True),
        TableColumn("median", lambda steps: seconds(steps.median_seconds), 8, right=True, style="bold", gap=2),
        TableColumn("least - most", _spread, 20),
        TableColumn("found by", lambda steps: FOUND_BY.get(steps.found_by, steps.found_by), 20, weight=1, priority=1,
                    style="$text-muted"),
    )  # fmt: skip
    yield from _table(columns, [(device, None) for device in devices[:DEVICES]], width)
    if len(devices) > DEVICES:
        yield Content.styled(f"and {len(devices) - DEVICES} more devices", "$text-muted")


def _kernels(profile: ProfileOverview, width: int, most: int) -> Iterator[FactLine]:
    shown = profile.kernels[:most]
    if not shown:
        yield heading("Kernels", "none were recorded")
        return
    rest = len(profile.kernels) - len(shown)
    yield heading(
        "Kernels", f"the longest {len(shown)} of {integer(len(profile.kernels))}, self time" if rest else "self time"
    )
    with_hlo = {program.run for program in profile.programs if program.has_hlo}
    rows = [
        (kernel, FactTarget("", kernel.name, kernel=True, run=run) if run in with_hlo else None)
        for run, kernel in shown
    ]
    columns: tuple[TableColumn[MeasuredKernel], ...] = (
        TableColumn("", lambda kernel: lambda width: bar(kernel.share, width), _BAR),
        TableColumn("share", lambda kernel: percent_or_less(kernel.share), 7, right=True),
        TableColumn("self", lambda kernel: seconds(kernel.self_seconds), 8, fits=True, right=True, style="bold"),
        TableColumn("per call", lambda kernel: seconds(kernel.per_call_seconds), 9, fits=True, right=True),
        TableColumn("times", lambda kernel: integer(kernel.count), 9, right=True, gap=2),
        TableColumn("kernel", lambda kernel: kernel.name, 16, most=64, fits=True, style="$foreground", gap=2),
        TableColumn("program", lambda kernel: kernel.module, 8, weight=1, style="$text-muted"),
    )
    yield from _table(columns, rows, width)
    for device, took in profile.unattributed_seconds.items():
        if took > 0:
            yield Content.styled(safe(f"{seconds(took)} on {device} belong to no HLO op"), "$text-muted")


def _programs(programs: Sequence[ProfileProgram], width: int, most: int) -> Iterator[FactLine]:
    if not programs:
        return
    rest = len(programs) - most
    yield heading("Programs", f"the longest {most} of {len(programs)}" if rest > 0 else "")
    columns: tuple[TableColumn[ProfileProgram], ...] = (
        TableColumn("", lambda program: lambda width: bar(program.share, width), _BAR),
        TableColumn("share", lambda program: percent_or_less(program.share), 7, right=True),
        TableColumn("self", lambda program: seconds(program.seconds), 8, fits=True, right=True, style="bold"),
        TableColumn("calls", lambda program: integer(program.calls), 9, right=True),
        TableColumn("peak memory", _peak, 14, right=True, gap=2),
        TableColumn("program", _program_name, 8, weight=1, style="$foreground"),
    )
    rows = [(program, FactTarget("", "", run=program.run) if program.has_hlo else None) for program in programs[:most]]
    yield from _table(columns, rows, width)


def _spread(steps: DeviceSteps) -> str:
    if steps.minimum_seconds is None:
        return UNKNOWN
    return f"{seconds(steps.minimum_seconds)} - {seconds(steps.maximum_seconds)}"


def _peak(program: ProfileProgram) -> str:
    estimated = program.peak_is_estimate and program.peak_bytes is not None
    return bytes_(program.peak_bytes) + (" est." if estimated else "")


def _program_name(program: ProfileProgram) -> str:
    return program.name + ("" if program.has_hlo else "  no HLO in the profile")


def _table(
    columns: Sequence[TableColumn[Row]], rows: Sequence[tuple[Row, FactTarget | None]], width: int
) -> Iterator[FactLine]:
    """Return a table among the other lines, each row with its target."""
    layout = placed(columns, width, [row for row, _ in rows], margin=0)
    yield header_line(layout).stylize("$text-muted")
    for row, target in rows:
        yield Leads(row_line(row, layout, width), target)
