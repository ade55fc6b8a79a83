"""The workloads: the list with mark boxes, and the description of the one under the cursor, down to its source code.

The description is one list of lines, not a stack of widgets: showing another workload redraws one region, while widgets
of other heights would need a new layout of the whole screen at each move of the cursor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof import units
from jaxprof.text import safe
from jaxprof.tui.kit.drawing import cell, hang, mark
from jaxprof.tui.kit.python_source import highlighted
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import seconds

if TYPE_CHECKING:
    from collections.abc import Hashable

    from jaxprof.session.log import Entry
    from jaxprof.tui.home.plan_options import HomeOptions
    from jaxprof.workloads.model import Estimate, Published, VariantInfo, WorkloadInfo


class WorkloadList(TableView[str], keys="workloads"):
    """One row per workload."""

    MARKS = True
    FILTERED = "No workload matches the filter. Esc clears it."

    def __init__(self, names: list[str], infos: Mapping[str, WorkloadInfo], choices: HomeOptions) -> None:
        super().__init__(
            (
                TableColumn("", lambda name: mark(name in self._choices.marked), 1),
                TableColumn("name", lambda name: name, 19, gap=0),
                TableColumn("", self._flag, 1),
                TableColumn("title", self._title, 8, weight=1, style="$text-muted", priority=1),
            ),
            titles=False,
            id="workloads",
        )
        self._infos = infos
        self._choices = choices
        self.show_rows({name: name for name in names})

    @property
    def workload(self) -> str | None:
        """The workload under the cursor."""
        current = self.current
        return None if current is None else str(current)

    def haystack(self, row: str) -> str:
        info = self._infos.get(row)
        return f"{row} {info.title} {info.description} {info.origin}" if info is not None else row

    def _flag(self, name: str) -> tuple[str, str]:
        """Return a star if the user changed an option of the workload."""
        chosen = self._choices.by_workload.get(name)
        changed = chosen is not None and bool(chosen.settings or chosen.sweep or chosen.left_out)
        return "*" if changed else "", "bold $accent"

    def _title(self, name: str) -> str:
        info = self._infos.get(name)
        if info is None:
            return ""
        return info.title if info.origin == "built in" else f"yours · {info.title}"

    def action_mark(self) -> None:
        super().action_mark()
        self.action_move(1)


class DetailLines(RowList):
    """Lines of text that scroll; the cursor stops only at lines that can be chosen."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: dict[Hashable, Content] = {}

    def show_lines(self, lines: Mapping[Hashable, Content]) -> None:
        """Show these lines, by their keys."""
        self._lines = dict(lines)
        self.set_keys(list(self._lines))

    def selectable(self, index: int) -> bool:
        key = self._keys[index]
        return isinstance(key, tuple) and key[0] == "variant"

    def draw_row(self, index: int, width: int) -> Content:
        return Content(" ") + self._lines[self._keys[index]]

    def action_move(self, step: int) -> None:
        row = self.near(self.cursor + step, step)
        top = round(self.scroll_y)
        if row != self.cursor and top <= row < top + self.size.height:
            self.move_to(row)
        else:
            self.scroll_relative(y=step, animate=False)

    def action_page(self, step: int) -> None:
        self.scroll_relative(y=step * max(1, self.size.height - 2), animate=False)

    def action_edge(self, step: int) -> None:
        self.scroll_to(y=0 if step < 0 else len(self._keys), animate=False)


class SourcePane(DetailLines):
    """The source of the current variant, in its own column on a very wide terminal."""

    def __init__(self) -> None:
        super().__init__(id="source")


class WorkloadDetail(DetailLines, keys="variants"):
    """The description of a workload, beside the list; its variants can be chosen."""

    MARKS = True

    def __init__(self, choices: HomeOptions, beside: SourcePane) -> None:
        super().__init__(id="detail")
        self._choices = choices
        self._beside = beside
        self._info: WorkloadInfo | None = None
        self._last: Mapping[str, str] = {}
        self._estimate: Estimate | None = None
        self._drawn_for = 0

    @property
    def variant(self) -> str | None:
        """The variant under the cursor."""
        current = self.current
        return str(current[1]) if isinstance(current, tuple) and current[0] == "variant" else None

    def show_info(self, info: WorkloadInfo | None, last: Mapping[str, str], estimate: Estimate | None) -> None:
        """Show a workload; `last` has the latest median of each variant, in words."""
        changed = info is not self._info
        self._info, self._last, self._estimate = info, last, estimate
        self._build()
        if changed:
            self.scroll_home(animate=False)

    def draw_row(self, index: int, width: int) -> Content:
        key = self._keys[index]
        if self._info is None or not isinstance(key, tuple) or key[0] != "variant":
            return super().draw_row(index, width)
        return self._draw_variant(self._info, self._info.variant(str(key[1])), width)

    def on_resize(self) -> None:
        """Wrap the lines again for the new width."""
        if self.size.width != self._drawn_for:
            self._build()

    def on_row_list_highlighted(self) -> None:
        self._build()

    def _build(self) -> None:
        info = self._info
        if info is None or not self.size.width:
            return
        self._drawn_for = self.size.width
        width = max(24, self.size.width - 2)
        lines: dict[Hashable, Content] = dict(enumerate(about(info, self._choices, self._estimate, width)))
        lines |= {("variant", variant.name): Content("") for variant in info.variants}
        rest = story(info, width)
        name = self.variant if self.variant in {variant.name for variant in info.variants} else info.variants[0].name
        source = _source(info.variant(str(name)))
        if self.screen.has_class("-very-wide"):
            self._beside.show_lines(dict(enumerate(source)))
        else:
            rest += [Content(""), *source]
        start = len(lines)
        lines |= {start + number: line for number, line in enumerate(rest)}
        self.show_lines(lines)

    def _draw_variant(self, info: WorkloadInfo, variant: VariantInfo, width: int) -> Content:
        taken = variant.name not in self._choices.of(info.name).left_out
        name_width = min(24, max(8, *(len(other.name) for other in info.variants)))
        last = self._last.get(variant.name, "")
        line = Content.assemble("  ", mark(taken), " ", cell(variant.name, name_width), "  ")
        tail = Content.styled(f" {safe(last)} ", "$success") if last else Content("")
        words = variant.description or variant.how
        if variant.name == info.baseline:
            words = f"{words} · the baseline" if words else "the baseline"
        room = width - line.cell_length - tail.cell_length
        return line + cell(words, room, "$text-muted") + tail if room > 4 else line + tail


def _source(variant: VariantInfo) -> list[Content]:
    title = Content.styled(f"Source of {safe(variant.name)}", "bold $primary")
    if not variant.source:
        return [title, Content.styled("not available here", "$text-muted")]
    return [title, *highlighted(variant.source).split("\n", allow_blank=True)]


def about(info: WorkloadInfo, choices: HomeOptions, estimate: Estimate | None, width: int) -> list[Content]:
    """Return the title, the parameters, and what one call needs."""
    chosen = choices.of(info.name)
    lines = [*hang(Content(""), info.title, width, "bold"), Content("")]
    lines += _parameters(info, choices, width)
    if chosen.sweep:
        lines.append(Content.assemble(("Sweep       ", "bold $primary"), (safe(chosen.sweep), "bold $accent")))
    if chosen.arguments:
        lines += hang(Content.styled("Arguments   ", "bold $primary"), ", ".join(chosen.arguments), width)
    if estimate is not None:
        lines += hang(Content.styled("One call    ", "bold $primary"), _estimate_text(estimate), width)
    return [*lines, Content(""), Content.styled("Variants", "bold $primary")]


def story(info: WorkloadInfo, width: int) -> list[Content]:
    """Return the description, and the published figures."""
    lines = [Content("")]
    if info.origin != "built in":
        lines += [*hang(Content.styled("Yours       ", "bold $primary"), info.origin, width), Content("")]
    lines += hang(Content(""), " ".join(info.description.split()), width)
    if info.published:
        lines += [Content(""), Content.styled("Published", "bold $primary")]
    by_source: dict[str, list[Published]] = {}
    for figure in info.published:
        by_source.setdefault(figure.source, []).append(figure)
    names = min(28, max((len(_figure_name(figure)) for figure in info.published), default=0))
    for source, figures in by_source.items():
        lines += hang(Content(" "), source, width, "$text-muted")
        for figure in figures:
            lines += _figure(figure, names, width)
    return lines


def _parameters(info: WorkloadInfo, choices: HomeOptions, width: int) -> list[Content]:
    if not info.parameters:
        return [Content.assemble(("Parameters  ", "bold $primary"), ("none", "$text-muted"))]
    values = choices.parameters(info)
    by_hand = choices.of(info.name).settings
    lines: list[Content] = []
    for index, parameter in enumerate(info.parameters):
        style = "bold $accent" if parameter.name in by_hand else "bold"
        head = Content.assemble(
            ("Parameters  " if index == 0 else " " * 12, "bold $primary"),
            (f"{safe(parameter.name)} = ", "$text-muted"),
            (_value_text(values.get(parameter.name)), style),
            "  ",
        )
        lines += hang(head, parameter.description, width, "$text-muted")
    return lines


def _estimate_text(estimate: Estimate) -> str:
    parts = []
    if estimate.memory_bytes is not None:
        parts.append(f"{units.bytes_(estimate.memory_bytes)} of memory")
    if estimate.flops is not None:
        parts.append(units.scaled(estimate.flops, "FLOP"))
    if estimate.traffic_bytes is not None:
        parts.append(f"{units.bytes_(estimate.traffic_bytes)} moved")
    return " · ".join(parts) if parts else units.UNKNOWN


def _figure_name(figure: Published) -> str:
    return figure.variant if figure.phase == "run" else f"{figure.variant} {figure.phase.replace('_', ' ')}"


def _figure(figure: Published, names: int, width: int) -> list[Content]:
    value = safe(figure.figure)
    sizes = [f"{name}={_value_text(size)}" for name, size in figure.parameters.items()]
    statistic = "" if figure.statistic == "not given" else figure.statistic
    where = " · ".join(part for part in (figure.hardware, *sizes, statistic) if part)
    head = Content.assemble(
        "   ", cell(_figure_name(figure), names), "  ", cell(value, max(8, len(value)), "bold", right=True), "  "
    )
    lines = hang(head, where, width, "$text-muted")
    if figure.caveat:
        lines += hang(Content("     "), figure.caveat, width, "italic $quiet")
    return lines


def _value_text(value: object) -> str:
    return units.integer(value) if isinstance(value, int) and not isinstance(value, bool) else safe(str(value))


def last_medians(workload: str, parameters: Mapping[str, object], entries: Sequence[Entry]) -> dict[str, str]:
    """Return the median of each variant, in words, from the newest session that has it with these parameters.

    `entries` come newest first.
    """
    medians: dict[str, str] = {}
    for entry in entries:
        alike = {plan.run for plan in entry.planned if plan.spec.parameters == parameters}
        for closed in entry.closed:
            if closed.workload != workload or closed.run not in alike:
                continue
            if closed.median_seconds is not None and closed.variant not in medians:
                where = "" if closed.device == "cpu:0" else f" {closed.device}"
                medians[closed.variant] = f"last {seconds(closed.median_seconds)}{where}"
    return medians
