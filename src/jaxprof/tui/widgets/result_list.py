"""The results of a session: variants side by side under the workload and parameters that they share.

The bars are the medians of a group on one linear scale from 0, so that their lengths can be compared by eye.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from jaxprof.results import RunResult, SweepGroup, result, sweep_groups
from jaxprof.results.programs.derive import is_program, program_result
from jaxprof.safe_text import columns
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.line_plot import count_tick
from jaxprof.tui.widgets.phase_bars import plain_bar
from jaxprof.tui.widgets.program_summary import in_a_line
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.tui.widgets.run_list import heading_line
from jaxprof.tui.widgets.wording import (
    half_width,
    parameters_text,
    pays_off,
    speedup_short,
    speedup_style,
    status_mark,
)
from jaxprof.units import scaled, seconds

if TYPE_CHECKING:
    from jaxprof.report.groups import Group
    from jaxprof.session import Session

MARK, MEDIAN, HALF, SPEEDUP, PAYS = 3, 9, 10, 17, 14
_LABEL_LIMIT = 26
_BAR_LEAST = 8
_BAR_MOST = 48


@dataclass(frozen=True, slots=True)
class Extra:
    """A column that is there when the terminal is wide enough."""

    title: str
    width: int
    text: Callable[[RunResult], str]


EXTRAS = (
    Extra("dispatch", 9, lambda one: seconds(one.dispatch_median_seconds)),
    Extra("pipelined", 10, lambda one: seconds(one.pipelined_median_seconds)),
    Extra("rate", 13, lambda one: scaled(one.flops_per_second, "FLOP/s")),
    Extra("traffic", 11, lambda one: scaled(one.bytes_per_second, "B/s")),
    Extra("compile", 10, lambda one: seconds(one.phase_seconds.get("compile"))),
    Extra("once", 10, lambda one: seconds(one.once_seconds) if one.run.plan.how != "numpy" else ""),
)
"""From the one that is wanted most to the one that is wanted least."""


@dataclass(frozen=True, slots=True)
class Order:
    """A way to sort the runs of a group; unknown values come last, in both directions."""

    name: str
    key: Callable[[RunResult], float | str | None]


ORDERS = (
    Order("as planned", lambda one: None),
    Order("median", lambda one: one.summary.median if one.summary is not None else None),
    Order("speed-up", lambda one: -one.versus.speedup.ratio if one.versus is not None else None),
    Order("compile", lambda one: one.phase_seconds.get("compile")),
    Order("name", lambda one: one.run.plan.variant),
)


def in_order(found: Sequence[RunResult], order: Order, *, backwards: bool) -> list[RunResult]:
    """The runs sorted; those without a value behind the others."""
    with_value = [(value, index) for index, one in enumerate(found) if (value := order.key(one)) is not None]
    without = [one for one in found if order.key(one) is None]
    if order is ORDERS[0]:
        return without[::-1] if backwards else without
    ranked = sorted(with_value, key=lambda pair: (str(pair[0]) if isinstance(pair[0], str) else "", pair[0]))
    return [found[index] for _, index in (ranked[::-1] if backwards else ranked)] + without


def _groups(found: Iterable[RunResult]) -> list[Group]:
    """What can be compared: the runs of one workload with the same parameters."""
    from jaxprof.report.groups import Group

    by_key: dict[tuple[object, ...], list[RunResult]] = {}
    for one in found:
        plan = one.run.plan
        by_key.setdefault((plan.workload, *sorted(plan.parameters.items())), []).append(one)
    return [
        Group(plan.workload, dict(plan.parameters), plan.preset, tuple(runs))
        for runs in by_key.values()
        if (plan := runs[0].run.plan)
    ]


def _longest(group: Group) -> float:
    return max((one.summary.median for one in group.runs if one.summary is not None), default=0.0)


class ResultList(RowList):
    """Rows of runs, headings of groups, and a row for each sweep."""

    EMPTY: ClassVar[str] = "No results in this session yet. Mark workloads on Home (1), Enter runs them."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._session: Session | None = None
        self._results: dict[str, RunResult] = {}
        self._drawn: dict[Hashable, Hashable] = {}
        self.order = ORDERS[0]
        self.backwards = False
        self.groups: list[Group] = []
        self.sweeps: dict[str, SweepGroup] = {}
        """By workload."""
        self._of: dict[str, tuple[Group, RunResult]] = {}

    def show(self, session: Session, runs: frozenset[str]) -> None:
        """Shows `session`, of which `runs` changed. Rows that say what they said before are not drawn again."""
        if session is not self._session:
            self._session, self._results, runs = session, {}, frozenset(session.runs)
        for run in session.runs.values():
            if run.id in runs or run.plan.baseline in runs or run.id not in self._results:
                self._results[run.id] = result(session, run.id)
        self.groups = _groups(self._results.values())
        if any(session.runs[run].over for run in runs if run in session.runs):
            self.sweeps = {sweep.workload: sweep for sweep in sweep_groups(session)}
        self._lay_out()

    def sort(self, order: Order, *, backwards: bool) -> None:
        """Shows the runs of each group in another order."""
        self.order, self.backwards = order, backwards
        self._lay_out()
        self.refresh()

    @property
    def order_in_words(self) -> str:
        """`by median ▾`; empty for the order of the plan."""
        if self.order is ORDERS[0] and not self.backwards:
            return ""
        name = self.order.name if self.order is ORDERS[0] else f"by {self.order.name}"
        return f"{name} {'▴' if self.backwards else '▾'}"

    def group_of(self, run: str) -> Group | None:
        """The group that a run belongs to."""
        found = self._of.get(run)
        return found[0] if found is not None else None

    def result_of(self, run: str) -> RunResult | None:
        """The figures of a run that is shown."""
        found = self._of.get(run)
        return found[1] if found is not None else None

    def _lay_out(self) -> None:
        keys: list[Hashable] = []
        self._of = {}
        swept: set[str] = set()
        for group in self.groups:
            if group.workload in self.sweeps and group.workload not in swept:
                swept.add(group.workload)
                keys.append(("sweep", group.workload))
            keys.append(("group", group.workload, parameters_text(group.parameters), group.runs[0].run.id))
            for one in in_order(group.runs, self.order, backwards=self.backwards):
                self._of[one.run.id] = (group, one)
                keys.append(one.run.id)
        before, self._drawn = self._drawn, {key: self._says(key) for key in keys}
        if keys != self._keys:
            self.set_keys(keys)
            return
        for index, key in enumerate(keys):
            if self._drawn[key] != before.get(key):
                self.refresh_row(index)

    def _says(self, key: Hashable) -> Hashable:
        """What a row depends on; equal values are drawn equally."""
        if not isinstance(key, str):
            is_sweep = isinstance(key, tuple) and key[0] == "sweep"
            return tuple(self.sweeps[str(key[1])].crossovers()) if is_sweep and isinstance(key, tuple) else None
        group, one = self._of[key]
        run = one.run
        check = run.check.passed if run.check is not None else None
        program = (len(run.program.compiled), len(run.program.sampled)) if run.program is not None else None
        return (
            program,
            *(run.status, run.current_phase, run.error, check, one.summary, one.versus, len(one.warnings)),
            *(one.dispatch_median_seconds, one.pipelined_median_seconds, one.flops, one.once_seconds),
            _longest(group),
        )

    def selectable(self, index: int) -> bool:
        key = self._keys[index]
        return isinstance(key, str) or (isinstance(key, tuple) and key[0] == "sweep")

    def draw_header(self, width: int) -> Content:
        label, bar_width, extras = self._widths(width)
        return Content.assemble(
            cell("", MARK),
            cell("variant", label),
            cell("median", MEDIAN, right=True),
            cell("95 %", HALF, right=True),
            "  ",
            cell("from 0" if bar_width else "", bar_width),
            cell("speed-up", SPEEDUP),
            cell("pays off", PAYS),
            *(cell(extra.title, extra.width, right=True) for extra in extras),
        )

    def draw_row(self, index: int, width: int) -> Content:
        key = self._keys[index]
        if isinstance(key, str):
            return self._run_row(*self._of[key], width)
        assert isinstance(key, tuple)
        if key[0] == "group":
            return heading_line(str(key[1]), str(key[2]), width)
        sweep = self.sweeps[str(key[1])]
        sizes = sorted({size for line in sweep.lines for size in line.sizes})
        words = "; ".join(found.sentence(sweep.parameter) for found in sweep.crossovers())
        span = f"{sweep.parameter} from {count_tick(sizes[0])} to {count_tick(sizes[-1])}" if sizes else ""
        return Content.assemble(
            " ", ("~", "bold $accent"), f" {cell(sweep.workload, min(24, columns(sweep.workload))).plain}",
            (f" over {span}  ", "$text-muted"), cell(words, max(1, width), "$accent"),
        ).truncate(width, ellipsis=True)  # fmt: skip

    def _run_row(self, group: Group, one: RunResult, width: int) -> Content:
        label, bar_width, extras = self._widths(width)
        run = one.run
        name = group.label(run)
        if sum(group.label(other.run) == name for other in group.runs) > 1:
            name = f"{name} ({run.id})"
        left = Content.assemble(" ", status_mark(run.status), " ", cell(name, label - 1), " ")
        if one.summary is None:
            said = run.error.splitlines()[0] if run.error else run.current_phase.replace("_", " ") or run.status
            style = "$error" if run.status in ("failed", "crashed") else "$quiet"
            if is_program(run) and self._session is not None:
                said = in_a_line(program_result(self._session, run.id))
            return left + cell(said, width - left.cell_length, style)
        longest = _longest(group)
        share = one.summary.median / longest if longest > 0 else 0.0
        versus = one.versus
        found = versus.speedup if versus is not None else None
        said = speedup_short(found) if run.plan.baseline else "baseline"
        wrong = run.check is not None and run.check.passed is False
        return Content.assemble(
            left,
            cell(seconds(one.summary.median), MEDIAN, "bold", right=True),
            cell(half_width(one.summary), HALF, "$text-muted", right=True),
            "  ",
            plain_bar(share, bar_width - 2, "$baseline" if not run.plan.baseline else "$bar") + "  "
            if bar_width
            else "",
            cell(said, SPEEDUP, speedup_style(found)),
            cell(
                "✗ wrong" if wrong else pays_off(one) if versus is not None else "",
                PAYS - 3,
                "$error" if wrong else "",
            ),
            cell(f"!{len(one.warnings)}" if one.warnings else "", 3, "$warning"),
            *(cell(extra.text(one), extra.width, "$text-muted", right=True) for extra in extras),
        )

    def _widths(self, width: int) -> tuple[int, int, list[Extra]]:
        """Columns of the label and of the bars, and the extras that there is room for."""
        names = [group.label(one.run) for group in self.groups for one in group.runs]
        label = max(10, min(_LABEL_LIMIT, 2 + max((columns(name) for name in names), default=0)))
        spare = width - MARK - MEDIAN - HALF - 2 - SPEEDUP - PAYS - label
        if spare < _BAR_LEAST + 2:
            label = max(10, label + spare - _BAR_LEAST - 2)
            spare = width - MARK - MEDIAN - HALF - 2 - SPEEDUP - PAYS - label
        extras: list[Extra] = []
        for extra in EXTRAS:
            if spare - extra.width < _BAR_LEAST:
                break
            extras.append(extra)
            spare -= extra.width
        return label, max(0, min(_BAR_MOST, spare)), extras
