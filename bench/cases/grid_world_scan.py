# about: the environment is in jax too: one scan over many walkers
# verdict: - | device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


def step(state, _):
    x, y, weights = state
    x = x + 0.1 * jnp.tanh(weights[0] * x + weights[1] * y)
    return (x, 0.9 * y + x, weights), None


@jax.jit
def episode(x, weights):
    return jax.lax.scan(step, (x, jnp.zeros_like(x), weights), length=steps)[0][0]


steps = int(4000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
print(episode(jnp.linspace(-1.0, 1.0, 50_000), jnp.array([-0.5, 0.1]))[:3])
