"""Lines of source files that a program names, read with care: a session may name any path of any machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis import source_lines

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Place

LARGEST_BYTES = 8 << 20
"""Larger files are no source."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines around a place."""

    lines: tuple[tuple[int, str], ...]
    """Numbers, from 1, and texts; empty where the file cannot be read here."""
    modified_seconds: float | None
    """Unix time; None where there is no such file here."""


def excerpt(place: Place, around: int) -> Excerpt:
    """The line with `around` lines on each side. Only regular files are opened: a device or a pipe might never end."""
    try:
        status = Path(place.file).stat()
        if not Path(place.file).is_file() or status.st_size > LARGEST_BYTES:
            return Excerpt((), None)
    except (OSError, ValueError):
        return Excerpt((), None)
    return _read(place, around, status.st_mtime)


@lru_cache(maxsize=512)
def _read(place: Place, around: int, modified_seconds: float) -> Excerpt:
    return Excerpt(source_lines(place, around), modified_seconds)
