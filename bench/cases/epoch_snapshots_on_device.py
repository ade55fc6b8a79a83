# about: the average is part of the jitted step
# verdict: device-bound
# forbid: *
import sys
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, donate_argnums=(0, 1))
def step(params, mean, number):
    params = {"w": params["w"].at[0].add(1e-3 * number), "b": params["b"] * 0.99}
    return params, jax.tree.map(lambda m, p: 0.99 * m + 0.01 * jnp.tanh(p), mean, params)


params = {"w": jnp.ones((1024, 4096)), "b": jnp.ones(4096)}
mean = jax.tree.map(jnp.copy, params)
for number in range(int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    params, mean = step(params, mean, number)
print(mean["w"][0, :3])
