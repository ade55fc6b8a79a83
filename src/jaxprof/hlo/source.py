"""The text of a module by its lines, and the tables in it that say which source lines its instructions came from.

A line index as a list costs more than the text of short lines that it indexes. Here only the number of lines before
each block of 64 KiB is kept; inside a block `str.count` and `str.find` run at memory speed (a few microseconds).

The four tables (files, functions, locations, stack frames) are printed between the `HloModule` line and the first
computation; `stack_frame_id` in an instruction's metadata is an index into the last one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

from jaxprof.base.files import is_own
from jaxprof.base.values import frozen
from jaxprof.hlo.text import STRING, unquote

_BLOCK = 1 << 16  # characters between two entries of the index; the lines within are counted when they are asked for


class Source:
    """An immutable text with its line numbers. Lines count from 1 and end with `\\n`."""

    __slots__ = ("_before", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._before: list[int] | None = None

    def _lines_before(self) -> list[int]:
        if self._before is None:
            text = self.text
            counts = (text.count("\n", at, at + _BLOCK) for at in range(0, len(text), _BLOCK))
            self._before = list(accumulate(counts, initial=1))
        return self._before

    def line(self, offset: int) -> int:
        """Return the number of the line that holds the character at `offset`."""
        block = min(max(offset, 0), len(self.text)) // _BLOCK
        return self._lines_before()[block] + self.text.count("\n", block * _BLOCK, offset)

    @property
    def line_count(self) -> int:
        """Lines in the text; a `\\n` at its very end begins no further one."""
        breaks = self._lines_before()[-1] - 1
        return breaks + (0 if not self.text or self.text.endswith("\n") else 1)

    def offset(self, line: int) -> int:
        """Return where line number `line` begins; the length of the text for a line after the last."""
        before = self._lines_before()
        if line <= 1:
            return 0
        # The break that ends the line before this one lies in the last block with fewer breaks before it.
        block = bisect_right(before, line - 1) - 1
        at = block * _BLOCK
        for _ in range(line - before[block]):
            line_end = self.text.find("\n", at)
            if line_end < 0:
                return len(self.text)
            at = line_end + 1
        return at

    def lines(self, first: int, count: int) -> list[str]:
        """Return at most `count` lines from number `first` on, without their line ends."""
        at = self.offset(first)
        lines: list[str] = []
        while len(lines) < count and at < len(self.text):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            lines.append(self.text[at:end])
            at = end + 1
        return lines


@frozen
class Problem:
    """A part of the text that could not be read, and what was expected there. The rest of the module is still read."""

    line: int
    """Line in the given file or text, counted from 1."""
    message: str
    text: str
    """The beginning of the text there."""
    cut_off: bool = False
    """Whether the text ends there, in the middle of something."""


class Frame(NamedTuple):
    """One call: a line of a source file. Lines count from 1; 0 and empty text mean unknown."""

    file: str
    function: str
    line: int


_NOWHERE = Frame("", "", 0)

_STARTING = re.compile(r"^<frozen |[/\\]jaxprof[/\\](?:engine|measure|program)[/\\]")
"""Files that start a program, and are no origin of anything in it."""


def own_and_library(stack: Iterable[Frame]) -> tuple[Frame | None, Frame | None]:
    """Return the innermost frame in a user's file, and below it the innermost one of the library that it calls, if any.
    In a stack without a user's file the first is the innermost frame; None without a file. Whatever shows a source line
    of a program chooses it here."""
    innermost: Frame | None = None
    for frame in stack:
        if frame.file and not _STARTING.search(frame.file):
            if is_own(frame.file):
                return frame, innermost
            innermost = innermost or frame
    return innermost, None


def own_frame(stack: Iterable[Frame]) -> Frame | None:
    return own_and_library(stack)[0]


_TITLE = re.compile(r"^[ \t]*(FileNames|FunctionNames|FileLocations|StackFrames)[ \t\r]*$", re.MULTILINE)
_NAMED = re.compile(rf"^[ \t]*(\d{{1,18}})[ \t]+({STRING})", re.MULTILINE | re.DOTALL)
_FIELDS = re.compile(r"^[ \t]*(\d{1,18})[ \t]+\{([^{}\n]*)\}", re.MULTILINE)
_FIELD = re.compile(r"(\w+)\s*=\s*(\d{1,18})\b")


_NAMED_INLINE = re.compile(r'source_file="([^"\\\n]+\.py)"')
_TABLES_END = re.compile(r"^(?:ENTRY |%|[\w.-]+ )[^\n]*\{$", re.MULTILINE)


def own_files(text: str) -> set[str]:
    """Return the Python files of the user's that a module in text names, in its table of files or in its metadata."""
    title = text.find("\nFileNames")
    if title < 0:
        files = set(_NAMED_INLINE.findall(text))
    else:
        first = _TABLES_END.search(text, title)
        files = set(Tables(text, title, first.start() if first is not None else len(text)).files.values())
    return {file for file in files if file.endswith(".py") and is_own(file)}


class Tables:
    """The tables in `text[start:end]`, read when a stack is first requested."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text: Final = text
        self._start: Final = start
        self.end = end
        """Offset at which the first computation begins; the reader sets it when it finds one."""

    @cached_property
    def _sections(self) -> Mapping[str, str]:
        part = self._text[self._start : self.end]
        titles = list(_TITLE.finditer(part))
        ends = [title.start() for title in titles[1:]] + [len(part)]
        return {title[1]: part[title.end() : end] for title, end in zip(titles, ends, strict=False)}

    def _names(self, title: str) -> Mapping[int, str]:
        return {int(number): unquote(raw) for number, raw in _NAMED.findall(self._sections.get(title, ""))}

    def _rows(self, title: str) -> Mapping[int, Mapping[str, int]]:
        return {
            int(number): {name: int(value) for name, value in _FIELD.findall(inside)}
            for number, inside in _FIELDS.findall(self._sections.get(title, ""))
        }

    @property
    def files(self) -> Mapping[int, str]:
        """Name of each file by its number."""
        return self._names("FileNames")

    @cached_property
    def frames(self) -> Mapping[int, tuple[Frame, int]]:
        """Place and parent (caller) number of each frame number; parent 0 means none.

        XLA prints a parent's number plus 1, so that 1 means none; a table in which a 0 occurs is read without that
        shift.
        """
        files, functions = self.files, self._names("FunctionNames")
        rows = self._rows("StackFrames")
        lines = {
            number: Frame(
                files.get(location.get("file_name_id", 0), ""),
                functions.get(location.get("function_name_id", 0), ""),
                location.get("line", 0),
            )
            for number, location in self._rows("FileLocations").items()
        }
        shift = 0 if any(row.get("parent_frame_id") == 0 for row in rows.values()) else 1
        return {
            number: (lines.get(row.get("file_location_id", 0), _NOWHERE), row.get("parent_frame_id", 0) - shift)
            for number, row in rows.items()
        }

    def stack(self, number: int) -> tuple[Frame, ...]:
        """Return the frames from `number` to the outermost caller. A cyclic table ends where it repeats."""
        return tuple(self.frames[frame][0] for frame in self._callers(number))

    def locations(self, number: int) -> tuple[int, ...]:
        """Return the numbers of the locations of these frames: two calls on one line have different ones."""
        return tuple(self._locations.get(frame, 0) for frame in self._callers(number))

    @cached_property
    def _locations(self) -> Mapping[int, int]:
        return {number: row.get("file_location_id", 0) for number, row in self._rows("StackFrames").items()}

    def _callers(self, number: int) -> list[int]:
        numbers: dict[int, None] = {}
        while number in self.frames and number not in numbers:
            numbers[number] = None
            number = self.frames[number][1]
        return list(numbers)
