# about: a module that computes a large table when it is imported
# verdict: - | device-bound | dispatch-bound
# path: modules
# expect: slow_import
# lines: slow_import@import
# forbid: *
# mended: star_survey_lazy
import sys

import jax
import jax.numpy as jnp
import star_catalogue  # <- import


@jax.jit
def smooth(light):
    kernel = jnp.exp(-(jnp.linspace(-2.0, 2.0, 129) ** 2))
    return jnp.convolve(light, kernel / kernel.sum(), mode="same")


light = jnp.asarray(star_catalogue.brightness(20_000))
for _ in range(int(30 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    light = smooth(light)
print(light[:3])
