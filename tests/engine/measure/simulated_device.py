"""A device on a clock of its own: calls return at once, one program runs after the other, and results are there later.

Every wait moves the clock, so that a wait left out is a wrong figure, exactly and on every machine.
"""

import jax
import numpy as np

CALL_SECONDS = 0.001
"""Until a call returns."""
PROGRAM_SECONDS = 0.01
"""What a program takes on the device."""


class SimulatedDevice:
    """Makes results, and keeps all that it made."""

    def __init__(self):
        self.now = 0.0
        self.idle_from = 0.0
        self.made = []

    def clock(self):
        return self.now

    def call(self, *_, results=1, together=True):
        """One call: an array, or a tuple of so many; those of one program become ready `together`, others one by
        one, the last one first."""
        self.now += CALL_SECONDS
        done_at = self.idle_from = max(self.now, self.idle_from) + PROGRAM_SECONDS
        arrays = [Result(self, done_at if together else done_at - index * 1e-3) for index in range(results)]
        self.made += arrays
        return arrays[0] if results == 1 else tuple(arrays)

    def under_way(self):
        """How many of the results are not there yet."""
        return sum(not result.is_ready() for result in self.made)


class Result:
    """What looks like an array to the code that waits for it."""

    nbytes = 4
    is_fully_addressable = True
    dtype = np.dtype(np.float32)

    def __init__(self, device, done_at):
        self._device = device
        self._done_at = done_at

    @property
    def __class__(self):  # for isinstance
        return jax.Array

    def devices(self):
        return set()

    def is_ready(self):
        return self._device.now >= self._done_at

    def block_until_ready(self):
        self._device.now = max(self._device.now, self._done_at)
        return self

    def __array__(self, *_, **__):
        self.block_until_ready()
        return np.zeros(1, np.float32)

    def unsafe_buffer_pointer(self):
        return id(self)
