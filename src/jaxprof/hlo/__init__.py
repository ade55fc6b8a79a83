"""What XLA made of a program, read from text or from a proto, without jax.

`files.read_text(path)` gives the text, `parse.modules(text)` its `model.Module` values. While a million small values
are created, Python's garbage collector is suspended here, so that it does not traverse them again and again.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_lock = Lock()
_inside = 0
_was_enabled = False


@contextmanager
def not_collecting() -> Iterator[None]:
    """Disable the cyclic garbage collector, which takes a third of the time there and finds nothing. Safe for any
    thread."""
    global _inside, _was_enabled
    with _lock:
        if _inside == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _was_enabled:
                gc.enable()
