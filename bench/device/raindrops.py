# about: the loop keeps the map before each drop, so no update is in place and the map is copied each time
# cause: loop carry
# expect: whole_carry
# run: rain
# mended: rain_counted
# targets: h100, tpu-v5e
"""Drops fall on a large map one by one; how the last one changed it is reported."""

import jax
import jax.numpy as jnp


def rain(depth, sites):
    def drop(n, state):
        depth, _ = state
        return depth.at[sites[n]].add(1.0), depth  # <- cause

    depth, before = jax.lax.fori_loop(0, sites.size, drop, (depth, depth))  # <- cause
    return depth, jnp.sum(depth - before)


def rain_inputs(random):
    return random.integers(0, 4, 1 << 20).astype("float32"), random.integers(0, 1 << 20, 200, dtype="int32")


def rain_counted(depth, sites):
    depth = jax.lax.fori_loop(0, sites.size, lambda n, depth: depth.at[sites[n]].add(1.0), depth)
    return depth, 1.0


rain_counted_inputs = rain_inputs
