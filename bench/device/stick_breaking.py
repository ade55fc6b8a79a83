# about: beta numbers by rejection, where their distribution function can be inverted
# cause: random bits
# expect: rejection_sampling
# run: weights
# mended: weights_inverted
# differs: other random numbers
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp


def weights(key, alpha):
    breaks = jax.random.beta(key, 1.0, alpha, (500, 256))  # <- cause
    rest = jnp.cumprod(1 - breaks, 1)
    return breaks * jnp.pad(rest, ((0, 0), (1, 0)), constant_values=1.0)[:, :-1]


def weights_inputs():
    return jax.random.key(0), jnp.float32(4.0)


def weights_inverted(key, alpha):
    breaks = 1 - jax.random.uniform(key, (500, 256)) ** (1 / alpha)
    rest = jnp.cumprod(1 - breaks, 1)
    return breaks * jnp.pad(rest, ((0, 0), (1, 0)), constant_values=1.0)[:, :-1]


weights_inverted_inputs = weights_inputs
