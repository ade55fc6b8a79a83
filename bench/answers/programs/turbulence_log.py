# about: jax.debug.print in each pass of a jitted step, beside little work
# how: script
# expect: callback_in_loop | host_transfer
import jax
import jax.numpy as jnp


@jax.jit
def advance(field, n):
    jax.debug.print("step {n}: energy {e}", n=n, e=jnp.sum(field**2))
    return field + 0.01 * jnp.sin(field)


field = jnp.sin(jnp.linspace(0, 6.28, 4096))
for n in range(4000):
    field = advance(field, n)
field.block_until_ready()
