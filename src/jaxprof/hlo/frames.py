"""The four tables of a module that say where its instructions came from: files, functions, locations, stack frames.

They are printed between the `HloModule` line and the first computation; `stack_frame_id` in an instruction's metadata
is an index into the last one.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from jaxprof.hlo.read.syntax import STRING, unquote

if TYPE_CHECKING:
    from collections.abc import Mapping


class Frame(NamedTuple):
    """One call: a place in a source file. Lines count from 1; 0 and empty text mean unknown."""

    file: str
    function: str
    line: int


_NOWHERE: Final = Frame("", "", 0)

_INSTALLED = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3\.\d+[/\\]|^<frozen "
    r"|[/\\]jaxprof[/\\](?:engine|measure|program)[/\\]"
)
"""Files of installed packages, of Python itself, and of the process in which jaxprof compiles."""


@lru_cache(maxsize=4096)
def is_own(file: str) -> bool:
    """Return whether the file is the user's rather than an installed package's. A notebook cell is the user's."""
    return _INSTALLED.search(file) is None


def own_frame(stack: tuple[Frame, ...]) -> Frame | None:
    """Return the innermost frame in a user's file; in a stack without one the innermost frame; None without a file."""
    innermost: Frame | None = None
    for frame in stack:
        if frame.file:
            if is_own(frame.file):
                return frame
            innermost = innermost or frame
    return innermost


_TITLE = re.compile(r"^[ \t]*(FileNames|FunctionNames|FileLocations|StackFrames)[ \t\r]*$", re.MULTILINE)
_NAMED = re.compile(rf"^[ \t]*(\d{{1,18}})[ \t]+({STRING})", re.MULTILINE | re.DOTALL)
_FIELDS = re.compile(r"^[ \t]*(\d{1,18})[ \t]+\{([^{}\n]*)\}", re.MULTILINE)
_FIELD = re.compile(r"(\w+)\s*=\s*(\d{1,18})\b")


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

    @cached_property
    def frames(self) -> Mapping[int, tuple[Frame, int]]:
        """Place and parent (caller) number of each frame number; parent 0 means none.

        XLA prints a parent's number plus 1, so that 1 means none; a table in which a 0 occurs is read without that
        shift.
        """
        files, functions = self._names("FileNames"), self._names("FunctionNames")
        rows = self._rows("StackFrames")
        places = {
            number: Frame(
                files.get(location.get("file_name_id", 0), ""),
                functions.get(location.get("function_name_id", 0), ""),
                location.get("line", 0),
            )
            for number, location in self._rows("FileLocations").items()
        }
        shift = 0 if any(row.get("parent_frame_id") == 0 for row in rows.values()) else 1
        return {
            number: (
                places.get(row.get("file_location_id", 0), _NOWHERE),
                row.get("parent_frame_id", 0) - shift,
            )
            for number, row in rows.items()
        }

    def stack(self, number: int) -> tuple[Frame, ...]:
        """Return the frames from `number` to the outermost caller. A cyclic table ends where it repeats."""
        frames: list[Frame] = []
        seen: set[int] = set()
        while number in self.frames and number not in seen:
            seen.add(number)
            frame, number = self.frames[number]
            frames.append(frame)
        return tuple(frames)
