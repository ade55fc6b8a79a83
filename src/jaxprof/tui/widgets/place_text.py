"""A line of somebody's program in words: `train.py:88`. Paths come from another process, or another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.safe_text import safe

if TYPE_CHECKING:
    from jaxprof.results.programs.places import Place


def place_text(where: Place | None, directory: str = "") -> str:
    """`train.py:88`, from the program's `directory`; empty where nothing is known."""
    return safe(where.short(directory)) if where is not None else ""


def place_in_full(where: Place | None) -> str:
    """With its whole path, and the function that the line is in."""
    if where is None:
        return ""
    return safe(where.text + (f" in {where.function}" if where.function else ""))
