# about: the newest frame is appended by copying all that came before
# cause: copies
# expect: copy_traffic | whole_carry
# run: watch
# mended: watch_shifted
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp

KEPT = 64


def watch(stack, frames):
    """How much each frame of a film differs from the one 64 frames before."""

    def see(stack, frame):
        change = jnp.abs(frame - stack[0]).mean()
        return jnp.concatenate([stack[1:], frame[None]]), change  # <- cause

    return jax.lax.scan(see, stack, frames)  # <- cause


def watch_inputs(random):
    return jnp.zeros((KEPT, 96, 96)), random.random((KEPT, 96, 96), dtype="float32")


def watch_shifted(stack, frames):
    film = jnp.concatenate([stack, frames])
    return film[-KEPT:], jnp.abs(film[KEPT:] - film[:-KEPT]).mean((1, 2))


watch_shifted_inputs = watch_inputs
