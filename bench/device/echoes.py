# about: the echoes of a hall added to a recording, term by term
# cause: a long convolution
# expect: direct_convolution
# run: in_hall
# mended: in_hall_by_fft
import jax
import jax.numpy as jnp


def in_hall(sound, response):
    wet = jnp.convolve(sound, response, mode="same")  # <- cause
    return 0.7 * sound + 0.3 * wet / jnp.abs(wet).max()


def in_hall_inputs(random):
    response = random.standard_normal(3001, dtype="float32") * 0.998 ** jnp.arange(3001.0)
    return random.standard_normal(100_000, dtype="float32"), response.astype("float32")


def in_hall_by_fft(sound, response):
    wet = jax.scipy.signal.fftconvolve(sound, response, mode="same")
    return 0.7 * sound + 0.3 * wet / jnp.abs(wet).max()


in_hall_by_fft_inputs = in_hall_inputs
