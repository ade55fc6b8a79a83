"""The workloads: the list with mark boxes, and the description of the one under the cursor, down to its source code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.text import safe
from jaxprof.tui.kit.drawing import cell, hang, mark
from jaxprof.tui.kit.python_source import highlighted
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import seconds, value_text

if TYPE_CHECKING:
    from jaxprof.session.log import Entry
    from jaxprof.tui.home.plan_options import HomeOptions
    from jaxprof.workloads.model import VariantInfo, WorkloadInfo

_NAME = 12
"""Columns of the names of the facts."""


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


def description(info: WorkloadInfo, choices: HomeOptions, last: Mapping[str, str], width: int) -> Iterator[Content]:
    """Yield what a workload is and how it would run, then its description and source; `last` has the
    latest median of each variant, in words."""
    yield from (*hang(Content(""), info.title, width, "bold"), Content(""))
    yield from _parameters(info, choices, width)
    chosen = choices.of(info.name)
    yield from _fact("Sweep", chosen.sweep, width, "bold $accent")
    yield from _fact("Arguments", ", ".join(chosen.arguments), width)
    yield from (Content(""), _title("Variants"))
    name_width = min(24, max(8, *(len(variant.name) for variant in info.variants)))
    for variant in info.variants:
        yield _variant(
            info, variant, last.get(variant.name, ""), variant.name not in chosen.left_out, name_width, width
        )
    yield Content("")
    yield from _fact("Yours", info.origin if info.origin != "built in" else "", width)
    yield from hang(Content(""), " ".join(info.description.split()), width)
    for variant in info.variants:
        yield from (Content(""), _title(f"Source of {safe(variant.name)}"))
        yield from highlighted(variant.source or "# not available here").split("\n", allow_blank=True)


def _title(words: str) -> Content:
    return Content.styled(words, "bold $primary")


def _fact(name: str, text: str, width: int, style: str = "") -> list[Content]:
    """Return a fact with its name; nothing for an empty one."""
    return hang(_title(f"{name:<{_NAME}}"), text, width, style) if text else []


def _parameters(info: WorkloadInfo, choices: HomeOptions, width: int) -> Iterator[Content]:
    if not info.parameters:
        yield from _fact("Parameters", "none", width, "$text-muted")
    values = choices.parameters(info)
    by_hand = choices.of(info.name).settings
    for index, parameter in enumerate(info.parameters):
        style = "bold $accent" if parameter.name in by_hand else "bold"
        head = Content.assemble(
            _title(f"{'Parameters' if index == 0 else '':<{_NAME}}"),
            (f"{safe(parameter.name)} = ", "$text-muted"),
            (safe(value_text(values.get(parameter.name))), style),
            "  ",
        )
        yield from hang(head, parameter.description, width, "$text-muted")


def _variant(
    info: WorkloadInfo, variant: VariantInfo, last: str, included: bool, name_width: int, width: int
) -> Content:
    words = [variant.description or variant.how, "the baseline" if variant.name == info.baseline else ""]
    line = Content.assemble("  ", mark(included), " ", cell(variant.name, name_width), "  ")
    tail = Content.styled(f" {safe(last)} ", "$success") if last else Content("")
    room = width - line.cell_length - tail.cell_length
    return line + cell(" · ".join(filter(None, words)), room, "$text-muted") + tail if room > 4 else line + tail


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
