# about: frames of a camera, blurred by a small window
# cause: a convolution of each channel by itself
# expect: unvectorised
# run: blurred
# mended: blurred_written_out
import jax
import jax.numpy as jnp


def blurred(frames, window):
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(  # <- cause
        frames, window, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=frames.shape[-1]
    )


def blurred_inputs(random):
    return random.random((4, 256, 256, 8), dtype="float32"), random.random((5, 5, 1, 8), dtype="float32")


def blurred_written_out(frames, window):
    height, width = frames.shape[1:3]
    padded = jnp.pad(frames, ((0, 0), (2, 2), (2, 2), (0, 0)))
    return sum(padded[:, i : i + height, j : j + width] * window[i, j, 0] for i in range(5) for j in range(5))


blurred_written_out_inputs = blurred_inputs
