# about: vmap of a plain function, called in a loop without jit
# how: script
# expect: op_by_op_loop
import jax
import jax.numpy as jnp


def pull(body, others, masses):
    away = others - body
    distance = jnp.sqrt(jnp.sum(away**2, axis=-1) + 1e-3)
    return jnp.sum(masses[:, None] * away / distance[:, None] ** 3, axis=0)


key = jax.random.key(5)
position = jax.random.normal(key, (60, 3))
velocity = jnp.zeros((60, 3))
masses = jnp.ones(60)
for day in range(400):
    acceleration = jax.vmap(pull, in_axes=(0, None, None))(position, position, masses)
    velocity = velocity + 1e-3 * acceleration
    position = position + 1e-3 * velocity
print(position.std())
