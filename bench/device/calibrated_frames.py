# about: one NumPy constant in float64 widens all that follows
# cause: float64
# expect: float64
# run: calibrate
# mended: calibrate_narrow
# targets: h100
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
GAIN = np.linspace(0.9, 1.1, 640)


def clean(frames, gain):
    flat = frames * gain  # <- cause
    wavy = jnp.exp(-(flat**2)) * jnp.cos(flat) + jnp.tanh(flat)  # <- cause
    return jnp.mean(wavy, 0)  # <- cause


@jax.jit
def calibrate(frames):
    return clean(frames, GAIN)  # <- cause


def calibrate_inputs(random):
    return random.random((8, 480, 640), dtype="float32")


@jax.jit
def calibrate_narrow(frames):
    return clean(frames, GAIN.astype("float32"))


calibrate_narrow_inputs = calibrate_inputs
