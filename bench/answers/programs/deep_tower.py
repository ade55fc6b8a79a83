# about: each layer of a scan is checkpointed with nothing kept, so the forward pass is computed a second time
# how: run @:gradient --budget 1
# expect: rematerialisation
import jax
import jax.numpy as jnp


@jax.checkpoint
def block(x, w):
    return x + jnp.tanh(jnp.tanh(x @ w) @ w.T)


def gradient(ws, x):
    def loss(ws):
        y, _ = jax.lax.scan(lambda y, w: (block(y, w), None), x, ws)
        return jnp.mean(y**2)

    return jax.value_and_grad(loss)(ws)


def gradient_inputs():
    key = jax.random.key(0)
    return jax.random.normal(key, (8, 512, 512)) / 20, jax.random.normal(key, (256, 512))
