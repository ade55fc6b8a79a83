"""Reads and changes settings of JAX by their public names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax


def config_value(name: str) -> Any:
    """Return a value of JAX's configuration; None if this version has no such setting."""
    return getattr(jax.config, name, None)


@contextmanager
def override(name: str, value: Any) -> Iterator[None]:
    """Change a setting inside the block, for all threads, because another thread makes the calls."""
    before = config_value(name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)
