# about: it prints every five hundredth turn, from a branch; the plate is so large that the device is the limit
# verdict: device-bound | -
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def diffuse(plate, turn):
    def tell():
        jax.debug.print("turn {turn}: hottest {top}", turn=turn, top=jnp.max(plate))

    jax.lax.cond(turn % 500 == 0, tell, lambda: None)
    return plate + 0.1 * (jnp.roll(plate, 1, axis=0) - jnp.sin(plate))


def simulate(turns):
    plate = jnp.zeros((1000, 2000)).at[500].set(100.0)
    for turn in range(turns):
        plate = diffuse(plate, turn)
    return plate


print(simulate(int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))).sum())
