"""JAX's transfer guard in a program that is recorded, set to log. Whoever started the program counts the lines.

It is set in JAX's configuration and not in the environment, which the program's own children would inherit. A guard
that the user has set stays as it is.
"""

from __future__ import annotations

import os
import sys
from typing import Final

LOGS: Final = frozenset({"log", "log_explicit"})
_NAMES: Final = ("", "_host_to_device", "_device_to_device", "_device_to_host")
_LEVEL: Final = "TF_CPP_MIN_LOG_LEVEL"
"""Of XLA's log; the guard's lines are warnings, which 2 and more leave out. jax sets it to 1 where nobody has."""


def log_transfers() -> str:
    """Switches it on; gives what keeps copies from being counted, in words, or nothing."""
    config = sys.modules["jax"].config
    found = {name: getattr(config, name, None) for name in (f"jax_transfer_guard{name}" for name in _NAMES)}
    own = {name: value for name, value in found.items() if value is not None}
    if not own:
        config.update("jax_transfer_guard", "log")
    silent = [f"{name}={value}" for name, value in own.items() if value not in LOGS]
    level = os.environ.get(_LEVEL, "")
    if level.isdigit() and int(level) > 1:
        silent.append(f"{_LEVEL}={level}")
    return f"the program has set {', '.join(silent)}" if silent else ""
