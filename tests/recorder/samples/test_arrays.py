"""Counting the live arrays."""

from __future__ import annotations

import jax.numpy as jnp

from jaxprof.recorder.samples.arrays import EVERY_SECONDS, MOST_SHARE, ArrayCounter


class _Clock:
    """Every reading is `step` later."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_a_new_array_is_seen_with_its_bytes() -> None:
    counter = ArrayCounter(_Clock(0.0))
    before = counter.count(0.0)
    kept = jnp.ones((10, 10), jnp.float32)
    after = counter.count(EVERY_SECONDS)
    assert before is not None
    assert after is not None
    assert after.count - before.count == 1
    assert after.bytes - before.bytes == kept.nbytes == 400
    assert after.devices == {}  # the allocator of a CPU does not tell


def test_a_slow_count_is_followed_by_a_long_pause() -> None:
    counter = ArrayCounter(_Clock(0.1))
    assert counter.count(0.0) is not None
    kept = jnp.ones(3)
    assert counter.count(0.1 / MOST_SHARE - 1.0) is None
    assert counter.count(0.1 / MOST_SHARE) is not None
    del kept
