"""Lines of Python files, with highlighting. A session may name any path, so files are opened with care."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.light_dataclass import frozen
from jaxprof.text import columns, safe, safe_lines
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import TextDialog
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.format import location_in_full

if TYPE_CHECKING:
    from jaxprof.events import SourceLocation
    from jaxprof.hlo.analysis.origin import HloSourceLocation


@lru_cache(maxsize=128)
def highlighted(source: str) -> Content:
    """Return `source` with its lines made safe and coloured as Python."""
    from textual.highlight import highlight  # late, because it would delay the first frame

    return highlight("\n".join(safe_lines(source.rstrip())), language="python")


LARGEST_BYTES = 8 << 20
"""Largest file, in bytes, that is opened: a larger one is not source code."""


@frozen
class Excerpt:
    """Lines around a source location."""

    lines: tuple[tuple[int, str], ...]
    """Line numbers, from 1, with their text; empty if the file cannot be read here."""
    modified_seconds: float | None
    """Modification time of the file as Unix time; None if there is no such file here."""


def excerpt(where: HloSourceLocation, around: int) -> Excerpt:
    """Return the line with `around` lines on each side. Opens only regular files: reading a device or a pipe might
    never end."""
    try:
        status = Path(where.file).stat()
    except (OSError, ValueError):
        return Excerpt((), None)
    return _read(where, around, status.st_mtime) if status.st_size <= LARGEST_BYTES else Excerpt((), None)


@lru_cache(maxsize=512)
def _read(where: HloSourceLocation, around: int, modified_seconds: float) -> Excerpt:
    from jaxprof.hlo.analysis.origin import source_lines  # late, because it would delay the first frame

    return Excerpt(source_lines(where, around), modified_seconds)


def numbered(lines: Sequence[tuple[int, str]], here: int | None, width: int, *, dim: bool = False) -> list[Content]:
    """Return lines of source with their numbers and colours, cut at `width`; a mark shows the line `here`, and `dim`
    lets the others recede."""
    code = highlighted("\n".join(text for _, text in lines) + "\n#").split("\n")  # the comment keeps blank lines
    digits = max((len(str(number)) for number, _ in lines), default=1)
    drawn = []
    for (number, _), text in zip(lines, code, strict=False):
        there = number == here
        mark = Content.styled(f"{'▸' if there else ' '}{number:>{digits}} ", "bold $accent" if there else "$quiet")
        line = mark + (text.stylize("dim") if dim and not there else text)
        drawn.append(line.truncate(max(1, width), ellipsis=True))
    return drawn


def source_facts(
    where: HloSourceLocation, width: int, recorded_seconds: float | None, function: str = "", around: int = 1
) -> list[Content]:
    """Return a source place such as `…/model.py:88 in attention`, with its lines when the file can be read here."""
    file, tail = safe(where.file), safe(f":{where.line}" + (f" in {function}" if function else ""))
    room = min(columns(file), max(8, width - columns(tail)))
    facts = [cell(file, room, "$code-name", cut="start") + Content.styled(tail, "bold $code-name")]
    source = excerpt(where, around)
    indent = min((len(line) - len(line.lstrip()) for _, line in source.lines if line.strip()), default=0)
    lines = [(number, line[indent:][:400]) for number, line in source.lines if line.strip() or number == where.line]
    facts += numbered(lines, where.line, width, dim=True)
    if source.modified_seconds is None:
        facts.append(Content.styled("  the file is not on this machine", "$quiet"))
    elif not source.lines:
        facts.append(Content.styled("  the file no longer has this line", "$warning"))
    elif recorded_seconds is not None and source.modified_seconds > recorded_seconds + 1:
        facts.append(Content.styled("  file changed since the recording: line may differ", "$warning"))
    return facts


def lines_around(where: SourceLocation, around: int) -> Sequence[tuple[int, str]]:
    """Return the numbered lines of the file at `where`; none if it has no line, or its file cannot be read here."""
    from jaxprof.hlo.analysis.origin import HloSourceLocation  # late, because it would delay the first frame

    return excerpt(HloSourceLocation(where.file, where.line), around).lines if where.line is not None else ()


AROUND = 200
"""Lines above and below that the reader can scroll to."""


class SourceLines(TextDialog, keys="source"):
    """Shows the source around a line."""

    CLASSES = "dialog help source-lines"

    def __init__(self, where: SourceLocation) -> None:
        super().__init__(location_in_full(where), keys=f"{key_of('source.copy')} copies the place")
        self._where = where
        self._lines = lines_around(replace(where, line=where.line or 1), AROUND)

    def on_mount(self) -> None:
        box = self.query_one(VerticalScroll)
        index = next((at for at, (number, _) in enumerate(self._lines) if number == self._where.line), 0)
        self.call_after_refresh(lambda: box.scroll_to(y=max(0, index - box.size.height // 2), animate=False))

    def lines(self, width: int) -> list[Content]:
        if not self._lines:
            words = f"{self._where.text} cannot be read here: the file may be on another machine, or have moved."
            return [Content.styled(safe(words), "$text-muted")]
        return numbered(self._lines, self._where.line, width)

    def action_copy(self) -> None:
        self.copy(self._where.text)
