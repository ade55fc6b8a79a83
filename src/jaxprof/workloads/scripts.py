"""Find the programs in a folder that import JAX, by their text alone: nothing is imported, and reading is bounded."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path

MOST_ENTRIES = 2_000
MOST_READ = 200
"""Most files that are read, the newest first."""
HEAD_BYTES = 64 * 1024
"""Bytes that are read of each file, because imports stand at its beginning."""

_STRINGS = re.compile(rb"\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+jax(?:\.[\w.]+)?[ \t]+import\b"
    rb"|import[ \t]+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*jax(?:\.[\w.]+)?(?:[ \t]*(?:,|;|#|\r?$)|[ \t]+as\b))",
    re.MULTILINE,
)


def imports_jax(source: bytes) -> bool:
    """Return whether a statement of `source` imports jax or a module of it; one in a docstring does not count."""
    return b"jax" in source and _IMPORT.search(_STRINGS.sub(b"", source)) is not None


def scripts_with_jax(folder: Path) -> list[Path]:
    """Return the `*.py` files of `folder` that import jax, newest first; none if it cannot be read. Blocks."""
    dated: list[tuple[float, Path]] = []
    try:
        with os.scandir(folder) as entries:
            dated += [
                (entry.stat().st_mtime, Path(entry.path))
                for entry in islice(entries, MOST_ENTRIES)
                if entry.name.endswith(".py") and not entry.name.startswith(".") and entry.is_file()
            ]
    except OSError:
        return []
    return [path for _, path in sorted(dated, reverse=True)[:MOST_READ] if imports_jax(_head(path))]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""
