# about: parameters are copied in each step, beside a small step that donates them; only the last copy is used
# verdict: device-bound
# expect: large_operations
# forbid: *
# lines: large_operations@cause
# mended: polyak_copy_last
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
for _ in range(int(120 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    previous = jax.tree.map(jnp.copy, params)  # <- cause
    params = step(params, x)
print(params["a"].sum(), previous["b"].sum())
