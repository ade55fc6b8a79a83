"""All that is known of one compilation: the whole reason, the whole signature, its stages, its constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.results.programs.places import Place, place
from jaxprof.safe_text import columns, safe
from jaxprof.tui.dialogs.base import Dialog
from jaxprof.tui.widgets.drawing import cell, hang
from jaxprof.tui.widgets.ledger_list import reason_text
from jaxprof.tui.widgets.picture import Lines
from jaxprof.tui.widgets.place_text import place_in_full
from jaxprof.units import bytes_, integer, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.events import Compiled

LABEL = 13
_CACHE = {"hit": "hit", "miss": "miss: it was compiled", "off": "off"}


class CompilationDialog(Dialog[None]):
    """The facts; Enter leads to the line that it was called from."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", tooltip="Back to the ledger", id="compilation.close"),
        Binding("enter", "source", "Source", tooltip="The line that it was called from", id="compilation.source"),
        Binding("y", "copy", "Copy", tooltip="Copy all of it as text", id="compilation.copy"),
    ]

    def __init__(self, row: Compiled) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide-dialog") as box:
            box.border_title = Content(f"Compilation of {safe(self._row.function)}")
            box.border_subtitle = "Enter shows the line, y copies, Esc closes"
            yield Lines(id="compilation-facts")

    def on_mount(self) -> None:
        self.query_one(Lines).show(None, lambda width: compilation_lines(self._row, width))
        self.query_one(VerticalScroll).focus()

    @property
    def _place(self) -> Place | None:
        return place(self._row.called_from) or place(self._row.defined_at)

    def action_source(self) -> None:
        """Shows the line that it was called from."""
        from jaxprof.tui.dialogs.source_lines import SourceLines

        if self._place is not None:
            self.app.push_screen(SourceLines(self._place))

    def action_copy(self) -> None:
        """All of it, through the terminal's clipboard."""
        text = "\n".join(line.plain.rstrip() for line in compilation_lines(self._row, 200))
        self.app.copy_to_clipboard(text)
        self.notify(safe(self._row.function), title="Copied", markup=False)


def compilation_lines(row: Compiled, width: int) -> list[Content]:
    """The facts, broken to `width`."""
    lines: list[Content] = []

    def say(label: str, text: str, style: str = "") -> None:
        if text:
            lines.extend(hang(Content.styled(label.ljust(LABEL), "$primary"), text, width, style))

    say("why", reason_text(row) or "the first compilation of this function", "bold")
    say("called from", place_in_full(place(row.called_from)) or "not known")
    say("defined at", place_in_full(place(row.defined_at)))
    say("thread", row.thread)
    say("together", f"{integer(row.count)} compilations, put together because there were very many" * (row.count > 1))
    stages = (("trace", row.trace_seconds), ("lower", row.lower_seconds), ("compile", row.compile_seconds))
    say("stages", ", ".join(f"{name} {seconds(value) if value is not None else 'none'}" for name, value in stages))
    saved = f", which saved {seconds(row.saved_seconds)}" if row.saved_seconds is not None else ""
    say("cache", _CACHE.get(row.cache or "", row.cache or "") + saved)
    say("size", f"{integer(row.operations)} operations" if row.operations is not None else "")
    kinds = ["one primitive, op by op"] * row.op_by_op + ["defined in a library"] * row.library
    say("kind", ", ".join(kinds))
    if row.constants:
        lines += [Content(""), Content.styled("large constants in it", "bold $primary")]
        for one in row.constants:
            size = one.get("bytes")
            lines.append(
                Content.assemble(
                    cell(bytes_(size) if isinstance(size, int | float) else "", 10, right=True),
                    "  ",
                    safe(str(one.get("type") or "")),
                )
            )
    return [*lines, Content(""), *_signature(row, width)]


def _signature(row: Compiled, width: int) -> list[Content]:
    """The arguments, a line each."""
    if not row.signature:
        return [Content.styled("Its arguments are not known.", "$text-muted")]
    lines = [Content.styled("arguments", "bold $primary")]
    names = [safe(str(one.get("name") or "")) for one in row.signature]
    room = min(max(map(columns, names)), max(12, width // 2)) + 2
    for name, one in zip(names, row.signature, strict=True):
        notes = ["static"] * bool(one.get("static")) + ["weak type"] * bool(one.get("weak_type"))
        notes += [str(one["sharding"])] if one.get("sharding") else []
        head = Content.assemble(cell(name, room), (safe(str(one.get("type") or "")), "bold"), "  ")
        lines += hang(head, ", ".join(notes), width, "$text-muted") if notes else [head]
    if row.signature_more:
        lines.append(Content.styled(f"and {integer(row.signature_more)} more", "$text-muted"))
    return lines
