# about: one transition is written into a replay buffer that is not donated, so the whole buffer is copied
# cause: not donated
# expect: lost_donation
# run: remember
# mended: remember_donated
# trial: donate
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp


@jax.jit  # <- cause
def remember(buffer, observation, at):  # <- cause
    return jax.lax.dynamic_update_index_in_dim(buffer, jnp.clip(observation, -10, 10), at, 0)  # <- cause


def remember_inputs(random):
    return jnp.zeros((100_000, 64)), random.standard_normal(64, dtype="float32"), jnp.int32(70)


remember_donated = jax.jit(remember.__wrapped__, donate_argnums=0)
remember_donated_inputs = remember_inputs
