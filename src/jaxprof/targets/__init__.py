"""Devices that are not here: what XLA must know to compile for them, and the wheels that let it.

No jax in this room: it says what to install and what to ask for; the engine's child does the compiling. Whatever
comes of it is an estimate, and is called one.
"""

from __future__ import annotations

from jaxprof.targets.chips import CHIPS, Chip, chip
from jaxprof.targets.spec import Target, parse_target, parse_targets

__all__ = ["CHIPS", "Chip", "Target", "chip", "parse_target", "parse_targets"]
