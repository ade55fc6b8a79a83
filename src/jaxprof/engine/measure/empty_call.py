"""Time the smallest call of a compiled function: what any call costs with this Python, this JAX and this machine."""

from __future__ import annotations

import time
from typing import Final

_CALLS: Final = 100
_BATCHES: Final = 60


def empty_call_seconds() -> float:
    """Return the CPU seconds of one call with one small array, which adds 1 to it.

    The figure is that of the quietest batch of calls, because whatever else runs only makes a call longer.
    """
    import jax

    call = jax.jit(lambda x: x + 1)
    x = jax.numpy.ones(4)

    def batch() -> float:
        began = time.thread_time()
        for _ in range(_CALLS):
            call(x)
        return (time.thread_time() - began) / _CALLS

    batch()  # compiles
    return min(batch() for _ in range(_BATCHES))
