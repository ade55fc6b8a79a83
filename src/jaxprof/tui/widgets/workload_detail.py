"""What a workload is: formula, parameters, variants, what it needs, its story, published figures, its source code.

One list of lines instead of a stack of widgets: showing another workload then draws one region again, where widgets of
other heights would cost a new layout of the whole screen at each step of the cursor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from jaxprof import units
from jaxprof.safe_text import safe
from jaxprof.tui.widgets.drawing import cell, hang, mark
from jaxprof.tui.widgets.python_source import highlighted
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.tui.widgets.workload_list import WorkloadList

if TYPE_CHECKING:
    from collections.abc import Hashable

    from jaxprof.tui.choices import Choices
    from jaxprof.workloads.model import Estimate, Published, VariantCard, WorkloadCard


class Lines(RowList):
    """Lines of text that scroll; the cursor stands only where there is something to choose."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: dict[Hashable, Content] = {}

    def show_lines(self, lines: Mapping[Hashable, Content]) -> None:
        """Shows these lines, by their keys."""
        self._lines = dict(lines)
        self.set_keys(list(self._lines))

    def selectable(self, index: int) -> bool:
        key = self.keys[index]
        return isinstance(key, tuple) and key[0] == "variant"

    def draw_row(self, index: int, width: int) -> Content:
        return Content(" ") + self._lines[self.keys[index]]

    def action_move(self, step: int) -> None:
        """The next row that can be chosen, as long as it is in view; else a line further."""
        row = self.near(self.cursor + step, step)
        top = round(self.scroll_y)
        if row != self.cursor and top <= row < top + self.size.height:
            self.move_to(row)
        else:
            self.scroll_relative(y=step, animate=False)

    def action_page(self, step: int) -> None:
        """A page up or down."""
        self.scroll_relative(y=step * max(1, self.size.height - 2), animate=False)

    def action_edge(self, step: int) -> None:
        """The beginning or the end."""
        self.scroll_to(y=0 if step < 0 else len(self.keys), animate=False)


class SourcePane(Lines):
    """The source of the variant in view, beside the rest, in a very wide terminal."""

    def __init__(self) -> None:
        super().__init__(id="source")


class WorkloadDetail(Lines):
    """The pane beside the list of workloads; its rows that can be chosen are the variants."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "run", "Run", tooltip="Run the marked workloads, or this one", id="variants.run"),
        Binding("space", "mark", "Take or leave", tooltip="Run this variant, or leave it out", id="variants.mark"),
    ]

    class Toggled(Message):
        """A variant shall be run, or left out."""

        def __init__(self, variant: str) -> None:
            super().__init__()
            self.variant = variant

    def __init__(self, choices: Choices, beside: SourcePane) -> None:
        super().__init__(id="detail")
        self._choices = choices
        self._beside = beside
        self._card: WorkloadCard | None = None
        self._last: Mapping[str, str] = {}
        self._estimate: Estimate | None = None
        self._drawn_for = 0

    @property
    def variant(self) -> str | None:
        """The variant under the cursor."""
        current = self.current
        return str(current[1]) if isinstance(current, tuple) and current[0] == "variant" else None

    def show_card(self, card: WorkloadCard | None, last: Mapping[str, str], estimate: Estimate | None) -> None:
        """Shows a workload; `last` says of each variant what it took the last time."""
        changed = card is not self._card
        self._card, self._last, self._estimate = card, last, estimate
        self._build()
        if changed:
            self.scroll_home(animate=False)

    def draw_row(self, index: int, width: int) -> Content:
        key = self.keys[index]
        if self._card is None or not isinstance(key, tuple) or key[0] != "variant":
            return super().draw_row(index, width)
        return self._draw_variant(self._card, self._card.variant(str(key[1])), width)

    def on_resize(self) -> None:
        """Lines are wrapped here, so they depend on the width."""
        if self.size.width != self._drawn_for:
            self._build()

    def on_row_list_highlighted(self) -> None:
        self._build()

    def on_row_list_clicked(self, message: RowList.Clicked) -> None:
        if message.x < 4:
            self.action_mark()

    def action_run(self) -> None:
        """Asks for what is chosen to be run."""
        self.post_message(WorkloadList.Run())

    def action_mark(self) -> None:
        """Takes the variant under the cursor, or leaves it out."""
        if self.variant is not None:
            self.post_message(self.Toggled(self.variant))

    def _build(self) -> None:
        card = self._card
        if card is None or not self.size.width:
            return
        self._drawn_for = self.size.width
        width = max(24, self.size.width - 2)
        lines: dict[Hashable, Content] = dict(enumerate(about(card, self._choices, self._estimate, width)))
        lines |= {("variant", variant.name): Content("") for variant in card.variants}
        rest = story(card, width)
        name = self.variant if self.variant in {variant.name for variant in card.variants} else card.variants[0].name
        source = _source(card.variant(str(name)))
        if self.screen.has_class("-very-wide"):
            self._beside.show_lines(dict(enumerate(source)))
        else:
            rest += [Content(""), *source]
        start = len(lines)
        lines |= {start + number: line for number, line in enumerate(rest)}
        self.show_lines(lines)

    def _draw_variant(self, card: WorkloadCard, variant: VariantCard, width: int) -> Content:
        taken = variant.name not in self._choices.of(card.name).left_out
        name_width = min(24, max(8, *(len(other.name) for other in card.variants)))
        last = self._last.get(variant.name, "")
        line = Content.assemble("  ", mark(taken), " ", cell(variant.name, name_width), "  ")
        tail = Content.styled(f" {safe(last)} ", "$success") if last else Content("")
        words = variant.description or variant.how
        if variant.name == card.baseline:
            words = f"{words} · the baseline" if words else "the baseline"
        room = width - line.cell_length - tail.cell_length
        return line + cell(words, room, "$text-muted") + tail if room > 4 else line + tail


def _source(variant: VariantCard) -> list[Content]:
    title = Content.styled(f"Source of {safe(variant.name)}", "bold $primary")
    if not variant.source:
        return [title, Content.styled("not to be read here", "$text-muted")]
    return [title, *highlighted(variant.source).split("\n", allow_blank=True)]


def about(card: WorkloadCard, choices: Choices, estimate: Estimate | None, width: int) -> list[Content]:
    """Title, parameters, what one call needs."""
    chosen = choices.of(card.name)
    lines = [*hang(Content(""), card.title, width, "bold"), Content("")]
    lines += _parameters(card, choices, width)
    if chosen.sweep:
        lines.append(Content.assemble(("Sweep       ", "bold $primary"), (safe(chosen.sweep), "bold $accent")))
    if chosen.arguments:
        lines += hang(Content.styled("Arguments   ", "bold $primary"), ", ".join(chosen.arguments), width)
    if estimate is not None:
        lines += hang(Content.styled("One call    ", "bold $primary"), _needs(estimate), width)
    return [*lines, Content(""), Content.styled("Variants", "bold $primary")]


def story(card: WorkloadCard, width: int) -> list[Content]:
    """What it computes and why; what others measured."""
    lines = [Content("")]
    if card.origin != "built in":
        lines += [*hang(Content.styled("Yours       ", "bold $primary"), card.origin, width), Content("")]
    lines += hang(Content(""), " ".join(card.description.split()), width)
    if card.published:
        lines += [Content(""), Content.styled("Published", "bold $primary")]
    by_source: dict[str, list[Published]] = {}
    for figure in card.published:
        by_source.setdefault(figure.source, []).append(figure)
    names = min(28, max((len(_what(figure)) for figure in card.published), default=0))
    for source, figures in by_source.items():
        lines += hang(Content(" "), source, width, "$text-muted")
        for figure in figures:
            lines += _figure(figure, names, width)
    return lines


def _parameters(card: WorkloadCard, choices: Choices, width: int) -> list[Content]:
    if not card.parameters:
        return [Content.assemble(("Parameters  ", "bold $primary"), ("none", "$text-muted"))]
    values = choices.parameters(card)
    by_hand = choices.of(card.name).settings
    lines: list[Content] = []
    for index, parameter in enumerate(card.parameters):
        style = "bold $accent" if parameter.name in by_hand else "bold"
        head = Content.assemble(
            ("Parameters  " if index == 0 else " " * 12, "bold $primary"),
            (f"{safe(parameter.name)} = ", "$text-muted"),
            (_size(values.get(parameter.name)), style),
            "  ",
        )
        lines += hang(head, parameter.description, width, "$text-muted")
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
    lines = hang(head, where, width, "$text-muted")
    if figure.caveat:
        lines += hang(Content("     "), figure.caveat, width, "italic $quiet")
    return lines


def _size(value: object) -> str:
    return units.integer(value) if isinstance(value, int) and not isinstance(value, bool) else safe(str(value))
