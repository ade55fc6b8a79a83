"""Completion of a path while it is typed: the first Python file or folder that begins so; → takes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from textual.suggester import Suggester

from jaxprof.safe_text import safe

MOST = 2000
"""Entries of a folder that are looked at."""


class FileSuggester(Suggester):
    """Suggests from the folder that `directory` gives, for relative paths."""

    def __init__(self, directory: Callable[[], Path], *, folders_only: bool = False) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._directory = directory
        self._folders_only = folders_only

    async def get_suggestion(self, value: str) -> str | None:
        """The whole path, or None where nothing begins so."""
        return suggestion(value, self._directory(), folders_only=self._folders_only)


def suggestion(value: str, directory: Path, *, folders_only: bool = False) -> str | None:
    """What `value` may become: a folder with its slash, or a `.py` file. Names that are no plain text are left out."""
    if not value or value.startswith("-"):
        return None
    head, slash, begun = value.rpartition("/")
    folder = directory / Path(head + slash).expanduser() if slash else directory
    found: list[tuple[bool, str]] = []
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(MOST), entries, strict=False):
                name = entry.name
                if not name.startswith(begun) or (name.startswith(".") and not begun) or safe(name) != name:
                    continue
                if entry.is_dir():
                    found.append((True, name + "/"))
                elif name.endswith(".py") and not folders_only:
                    found.append((False, name))
    except (OSError, ValueError):
        return None
    return f"{head}{slash}{min(found)[1]}" if found else None
