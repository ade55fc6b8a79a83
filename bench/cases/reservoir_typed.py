# about: the carried time is a float32 array from the first call on
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def advance(time, state, kernel):
    def layer(state, order):
        return jnp.tanh(kernel @ state + jnp.sin(time * order) * state) - jnp.exp(-state) * time, None

    state, _ = jax.lax.scan(layer, state, jnp.arange(40.0))
    return time + jnp.float32(0.01), state


def run(steps):
    time, state = jnp.float32(0.0), jnp.ones((64, 256))
    kernel = 0.05 * jax.random.normal(jax.random.key(0), (64, 64))
    for _ in range(steps):
        time, state = advance(time, state, kernel)
    return time, state


print(run(int(300 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))[0])
