"""Notices when a program has imported jax, without importing it and without appearing in its tracebacks.

A finder stands first in `sys.meta_path` and leaves the work to jax's real finder. A Python function of ours on the
stack while jax's modules are executed would show: a failing import (a jaxlib of another version) prints every frame on
the way. So the execution, and our callback after it, are called from a chain of C functions, which have no frames. The
finder removes itself once jax is imported. A mere `importlib.util.find_spec("jax")` changes nothing.
"""

from __future__ import annotations

import sys
import time

# In C: functools.py would import types, which may be another one in the program's folder.
from _functools import partial  # type: ignore[import-not-found]
from _operator import call

TYPE_CHECKING = False  # part of the program's start: imports only what Python's start-up does, so no `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

NAME = "jax"


class JaxFinder:
    """Calls `on_imported(seconds)` in the thread that imported jax, at the end of the import."""

    def __init__(self, on_imported: Callable[[float], object]) -> None:
        self._on_imported = on_imported
        self._looking = False
        self._began = 0.0

    def install(self) -> None:
        """Begin to watch. jax must not have been imported yet."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Stop watching; may be called twice."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Ask the other finders for jax, and for nothing else."""
        if name != NAME or self._looking:
            return None
        spec: ModuleSpec | None = None
        self._looking = True
        try:
            for other in list(sys.meta_path):
                find = getattr(other, "find_spec", None)
                if other is not self and find is not None:
                    spec = find(name, path, target)
                if spec is not None:
                    break
        finally:
            self._looking = False
        # jax.py is not JAX: it stands in the program's folder, and shadows it
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        """Overlay two methods of `loader`, which belongs to this spec alone, during this import."""
        create, execute = loader.create_module, loader.exec_module

        def create_module(spec: ModuleSpec) -> ModuleType:
            module = create(spec) or type(sys)(spec.name)
            steps: tuple[Callable[[], object], ...] = (partial(execute, module), on_import)
            # dict.fromkeys(map(call, steps), module) calls the steps one after the other, in C.
            loader.exec_module = partial(dict.fromkeys, map(call, steps))
            self._began = time.monotonic()
            return module

        def on_import() -> None:
            del loader.create_module, loader.exec_module
            self.remove()
            self._on_imported(time.monotonic() - self._began)

        loader.create_module = create_module
