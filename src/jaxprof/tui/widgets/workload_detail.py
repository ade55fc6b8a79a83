"""What a workload is: formula, story, parameters, variants, published figures, what it needs, and its source code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from jaxprof import units
from jaxprof.safe_text import safe
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.python_source import highlighted
from jaxprof.tui.widgets.workload_list import VariantList

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.tui.choices import Choices
    from jaxprof.workloads.model import Estimate, Published, WorkloadCard


class WorkloadDetail(VerticalScroll):
    """The pane beside the list. Beside each other in a very wide terminal, one below the other otherwise."""

    class VariantInView(Message):
        """Another variant's source is shown."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(id="detail", can_focus=False)
        self._choices = choices
        self._card: WorkloadCard | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="info"):
            yield Static(id="about", markup=False)
            yield VariantList(self._choices)
            yield Static(id="published", markup=False)
        with Vertical(id="code"):
            yield Static(id="source", markup=False)

    def show_card(self, card: WorkloadCard | None, last: Mapping[str, str], estimate: Estimate | None) -> None:
        """Shows a workload; `last` says of each variant what it took the last time."""
        changed = card is not self._card
        self._card = card
        if card is None:
            return
        self.query_one("#about", Static).update(about(card, self._choices, estimate))
        self.query_one(VariantList).show_card(card, last)
        self.query_one("#published", Static).update(published(card))
        if changed:
            self.scroll_home(animate=False)
        self.show_source()

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


def about(card: WorkloadCard, choices: Choices, estimate: Estimate | None) -> Content:
    """Title, description, parameters, what one call needs."""
    lines = [Content.styled(safe(card.title), "bold"), Content("")]
    if card.origin != "built in":
        lines += [Content.assemble(("yours  ", "$accent"), (safe(card.origin), "$text-muted")), Content("")]
    lines += [Content(safe(" ".join(card.description.split()))), Content("")]
    chosen = choices.of(card.name)
    lines.append(_parameters(card, choices))
    if chosen.sweep:
        lines.append(Content.assemble(("Sweep       ", "bold $primary"), (safe(chosen.sweep), "bold $accent")))
    if chosen.arguments:
        lines.append(Content.assemble(("Arguments   ", "bold $primary"), safe(", ".join(chosen.arguments))))
    if estimate is not None:
        lines.append(_needs(estimate))
    lines += [Content(""), Content.styled("Variants", "bold $primary")]
    return Content("\n").join(lines)


def _parameters(card: WorkloadCard, choices: Choices) -> Content:
    if not card.parameters:
        return Content.assemble(("Parameters  ", "bold $primary"), ("none", "$text-muted"))
    values = choices.parameters(card)
    by_hand = choices.of(card.name).settings
    lines = []
    for index, parameter in enumerate(card.parameters):
        head = "Parameters  " if index == 0 else " " * 12
        value = values.get(parameter.name)
        shown = units.integer(value) if isinstance(value, int) and not isinstance(value, bool) else safe(str(value))
        style = "bold $accent" if parameter.name in by_hand else "bold"
        lines.append(
            Content.assemble(
                (head, "bold $primary"),
                (f"{safe(parameter.name)} = ", "$text-muted"),
                (shown, style),
                (f"  {safe(parameter.description)}", "$text-muted"),
            )
        )
    return Content("\n").join(lines)


def _needs(estimate: Estimate) -> Content:
    parts = []
    if estimate.memory_bytes is not None:
        parts.append(f"{units.bytes_(estimate.memory_bytes)} of memory")
    if estimate.flops is not None:
        parts.append(units.scaled(estimate.flops, "FLOP"))
    if estimate.traffic_bytes is not None:
        parts.append(f"{units.bytes_(estimate.traffic_bytes)} moved")
    text = " · ".join(parts) if parts else units.UNKNOWN
    return Content.assemble(("One call    ", "bold $primary"), (text, ""), ("  by its definition", "$text-muted"))


def published(card: WorkloadCard) -> Content:
    """The figures that others printed, with their hardware, in columns."""
    if not card.published:
        return Content("\n")
    lines = [Content(""), Content.styled("Published", "bold $primary")]
    for figure in card.published:
        lines.append(_figure(figure))
        if figure.caveat:
            lines.append(Content.styled(f"   {safe(figure.caveat)}", "italic $text-muted"))
    return Content("\n").join([*lines, Content("")])


def _figure(figure: Published) -> Content:
    value = units.seconds(figure.seconds) if figure.seconds is not None else safe(figure.text)
    what = figure.variant if figure.phase == "run" else f"{figure.variant} {figure.phase.replace('_', ' ')}"
    sizes = ", ".join(
        f"{name}={units.scaled(number) if isinstance(number, int | float) else number}"
        for name, number in figure.parameters.items()
    )
    where = " · ".join(part for part in (figure.hardware, sizes, figure.source) if part)
    return Content.assemble(
        " ", cell(what, 22), cell(value, max(10, len(value) + 1), "bold"), (safe(where), "$text-muted")
    )
