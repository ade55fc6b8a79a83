# about: hundreds of targets are tracked one after the other, so that each kernel works on a 4 x 4 matrix
# cause: kernel far below
# expect: small_loop_body | slow_kernel
# run: follow_all
# mended: follow_together
# targets: h100
import jax
import jax.numpy as jnp

F = jnp.eye(4) + 0.1 * jnp.eye(4, k=2)
H = jnp.eye(2, 4)


def follow(seen):
    """A Kalman filter for something that moves in a plane."""

    def step(state, z):
        x, p = state
        x, p = F @ x, F @ p @ F.T + 0.01 * jnp.eye(4)  # <- cause
        s = H @ p @ H.T + 0.1 * jnp.eye(2)  # <- cause
        adjugate = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]])  # <- cause
        gain = p @ H.T @ adjugate / (s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0])  # <- cause
        x = x + gain @ (z - H @ x)  # <- cause
        return (x, p - gain @ H @ p), x  # <- cause

    return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), seen)[1]  # <- cause


@jax.jit
def follow_all(seen):
    return jax.lax.map(follow, seen)  # <- cause


def follow_all_inputs(random):
    return random.standard_normal((256, 60, 2), dtype="float32").cumsum(1)


@jax.jit
def follow_together(seen):
    return jax.vmap(follow)(seen)


follow_together_inputs = follow_all_inputs
