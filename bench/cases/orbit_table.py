# about: the rows of a jax array are taken one by one, once, to be written
# verdict: -|compile-bound|device-bound|dispatch-bound|host-bound
# expect: iterated_array
# forbid: many_tiny_jits, op_by_op_loop, host_work
# lines: iterated_array@cause
# mended: orbit_table_numpy
import sys

import jax
import jax.numpy as jnp


@jax.jit
def orbits(angles):
    def move(state, _):
        place, speed = state
        speed = speed - 0.01 * place / jnp.linalg.norm(place, axis=-1, keepdims=True) ** 3
        return (place + 0.01 * speed, speed), None

    place = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)
    speed = jnp.stack([-jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return jax.lax.scan(move, (place, speed), length=int(200 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))[0][0]


places = orbits(jnp.linspace(0.0, 6.28, 500))
lines = []
for x, y in places:  # <- cause
    lines.append(f"{x:.3f} {y:.3f}")
print(lines[-1])
