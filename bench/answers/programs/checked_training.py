# about: jax_debug_nans was left on, so that each call waits and every result is looked at
# how: script
# expect: debug_settings
# allow: host_sync, dispatch_bound
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


@jax.jit
def update(w, x, y):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

    return jax.tree.map(lambda p, g: p - 0.01 * g, w, jax.grad(loss)(w))


x, y = jnp.ones((64, 32)), jnp.ones((64, 1))
w = [jnp.full((32, 64), 0.1, jnp.float32), jnp.full((64, 1), 0.1, jnp.float32)]
for _ in range(20_000):
    w = update(w, x, y)
print(w[1].mean())
