"""Code that creates a million small values does so without Python's garbage collector, which would traverse them again
and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Iterator[None]:
    """Disable the cyclic garbage collector, which would take a third of the time and find nothing. If several threads
    do so at once, the first that ends may enable it for all, which only makes the others slower."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
