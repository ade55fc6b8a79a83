# about: jax.debug.print in each pass of a small jitted step
# verdict: host-bound | dispatch-bound | device-bound | -
# expect: callback_in_loop
# forbid: implicit_transfers, numpy_argument, host_sync, data_waits, op_by_op_loop, host_work
# lines: callback_in_loop@cause
# mended: heat_probe_seldom
import sys

import jax
import jax.numpy as jnp


@jax.jit
def diffuse(plate, turn):
    jax.debug.print("turn {turn}: hottest {top}", turn=turn, top=jnp.max(plate))
    return plate + 0.1 * (jnp.roll(plate, 1) - plate)


def simulate(turns):
    plate = jnp.zeros(2000).at[1000].set(100.0)
    for turn in range(turns):
        plate = diffuse(plate, turn)  # <- cause
    return plate


print(simulate(int(2500 * float(sys.argv[1] if len(sys.argv) > 1 else 1))).sum())
