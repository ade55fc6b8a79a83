"""The text of a line that a finding is about, where the file can still be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.origin import HloSourceLocation, source_lines

if TYPE_CHECKING:
    from jaxprof.events import SourceLocation

_LONGEST: Final = 100


def code_line(place: SourceLocation | None, recorded_seconds: float | None) -> str:
    """The line without its indentation; empty where the file is not here, is no Python file, or was changed after
    `recorded_seconds` (Unix time): the line may be another one by now.

    A session can come from anywhere and name any file; only what looks like Python source is read.
    """
    if place is None or place.line is None or not place.file.endswith(".py") or not recorded_seconds:
        return ""
    if not _is_older(place.file, recorded_seconds):
        return ""
    lines = source_lines(HloSourceLocation(place.file, place.line))
    return lines[-1][1].strip()[:_LONGEST] if lines else ""


def _is_older(file: str, recorded_seconds: float) -> bool:
    import os

    try:
        return os.stat(file).st_mtime <= recorded_seconds
    except (OSError, ValueError):
        return False
