# about: each image needs one of five augmentations, and under vmap all five are computed for each
# cause: both branches
# expect: both_branches
# run: augment
# mended: augment_one_by_one
# trial: map
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates


def blur(image):
    spectrum = jnp.fft.rfft2(image)
    fall = jnp.exp(-0.01 * (jnp.fft.fftfreq(128, 1 / 128)[:, None] ** 2 + jnp.arange(65.0) ** 2))
    return jnp.fft.irfft2(spectrum * fall)


def swirl(image):
    y, x = jnp.mgrid[-1:1:128j, -1:1:128j]
    angle = jnp.exp(-(x**2 + y**2))
    turned = x * jnp.cos(angle) - y * jnp.sin(angle), x * jnp.sin(angle) + y * jnp.cos(angle)
    return map_coordinates(image, [63.5 * (turned[1] + 1), 63.5 * (turned[0] + 1)], order=1, mode="nearest")


def sharpen(image):
    for _ in range(8):
        image = image + 0.1 * (image - (jnp.roll(image, 1, 0) + jnp.roll(image, -1, 0)) / 2)
    return image


def gamma(image):
    return jnp.clip(jnp.exp(0.8 * jnp.log(jnp.abs(image) + 1e-3)), 0, 1)


def keep(image):
    return image


CHOICES = [blur, swirl, sharpen, gamma, keep]


def one(choice, image):
    return jax.lax.switch(choice, CHOICES, image)  # <- cause


augment = jax.vmap(one)  # <- cause


def augment_inputs(random):
    return random.choice(5, 32, p=[0.05, 0.05, 0.1, 0.2, 0.6]).astype("int32"), random.random(
        (32, 128, 128), dtype="float32"
    )


def augment_one_by_one(choices, images):
    return jax.lax.map(lambda pair: one(*pair), (choices, images))


augment_one_by_one_inputs = augment_inputs
