# about: feature maps that are smoothed a few times, channels first
# cause: a convolution in a loop, in an order that XLA's library for CPUs does not take
# expect: unvectorised
# run: smoothed
# mended: smoothed_channels_last
import jax
import jax.numpy as jnp


def repeated(images, filters, order):
    def again(_, images):
        smooth = jax.lax.conv_general_dilated(images, filters, (1, 1), "SAME", dimension_numbers=order)  # <- cause
        return jnp.tanh(smooth / 100)

    return jax.lax.fori_loop(0, 3, again, images)


def smoothed(images, filters):
    return repeated(images, filters, ("NCHW", "OIHW", "NCHW"))


def smoothed_inputs(random):
    return random.random((2, 16, 64, 64), dtype="float32"), random.random((16, 16, 3, 3), dtype="float32")


def smoothed_channels_last(images, filters):
    last, spatial = images.transpose(0, 2, 3, 1), filters.transpose(2, 3, 1, 0)
    return repeated(last, spatial, ("NHWC", "HWIO", "NHWC")).transpose(0, 3, 1, 2)


smoothed_channels_last_inputs = smoothed_inputs
