"""What XLA made of a program, read from text or from a proto, without jax.

`files.read_text(path)` gives the text, `parse.modules(text)` its `model.Module` values. While a million small values
are created, Python's garbage collector is suspended here, so that it does not traverse them again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Iterator[None]:
    """Disable the cyclic garbage collector, which takes a third of the time there and finds nothing. If several threads
    are here at once, the first that ends may enable it for all: they are then slower, and nothing else."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
