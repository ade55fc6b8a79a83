# about: jax_debug_nans was left on for the whole program
# verdict: host-bound | dispatch-bound | device-bound | copy-bound | -
# expect: debug_settings
# forbid: large_program, recompile_in_loop
# mended: checked_flow_once
import sys

import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


@jax.jit
def flow(field):
    return field - 0.01 * jnp.tanh(field @ field.T) @ field


def run(turns):
    field = jnp.linspace(0.0, 1.0, 128 * 64).reshape(128, 64)
    for _ in range(turns):
        field = flow(field)
    return field


print(run(int(6000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))).sum())
