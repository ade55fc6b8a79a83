# about: nothing: a donated training step of large products, captured
# how: script --capture-steps 5
# expect: -
# allow: cache_off
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, donate_argnums=0)
def step(params, x, y):
    def loss(params):
        h = jnp.tanh(x @ params["a"])
        return jnp.mean((h @ params["b"] - y) ** 2)

    grads = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads)


params = {"a": jnp.full((768, 1024), 0.01, jnp.float32), "b": jnp.full((1024, 64), 0.01, jnp.float32)}
x, y = jnp.ones((512, 768)), jnp.ones((512, 64))
for _ in range(250):
    params = step(params, x, y)
print(params["b"].mean())
