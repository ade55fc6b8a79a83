# about: a library's scan runs outside any jit, with a function that the library makes anew in each call
# verdict: -|compile-bound|dispatch-bound|host-bound
# expect: recompile_in_loop
# forbid: closure_varies, host_sync
# lines: recompile_in_loop@cause
# advice-not: functools\.cache|the lambda
# needs: optax
# mended: quasi_newton_jitted
import sys

import jax
import jax.numpy as jnp
import optax


def energy(x):
    return jnp.sum((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2)


value_and_slope = jax.jit(jax.value_and_grad(energy))
optimizer = optax.scale_by_lbfgs()
place = jnp.zeros(200)
state = optimizer.init(place)
for _ in range(int(8 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    height, slope = value_and_slope(place)
    move, state = optimizer.update(slope, state, place)  # <- cause
    place = optax.apply_updates(place, jax.tree.map(lambda each: -1e-3 * each, move))
print(height)
