"""Time the smallest call of a compiled function: what any call costs with this Python, this JAX and this machine."""

from __future__ import annotations

import time
from typing import Final

_CALLS: Final = 100
_BATCHES: Final = 60


def empty_call_seconds(arrays: int, numbers: int) -> float:
    """Return the CPU seconds of one call with so many small arrays and Python numbers as arguments.

    It uses all the numbers, which have to reach the device, and one of the arrays. The figure is that of the quietest
    batch of calls, because whatever else runs only makes a call longer.
    """
    import jax

    call = jax.jit(lambda *values: sum(values[max(0, arrays - 1) :], 1))
    values = [*[jax.numpy.ones(4)] * arrays, *range(numbers)]

    def batch() -> float:
        began = time.thread_time()
        for _ in range(_CALLS):
            call(*values)
        return (time.thread_time() - began) / _CALLS

    batch()  # compiles
    return min(batch() for _ in range(_BATCHES))
