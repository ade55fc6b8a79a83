# about: as quasi_newton, with the library's update under one jit
# verdict: -|compile-bound|device-bound|dispatch-bound|host-bound
# forbid: recompile_in_loop
# needs: optax
import sys

import jax
import jax.numpy as jnp
import optax


def energy(x):
    return jnp.sum((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2)


value_and_slope = jax.jit(jax.value_and_grad(energy))
optimizer = optax.scale_by_lbfgs()
update = jax.jit(optimizer.update)
place = jnp.zeros(200)
state = optimizer.init(place)
for _ in range(int(8 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    height, slope = value_and_slope(place)
    move, state = update(slope, state, place)
    place = optax.apply_updates(place, jax.tree.map(lambda each: -1e-3 * each, move))
print(height)
