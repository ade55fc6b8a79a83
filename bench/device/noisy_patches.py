# about: vmap turns the cond into a select, so that all patches are denoised for the few that are noisy
# cause: both branches
# expect: both_branches
# run: restore_all
# mended: restore_each
# trial: map
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp


def denoise(patch):
    def smooth(_, p):
        around = sum(jnp.roll(p, s, a) for s in (1, -1) for a in (0, 1))
        return p + 0.2 * jnp.tanh(around / 4 - p)

    return jax.lax.fori_loop(0, 60, smooth, patch)


def restore(patch):
    return jax.lax.cond(jnp.std(patch) > 1.0, denoise, lambda p: p, patch)  # <- cause


def restore_all(patches):
    return jax.vmap(restore)(patches)  # <- cause


def restore_all_inputs(random):
    patches = 0.1 * random.standard_normal((96, 64, 64), dtype="float32")
    patches[::24] *= 30
    return patches


def restore_each(patches):
    return jax.lax.map(restore, patches)


restore_each_inputs = restore_all_inputs
