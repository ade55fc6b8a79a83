# about: every second element is set, which becomes a scatter in a scalar loop
# cause: kernel far below
# expect: slow_kernel
# run: upsample
# mended: upsample_stacked
import jax.numpy as jnp


def upsample(coarse, detail):
    """One level of a Haar wavelet, backwards."""
    signal = jnp.zeros(2 * coarse.size)
    signal = signal.at[::2].set((coarse + detail) / 2**0.5)  # <- cause
    return signal.at[1::2].set((coarse - detail) / 2**0.5)  # <- cause


def upsample_inputs(random):
    return tuple(random.standard_normal((2, 500_000), dtype="float32"))


def upsample_stacked(coarse, detail):
    return jnp.stack([coarse + detail, coarse - detail], 1).reshape(-1) / 2**0.5


upsample_stacked_inputs = upsample_inputs
