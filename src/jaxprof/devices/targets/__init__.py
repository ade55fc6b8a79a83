"""Devices that are not here: what XLA must know to compile for them, the wheels that enable it, and a lower bound of a
program's time there.

No jax is imported here: this package decides what to install and what to request; the engine's child compiles.
"""

from __future__ import annotations

from jaxprof.devices.targets.chips import CHIPS, Chip, chip
from jaxprof.devices.targets.exchange import Exchange, exchange
from jaxprof.devices.targets.machine import (
    HOSTS,
    TORI,
    Host,
    Level,
    Machine,
    Target,
    Torus,
    machine_for,
    machine_of,
    parse_mesh,
    parse_target,
    parse_targets,
)
from jaxprof.devices.targets.step import StepTime, bound_of, exchanges, least_kernel_seconds, step_time

__all__ = [
    "CHIPS", "HOSTS", "TORI", "Chip", "Exchange", "Host", "Level", "Machine", "StepTime", "Target", "Torus", "bound_of",
    "chip", "exchange", "exchanges", "least_kernel_seconds", "machine_for", "machine_of", "parse_mesh", "parse_target",
    "parse_targets", "step_time",
]  # fmt: skip
