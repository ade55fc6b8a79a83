# about: vmap over images and filters makes one grouped convolution
# cause: slow batched form
# expect: grouped_convolution
# run: filtered
# mended: filtered_in_turn
# trial: map
# targets: h100, tpu-v5e
"""Each image is convolved with filters that another network made for it."""

import jax
from jax import lax


def convolve(image, filters):
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(image[None], filters, (1, 1), "SAME", dimension_numbers=dims)[0]  # <- cause


def filtered(images, filters):
    return jax.vmap(convolve)(images, filters)  # <- cause


def filtered_inputs(random):
    images = random.standard_normal((32, 48, 48, 16), dtype="float32")
    return images, 0.1 * random.standard_normal((32, 3, 3, 16, 16), dtype="float32")


def filtered_in_turn(images, filters):
    return lax.map(lambda pair: convolve(*pair), (images, filters))


filtered_in_turn_inputs = filtered_inputs
