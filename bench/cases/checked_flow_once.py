# about: a first pass is checked for NaN under a context manager, the others are not
# verdict: -|device-bound|dispatch-bound
# forbid: debug_settings
import sys

import jax
import jax.numpy as jnp


@jax.jit
def flow(field):
    return field - 0.01 * jnp.tanh(field @ field.T) @ field


def run(turns):
    field = jnp.linspace(0.0, 1.0, 512 * 256).reshape(512, 256)
    with jax.debug_nans(True):
        field = flow(field)
    for _ in range(turns):
        field = flow(field)
    return field


print(run(int(400 * float(sys.argv[1] if len(sys.argv) > 1 else 1))).sum())
