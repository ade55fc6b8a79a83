"""Stand-ins for the modules that the catalogue's files name at their top, so that listing workloads imports none.

The process that draws the screen reads those files, and must load neither numpy nor jax. Until a variant is built,
using a stand-in imports its module. `load_modules` then replaces the stand-ins by the modules themselves, so that a
function that is timed or traced contains none.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class DeferredModule:
    """Stands for the module called `module_name`."""

    def __init__(self, module_name: str) -> None:
        self.module_name = module_name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self.module_name), attribute)


def load_modules(function: Callable[..., Any], *, with_jax: bool) -> None:
    """Replace the stand-ins in the file of `function` by their modules; without `with_jax` only numpy, because a NumPy
    run does not import JAX."""
    names: dict[str, Any] = getattr(function, "__globals__", {})
    for name, value in list(names.items()):
        if type(value) is DeferredModule and (with_jax or value.module_name == "numpy"):
            names[name] = import_module(value.module_name)
