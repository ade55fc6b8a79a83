# about: the carried time is 0.0 in the first call and an array afterwards: the large step is compiled twice
# verdict: compile-bound | device-bound | -
# expect: weak_type_flips
# forbid: op_by_op_loop, many_tiny_jits, recompile_in_loop, host_sync, data_waits, host_work, dispatch_bound
# lines: weak_type_flips@cause
# advice-not: lax\.scan
# mended: reservoir_typed
import sys

import jax
import jax.numpy as jnp


@jax.jit
def advance(time, state, kernel):
    for order in range(24):
        state = jnp.tanh(kernel @ state + jnp.sin(time * order) * state) - jnp.exp(-state) * time
    return time + jnp.float32(0.01), state


def run(steps):
    time, state = 0.0, jnp.ones(64)
    kernel = 0.05 * jax.random.normal(jax.random.key(0), (64, 64))
    for _ in range(steps):
        time, state = advance(time, state, kernel)  # <- cause
    return time, state


print(run(int(300 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))[0])
