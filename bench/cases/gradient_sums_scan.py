# about: the gradients are added by a scan in the compiled step
# verdict: device-bound
# forbid: *
import functools
import sys

import jax
import jax.numpy as jnp

PARTS = 4


@functools.partial(jax.jit, donate_argnums=0)
def step(params, x):
    def add(total, part):
        gradient = jax.grad(lambda params: jnp.mean((part @ params["a"] @ params["b"]) ** 2))(params)
        return jax.tree.map(jnp.add, total, gradient), None

    total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), x)
    return jax.tree.map(lambda p, g: p - 1e-3 / PARTS * g, params, total)


params = {"a": jnp.ones((32, 4096)) / 64, "b": jnp.ones((4096, 512)) / 64}
x = jnp.ones((PARTS, 2, 32))
for _ in range(int(30 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    params = step(params, x)
print(params["a"].sum())
