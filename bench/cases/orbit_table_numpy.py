# about: as orbit_table, with the rows of a NumPy array
# verdict: -|compile-bound|device-bound|dispatch-bound|host-bound
# forbid: iterated_array
import sys

import jax
import jax.numpy as jnp
import numpy as np


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
for x, y in np.asarray(places):
    lines.append(f"{x:.3f} {y:.3f}")
print(lines[-1])
