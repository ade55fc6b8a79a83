# about: the poses of many arms, each joint a 4 x 4 matrix
# cause: many small products
# expect: unvectorised
# run: reached
# mended: reached_written_out
import jax
import jax.numpy as jnp


def joint(angles):
    cosines, sines = jnp.cos(angles), jnp.sin(angles)
    rows = [[cosines, -sines, 0, cosines], [sines, cosines, 0, sines], [0, 0, 1, 0.1], [0, 0, 0, 1]]
    return jnp.stack([jnp.stack(jnp.broadcast_arrays(angles, *row)[1:], -1) for row in rows], -2)


def multiplied(product):
    def arm(pose, angles):
        return product(pose, joint(angles)), None

    def along(angles):
        first = jnp.broadcast_to(jnp.eye(4), (angles.shape[1], 4, 4))
        return jax.lax.scan(arm, first, angles)[0][:, :3, 3]

    return along


reached = multiplied(lambda a, b: a @ b)  # <- cause


def reached_inputs(random):
    return (random.random((6, 20_000), dtype="float32"),)


reached_written_out = multiplied(lambda a, b: sum(a[..., :, k, None] * b[..., k, None, :] for k in range(4)))
reached_written_out_inputs = reached_inputs
