# about: a coin for each pixel and each of 32 frames, of which each takes 32 random bits
# cause: random bits
# expect: random_bits
# run: dithered
# mended: dithered_bits
# differs: other random numbers
import jax
import jax.numpy as jnp


def dithered(image, key):
    """Mean of 32 frames, in each of which half of the pixels are dark."""

    def frame(total, key):
        coin = jax.random.bernoulli(key, 0.5, image.shape)  # <- cause
        return total + jnp.where(coin, image, 0.0), None

    return jax.lax.scan(frame, jnp.zeros_like(image), jax.random.split(key, 32))[0] / 32  # <- cause


def dithered_inputs(random):
    return random.random((512, 512), dtype="float32"), jax.random.key(9)


def dithered_bits(image, key):
    bits = jax.random.bits(key, image.shape)

    def frame(total, n):
        coin = bits >> n & 1 == 1
        return total + jnp.where(coin, image, 0.0), None

    return jax.lax.scan(frame, jnp.zeros_like(image), jnp.arange(32, dtype=jnp.uint32))[0] / 32


dithered_bits_inputs = dithered_inputs
