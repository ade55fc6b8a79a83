# about: the clock of the simulation is the number 0.0 at first and an array afterwards: the large step is compiled twice
# how: script
# expect: weak_type_flips
# allow: large_program, slow_tracing
import jax
import jax.numpy as jnp


def forces(state, t):
    position, velocity = state
    for stage in range(10):
        drag = 1e-3 * velocity * jnp.abs(velocity) * jnp.exp(-position[2] / (8000.0 + stage))
        thrust = jnp.array([0.0, 0.0, 30.0]) * jnp.exp(-t / (60.0 + stage))
        velocity = velocity + 1e-4 * (thrust - drag - jnp.array([0.0, 0.0, 9.81]))
    return velocity


@jax.jit
def runge_kutta(state, t, dt):
    position, velocity = state
    k1 = forces((position, velocity), t)
    k2 = forces((position + dt / 2 * k1, velocity), t + dt / 2)
    k3 = forces((position + dt / 2 * k2, velocity), t + dt / 2)
    k4 = forces((position + dt * k3, velocity), t + dt)
    return (position + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), k4), t + dt


state = (jnp.zeros(3), jnp.array([0.0, 0.0, 1.0]))
t = 0.0
dt = jnp.float32(0.01)
for _ in range(300):
    state, t = runge_kutta(state, t, dt)
print(state, t)
