"""Find the programs in a folder that import JAX, and the functions of a file, by their text alone: nothing is imported,
and reading is bounded."""

from __future__ import annotations

import ast
import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

from jaxprof.base.values import frozen

MOST_ENTRIES = 2_000  # a folder may hold a million files
MOST_READ = 200
"""Most files that are read, the newest first."""
HEAD_BYTES = 64 * 1024
"""Bytes that are read of each file, because imports stand at its beginning."""

MOST_SOURCE_BYTES = 1024 * 1024
"""Longest file whose functions are listed."""

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
    found: list[Path] = []
    for _, path in sorted(dated, reverse=True)[:MOST_READ]:
        with suppress(OSError), path.open("rb") as file:
            if imports_jax(file.read(HEAD_BYTES)):
                found.append(path)
    return found


@frozen
class SourceFunction:
    """A function at the top of a file, as its text has it."""

    name: str
    parameters: str
    """Its parameters as they are written: `x, *, n=3`."""
    description: str
    """First line of its docstring."""


def functions_of(path: Path) -> list[SourceFunction]:
    """Return the public functions at the top of a Python file; none if it cannot be read or parsed. Blocks."""
    try:
        with path.open("rb") as file:
            tree = ast.parse(file.read(MOST_SOURCE_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        SourceFunction(
            node.name,
            ast.unparse(node.args),
            (ast.get_docstring(node) or "").partition("\n")[0],
        )
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
