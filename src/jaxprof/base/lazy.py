"""Load a package's names on first use, so that unused names cost nothing at start-up.

This module imports nothing, not even `typing`: a recorded program waits for its import.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package. `home` maps each name to the module that defines it."""

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{package}.{home[name]}"), name)

    return load
