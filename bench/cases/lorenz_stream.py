# about: a generator that yields states computes each of them operation by operation
# verdict: dispatch-bound | host-bound
# expect: op_by_op_loop
# forbid: host_sync, data_waits, dispatch_bound, arrays_grow, host_work
# lines: op_by_op_loop@cause
# advice-not: jax\.jit on .?`?stream
# mended: kalman_filter_scan
import itertools
import sys

import jax.numpy as jnp


def stream(state, dt=0.01):
    while True:
        x, y, z = state  # <- cause
        derivative = jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])  # <- cause
        state = state + dt * derivative  # <- cause
        yield state


def longest(count):
    norm = jnp.zeros(())
    for state in itertools.islice(stream(jnp.array([1.0, 1.0, 1.0])), count):  # <- cause
        norm = jnp.maximum(norm, jnp.sum(state**2))  # <- cause
    return norm


print(longest(int(5000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
