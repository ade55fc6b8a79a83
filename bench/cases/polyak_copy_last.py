# about: the same with a copy of what is used later
# verdict: device-bound
# forbid: *
import functools
import sys

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, donate_argnums=0)
def step(params, x):
    gradient = jax.grad(lambda params: jnp.mean((x @ params["a"] @ params["b"]) ** 2))(params)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradient)


params = {"a": jnp.ones((32, 4096)) / 64, "b": jnp.ones((4096, 512)) / 64}
x = jnp.ones((2, 32))
previous = None
count = int(120 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
for number in range(count):
    if number == count - 1:
        previous = jax.tree.map(jnp.copy, params)
    params = step(params, x)
print(params["a"].sum(), previous["b"].sum())
