"""What XLA made of a program, read from text or from a proto, without jax.

`read.files.read_text(path)` gives the text, `read.parse.modules(text)` its `model.Module` values. Code that creates a
million small values does so under `not_collecting`, so that Python's garbage collector does not traverse them again and
again.
"""

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
