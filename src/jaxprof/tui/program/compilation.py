"""All of one compilation: why it happened, its places, stages and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.analysis.programs.reasons import brief
from jaxprof.events import Compiled, SignatureLeaf, SourceLocation
from jaxprof.text import columns, safe
from jaxprof.tui.keys import bindings, key_of
from jaxprof.tui.kit.dialogs import Dialog
from jaxprof.tui.kit.drawing import cell, hang
from jaxprof.tui.kit.format import place_in_full
from jaxprof.tui.kit.picture import Lines
from jaxprof.units import bytes_, counted, integer, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

REASON_WORDS = {
    "first": "first time",
    "shape": "shape",
    "dtype": "dtype",
    "weak_type": "weak type",
    "structure": "structure",
    "static_argument": "static argument",
    "new_function": "new function",
    "sharding": "sharding",
    "config": "config",
    "closure": "new closure",
    "caches_cleared": "caches cleared",
    "unknown": "unknown reason",
}


def reason_text(row: Compiled) -> str:
    """Why it was compiled, in words."""
    return brief(row.reason) if row.reason else REASON_WORDS.get(row.reason_code, row.reason_code)


LABEL = 13
_CACHE = {"hit": "hit", "miss": "miss: it was compiled", "off": "off"}


class CompilationDialog(Dialog[None]):
    """The facts; Enter leads to the line that it was called from."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("compilation")

    def __init__(self, row: Compiled) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide-dialog") as box:
            box.border_title = Content(f"Compilation of {safe(self._row.function)}")
            box.border_subtitle = f"Enter shows the line, {key_of('compilation.copy')} copies, Esc closes"
            yield Lines(id="compilation-facts")

    def on_mount(self) -> None:
        self.query_one(Lines).show(None, lambda width: compilation_lines(self._row, width))
        self.query_one(VerticalScroll).focus()

    @property
    def _place(self) -> SourceLocation | None:
        return self._row.called_from or self._row.defined_at or None

    def action_source(self) -> None:
        """Shows the line that it was called from."""
        from jaxprof.tui.program.line_profile import SourceLines

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

    say("why", reason_text(row), "bold")
    say("called from", place_in_full(row.called_from) or "not known")
    say("defined at", place_in_full(row.defined_at))
    say("thread", row.thread)
    say("together", f"{integer(row.count)} compilations, put together because there were very many" * (row.count > 1))
    stages = (("trace", row.trace_seconds), ("lower", row.lower_seconds), ("compile", row.compile_seconds))
    say("stages", ", ".join(f"{name} {seconds(value) if value is not None else 'none'}" for name, value in stages))
    saved = f", which saved {seconds(row.saved_seconds)}" if row.saved_seconds is not None else ""
    say("cache", _CACHE.get(row.cache or "", row.cache or "") + saved)
    say("size", counted(row.operations, "operation") if row.operations is not None else "")
    kinds = ["one primitive, op by op"] * row.op_by_op + ["defined in a library"] * row.library
    say("kind", ", ".join(kinds))
    if row.constants:
        lines += [Content(""), Content.styled("large constants in it", "bold $primary")]
        lines += [
            Content.assemble(cell(bytes_(constant.bytes), 10, right=True), "  ", safe(constant.type))
            for constant in row.constants
        ]
    return [*lines, Content(""), *_signature(row, width)]


def _from_numpy(leaf: SignatureLeaf) -> str:
    if leaf.zero_copy:
        return "from NumPy, used where it is"
    if leaf.replaced:
        return "from NumPy in the first call"
    return f"from NumPy, {bytes_(leaf.bytes)} a call"


def _signature(row: Compiled, width: int) -> list[Content]:
    """The arguments, a line each."""
    if not row.signature:
        return [Content.styled("Its arguments are not known.", "$text-muted")]
    lines = [Content.styled("arguments", "bold $primary")]
    names = [safe(leaf.name) for leaf in row.signature]
    room = min(max(map(columns, names)), max(12, width // 2)) + 2
    for name, leaf in zip(names, row.signature, strict=True):
        notes = ["static"] * leaf.static + ["weak type"] * leaf.weak_type
        notes += [leaf.sharding] if leaf.sharding else []
        notes += [_from_numpy(leaf)] if leaf.from_numpy else []
        head = Content.assemble(cell(name, room), (safe(leaf.type), "bold"), "  ")
        lines += hang(head, ", ".join(notes), width, "$text-muted") if notes else [head]
    if row.signature_more:
        lines.append(Content.styled(f"and {integer(row.signature_more)} more", "$text-muted"))
    return lines
