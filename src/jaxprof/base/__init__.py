"""What every other package stands on: values, errors, units, text, files, limits, settings, processes, secrets."""

from __future__ import annotations

TYPE_CHECKING = False  # this file imports nothing, not even `typing`: a recorded program waits for its import
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__version__ = "0.1.0"


def lazy_names(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, whose names are loaded when they are first used. `home` maps each name to
    the module that defines it."""

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{package}.{home[name]}"), name)

    return load
