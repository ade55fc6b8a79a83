"""Places in a program's source: what the events say as dicts, as values that can be compared, counted and shown.

A place of an edited or damaged file is None here, not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

_PARTS_KEPT = 2
"""Of a path outside the program's folder: the file and its folder, `flax/linear.py`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of source."""

    file: str
    line: int | None
    function: str = ""
    """In which it stands; empty where that is not known."""

    @property
    def text(self) -> str:
        """`/home/me/train.py:88`, the whole path."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def short(self, directory: str = "") -> str:
        """`train.py:88`: relative to the program's `directory`; of a file outside it, its last folder and name."""
        path = PurePath(self.file)
        if path.is_absolute():
            inside = directory and path.is_relative_to(directory)
            path = path.relative_to(directory) if inside else PurePath(*path.parts[-_PARTS_KEPT:])
        return str(path) if self.line is None else f"{path}:{self.line}"


def place(data: Mapping[str, Any] | None) -> Place | None:
    """The place in an event's dict (file, line, function); None where it names no file."""
    if not data:
        return None
    file, line, function = data.get("file"), data.get("line"), data.get("function")
    if not isinstance(file, str) or not file:
        return None
    return Place(file, line if isinstance(line, int) else None, function if isinstance(function, str) else "")
