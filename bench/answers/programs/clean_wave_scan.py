# about: nothing: a wave equation as one scan over all its steps
# how: script
# expect: -
# allow: cache_off
import jax
import jax.numpy as jnp


@jax.jit
def simulate(u, v):
    def step(carry, _):
        u, v = carry
        laplace = sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u
        v = v + 0.1 * laplace
        u = u + 0.1 * v
        return (u, v), u[0, 0]

    return jax.lax.scan(step, (u, v), None, length=3000)


(u, v), probe = simulate(jnp.zeros((256, 256)).at[128, 128].set(1.0), jnp.zeros((256, 256)))
print(probe[-1], u.std())
