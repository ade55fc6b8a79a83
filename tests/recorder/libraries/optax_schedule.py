"""Plain JAX with an optax chain and a schedule: one function, compiled once, called often."""

import jax
import jax.numpy as jnp
import optax

schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-1, 5, 20)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))


@jax.jit
def update(params, state):
    gradients = jax.grad(lambda p: ((p["w"] - 3.0) ** 2).sum())(params)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state


params = {"w": jnp.zeros(4)}
state = optimizer.init(params)
for _ in range(20):
    params, state = update(params, state)
print(f"{params['w'][0]:.2f}")
