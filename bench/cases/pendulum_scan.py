# about: all steps of many pendulums in one call
# verdict: - | device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp

steps = int(6_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))


def step(state, _):
    angle, speed = state
    speed = speed - 0.01 * jnp.sin(angle)
    return (angle + 0.01 * speed, speed), None


@jax.jit
def simulate(state):
    return jax.lax.scan(step, state, length=steps)[0]


state = (jnp.linspace(0.0, 1.0, 100_000), jnp.zeros(100_000))
print(simulate(state)[0][:3])
