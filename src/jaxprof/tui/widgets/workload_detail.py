"""What a workload is: formula, story, parameters, variants, published figures, what it needs, and its source code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from jaxprof import units
from jaxprof.safe_text import safe
from jaxprof.tui.widgets.drawing import cell, hang
from jaxprof.tui.widgets.python_source import highlighted
from jaxprof.tui.widgets.workload_list import VariantList

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.tui.choices import Choices
    from jaxprof.workloads.model import Estimate, Published, WorkloadCard


class WorkloadDetail(VerticalScroll):
    """The pane beside the list; text and source are side by side in a very wide terminal, else one below the other."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(id="detail")
        self._choices = choices
        self._card: WorkloadCard | None = None
        self._estimate: Estimate | None = None
        self._width = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="info"):
            yield Static(id="about", markup=False)
            yield VariantList(self._choices)
            yield Static(id="story", markup=False)
        with Vertical(id="code"):
            yield Static(id="source", markup=False)

    def show_card(self, card: WorkloadCard | None, last: Mapping[str, str], estimate: Estimate | None) -> None:
        """Shows a workload; `last` says of each variant what it took the last time."""
        changed = card is not self._card
        self._card, self._estimate = card, estimate
        if card is None:
            return
        self.query_one(VariantList).show_card(card, last)
        self._show_texts()
        if changed:
            self.scroll_home(animate=False)
        self.show_source()

    def on_resize(self) -> None:
        """The texts are wrapped here, with hanging indents, and so depend on the width."""
        if self._card is not None and self.query_one("#info").size.width != self._width:
            self.call_after_refresh(self._show_texts)

    def _show_texts(self) -> None:
        if self._card is None:
            return
        self._width = self.query_one("#info").size.width
        width = max(24, self._width)
        self.query_one("#about", Static).update(about(self._card, self._choices, self._estimate, width))
        self.query_one("#story", Static).update(story(self._card, width))

    def show_source(self) -> None:
        """Shows the source of the variant under the cursor."""
        variants = self.query_one(VariantList)
        if self._card is None or variants.variant is None:
            return
        card = self._card.variant(variants.variant)
        title = Content.styled(f"Source of {safe(card.name)}", "bold $primary")
        source = highlighted(card.source) if card.source else Content.styled("not to be read here", "$text-muted")
        self.query_one("#source", Static).update(Content("\n").join([title, source]))

    def on_row_list_highlighted(self) -> None:
        self.show_source()


def about(card: WorkloadCard, choices: Choices, estimate: Estimate | None, width: int) -> Content:
    """Title, parameters, what one call needs."""
    chosen = choices.of(card.name)
    lines = [hang(Content(""), card.title, width, "bold"), Content("")]
    lines += _parameters(card, choices, width)
    if chosen.sweep:
        lines.append(Content.assemble(("Sweep       ", "bold $primary"), (safe(chosen.sweep), "bold $accent")))
    if chosen.arguments:
        lines.append(hang(Content.styled("Arguments   ", "bold $primary"), ", ".join(chosen.arguments), width))
    if estimate is not None:
        lines.append(hang(Content.styled("One call    ", "bold $primary"), _needs(estimate), width))
    lines += [Content(""), Content.styled("Variants", "bold $primary")]
    return Content("\n").join(lines)


def story(card: WorkloadCard, width: int) -> Content:
    """What it computes and why; what others measured."""
    lines = [Content("")]
    if card.origin != "built in":
        lines += [hang(Content.styled("Yours       ", "bold $primary"), card.origin, width), Content("")]
    lines.append(hang(Content(""), " ".join(card.description.split()), width))
    if card.published:
        lines += [Content(""), Content.styled("Published", "bold $primary")]
    by_source: dict[str, list[Published]] = {}
    for figure in card.published:
        by_source.setdefault(figure.source, []).append(figure)
    names = min(28, max((len(_what(figure)) for figure in card.published), default=0))
    for source, figures in by_source.items():
        lines.append(hang(Content(" "), source, width, "$text-muted"))
        for figure in figures:
            lines += _figure(figure, names, width)
    return Content("\n").join([*lines, Content("")])


def _parameters(card: WorkloadCard, choices: Choices, width: int) -> list[Content]:
    if not card.parameters:
        return [Content.assemble(("Parameters  ", "bold $primary"), ("none", "$text-muted"))]
    values = choices.parameters(card)
    by_hand = choices.of(card.name).settings
    lines = []
    for index, parameter in enumerate(card.parameters):
        style = "bold $accent" if parameter.name in by_hand else "bold"
        head = Content.assemble(
            ("Parameters  " if index == 0 else " " * 12, "bold $primary"),
            (f"{safe(parameter.name)} = ", "$text-muted"),
            (_size(values.get(parameter.name)), style),
            "  ",
        )
        lines.append(hang(head, parameter.description, width, "$text-muted"))
    return lines


def _needs(estimate: Estimate) -> str:
    parts = []
    if estimate.memory_bytes is not None:
        parts.append(f"{units.bytes_(estimate.memory_bytes)} of memory")
    if estimate.flops is not None:
        parts.append(units.scaled(estimate.flops, "FLOP"))
    if estimate.traffic_bytes is not None:
        parts.append(f"{units.bytes_(estimate.traffic_bytes)} moved")
    return " · ".join(parts) if parts else units.UNKNOWN


def _what(figure: Published) -> str:
    return figure.variant if figure.phase == "run" else f"{figure.variant} {figure.phase.replace('_', ' ')}"


def _figure(figure: Published, names: int, width: int) -> list[Content]:
    value = units.seconds(figure.seconds) if figure.seconds is not None else safe(figure.text)
    sizes = [f"{name}={_size(size)}" for name, size in figure.parameters.items()]
    statistic = "" if figure.statistic == "not said" else figure.statistic
    where = " · ".join(part for part in (figure.hardware, *sizes, statistic) if part)
    head = Content.assemble(
        "   ", cell(_what(figure), names), "  ", cell(value, max(8, len(value)), "bold", right=True), "  "
    )
    lines = [hang(head, where, width, "$text-muted")]
    if figure.caveat:
        lines.append(hang(Content("     "), figure.caveat, width, "italic $quiet"))
    return lines


def _size(value: object) -> str:
    return units.integer(value) if isinstance(value, int) and not isinstance(value, bool) else safe(str(value))
