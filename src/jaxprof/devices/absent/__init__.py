"""Devices that are not here: what XLA must know to compile for them, the wheels that enable it, and a lower bound of a
program's time there.

No jax is imported here: this package decides what to install and what to request; the engine's child compiles.
"""
