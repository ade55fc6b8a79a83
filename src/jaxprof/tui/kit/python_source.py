"""Lines of Python files, with highlighting. A session may name any path: `recorded_lines` reads what it recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.base.recorded_source import recorded_lines
from jaxprof.base.text import columns, safe, safe_lines
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import TextDialog
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.format import location_in_full

if TYPE_CHECKING:
    from jaxprof.events import SourceLocation
    from jaxprof.hlo.kernels.origin import HloSourceLocation


@lru_cache(maxsize=128)
def highlight_python(source: str) -> Content:
    """Return `source` with its lines made safe and coloured as Python."""
    from textual.highlight import highlight  # late, because it would delay the first frame

    return highlight("\n".join(safe_lines(source.rstrip())), language="python")


def number_lines(lines: Sequence[tuple[int, str]], here: int | None, width: int, *, dim: bool = False) -> list[Content]:
    """Return lines of source with numbers and colours; a mark shows the line `here`, `dim` lets the others recede."""
    code = highlight_python("\n".join(text for _, text in lines) + "\n#").split("\n")  # the comment keeps blank lines
    digits = max((len(str(number)) for number, _ in lines), default=1)
    drawn = []
    for (number, _), text in zip(lines, code, strict=False):
        there = number == here
        mark = Content.styled(f"{'▸' if there else ' '}{number:>{digits}} ", "bold $accent" if there else "$quiet")
        line = mark + (text.stylize("dim") if dim and not there else text)
        drawn.append(line.truncate(max(1, width), ellipsis=True))
    return drawn


def source_facts(
    where: HloSourceLocation,
    width: int,
    sources: Mapping[str, str],
    function: str = "",
    around: int = 1,
    library: HloSourceLocation | None = None,
) -> list[Content]:
    """Return a source location such as `…/model.py:88 in attention`, with its lines if the file is here as it was
    recorded: `sources` has the digests by path. Below it stands the line of the `library` that it calls, if any."""
    file, tail = safe(where.file), safe(f":{where.line}" + (f" in {function}" if function else ""))
    room = min(columns(file), max(8, width - columns(tail)))
    facts = [cell(file, room, "$code-name") + Content.styled(tail, "bold $code-name")]
    source = recorded_lines(*where, sources, around)
    indent = min((len(line) - len(line.lstrip()) for _, line in source if line.strip()), default=0)
    lines = [(number, line[indent:][:400]) for number, line in source if line.strip() or number == where.line]
    facts += number_lines(lines, where.line, width, dim=True)
    if not source:
        facts.append(Content.styled(f"  {_why_unread(where.file, sources)}", "$quiet"))
    if library is not None:
        words = Content.styled("  calls ", "$quiet")
        facts.append(words + cell(safe(f"{library.file}:{library.line}"), max(8, width - 8), "$text-muted"))
    return facts


def _why_unread(file: str, sources: Mapping[str, str]) -> str:
    """Return why no line of a file is shown, without revealing whether a file that was not recorded is here."""
    if file not in sources:
        return "its text was not recorded"
    return "the file is not here as it was recorded"


def lines_around(where: SourceLocation, sources: Mapping[str, str], around: int) -> Sequence[tuple[int, str]]:
    """Return the numbered lines of the file at `where`; none without a line, or if its file is not as recorded."""
    return recorded_lines(where.file, where.line, sources, around) if where.line is not None else ()


AROUND = 200
"""Lines above and below that the reader can scroll to."""


class SourceLines(TextDialog, keys="source"):
    CLASSES = "dialog help source-lines"

    def __init__(self, where: SourceLocation, sources: Mapping[str, str]) -> None:
        """`sources`: the digests that the session has of source files, by path."""
        super().__init__(location_in_full(where), keys=f"{key_of('source.copy')} copies the location")
        self._where = where
        self._unread = _why_unread(where.file, sources)
        self._lines = lines_around(replace(where, line=where.line or 1), sources, AROUND)

    def on_mount(self) -> None:
        box = self.query_one(VerticalScroll)
        index = next((at for at, (number, _) in enumerate(self._lines) if number == self._where.line), 0)
        self.call_after_refresh(lambda: box.scroll_to(y=max(0, index - box.size.height // 2), animate=False))

    def lines(self, width: int) -> list[Content]:
        if not self._lines:
            return [Content.styled(safe(f"{self._where.text}: {self._unread}"), "$text-muted")]
        return number_lines(self._lines, self._where.line, width)

    def action_copy(self) -> None:
        self.copy(self._where.text)
