# about: the backward pass of a max pooling selects and scatters, window by window
# cause: backward
# expect: costly_backward
# run: gradient
# mended: gradient_reshaped
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp
from jax import lax


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")  # <- cause


def energy(images, mixing):
    return jnp.mean(jnp.tanh(pool(images) @ mixing) ** 2)  # <- cause


@jax.jit
def gradient(images, mixing):
    return jax.grad(energy, argnums=(0, 1))(images, mixing)  # <- cause


def gradient_inputs(random):
    images = random.standard_normal((16, 64, 64, 32), dtype="float32")
    return images, random.standard_normal((32, 32), dtype="float32") / 6


def energy_reshaped(images, mixing):
    n, h, w, c = images.shape
    pooled = images.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))
    return jnp.mean(jnp.tanh(pooled @ mixing) ** 2)


@jax.jit
def gradient_reshaped(images, mixing):
    return jax.grad(energy_reshaped, argnums=(0, 1))(images, mixing)


gradient_reshaped_inputs = gradient_inputs
