# about: jax.debug.print in each pass of a jitted step, beside little work
# how: script
# expect: callback_in_step | host-transfer | host_work
import jax
import jax.numpy as jnp


@jax.jit
def advance(field, n):
    field = field * 0.99 + 0.01 * jnp.sin(field)
    jax.debug.print("step {n}: peak {e}", n=n, e=field.max())
    return field


field = jnp.sin(jnp.linspace(0, 6.28, 4096))
for n in range(4000):
    field = advance(field, n)
field.block_until_ready()
