# about: a jitted update of a few numbers, called a hundred thousand times from Python
# how: script
# expect: dispatch_bound
import jax
import jax.numpy as jnp


@jax.jit
def control(state, wanted):
    value, integral, last = state
    error = wanted - value
    integral = integral + 0.01 * error
    push = 2.0 * error + 0.3 * integral + 0.05 * (error - last)
    return value + 0.01 * push, integral, error


state = (jnp.float32(0), jnp.float32(0), jnp.float32(0))
wanted = jnp.float32(1)
tick = 0
while tick < 120_000:
    state = control(state, wanted)
    tick += 1
print(state)
